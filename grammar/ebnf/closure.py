"""How many rules a place calls before it reads a byte.

A rule may begin with the call of another, and that one too. At every byte the machine goes through all of them, level by level,
so a grammar in which everything may begin with everything else costs far more than its size tells. Such a grammar is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grammar.budget import Budget


@dataclass(frozen=True, slots=True)
class _Below:
    """What a start state calls before it reads: a set of start states as bits, and in how many levels."""

    states: int
    levels: int


_NOTHING = _Below(0, 0)


def check_calls_before_a_byte(lists: Mapping[int, Sequence[int]], called_at: Mapping[int, int], budget: Budget) -> None:
    """Raise GrammarTooLarge where a call list leads to too many calls.

    `lists` are the start states of each call list, `called_at` the call list of each state that calls. No circle of calls.
    """
    numbers: dict[int, int] = {}
    below: dict[int, _Below] = {}
    for first in called_at:
        stack = [first]
        while stack:
            state = stack[-1]
            starts = lists.get(called_at.get(state, -1), ())
            waiting = [start for start in starts if start not in below]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            if state not in below:
                budget.spend("grammar_symbols", 1 + len(starts))
                below[state] = _joined(starts, numbers, below)
                budget.check("calls_before_a_byte", below[state].states.bit_count() * below[state].levels)


def _joined(starts: Sequence[int], numbers: dict[int, int], below: Mapping[int, _Below]) -> _Below:
    states, levels = 0, 0
    for start in starts:
        found = below.get(start, _NOTHING)
        states |= found.states | 1 << numbers.setdefault(start, len(numbers))
        levels = max(levels, found.levels)
    return _Below(states, levels + 1) if starts else _NOTHING
