"""The characters of a regex: classes and escapes, in either reading."""

from __future__ import annotations

from dataclasses import dataclass

from grammar.budget import Budget
from grammar.errors import PatternError
from grammar.text import charset, unicode_classes
from grammar.text.charset import CharSet
from grammar.text.regex_tree import Chars

_LONGEST_NAME = 200         # of a group or a property
_CONTROL = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "0": 0}


@dataclass(frozen=True, slots=True)
class Mode:
    """How the parser reads at a place: which reading, and the flags i, m, s."""

    outer: bool
    any_case: bool = False
    lines: bool = False
    dot_all: bool = False

    def reading(self, outer: bool) -> Mode:
        """The same flags in a reading."""
        return Mode(outer, self.any_case, self.lines, self.dot_all)


class CharacterReader:
    """Reads a pattern from `at` on. `differs` says whether anything so far is read in two ways."""

    def __init__(self, pattern: str, budget: Budget) -> None:
        self.pattern, self.at, self.budget = pattern, 0, budget
        self.differs = False

    def error(self, reason: str) -> PatternError:
        return PatternError(f"{reason} at position {self.at} of the regex {self.pattern[:200]!r}")

    # --- the text

    def peek(self, text: str) -> bool:
        return self.pattern.startswith(text, self.at)

    def skip(self, text: str) -> bool:
        if self.peek(text):
            self.at += len(text)
            return True
        return False

    def next(self) -> str:
        if self.at >= len(self.pattern):
            raise self.error("it ends too early")
        self.at += 1
        return self.pattern[self.at - 1]

    def upto(self, closing: str, what: str) -> str:
        """A name up to and without `closing`, which is read too."""
        name, closed, _ = self.pattern[self.at:self.at + _LONGEST_NAME].partition(closing)
        if not closed:
            raise self.error(f"a bad {what}")
        self.at += len(name) + 1
        return name

    def folded(self, chars: CharSet, mode: Mode) -> Chars:
        if not mode.any_case:
            return Chars(chars)
        self.differs = True
        return Chars(unicode_classes.ignoring_case(chars, mode.outer))

    # --- classes

    def char_class(self, mode: Mode) -> CharSet:
        """The set of a [class] behind its bracket."""
        negated = self.skip("^")
        if self.skip("]"):
            if "]" in self.pattern[self.at:]:
                raise self.error("a bare ] at the start of a class is read in two ways; escape it")
            return charset.ALL if negated else charset.EMPTY
        mode = mode.reading(mode.outer != negated)
        members: list[CharSet] = []
        while not self.skip("]"):
            low = self.class_member(mode)
            self.budget.spend("automaton_steps", len(low) if isinstance(low, tuple) else 2)
            if self.peek("-") and not self.peek("-]"):
                self.next()
                members.append(self.class_range(low, self.class_member(mode)))
            else:
                members.append(low if isinstance(low, tuple) else one(low))
        chars = self.folded(charset.join(*members), mode).chars
        return charset.complement(chars) if negated else chars

    def class_member(self, mode: Mode) -> int | CharSet:
        """One character (as a code point, surrogates too) or a class escape."""
        c = self.next()
        if c != "\\":
            return ord(c)
        found = self.class_escape(mode)
        if found is not None:
            return found
        return 8 if self.skip("b") else self.escaped_point(mode)

    def class_range(self, low: int | CharSet, high: int | CharSet) -> CharSet:
        if isinstance(low, tuple) or isinstance(high, tuple):   # ECMA-262's lenient spelling of a bare hyphen
            ends = (end if isinstance(end, tuple) else one(end) for end in (low, high))
            return charset.join(charset.of("-"), *ends)
        if low > high:
            raise self.error("a range in the wrong order")
        return charset.of((low, high))

    # --- escapes

    def class_escape(self, mode: Mode) -> CharSet | None:
        r"""\d \w \s \p and their complements (the backslash is read), else None."""
        c = self.pattern[self.at:self.at + 1]
        if not c or c not in "dDwWsSpP":
            return None
        self.at += 1
        self.differs = True
        if c not in "pP":
            return unicode_classes.escape_class(c, mode.outer)
        name = self.upto("}", "Unicode property") if self.skip("{") else self.next()
        try:
            chars = unicode_classes.property_class(name, mode.outer if c == "p" else not mode.outer)
        except PatternError as problem:
            raise self.error(str(problem)) from None
        return chars if c == "p" else charset.complement(chars)

    def escaped_point(self, mode: Mode) -> int:
        """The code point of a character escape (the backslash is read)."""
        c = self.next()
        if c == "0" and self.pattern[self.at:self.at + 1].isdecimal():
            raise self.error("an octal escape is not supported")
        if c in _CONTROL:
            return _CONTROL[c]
        if c == "x":
            return self.hex_digits(2)
        if c == "u":
            return self.unicode_escape(mode)
        if c == "c" and (letter := self.pattern[self.at:self.at + 1]).isascii() and letter.isalpha():
            self.at += 1
            return ord(letter) % 32
        if c.isalnum() and c.isascii():
            self.at -= 1
            raise self.error(f"the escape \\{c} is not supported")
        return ord(c)

    def unicode_escape(self, mode: Mode) -> int:
        """The code point of \\uHHHH or \\u{H...} (the u is read).

        Two escapes of a surrogate pair are one character to ECMA-262 alone; to Python they match no text.
        """
        if self.skip("{"):
            digits = self.upto("}", "\\u{...} escape")
            self.at -= len(digits) + 1
            point = self.hex_digits(len(digits)) if 0 < len(digits) <= 6 else 0x110000
            self.at += 1
            if point > 0x10FFFF:
                raise self.error("a bad \\u{...} escape")
            return point
        point = self.hex_digits(4)
        if 0xD800 <= point <= 0xDBFF and self.peek("\\u") and not self.peek("\\u{"):
            self.differs = True
            if mode.outer:
                start = self.at
                self.at += 2
                low = self.hex_digits(4)
                if 0xDC00 <= low <= 0xDFFF:
                    return 0x10000 + (point - 0xD800 << 10) + (low - 0xDC00)
                self.at = start
        return point

    def hex_digits(self, n: int) -> int:
        digits = self.pattern[self.at:self.at + n]
        if len(digits) < n or any(d not in "0123456789abcdefABCDEF" for d in digits):
            raise self.error("a bad hexadecimal escape")
        self.at += n
        return int(digits, 16)


def one(point: int) -> CharSet:
    """The set of one character; empty for a surrogate."""
    return charset.of((point, point))
