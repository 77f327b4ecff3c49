"""Automata over the names of an object's members.

Declared names are a trie. Beside it run the automata of the undeclared names, each of which has its kind of values: together
these tell for every undeclared name of which class it is. `grammar.emission.names_beside` puts the two side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grammar.budget import Budget
from grammar.text.automata import Dfa

OUT = -1          # the state of a part that the name has left
FORBIDDEN = -1     # the number of a name that must not come

NameEdges = list[tuple[int, int, int]]


@dataclass(frozen=True, slots=True)
class Names:
    """State 0 is the start. `end[s]` is the number of the class whose names end in s, or None; `below[s]` the numbers of all
    whose names go through s, as bits; `classes[n]` the automata, by number, that accept the names of the n-th class."""

    edges: list[NameEdges]
    end: list[int | None]
    below: list[int]
    classes: list[frozenset[int]]


class Trie:
    """Declared names, with their numbers, and forbidden ones, letter by letter: `children[state][code point]` is a state."""

    def __init__(self, declared: Sequence[str], forbidden: Sequence[str] = ()) -> None:
        self.children: list[dict[int, int]] = [{}]
        self.end: list[int | None] = [None]
        for number, name in enumerate(declared):
            self._add(name, number)
        for name in forbidden:
            self._add(name, FORBIDDEN)

    def _add(self, name: str, number: int) -> None:
        children = self.children
        state = 0
        for point in map(ord, name):
            following = children[state].get(point)
            if following is None:
                following = children[state][point] = len(children)
                children.append({})
            state = following
        self.end.extend([None] * (len(children) - len(self.end)))
        self.end[state] = number

    def below(self) -> list[int]:
        """For each state the numbers of the declared names that go through it, as bits."""
        below = [0 if number is None or number == FORBIDDEN else 1 << number for number in self.end]
        for state in range(len(below) - 1, -1, -1):     # children have higher numbers
            for target in self.children[state].values():
                below[state] |= below[target]
        return below


def undeclared_names(others: Sequence[Dfa], budget: Budget) -> Names:
    """The automaton of names that some of `others` accepts, cut into classes by which of them do."""
    parts = [other.edges for other in others]
    start = (0,) * len(parts)
    known, order = {start: 0}, [start]
    edges: list[NameEdges] = []
    end: list[int | None] = []
    classes: dict[frozenset[int], int] = {}
    for state in order:
        budget.spend("automaton_steps", len(parts))
        budget.check("automaton_states", len(order))
        found = frozenset(n for n, at in enumerate(state) if at != OUT and others[n].accepting[at])
        end.append(classes.setdefault(found, len(classes)) if found else None)
        edges.append(_moves(state, parts, known, order, budget) if len(parts) > 1 else _tagged(parts[0][state[0]], known, order))
    return Names(edges, end, _below(edges, end), list(classes))


def _tagged(edges: NameEdges, known: dict[tuple[int, ...], int], order: list[tuple[int, ...]]) -> NameEdges:
    """The edges of the only part, with targets by number."""
    out: NameEdges = []
    for low, high, target in edges:
        number = known.setdefault((target,), len(order))
        if number == len(order):
            order.append((target,))
        out.append((low, high, number))
    return out


def _moves(state: tuple[int, ...], parts: Sequence[Sequence[NameEdges]], known: dict[tuple[int, ...], int],
           order: list[tuple[int, ...]], budget: Budget) -> NameEdges:
    """The edges of one state, cut where those of any part begin or end."""
    bounds: dict[int, list[tuple[int, int]]] = {}    # where a part's target changes: (part, target)
    for n, at in enumerate(state):
        for low, high, target in parts[n][at] if at != OUT else ():
            bounds.setdefault(low, []).append((n, target))
            bounds.setdefault(high + 1, []).append((~n, target))
    budget.spend("automaton_steps", len(bounds))
    now = [OUT] * len(parts)
    out: NameEdges = []
    last = 0
    for point in sorted(bounds):
        if any(at != OUT for at in now):
            _append(out, last, point - 1, known.setdefault(tuple(now), len(order)))
            if known[tuple(now)] == len(order):
                order.append(tuple(now))
        for n, _ in (change for change in bounds[point] if change[0] < 0):
            now[~n] = OUT
        for n, target in (change for change in bounds[point] if change[0] >= 0):
            now[n] = target
        last = point
    return out


def _append(out: NameEdges, low: int, high: int, target: int) -> None:
    if out and out[-1][2] == target and out[-1][1] + 1 == low:
        out[-1] = out[-1][0], high, target
    else:
        out.append((low, high, target))


def _below(edges: Sequence[NameEdges], end: Sequence[int | None]) -> list[int]:
    """For every state the numbers of the classes that can be reached, as bits."""
    back: list[list[int]] = [[] for _ in edges]
    for state, out in enumerate(edges):
        for _, _, target in out:
            back[target].append(state)
    below = [0 if number is None else 1 << number for number in end]
    queue = [state for state, numbers in enumerate(below) if numbers]
    while queue:
        state = queue.pop()
        for before in back[state]:
            if below[state] & ~below[before]:
                below[before] |= below[state]
                queue.append(before)
    return below


def by_bits(bits: int) -> list[int]:
    """The numbers in a set of bits, in order."""
    found = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return found


