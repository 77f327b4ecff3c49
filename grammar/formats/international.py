"""The format `idn-hostname`: RFC 5890 to 5893, as far as a small regular language goes.

A label is one of ASCII, or of one to nine characters of the first plane. The tables come from `unicodedata`, by the derivation
of RFC 5892. Left out, so that whatever is written is valid:

- labels that begin with xn--, whose Punycode would have to be decoded, and those that would be too long in it;
- characters that need a context, that normalisation could change or combine with others, and all digits but ASCII's;
- names in which the Punycode of more than three labels must be counted;
- characters that stand in runs of few: the table of all is large;
- labels that mix directions. A right-to-left label is of letters alone, and so are the labels beside it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from grammar.budget import Budget, Limits
from grammar.text import automata, charset
from grammar.text.charset import CharSet
from grammar.text.dfa import Dfa
from grammar.text.regex_tree import Chars, Join, Look, Regex, Repeat, before, behind

_LONGEST_LABEL = 9      # in Punycode at most 4 + 9 * 6 characters of the 63: six digits write what is below 2.8 million
_SHORTEST_RUN = 10
_LIMITS = Limits(automaton_steps=5_000_000)

_HYPHEN, _ASCII_LETTERS = charset.of("-"), charset.of((0x41, 0x5A), (0x61, 0x7A))
_LOWER_OR_DIGIT = charset.of((0x30, 0x39), (0x61, 0x7A))
_ASCII_NAME = charset.of((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A))
_BARRED = charset.of(       # exceptions of RFC 5892, ignorable characters, old Hangul, and what needs a context
    "\u00b7\u0375\u05f3\u05f4\u0640\u07fa\u302e\u302f\u3031\u3032\u3033\u3034\u3035\u303b\u30fb\u034f"
    "\u180b\u180c\u180d\u180f\u3164\u17b4\u17b5",
    (0x1100, 0x11FF), (0xA960, 0xA97F), (0xD7B0, 0xD7FF), (0x20D0, 0x20FF), (0xFE00, 0xFE0F))


def hostname() -> Dfa:
    """The automaton of the format."""
    budget = Budget(_LIMITS)
    letters, marks = _letters(), _marks()
    left = charset.difference(letters, _direction("R", "AL"))
    right = charset.meet(letters, _direction("R", "AL"))
    plain = automata.union([_made(_ascii_label(), budget), _made(_international_label(left, marks), budget)], budget)
    one_way = automata.union([_made(Repeat(Chars(_ASCII_LETTERS), 1, 63), budget),
                              _made(Repeat(Chars(right), 1, _LONGEST_LABEL), budget)], budget)
    names = automata.union([automata.listed(plain, "."), automata.listed(one_way, ".")], budget)
    return _some(automata.minimised(automata.intersection(names, _made(_few_beyond_ascii(), budget), budget), budget))


def _ascii_label() -> Regex:
    """Letters, digits and inner hyphens, but no two hyphens at the third and fourth place."""
    inner, end = Chars(charset.join(_ASCII_NAME, _HYPHEN)), Chars(_ASCII_NAME)
    return Join((_no_tag(), end, Repeat(Join((Repeat(inner, 0, 61), end)), 0, 1)))


def _international_label(letters: CharSet, marks: CharSet) -> Regex:
    """Lower-case letters of any script that is written from left to right, with marks behind them, digits and inner hyphens."""
    anything = charset.join(letters, marks, _LOWER_OR_DIGIT, _HYPHEN)
    ends = charset.join(marks, _HYPHEN)
    return Join((_no_tag(), behind(ends, negative=True), Repeat(Chars(anything), 1, _LONGEST_LABEL),
                 before(_HYPHEN, negative=True)))


def _few_beyond_ascii() -> Regex:
    """Three labels at most that hold a character beyond ASCII."""
    ascii_text = Repeat(Chars(charset.of((0, 0x7F))), 0, None)
    rest_of_label = Repeat(Chars(charset.complement(charset.of("."))), 0, None)
    return Join((Repeat(Join((ascii_text, Chars(charset.of((0x80, 0x10FFFF))), rest_of_label)), 0, 3), ascii_text))


def _no_tag() -> Regex:
    anything, hyphen = Chars(charset.ALL), Chars(_HYPHEN)
    return Look(Join((anything, anything, hyphen, hyphen)), True, True)


# --- the tables


def _letters() -> CharSet:
    """Letters that RFC 5892 derives as valid anywhere, and that normalisation leaves alone whatever stands beside them."""
    return _where(lambda c: unicodedata.category(c) in ("Ll", "Lo", "Lm")
                  and unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", c).casefold()) == c)


def _marks() -> CharSet:
    """Marks that normalisation neither moves nor combines: viramas, which are alike to it, and those that never move."""
    composing = {ord(unicodedata.normalize("NFD", chr(point))[-1]) for point in range(0xC0, 0xFFFF)
                 if unicodedata.decomposition(chr(point))}
    return _where(lambda c: unicodedata.category(c) in ("Mn", "Mc") and unicodedata.combining(c) in (0, 9)
                  and not unicodedata.decomposition(c) and ord(c) not in composing)


def _direction(*names: str) -> CharSet:
    return charset.of(*((point, point) for point in range(0x80, 0x10000)
                        if not 0xD800 <= point <= 0xDFFF and unicodedata.bidirectional(chr(point)) in names))


def _where(test: Callable[[str], bool]) -> CharSet:
    """The characters of the first plane beyond ASCII that pass, in runs of some length."""
    found = charset.difference(charset.of(*((point, point) for point in range(0x80, 0x10000)
                                            if not 0xD800 <= point <= 0xDFFF and test(chr(point)))), _BARRED)
    return tuple((first, last) for first, last in found if last - first + 1 >= _SHORTEST_RUN)


def _made(tree: Regex, budget: Budget) -> Dfa:
    return _some(automata.from_regex(tree, budget))


def _some(dfa: Dfa | None) -> Dfa:
    assert dfa is not None
    return dfa
