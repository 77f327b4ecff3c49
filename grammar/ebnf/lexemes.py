"""Automata from automata: one after another, one of several, many times, in either case, as short as possible.

The parts may be any `Dfa`, whatever it was made of. Free moves join them, and the subset construction makes one automaton of
the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from grammar.budget import Budget
from grammar.text.automata import Dfa, Edges, minimised, trimmed
from grammar.text.charset import ALL, CharSet

Move = tuple[int, int, int]     # first and last character, target
Build = Callable[["Weave", int], int]    # weaves something behind a state and returns the state behind it


class Weave:
    """A net of states under construction: automata are woven in between two states; `dfa` makes one automaton of the net."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._moves: list[list[Move]] = []
        self._free: list[list[int]] = []

    def state(self) -> int:
        self._budget.check("regex_states", len(self._moves) + 1)
        self._moves.append([])
        self._free.append([])
        return len(self._moves) - 1

    def join(self, source: int, target: int) -> None:
        """A free move."""
        self._free[source].append(target)

    def text(self, dfa: Dfa, source: int) -> int:
        """The texts of an automaton behind `source`; returns the state behind them."""
        self._budget.check("regex_states", len(self._moves) + len(dfa.edges) + 1)
        first, end = len(self._moves), len(self._moves) + len(dfa.edges)
        for _ in range(len(dfa.edges) + 1):
            self.state()
        self.join(source, first)
        for n, out in enumerate(dfa.edges):
            self._moves[first + n] = [(low, high, first + target) for low, high, target in out]
            if dfa.accepting[n]:
                self.join(first + n, end)
        return end

    def dfa(self, start: int, end: int) -> Dfa | None:
        """The automaton of all ways from `start` to `end`; None where there is none."""
        first = self._closure([start])
        numbers = {frozenset(first): 0}
        order, edges, accepting = [first], [], []
        for subset in order:
            moves = [move for state in subset for move in self._moves[state]]
            self._budget.spend("automaton_steps", 1 + len(subset) + len(moves))
            accepting.append(end in subset)
            out: Edges = []
            for low, high, targets in disjoint(moves):
                following = self._closure(targets)
                key = frozenset(following)
                if key not in numbers:
                    numbers[key] = len(order)
                    order.append(following)
                    self._budget.check("automaton_states", len(order))
                self._budget.spend("automaton_steps", len(following))
                if out and out[-1][2] == numbers[key] and out[-1][1] + 1 == low:
                    low = out.pop()[0]
                out.append((low, high, numbers[key]))
            edges.append(out)
        return minimised(trimmed(edges, accepting), self._budget)

    def _closure(self, states: Iterable[int]) -> list[int]:
        seen = dict.fromkeys(states)
        queue = list(seen)
        for state in queue:
            for target in self._free[state]:
                if target not in seen:
                    seen[target] = None
                    queue.append(target)
        return queue


def disjoint(moves: Sequence[Move]) -> Iterable[tuple[int, int, tuple[int, ...]]]:
    """Overlapping moves cut into disjoint ranges in order, each with all its targets."""
    if len(moves) == 1:
        low, high, target = moves[0]
        return [(low, high, (target,))]
    events: dict[int, list[tuple[int, int]]] = {}
    for low, high, target in moves:
        events.setdefault(low, []).append((target, 1))
        events.setdefault(high + 1, []).append((target, -1))
    active: dict[int, int] = {}
    found, last = [], 0
    for point in sorted(events):
        if active:
            found.append((last, point - 1, tuple(sorted(active))))
        for target, change in events[point]:
            active[target] = active.get(target, 0) + change
            if not active[target]:
                del active[target]
        last = point
    return found


def of_text(text: str) -> Dfa:
    """One text."""
    edges: list[Edges] = [[(ord(char), ord(char), n + 1)] for n, char in enumerate(text)]
    return Dfa([*edges, []], [False] * len(text) + [True])


def of_chars(chars: CharSet) -> Dfa:
    """One character of a set that is not empty."""
    return Dfa([[(low, high, 1) for low, high in chars], []], [False, True])


ANY_TEXT = Dfa([[(low, high, 0) for low, high in ALL]], [True])


def in_either_case(dfa: Dfa, budget: Budget) -> Dfa | None:
    """The texts that differ from one of `dfa` in case only, letter by letter."""
    weave = Weave(budget)
    start = weave.state()
    end = weave.text(Dfa([_folded(out, budget) for out in dfa.edges], dfa.accepting), start)
    return weave.dfa(start, end)


def _folded(out: Edges, budget: Budget) -> Edges:
    edges: Edges = []
    for low, high, target in out:
        edges.append((low, high, target))
        for point, other in _case_pairs():
            if low <= point <= high and not low <= other <= high:
                edges.append((other, other, target))
    budget.spend("automaton_steps", len(edges))
    return edges


@cache
def _case_pairs() -> tuple[tuple[int, int], ...]:
    """Letters with their other case, where upper and lower case are one character each: what all readers take for equal."""
    pairs = []
    for point in range(0x10FFFF + 1):
        if 0xD800 <= point <= 0xDFFF:
            continue
        char = chr(point)
        for other in (char.lower(), char.upper()):
            if len(other) == 1 and other != char and char in (other.lower(), other.upper()):
                pairs.append((point, ord(other)))
    return tuple(dict.fromkeys(pairs))


def shortest_only(dfa: Dfa, budget: Budget) -> Dfa:
    """The texts of `dfa` of which no proper beginning is one: it stops as soon as it can."""
    edges: list[Edges] = [[] if accepting else out for out, accepting in zip(dfa.edges, dfa.accepting, strict=True)]
    cut = combined(lambda weave, start: weave.text(Dfa(edges, dfa.accepting), start), budget)
    assert cut is not None, "an automaton accepts something, and so something shortest"
    return cut


def combined(build: Build, budget: Budget) -> Dfa | None:
    """The automaton of what `build` weaves from a start state on; it returns the state at the end."""
    weave = Weave(budget)
    start = weave.state()
    return weave.dfa(start, build(weave, start))
