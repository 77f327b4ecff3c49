"""The formats that are enforced, each with an inner and an outer automaton.

    inner(name)     what every reader accepts: the format's RFC and the common validators. This is what is written.
    outer(name)     what any of them accepts: what a negation excludes. Only for names of NEGATABLE
    ENFORCED        all names with an inner automaton; any other format is an annotation, as the standard has it
    LONGEST         an upper length that belongs to a format, in characters, and is not in its automaton

Automata are made on first use and kept by the process: they depend on nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from grammar.budget import Budget, Limits
from grammar.formats import addresses, dates, international, references, regexes
from grammar.text import automata, regex
from grammar.text.dfa import Dfa

_PATTERNS = {**dates.INNER, **addresses.INNER, **references.INNER}
_BUILT: dict[str, Callable[[], Dfa]] = {
    **references.BUILT, "email": lambda: addresses.mailbox(False), "idn-email": lambda: addresses.mailbox(True),
    "idn-hostname": international.hostname, "ipv6": addresses.ipv6, "regex": regexes.automaton}
_READ_ALIKE = {"ipv6"}
_OUTER = {**dates.OUTER, **addresses.OUTER, **references.OUTER}
_LIMITS = Limits(automaton_steps=20_000_000)

LONGEST = {"hostname": 253, "email": 254, "idn-email": 254, "idn-hostname": 100}   # 100: three labels are 49 longer in Punycode
ENFORCED = frozenset(_PATTERNS) | frozenset(_BUILT)
NEGATABLE = frozenset(_OUTER) | _READ_ALIKE
REFUSED: frozenset[str] = frozenset()


@functools.cache
def inner(name: str) -> Dfa:
    """The strings that every reader takes for one of format `name`, one of ENFORCED (apart from `LONGEST`)."""
    if name in _BUILT:
        return _BUILT[name]()
    budget = Budget(_LIMITS)
    return _some(automata.from_regex(regex.parse(_PATTERNS[name], budget), budget))


@functools.cache
def outer(name: str) -> Dfa:
    """The strings that some reader takes for one of format `name`, one of NEGATABLE."""
    if name in _READ_ALIKE or _OUTER[name] == _PATTERNS.get(name):
        return inner(name)
    budget = Budget(_LIMITS)
    tree = regex.parse_outer(_OUTER[name], budget) or regex.parse(_OUTER[name], budget)
    return _some(automata.from_regex(tree, budget))


def _some(dfa: Dfa | None) -> Dfa:
    assert dfa is not None
    return dfa
