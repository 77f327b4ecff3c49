r"""Regexes: ECMA-262 as JSON Schema uses it, and what Python's `re` makes of the same text, read into a tree.

A pattern is read once for each of the two readings of `grammar.text.regex_tree`: `parse` gives the inner one, `parse_outer` the
outer one. Laziness of quantifiers is dropped: it changes which match is found, not whether there is one.

Supported: characters, `.`, classes, \d \w \s \p{...} and their complements, groups, alternatives, quantifiers, ^ $ \A \Z \b \B
and look-around anywhere, the flags i, m, s, and of ECMA-262's lenient spellings those that schemas contain. What is no regular
language, or valid in no dialect, is refused by name.
"""

from __future__ import annotations

from dataclasses import dataclass

from grammar.budget import Budget
from grammar.text import charset, unicode_classes
from grammar.text.charset import CharSet
from grammar.text.regex_characters import CharacterReader, Mode, one
from grammar.text.regex_tree import (
    EMPTY_TEXT,
    Begin,
    Chars,
    Either,
    End,
    Join,
    Look,
    Regex,
    Repeat,
    before,
    behind,
    searched,
    takes_nothing,
)

__all__ = ["Regex", "parse", "parse_outer", "searched"]

_DEEPEST_GROUP = 100
_LARGEST_COUNT = 100_000

_LOOKS = {"?=": (True, False), "?!": (True, True), "?<=": (False, False), "?<!": (False, True)}   # ahead, negative
_REFUSED_GROUPS = {"?>": "an atomic group", "?(": "a conditional group", "?#": "a comment", "?P=": "a backreference",
                   "?P>": "a recursion", "?R": "a recursion", "?&": "a recursion"}
_REFUSED_ESCAPES = {"k": "a backreference", "G": "the anchor \\G", "z": "the anchor \\z", "N": "a named character",
                    "K": "\\K", "R": "\\R", "X": "\\X", "h": "\\h"}
_LINE_FEED = charset.of("\n")
_ANCHORS = frozenset(("\\A", "\\Z", "\\b", "\\B"))


def parse(pattern: str, budget: Budget | None = None) -> Regex:
    """The inner reading: what every dialect matches.

    Raises PatternError, and GrammarTooLarge where `budget` does not suffice for the tree alone.
    """
    return _read(pattern, budget, False).tree


def parse_outer(pattern: str, budget: Budget | None = None) -> Regex | None:
    """The outer reading: what any dialect matches; None where it is the same as the inner one. Raises as `parse` does."""
    found = _read(pattern, budget, True)
    return found.tree if found.differs else None


@dataclass(frozen=True, slots=True)
class _Read:
    tree: Regex
    differs: bool   # from the other reading


def _read(pattern: str, budget: Budget | None, outer: bool) -> _Read:
    reader = _Reader(pattern, budget or Budget())
    tree = reader.alternatives(reader.leading_flags(Mode(outer)), 0)
    if reader.at < len(pattern):
        raise reader.error("unbalanced )")
    return _Read(tree, reader.differs)


class _Reader(CharacterReader):
    """A recursive-descent parser of the structure.

    It pays for the tree as it grows: a short `\\W` is a set of hundreds of ranges, and a megabyte of them would fill any memory.
    """

    def __init__(self, pattern: str, budget: Budget) -> None:
        super().__init__(pattern, budget)
        self.n_chars = 0

    def alternatives(self, mode: Mode, depth: int) -> Regex:
        if depth > _DEEPEST_GROUP:
            raise self.error(f"groups nested more than {_DEEPEST_GROUP} deep")
        parts = [self.sequence(mode, depth)]
        while self.skip("|"):
            self.budget.spend("automaton_steps", 2)
            parts.append(self.sequence(mode, depth))
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def sequence(self, mode: Mode, depth: int) -> Regex:
        parts: list[Regex] = []
        while self.at < len(self.pattern) and not self.peek("|") and not self.peek(")"):
            quantifiable = not (self.peek("^") or self.peek("$") or self.pattern[self.at:self.at + 2] in _ANCHORS)
            atom = self.atom(mode, depth)
            self.pay(atom)
            parts.append(self.quantified(atom, quantifiable))
        return parts[0] if len(parts) == 1 else Join(tuple(parts))

    def pay(self, atom: Regex) -> None:
        self.budget.spend("automaton_steps", 2)
        if isinstance(atom, Chars):
            self.n_chars += 1
            self.budget.check("regex_states", self.n_chars)
            self.budget.spend("automaton_steps", len(atom.chars))

    def atom(self, mode: Mode, depth: int) -> Regex:
        c = self.next()
        if c == "^":
            return self.line_begin(mode)
        if c == "$":
            return self.line_end(mode)
        if c == ".":
            return Chars(self.dot(mode))
        if c == "(":
            return self.group(mode, depth)
        if c == "[":
            return Chars(self.char_class(mode))
        if c == "\\":
            return self.escape(mode)
        if c in "*+?" or (c == "{" and self.count_after_brace(self.at) is not None):
            self.at -= 1
            raise self.error("nothing to repeat")
        return self.folded(charset.of(c), mode)

    # --- what takes no characters

    def line_begin(self, mode: Mode) -> Regex:
        if not mode.lines:
            return Begin()
        self.differs = True
        return Either((Begin(), before(charset.LINE_ENDS if mode.outer else _LINE_FEED)))

    def line_end(self, mode: Mode) -> Regex:
        """The very end; Python takes a line feed there too, if it is the last character."""
        self.differs = True
        if mode.lines:
            return Either((End(), behind(charset.LINE_ENDS if mode.outer else _LINE_FEED)))
        return Either((End(), Look(Join((Chars(_LINE_FEED), End())), True, False))) if mode.outer else End()

    def word_boundary(self, mode: Mode, inside: bool) -> Regex:
        r"""\b or, with `inside`, \B. A character beyond ASCII may be a word's to one dialect and not to the other.

        So there are three kinds of neighbours: surely in a word, in doubt, and surely in none, as the text's ends are.
        """
        self.differs = True
        sure, loose = (unicode_classes.escape_class("w", outer) for outer in (False, True))
        doubt, none = charset.difference(loose, sure), charset.complement(loose)
        alike = [(sure, False, sure, False), (none, False, loose, True), (loose, True, none, False), (doubt, False, doubt, False)]
        if mode.outer:
            alike.append((loose, True, loose, True))    # the empty text, where Python finds no \B
        apart = [(sure, False, loose, True), (loose, True, sure, False)]
        mixed = [(doubt, False, sure, False), (sure, False, doubt, False),
                 (doubt, False, loose, True), (loose, True, doubt, False)]
        chosen = (alike if inside else apart) + (mixed if mode.outer else [])
        return Either(tuple(Join((before(left, no_left), behind(right, no_right))) for left, no_left, right, no_right in chosen))

    def dot(self, mode: Mode) -> CharSet:
        if mode.dot_all:
            return charset.ALL
        self.differs = True
        return charset.complement(_LINE_FEED if mode.outer else charset.LINE_ENDS)

    # --- groups

    def leading_flags(self, mode: Mode) -> Mode:
        """Flags of the whole pattern, as Python writes them: (?i) in front."""
        if self.peek("(?") and self.pattern[self.at + 2:self.at + 3] in set("ims"):
            end = self.pattern.find(")", self.at, self.at + 8)
            if end > 0 and set(self.pattern[self.at + 2:end]) <= set("ims"):
                flags = self.pattern[self.at + 2:end]
                self.at = end + 1
                return Mode(mode.outer, "i" in flags, "m" in flags, "s" in flags)
        return mode

    def group(self, mode: Mode, depth: int) -> Regex:
        for start, name in _REFUSED_GROUPS.items():
            if self.peek(start):
                raise self.error(f"{name} is not supported")
        for start, (ahead, negative) in _LOOKS.items():
            if self.skip(start):
                opposite = mode.reading(mode.outer != negative)
                self.budget.spend("automaton_steps", 2)
                return Look(self.closed(opposite, depth), ahead, negative)
        if self.skip("?P<") or self.skip("?<"):
            if not self.upto(">", "group name").isidentifier():
                raise self.error("a bad group name")
        elif self.peek("?") and not self.skip("?:"):
            mode = self.flags(mode)
        return self.closed(mode, depth)

    def closed(self, mode: Mode, depth: int) -> Regex:
        inner = self.alternatives(mode, depth + 1)
        if not self.skip(")"):
            raise self.error("a ( is never closed")
        return inner

    def flags(self, mode: Mode) -> Mode:
        """The mode inside (?ims-ims: ...)."""
        self.skip("?")
        text, colon, _ = self.pattern[self.at:self.at + 8].partition(":")
        on, _, off = text.partition("-")
        if not colon or not set(on) | set(off) <= set("ims") or not on + off:
            raise self.error("inline flags other than a leading (?ims) and (?ims-ims:...) are not supported")
        if len(set(on + off)) < len(on + off):
            raise self.error("a flag is given twice")
        self.at += len(text) + 1
        return Mode(mode.outer, ("i" in on or mode.any_case) and "i" not in off,
                     ("m" in on or mode.lines) and "m" not in off, ("s" in on or mode.dot_all) and "s" not in off)

    # --- quantifiers

    def quantified(self, atom: Regex, quantifiable: bool) -> Regex:
        count = self.quantifier()
        if count is None:
            return atom
        if not quantifiable:
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
        if most == 0 or takes_nothing(atom):
            return atom if least else EMPTY_TEXT    # a condition holds again wherever it held once
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

    # --- escapes

    def escape(self, mode: Mode) -> Regex:
        """What an escape outside a class stands for."""
        found = self.class_escape(mode)
        if found is not None:
            return self.folded(found, mode) if mode.any_case else Chars(found)
        c = self.pattern[self.at:self.at + 1]
        if c and c in _REFUSED_ESCAPES:
            raise self.error(f"{_REFUSED_ESCAPES[c]} is not supported")
        if c.isdecimal() and c != "0":
            raise self.error("a backreference is not supported")
        if c and c in "bB":
            self.at += 1
            return self.word_boundary(mode, c == "B")
        if c and c in "AZ":
            self.at += 1
            return Begin() if c == "A" else End()
        return self.folded(one(self.escaped_point(mode)), mode)
