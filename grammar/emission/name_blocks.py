"""The states of an object's names as columns, once made for all objects that have the same names.

Only two things differ from object to object: what comes behind the quote that ends a name, and what is asked where some names
part from the others. Those edges are listed, to be filled in. Here are the names that are nearly all there are, declared ones
alone and beside any others; `grammar.emission.names_beside` has the general case.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from grammar.emission.names import FORBIDDEN, Trie
from kernels.pushdown_tables import CLOSE, FREE

_SURROGATES = 0xD800, 0xDFFF     # code points that are no characters
_LAST = 0x10FFFF


class NameBlock(NamedTuple):
    """State 0 is the start; targets count from there. All edges are open, until `ends` and `guarded` are filled in.

    Members are numbered: first the declared names in order, then the classes of undeclared names.
    """

    states: np.ndarray        # [states, 4] uint8: mode, final, counted, free once the guards are filled in
    n_edges: np.ndarray       # [states] int64
    edges: np.ndarray         # [edges, 6] int64, as the machine's tables have them
    ends: np.ndarray          # [...] int64: edges over the quote behind a name
    numbers: np.ndarray       # [...] int64: ... and which member's it is
    members: list[int]        # all of `numbers`, each once
    guarded: np.ndarray       # [...] int64: edges behind which fewer names are possible than before
    guards: np.ndarray        # [...] int64: ... and which, as an index of `possible`
    possible: list[int]       # sets of members, as bits
    reachable: int            # the set of all that have a name


class _Rows:
    """The columns of a block in the making."""

    def __init__(self) -> None:
        self.edges: list[int] = []        # low, high, target of one after the other
        self.n_edges: list[int] = []
        self._numbers: list[int] = []
        self._ends: list[int] = []
        self._guarded: list[int] = []
        self._guards: list[int] = []
        self._possible: dict[int, int] = {}
        self._before = 0

    def guard(self, possible: int) -> None:
        """The next edge is guarded."""
        self._guarded.append(len(self.edges) // 3)
        self._guards.append(self._possible.setdefault(possible, len(self._possible)))

    def end_state(self, number: int | None) -> None:
        """The edges of a state are there, but for that behind the name that ends in it."""
        if number is not None:
            self._ends.append(len(self.edges) // 3)
            self._numbers.append(number)
            self.edges += (CLOSE, CLOSE, 0)
        n_edges = len(self.edges) // 3
        self.n_edges.append(n_edges - self._before)
        self._before = n_edges

    def block(self, mode: int, free: int, reachable: int) -> NameBlock:
        edges = np.zeros((self._before, 6), dtype=np.int64)
        edges[:, :3] = np.array(self.edges, dtype=np.int64).reshape(-1, 3)
        states = np.zeros((len(self.n_edges), 4), dtype=np.uint8)
        states[:, 0], states[:, 3] = mode, free
        n_edges, ends, numbers, guarded, guards = [np.array(column, dtype=np.int64) for column in (
            self.n_edges, self._ends, self._numbers, self._guarded, self._guards)]
        return NameBlock(states, n_edges, edges, ends, numbers, list(dict.fromkeys(self._numbers)), guarded, guards,
                         list(self._possible), reachable)


def closed_block(names: Sequence[str], mode: int) -> NameBlock:
    """The block of declared names alone."""
    trie = Trie(names)
    below = trie.below()
    rows = _Rows()
    for state, (children, number) in enumerate(zip(trie.children, trie.end, strict=True)):
        alone = len(children) == 1
        for point, target in children.items() if alone else sorted(children.items()):
            if (not alone or number is not None) and below[target] != below[state]:
                rows.guard(below[target])
            rows.edges += (point, point, target)
        rows.end_state(number)
    return rows.block(mode, 0, below[0])


def open_block(names: Sequence[str], forbidden: Sequence[str], mode: int) -> NameBlock:
    """The block of declared names, and as one class of all names that are neither declared nor forbidden, where none of them is
    ever refused."""
    trie = Trie(names, forbidden)
    other, undeclared = len(trie.children), len(names)
    rows = _Rows()
    for children, number in zip(trie.children, trie.end, strict=True):
        _append_with_gaps(rows.edges, children, other)
        rows.end_state(undeclared if number is None else None if number == FORBIDDEN else number)
    _append_with_gaps(rows.edges, {}, other)
    rows.end_state(undeclared)
    return rows.block(mode, FREE, (2 << len(names)) - 1)


def _append_with_gaps(rows: list[int], children: dict[int, int], other: int) -> None:
    """The edges of single characters, and between them edges to `other` over all characters that they leave out."""
    expected = 0
    for point, target in sorted(children.items()) if len(children) > 1 else children.items():
        if expected < _SURROGATES[0] and point > _SURROGATES[1]:
            rows += (expected, _SURROGATES[0] - 1, other)
            expected = _SURROGATES[1] + 1
        if expected < point:
            rows += (expected, point - 1, other)
        rows += (point, point, target)
        expected = point + 1
    if expected < _SURROGATES[0]:
        rows += (expected, _SURROGATES[0] - 1, other)
        expected = _SURROGATES[1] + 1
    if expected <= _LAST:
        rows += (expected, _LAST, other)
