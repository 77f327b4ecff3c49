"""Regexes: the common ground of ECMA-262 and Python, read into a small tree.

A tree is one of
    Chars(set) · Join(parts) · Either(parts) · Repeat(part, least, most) · Begin() · End()
Laziness of quantifiers is dropped: it changes which match is found, not whether there is one. What the two dialects
read differently, or what is no regular language, is refused by name: look-around, backreferences, word boundaries,
inline flags, atomic groups, possessive quantifiers, \\A \\Z, \\p.
"""

from __future__ import annotations

from dataclasses import dataclass

from grammar import charset
from grammar.budget import Budget
from grammar.charset import CharSet
from grammar.errors import PatternError

_DEEPEST_GROUP = 100
_LARGEST_COUNT = 100_000
_LONGEST_NAME = 200         # of a group


@dataclass(frozen=True, slots=True)
class Chars:
    chars: CharSet


@dataclass(frozen=True, slots=True)
class Join:
    parts: tuple[Regex, ...]


@dataclass(frozen=True, slots=True)
class Either:
    parts: tuple[Regex, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    part: Regex
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Begin:
    """^ : only at the start of the text."""


@dataclass(frozen=True, slots=True)
class End:
    """$ : only at the end of the text."""


Regex = Chars | Join | Either | Repeat | Begin | End

ANY_TEXT = Repeat(Chars(charset.ALL), 0, None)

_CONTROL = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "0": 0}
_CLASSES = {"d": charset.DIGIT, "w": charset.WORD, "s": charset.SPACE}
_REFUSED_GROUPS = {"?=": "look-ahead", "?!": "look-ahead", "?<=": "look-behind", "?<!": "look-behind", "?>": "an atomic group",
                   "?(": "a conditional group", "?#": "a comment", "?P=": "a backreference"}
_REFUSED_ESCAPES = {"b": "a word boundary", "B": "a word boundary", "A": "the anchor \\A", "Z": "the anchor \\Z",
                    "k": "a backreference", "p": "a Unicode property", "P": "a Unicode property", "G": "the anchor \\G"}


def parse(pattern: str, budget: Budget | None = None) -> Regex:
    """The tree of a regex; raises PatternError, and GrammarTooLarge where `budget` does not suffice for the tree alone."""
    reader = _Reader(pattern, budget or Budget())
    tree = reader.alternatives(0)
    if reader.at < len(pattern):
        raise reader.error("unbalanced )")
    return tree


def searched(tree: Regex) -> Regex:
    """The texts in which `tree` is found somewhere, as JSON Schema's `pattern` asks."""
    return Join((ANY_TEXT, tree, ANY_TEXT))


class _Reader:
    """A recursive-descent parser; `at` is the next character.

    It pays for the tree as it grows: a short `\\W` is a set of hundreds of ranges, and a megabyte of them would fill any memory.
    """

    def __init__(self, pattern: str, budget: Budget) -> None:
        self.pattern, self.at, self.budget, self.n_chars = pattern, 0, budget, 0

    def error(self, reason: str) -> PatternError:
        return PatternError(f"{reason} at position {self.at} of the regex {self.pattern[:200]!r}")

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

    def alternatives(self, depth: int) -> Regex:
        if depth > _DEEPEST_GROUP:
            raise self.error(f"groups nested more than {_DEEPEST_GROUP} deep")
        parts = [self.sequence(depth)]
        while self.skip("|"):
            self.budget.spend("automaton_steps", 2)
            parts.append(self.sequence(depth))
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def sequence(self, depth: int) -> Regex:
        parts: list[Regex] = []
        while self.at < len(self.pattern) and not self.peek("|") and not self.peek(")"):
            atom = self.atom(depth)
            self.pay(atom)
            parts.append(self.quantified(atom))
        return parts[0] if len(parts) == 1 else Join(tuple(parts))

    def pay(self, atom: Regex) -> None:
        self.budget.spend("automaton_steps", 2)
        if isinstance(atom, Chars):
            self.n_chars += 1
            self.budget.check("regex_states", self.n_chars)
            self.budget.spend("automaton_steps", len(atom.chars))

    def atom(self, depth: int) -> Regex:
        c = self.next()
        if c == "^":
            return Begin()
        if c == "$":
            return End()
        if c == ".":
            return Chars(charset.complement(charset.LINE_ENDS))
        if c == "(":
            return self.group(depth)
        if c == "[":
            return Chars(self.char_class())
        if c == "\\":
            return Chars(self.escape())
        if c in "*+?" or (c == "{" and self.count_after_brace(self.at) is not None):
            self.at -= 1
            raise self.error("nothing to repeat")
        return Chars(charset.of(c))

    def group(self, depth: int) -> Regex:
        for start, name in _REFUSED_GROUPS.items():
            if self.peek(start):
                raise self.error(f"{name} is not supported")
        if self.skip("?P<") or self.skip("?<"):
            name, closed, _ = self.pattern[self.at:self.at + _LONGEST_NAME].partition(">")
            if not closed or not name.isidentifier():
                raise self.error("a bad group name")
            self.at += len(name) + 1
        elif self.peek("?") and not self.skip("?:"):
            raise self.error("inline flags are not supported")
        inner = self.alternatives(depth + 1)
        if not self.skip(")"):
            raise self.error("a ( is never closed")
        return inner

    def quantified(self, atom: Regex) -> Regex:
        count = self.quantifier()
        if count is None:
            return atom
        if isinstance(atom, Begin | End):
            raise self.error("an anchor cannot be repeated")
        least, most = count
        if most is not None and most < least:
            raise self.error("a repetition's bounds are in the wrong order")
        if max(least, most or 0) > _LARGEST_COUNT:
            raise self.error(f"a repetition of more than {_LARGEST_COUNT}")
        if self.peek("+"):
            raise self.error("a possessive quantifier is not supported")
        self.skip("?")
        if self.quantifier() is not None:
            raise self.error("multiple repeat")
        return Repeat(atom, least, most)

    def quantifier(self) -> tuple[int, int | None] | None:
        for sign, count in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.skip(sign):
                return count
        if not self.peek("{"):
            return None
        found = self.count_after_brace(self.at + 1)
        if found is None:
            return None
        least, most, self.at = found
        return least, most

    def count_after_brace(self, at: int) -> tuple[int, int | None, int] | None:
        """(least, most, position behind) of a counted repetition whose brace ends before `at`; None for a literal brace."""
        body, closed, _ = self.pattern[at:at + 40].partition("}")
        least, comma, most = body.partition(",")
        if closed and not least and comma and most.isdecimal():
            raise self.error("{,n} is read in two ways; write {0,n}")
        if not closed or not (least.isascii() and least.isdecimal()) or (most and not (most.isascii() and most.isdecimal())):
            return None
        return int(least), (int(most) if most else None) if comma else int(least), at + len(body) + 1

    def char_class(self) -> CharSet:
        negated = self.skip("^")
        members: list[CharSet] = []
        if self.peek("]"):
            raise self.error("an empty class, or a bare ] in a class,")
        while not self.skip("]"):
            low = self.class_member(negated)
            self.budget.spend("automaton_steps", len(low) if isinstance(low, tuple) else 2)
            if self.peek("-") and not self.peek("-]"):
                self.next()
                members.append(self.class_range(low, self.class_member(negated)))
            else:
                members.append(low if isinstance(low, tuple) else _one(low))
        chars = charset.join(*members)
        return charset.complement(chars) if negated else chars

    def class_member(self, negated: bool) -> int | CharSet:
        """One character (as a code point, surrogates too) or a class escape."""
        c = self.next()
        if c != "\\":
            return ord(c)
        return self.escaped_point() if (found := self.class_escape(negated)) is None else found

    def class_range(self, low: int | CharSet, high: int | CharSet) -> CharSet:
        if isinstance(low, tuple) or isinstance(high, tuple):
            raise self.error("a range needs a character at both ends")
        if low > high:
            raise self.error("a range in the wrong order")
        return charset.of((low, high))

    def class_escape(self, negated: bool) -> CharSet | None:
        r"""\d \w \s and their complements, else None. Inside a negated class the wide reading is what keeps a match safe."""
        c = self.pattern[self.at:self.at + 1]
        if not c or c.lower() not in _CLASSES:
            return None
        self.at += 1
        if c.islower():
            return charset.widest(c) if negated else _CLASSES[c]
        return charset.complement(_CLASSES[c.lower()] if negated else charset.widest(c.lower()))

    def escape(self) -> CharSet:
        found = self.class_escape(negated=False)
        if found is not None:
            return found
        c = self.pattern[self.at:self.at + 1]
        if c in _REFUSED_ESCAPES and c:
            raise self.error(f"{_REFUSED_ESCAPES[c]} is not supported")
        if c.isdecimal() and c != "0":
            raise self.error("a backreference is not supported")
        return _one(self.escaped_point())

    def escaped_point(self) -> int:
        """The code point of a character escape (the backslash is read)."""
        c = self.next()
        if c == "0" and self.pattern[self.at:self.at + 1].isdecimal():
            raise self.error("an octal escape is not supported")
        if c in _CONTROL:
            return _CONTROL[c]
        if c == "b":
            return 8    # in a class; outside it the caller has refused it
        if c == "x":
            return self.hex_digits(2)
        if c == "u":
            if self.skip("{"):
                digits, closed, _ = self.pattern[self.at:self.at + 8].partition("}")
                if not closed or not digits or len(digits) > 6:
                    raise self.error("a bad \\u{...} escape")
                point = self.hex_digits(len(digits))
                self.at += 1
                if point > 0x10FFFF:
                    raise self.error("a code point above 10FFFF")
                return point
            return self.hex_digits(4)
        if c == "c" and (letter := self.pattern[self.at:self.at + 1]).isascii() and letter.isalpha():
            self.at += 1
            return ord(letter) % 32
        if c.isalnum() and c.isascii():
            self.at -= 1
            raise self.error(f"the escape \\{c} is not supported")
        return ord(c)

    def hex_digits(self, n: int) -> int:
        digits = self.pattern[self.at:self.at + n]
        if len(digits) < n or any(d not in "0123456789abcdefABCDEF" for d in digits):
            raise self.error("a bad hexadecimal escape")
        self.at += n
        return int(digits, 16)


def _one(point: int) -> CharSet:
    return charset.of((point, point))
