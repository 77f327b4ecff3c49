"""What can be wrong with a schema or a regex.

    SchemaError            it is malformed, unsatisfiable, or uses what is not supported
      Circular             a schema leads back to itself
      GrammarTooLarge      it is well-formed, but a budget of the compiler does not cover it
      EbnfError            the text of a context-free grammar is wrong at one place
"""

from __future__ import annotations


class SchemaError(ValueError):
    """Says what is wrong, by which keyword and where.

    `pointer` is a JSON pointer into the schema ("" is its root); `keyword` is None where no single keyword is to blame.
    """

    def __init__(self, reason: str, *, keyword: str | None = None, pointer: str = "") -> None:
        self.reason, self.keyword, self.pointer = reason, keyword, pointer
        place = f"at {pointer or 'the root'}"
        super().__init__(f"{place}, keyword {keyword!r}: {reason}" if keyword else f"{place}: {reason}")


class Circular(SchemaError):
    """A schema leads back to itself with no property or item between."""


class GrammarTooLarge(SchemaError):
    """A limit was exceeded: `limit` is its name in `Limits`, `allowed` its value, `needed` what it would take at the least."""

    def __init__(self, limit: str, allowed: int, needed: int, *, keyword: str | None = None, pointer: str = "") -> None:
        self.limit, self.allowed, self.needed = limit, allowed, needed
        words = limit.replace("_", " ")
        super().__init__(f"too large: needs at least {needed} {words}, the limit is {allowed}", keyword=keyword, pointer=pointer)

    def at(self, pointer: str, keyword: str | None = None) -> GrammarTooLarge:
        """The error with a place; itself, if it has one."""
        if self.pointer or self.keyword:
            return self
        return GrammarTooLarge(self.limit, self.allowed, self.needed, keyword=keyword, pointer=pointer)


class EbnfError(SchemaError):
    """Says what is wrong with the text of a grammar, and at which line and column, both from 1."""

    def __init__(self, reason: str, line: int, column: int) -> None:
        self.reason, self.keyword, self.pointer = reason, None, ""
        self.line, self.column = line, column
        ValueError.__init__(self, f"line {line}, column {column}: {reason}")


class PatternError(ValueError):
    """A regex is invalid or uses a construct that is not supported. The caller knows where it stands."""
