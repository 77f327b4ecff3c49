"""The block of declared names beside undeclared ones that are of some kinds.

The declared names are a trie, and beside it runs the automaton of the undeclared ones. Nearly all states of a trie are alike but
for the number of the one that comes next: they have the same letter, and the undeclared names are as far. So the edges of each
*kind* of state are made once, and copied to where they belong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from grammar.emission.name_blocks import NameBlock
from grammar.emission.names import FORBIDDEN, OUT, NameEdges, Names, Trie
from grammar.emission.tables import free_states
from kernels.pushdown_tables import CLOSE

_ASKS = 1       # some operation that is not ALWAYS
_CLOSING = CLOSE, CLOSE, 0


def block_beside(names: Sequence[str], forbidden: Sequence[str], undeclared: Undeclared, mode: int, *,
                 conditional: bool) -> NameBlock:
    """The block of declared names, and of undeclared names that are neither declared nor forbidden.

    `conditional`: these may be refused too, for what was read before. Else no edge is guarded behind which one may come.
    """
    columns = _Columns(Trie(names, forbidden), len(names), undeclared)
    below = columns.below()
    if forbidden:
        columns.drop([state for state, numbers in enumerate(below) if not numbers])
    guards = list(columns.guards(below, 0 if conditional else -1 << len(names)))
    asking = columns.edges.copy()
    asking[[edge for edge, _ in guards], 3] = _ASKS
    return columns.block(mode, free_states(np.array(columns.n_edges), asking), guards, below[0])


class _Kind(NamedTuple):
    """What states of a trie have in common that have the same letters, are at the same state of the automaton of undeclared
    names, and either end a name or not."""

    begin: int              # its edges, of all that are listed
    n_edges: int
    children: list[int]     # which of its edges lead to children: in the order of their letters
    behind: list[int]       # for each child the state of that automaton
    below: int              # the classes of names behind the other edges, as bits


class Undeclared:
    """The automaton of undeclared names, and the kinds of states that it makes of tries. Its own states come behind the start of
    a block, and before the other states of the trie."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.n_edges: list[int] = []
        rows: list[int] = []
        for out, number in zip(names.edges, names.end, strict=True):
            for low, high, target in out:
                rows += (low, high, 1 + target)
            if number is not None:
                rows += _CLOSING
            self.n_edges.append(len(out) + (number is not None))
        self.edges = _as_rows(rows)
        self._known: dict[tuple[int, tuple[int, ...], bool], _Kind] = {}
        self._rows: list[int] = []      # of the kinds: low, high, target of one edge after the other
        self._kinds = _as_rows(self._rows)

    def kind(self, at: int, letters: tuple[int, ...], ends: bool) -> _Kind:
        """The kind of the states that have these letters while the automaton is in state `at`."""
        found = self._known.get((at, letters, ends))
        if found is None:
            others = self.names.edges[at] if at != OUT else []
            rows, children, left = _overlaid(letters, others)
            if ends:
                rows += _CLOSING
            below = 0
            for target in left:
                below |= self.names.below[target]
            behind = [_target(others, letter) for letter in letters]
            found = self._known[at, letters, ends] = _Kind(len(self._rows) // 3, len(rows) // 3, children, behind, below)
            self._rows += rows
        return found

    def edges_of_kinds(self) -> np.ndarray:
        """[edges, 3] int64: what `_Kind.begin` counts."""
        n_known = len(self._kinds)
        if 3 * n_known < len(self._rows):
            self._kinds = np.concatenate([self._kinds, _as_rows(self._rows[3 * n_known:])])
        return self._kinds


class _Columns:
    """The first state of a trie, the states of the automaton of undeclared names, and the other states of the trie."""

    def __init__(self, trie: Trie, n_declared: int, undeclared: Undeclared) -> None:
        self._trie, self._n_declared, self._undeclared = trie, n_declared, undeclared
        self._shift = len(undeclared.n_edges)       # of the states of the trie, but for its start
        self._kinds: list[_Kind] = []               # of the states of the trie
        self._end: list[int | None] = []            # the number of the member whose name ends in a state
        self.n_edges: list[int] = []
        self.edges = self._edges(*self._read_trie())

    def _read_trie(self) -> tuple[list[int], list[int], list[int]]:
        """For each state where the edges of its kind are, from its place; which edges lead to children; and to which."""
        names, n_declared, shift, kind_of = self._undeclared.names, self._n_declared, self._shift, self._undeclared.kind
        ends: list[int | None] = [None if number is None else n_declared + number for number in names.end]
        beside = [0] * len(self._trie.children)
        ends_at = [*ends, None]     # the last: OUT
        places: list[int] = []
        edges: list[int] = []
        targets: list[int] = []
        position = 0
        for children, number, at in zip(self._trie.children, self._trie.end, beside, strict=True):
            number = ends_at[at] if number is None else None if number == FORBIDDEN else number
            letters = tuple(children) if len(children) < 2 else tuple(sorted(children))
            kind = kind_of(at, letters, number is not None)
            for letter, edge, behind in zip(letters, kind.children, kind.behind, strict=True):
                target = children[letter]
                beside[target] = behind
                targets.append(target + shift)
                edges.append(position + edge)
            self._kinds.append(kind)
            self._end.append(number)
            self.n_edges.append(kind.n_edges)
            places.append(kind.begin - position)
            position += kind.n_edges
        self._end[1:1] = ends
        return places, edges, targets

    def _edges(self, places: list[int], to_children: list[int], children: list[int]) -> np.ndarray:
        """The edges of all states; completes their numbers."""
        rows = self._undeclared.edges_of_kinds()[np.repeat(np.array(places), self.n_edges) + np.arange(sum(self.n_edges))]
        rows[to_children, 2] = children
        n_first, own = self.n_edges[0], self._undeclared.edges
        self.n_edges[1:1] = self._undeclared.n_edges
        edges = np.zeros((len(rows) + len(own), 6), dtype=np.int64)
        edges[:n_first, :3], edges[n_first:n_first + len(own), :3], edges[n_first + len(own):, :3] = (
            rows[:n_first], own, rows[n_first:])
        return edges

    def below(self) -> list[int]:
        """For each state the numbers of all members whose names go through it, as bits."""
        n, shift = self._n_declared, self._shift
        below = [0] * len(self._end)
        below[1:1 + shift] = [numbers << n for numbers in self._undeclared.names.below]
        for state in range(len(self._kinds) - 1, -1, -1):      # children have higher numbers
            place = state + shift if state else 0
            number = self._end[place]
            found = (0 if number is None else 1 << number) | self._kinds[state].below << n
            for target in self._trie.children[state].values():
                found |= below[target + shift]
            below[place] = found
        return below

    def drop(self, dead: list[int]) -> None:
        """Leave out the edges that lead to some states."""
        if dead:
            source = np.repeat(np.arange(len(self.n_edges)), self.n_edges)
            kept = ~np.isin(self.edges[:, 2], dead) | (self.edges[:, 0] == CLOSE)
            self.edges, self.n_edges = self.edges[kept], np.bincount(source[kept], minlength=len(self.n_edges)).tolist()

    def guards(self, below: list[int], exempt: int) -> Iterable[tuple[int, int]]:
        """The edges behind which fewer names are possible than before, and which; none where a name of `exempt` is."""
        n_edges = np.array(self.n_edges)
        parting = np.repeat(n_edges > 1, n_edges) & (self.edges[:, 0] != CLOSE)
        if exempt:      # all names behind a state of the undeclared ones are of it
            parting &= self.edges[:, 2] > self._shift
        candidates = np.flatnonzero(parting)
        sources = np.repeat(np.arange(len(n_edges)), n_edges)[candidates]
        for edge, source, target in zip(candidates.tolist(), sources.tolist(), self.edges[candidates, 2].tolist(), strict=True):
            numbers = below[target]
            if numbers != below[source] and not numbers & exempt:
                yield edge, numbers

    def block(self, mode: int, free: np.ndarray, guards: list[tuple[int, int]], reachable: int) -> NameBlock:
        states = np.zeros((len(self.n_edges), 4), dtype=np.uint8)
        states[:, 0], states[:, 3] = mode, free
        numbers = [number for number in self._end if number is not None]
        possible: dict[int, int] = {}
        which = [possible.setdefault(some, len(possible)) for _, some in guards]
        return NameBlock(
            states, np.array(self.n_edges), self.edges, np.flatnonzero(self.edges[:, 0] == CLOSE),
            np.array(numbers, dtype=np.int64), list(dict.fromkeys(numbers)),
            np.array([edge for edge, _ in guards], dtype=np.int64), np.array(which, dtype=np.int64), list(possible), reachable)


def _overlaid(letters: Sequence[int], others: NameEdges) -> tuple[list[int], list[int], list[int]]:
    """The edges over single characters, which lead to children, and beside them what is left of `others`: as (low, high, target
    of one after the other; which edges are those of the letters; what the others lead to)."""
    rows: list[int] = []
    children: list[int] = []
    left: list[int] = []
    i = 0
    for low, high, target in others:
        while i < len(letters) and letters[i] <= high:
            if low < letters[i]:
                rows += (low, letters[i] - 1, 1 + target)
                left.append(target)
            children.append(len(rows) // 3)
            rows += (letters[i], letters[i], 0)
            low = max(low, letters[i] + 1)
            i += 1
        if low <= high:
            rows += (low, high, 1 + target)
            left.append(target)
    for letter in letters[i:]:
        children.append(len(rows) // 3)
        rows += (letter, letter, 0)
    return rows, children, left


def _target(edges: NameEdges, point: int) -> int:
    for low, high, target in edges:
        if low <= point <= high:
            return target
    return OUT


def _as_rows(flat: list[int]) -> np.ndarray:
    return np.array(flat, dtype=np.int64).reshape(-1, 3)
