"""Reads the text of a grammar, in Lark's form or in GBNF's, into `syntax`. Knows nothing of what the names in it mean.

A rule's body goes on to the next line unless a definition or a directive begins there, so both forms' ways to break lines work.
"""

from __future__ import annotations

import re
from typing import NoReturn

from grammar.budget import Budget
from grammar.ebnf.common import PATTERNS
from grammar.ebnf.scanner import Token, is_gbnf, tokens_of
from grammar.ebnf.syntax import (
    Class,
    Definition,
    Literal,
    Name,
    Node,
    Options,
    Pattern,
    Schema,
    Series,
    Source,
    Special,
    Times,
    position,
)
from grammar.errors import EbnfError
from grammar.text import charset

_DEEPEST_GROUP = 100
_LARGEST_COUNT = 100_000
_OPTION = re.compile(r"\s*(\w+)\s*(?:=\s*\"((?:[^\"\\]|\\.)*)\")?\s*(?:,|$)")


def read(text: str, budget: Budget, syntax: str | None = None) -> Source:
    """The definitions of a grammar; `syntax` is "lark", "gbnf", or None to tell by the text. Raises EbnfError."""
    gbnf = is_gbnf(text) if syntax is None else syntax == "gbnf"
    return _Reader(text, gbnf, budget).source()


class _Reader:
    def __init__(self, text: str, gbnf: bool, budget: Budget) -> None:
        self._source = Source(text, gbnf)
        self._tokens = tokens_of(text, gbnf, budget)
        self._n = 0

    def source(self) -> Source:
        while (token := self._next()).kind != "end":
            if token.kind == "head":
                self._define(token)
            elif token.kind == "directive":
                self._directive(token)
            else:
                self._fail("expected a rule, as in  " + ("root ::= ..." if self._source.gbnf else "start: ..."), token)
        return self._source

    # --- tokens

    @property
    def _token(self) -> Token:
        return self._tokens[self._n]

    def _next(self) -> Token:
        token = self._tokens[self._n]
        self._n = min(self._n + 1, len(self._tokens) - 1)
        return token

    def _sees(self, *signs: str) -> bool:
        return self._token.kind == "sign" and self._token.value in signs

    def _skip(self, sign: str) -> bool:
        found = self._sees(sign)
        self._n += found
        return found

    def _expect(self, sign: str, where: str) -> None:
        if not self._skip(sign):
            self._fail(f"expected {sign} {where}", self._token)

    def _name(self, what: str) -> str:
        token = self._next()
        if token.kind != "name":
            self._fail(f"expected {what}", token)
        return str(token.value)

    def _number(self) -> int:
        token = self._next()
        if token.kind != "number" or int(token.value[:9]) > _LARGEST_COUNT:
            self._fail(f"expected a number of at most {_LARGEST_COUNT}", token)
        return int(token.value)

    def _fail(self, reason: str, token: Token) -> NoReturn:
        raise EbnfError(reason, *position(self._source.text, token.place))

    # --- definitions and directives

    def _define(self, head: Token) -> None:
        match: re.Match[str] = head.value
        name, options = match["name"], match["options"] or ""
        if (match["sign"] == "::=") != self._source.gbnf:
            self._fail(f"expected {'::=' if self._source.gbnf else ':'} behind the name, as in the other rules", head)
        if options.startswith("{"):
            self._fail("templates are not supported: write the rule out", head)
        if name in self._source.definitions or name in self._source.imports:
            self._fail(f"{name} is defined twice", head)
        lazy, suffix = self._rule_options(options[1:-1], head)
        body = self._alternatives(0)
        if self._token.kind not in ("head", "directive", "end"):
            self._fail(f"expected the end of {name} or another part of it", self._token)
        self._source.definitions[name] = Definition(name, body, head.place, lazy or suffix is not None, suffix)

    def _rule_options(self, text: str, head: Token) -> tuple[bool, str | None]:
        """(lazy, suffix) of [lazy, suffix="..."]; captures say nothing about which texts there are."""
        lazy, suffix, at = False, None, 0
        while at < len(text):
            option = _OPTION.match(text, at)
            if option is None or option[1] not in ("lazy", "suffix", "capture") or (option[1] == "suffix" and option[2] is None):
                self._fail("expected lazy, suffix=\"...\" or capture as a rule's option", head)
            lazy = lazy or option[1] == "lazy"
            suffix = option[2] if option[1] == "suffix" else suffix
            at = option.end()
        return lazy, suffix

    def _directive(self, token: Token) -> None:
        if token.value == "ignore" and not self._source.gbnf:
            self._source.ignored.append(self._alternatives(0))
        elif token.value == "import" and not self._source.gbnf:
            self._import(token)
        elif token.value in ("llguidance", "grammar_options"):
            self._options(token)
        else:
            self._fail(f"%{token.value} is not supported", token)

    def _import(self, directive: Token) -> None:
        """%import common.A -> B, or %import common (A, B)."""
        if self._name("common behind %import") != "common":
            self._fail("expected common: there are no other grammars to import from", directive)
        if self._skip("("):
            while True:
                self._imported(None)
                if not self._skip(","):
                    break
            return self._expect(")", "behind the imported names")
        self._expect(".", "or ( behind common")
        self._imported(directive)

    def _imported(self, directive: Token | None) -> None:
        token = self._token
        name = self._name("the name of a common terminal")
        if name not in PATTERNS:
            self._fail(f"there is no common terminal {name}: there are {', '.join(PATTERNS)}", token)
        alias = self._name("a name behind ->") if directive and self._skip("->") else name
        if alias in self._source.definitions or self._source.imports.get(alias, name) != name:
            self._fail(f"{alias} is defined twice", token)
        self._source.imports[alias] = name

    def _options(self, directive: Token) -> None:
        """Options of other engines: only an empty list says nothing about the texts."""
        self._expect("{", f"behind %{directive.value}")
        self._expect("}", f"behind %{directive.value}: no option is supported")

    # --- bodies

    def _alternatives(self, depth: int) -> Node:
        if depth > _DEEPEST_GROUP:
            self._fail(f"groups nested more than {_DEEPEST_GROUP} deep", self._token)
        parts = [] if self._sees("|") and self._token_after_head() else [self._series(depth)]
        while self._skip("|"):
            parts.append(self._series(depth))
        return parts[0] if len(parts) == 1 else Options(tuple(parts))

    def _token_after_head(self) -> bool:
        """A body that begins with | on a line of its own: the bar only draws a column."""
        before = self._tokens[self._n - 1]
        return before.kind == "head" and "\n" in self._source.text[before.place:self._token.place]

    def _series(self, depth: int) -> Node:
        parts: list[Node] = []
        while not self._sees("|", ")", "]", "->") and self._token.kind not in ("head", "directive", "end"):
            parts.append(self._repeated(self._atom(depth)))
        if self._skip("->"):
            self._name("an alias behind ->")
        return parts[0] if len(parts) == 1 else Series(tuple(parts))

    def _repeated(self, atom: Node) -> Node:
        while True:
            if self._skip("?"):
                atom = Times(atom, 0, 1)
            elif self._skip("*"):
                atom = Times(atom, 0, None)
            elif self._skip("+"):
                atom = Times(atom, 1, None)
            elif self._skip("~"):
                least = self._number()
                atom = self._counted(atom, least, self._number() if self._skip("..") else least)
            elif self._skip("{"):
                atom = self._counted(atom, *self._braces())
            else:
                return atom

    def _braces(self) -> tuple[int, int | None]:
        """n} or n,m} or n,} or ,m}"""
        if self._token.kind == "name":
            self._fail("templates are not supported: write the rule out", self._token)
        least = 0 if self._sees(",") else self._number()
        most: int | None = least
        if self._skip(","):
            most = None if self._sees("}") else self._number()
        self._expect("}", "behind a count")
        return least, most

    def _counted(self, atom: Node, least: int, most: int | None) -> Node:
        if most is not None and most < least:
            self._fail("a repetition's bounds are in the wrong order", self._tokens[self._n - 1])
        return Times(atom, least, most)

    def _atom(self, depth: int) -> Node:
        token = self._next()
        match token.kind:
            case "string":
                return self._range(token) if self._skip("..") else Literal(token.value, bool(token.flags), token.place)
            case "regex":
                return Pattern(token.value, token.flags, token.place)
            case "class":
                return Class(token.value, token.place)
            case "name":
                return Name(token.value, token.place)
            case "special":
                return Special(token.value, token.place)
            case "json":
                return Schema(token.value, token.place)
        if token.kind == "sign":
            if token.value == "(":
                inner = self._alternatives(depth + 1)
                self._expect(")", "at the end of a group")
                return inner
            if token.value == "[":
                inner = self._alternatives(depth + 1)
                self._expect("]", "at the end of an optional group")
                return Times(inner, 0, 1)
            if token.value == "." and self._source.gbnf:
                return Class(charset.ALL, token.place)
        self._fail(f"expected a string, a name, a group{' or a class' if self._source.gbnf else ' or a regex'}, "
                   f"not {token.value!r}" if token.kind != "end" else "the grammar ends too early", token)

    def _range(self, low: Token) -> Node:
        high = self._next()
        if high.kind != "string" or len(low.value) != 1 or len(high.value) != 1 or low.flags or high.flags:
            self._fail("expected one character on either side of ..", high)
        if low.value > high.value:
            self._fail("a range in the wrong order", high)
        return Class(charset.of((ord(low.value), ord(high.value))), low.place)
