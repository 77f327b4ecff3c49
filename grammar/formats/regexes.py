r"""The format `regex`: regexes that ECMA-262 (with the flag u) and Python both read.

The set of all of them is not regular: parentheses must balance, and so must the two numbers of a repetition. This is a regular
part of it: groups and look-aheads nested three deep, look-behinds of single characters, ranges in classes of digits or from the
first letter, repetitions up to three digits with the lower number the shorter one, or of one digit each. Escapes are the common
ones. No names, backreferences, properties, flags.
"""

from __future__ import annotations

import string

from grammar.budget import Budget
from grammar.text import automata, regex
from grammar.text.dfa import Dfa

_DEPTH = 3
_INSIDE = "\U0010FFFF"     # stands for what is in a group, and is no character of a regex itself

_ESCAPE = r"\\([dDwWsStnvfr\^$\\.*+?()\[\]{}|/]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4})"
_CHAR = r"[^\^$\\.*+?()\[\]{}|\u{10FFFF}]"


def _ranges() -> str:
    """The ranges that begin with a digit or the first letter."""
    return "|".join([*(f"{low}-[{low}-9]" for low in string.digits), "a-[a-z]", "A-[A-Z]"])


def _counts() -> str:
    pairs = "|".join(f"{low},[{low}-9]" for low in range(10))
    number = "([0-9]|[1-9][0-9]{1,2})"
    return rf"\{{({number},?|{pairs}|[0-9],[1-9][0-9]{{1,2}}|[1-9][0-9],[1-9][0-9]{{2}})\}}"


_SINGLE = r"[^\\\]\[\^\-\u{10FFFF}]"      # bare in a class
_CLASS = (rf"\[\^?-?(({_ranges()}|{_SINGLE}|\\([dDwWsStnvfr\\\]\[\^\-$.*+?(){{}}|/]|x[0-9A-Fa-f]{{2}}|u[0-9A-Fa-f]{{4}})))+-?\]")
_ONE = rf"({_CHAR}|\.|{_ESCAPE}|{_CLASS})"
_QUANTIFIER = rf"([*+?]|{_counts()})\??"
_ANCHOR = r"\^|\$|\\[bB]"
_LOOK_BEHIND = rf"\(\?<[=!]{_ONE}*\)"




def automaton() -> Dfa:
    """The automaton of the format. The groups of one level are those of the level below, with parentheses around them."""
    found = _made(_alternatives(_ONE, f"{_ANCHOR}|{_LOOK_BEHIND}"))
    host = _made(_alternatives(rf"({_ONE}|\((\?:)?{_INSIDE}?\))", rf"{_ANCHOR}|{_LOOK_BEHIND}|\(\?[=!]{_INSIDE}?\)"))
    for _ in range(_DEPTH):
        found = automata.embedded(host, _INSIDE, _not_empty(found))
    return found


def _alternatives(quantifiable: str, bare: str) -> str:
    return rf"({quantifiable}({_QUANTIFIER})?|{bare}|\|)*"


def _not_empty(dfa: Dfa) -> Dfa:
    found = automata.at_least(dfa, 1, Budget())
    assert found is not None
    return found


def _made(pattern: str) -> Dfa:
    found = automata.from_regex(regex.parse(pattern), Budget())
    assert found is not None
    return found
