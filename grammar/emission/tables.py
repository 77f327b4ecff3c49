"""Collects the states of a machine and flattens them into `kernels.pushdown.Tables`."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

import numpy as np

from grammar.budget import Budget
from grammar.emission.tallies import TallyBuilder
from grammar.text.automata import Dfa, Edges
from kernels.pushdown_tables import (
    ALWAYS,
    CLOSE,
    FREE,
    FREE_COUNTED,
    JSON_PLAIN,
    JSON_STRING,
    NO_CALLS,
    POP,
    RAW,
    TAKE,
    Tables,
)

Edge = tuple[int, int, int, int, int, int]   # low, high, target, op, x, y
Call = tuple[int, int, int]                  # start state of a rule, its registers a and b
OpenCall = tuple[int, int, int, int, int, int]   # ... and what is asked of the caller's registers: op, x, y

_FIRST_TEXT = 1 << 30    # states of blocks are numbered from here until the number of the others is known
_CLOSING = CLOSE, CLOSE, POP
_OUTSIDE = -2            # a target in a block that is state n of the others is written _OUTSIDE - n


class Block(NamedTuple):
    """Some text states as columns. Targets of edges count from the block's own start, or are POP or `outside`."""

    states: np.ndarray      # [states, 4] uint8: mode, final, counted, free
    n_edges: np.ndarray     # [states] int64
    edges: np.ndarray       # [edges, 6] int64


class TableBuilder:
    """States are added, then given their edges; call lists are reserved, then filled."""

    def __init__(self, budget: Budget) -> None:
        self.tally = TallyBuilder(budget)
        self._budget, self._limit = budget, budget.limits.table_states
        self._states: list[tuple[int, ...]] = []     # mode, final, counted, space, marks, call list, state to return to
        self._edges: list[Sequence[Edge]] = []
        self._readers: list[int] = []     # states that read text
        self._lists: list[Sequence[Call | OpenCall]] = []
        self._keys: list[int] = []
        self._blocks: list[Block] = []
        self._n_in_blocks = 0

    def state(self, mode: int = RAW, *, space: int = 0, final: bool = False, counted: bool = False, marks: int = 0,
              edges: Sequence[Edge] = (), calls: int = NO_CALLS, then: int = 0) -> int:
        """A new state. `calls` is a call list, `then` the state after the called rule; `edges` are sorted."""
        number = len(self._edges)
        if number + self._n_in_blocks >= self._limit:
            self._budget.check("table_states", number + self._n_in_blocks + 1)
        self._states.append((mode, final, counted, space, marks, calls, then))
        self._edges.append(edges)
        if mode != RAW:
            self._readers.append(number)
        return number

    def set_edges(self, state: int, edges: Iterable[Edge]) -> None:
        self._edges[state] = sorted(edges)

    def set_calls(self, state: int, calls: int, then: int) -> None:
        self._states[state] = *self._states[state][:-2], calls, then

    def reserve_list(self) -> int:
        self._lists.append(())
        return len(self._lists) - 1

    def fill_list(self, number: int, calls: Sequence[Call | OpenCall]) -> None:
        self._lists[number] = calls

    def key_range(self, keys: Sequence[int]) -> tuple[int, int]:
        """Store sorted numbers of names; the range for a KEY_IN edge."""
        self._keys.extend(keys)
        return len(self._keys) - len(keys), len(self._keys)

    def text(self, dfa: Dfa, mode: int, *, bounded: bool = False) -> int:
        """The states of a text automaton; returns its start.

        In the modes of JSON strings an accepted text closes its string and ends the rule; in the others its last state is final.
        With `bounded` register b counts down the characters left, and no edge is open that leads too far from the end.
        """
        kind = mode, bounded
        if kind not in dfa.blocks:
            self._budget.check("table_states", len(self._edges) + self._n_in_blocks + len(dfa.edges))
            dfa.blocks[kind] = _text_block(dfa, mode, bounded)
        return self.block(dfa.blocks[kind])

    def block(self, block: Block) -> int:
        """The states of a block; returns the first."""
        first = _FIRST_TEXT + self._n_in_blocks
        self._n_in_blocks += len(block.n_edges)
        self._budget.check("table_states", len(self._edges) + self._n_in_blocks)
        self._blocks.append(block)
        return first

    def literal(self, text: str) -> int:
        """The states of one fixed ASCII text that ends its rule; returns the start."""
        return self.block(_literal_block(text))

    def special_token(self, token: int, following: int = POP) -> int:
        """The states that read one special token, as the vocabulary spells it; returns the start. RAW, so no text holds it."""
        for byte in reversed(b"\xff" + token.to_bytes(3, "big")):
            following = self.state(edges=[(byte, byte, following, ALWAYS, 0, 0)])
        return following

    def build(self, root: int) -> Tables:
        """The finished machine, starting in state `root`."""
        n = len(self._edges)
        total = n + self._n_in_blocks
        edges = self._all_edges()
        ranges, asked = edges[:3].astype(np.int32), edges[3].astype(np.uint8)
        own = _rows(self._states, 7)
        flags = np.zeros((2, total), dtype=np.uint8)
        flags[:, :n] = own[3:5]
        to_call = np.zeros((2, total), dtype=np.int32)
        to_call[0], to_call[:, :n] = NO_CALLS, own[5:]
        states = np.ascontiguousarray(np.concatenate([self._with_free(own[:3]), *(block.states for block in self._blocks)]).T)
        n_edges = np.concatenate([np.array([len(out) for out in self._edges]), *(block.n_edges for block in self._blocks)])
        calls = _rows([call if len(call) == 6 else (*call, ALWAYS, 0, 0) for call in chain.from_iterable(self._lists)], 6)
        return Tables(
            mode=states[0], final=states[1], counted=states[2], free=states[3], space=flags[0], marks=flags[1],
            edge_begin=_sums(n_edges), call_list=to_call[0], call_return=to_call[1],
            edge_low=ranges[0], edge_high=ranges[1], edge_target=ranges[2], edge_op=asked, edge_x=edges[4], edge_y=edges[5],
            list_begin=_cuts([len(listed) for listed in self._lists]),
            call_start=_placed(calls[0], n).astype(np.int32), call_a=calls[1], call_b=calls[2],
            call_op=calls[3].astype(np.uint8), call_x=calls[4], call_y=calls[5],
            keys=np.array(self._keys, dtype=np.int32), root=root - _FIRST_TEXT + n if root >= _FIRST_TEXT else root,
            reach=int(edges[4][asked == TAKE].max(initial=0)), tally=self.tally.build())

    def _with_free(self, own: np.ndarray) -> np.ndarray:
        """The columns of a block's states, [states, 4], for the states that are in none."""
        states = np.zeros((own.shape[1], 4), dtype=np.uint8)
        states[:, :3] = own.T
        for state, kind in _free({state: self._edges[state] for state in self._readers}).items():
            states[state, 3] = kind
        return states

    def _all_edges(self) -> np.ndarray:
        """The edges of all states in order, with their targets in final numbers. [6, edges]"""
        own = _rows([edge for out in self._edges for edge in out], 6)
        own[2] = _placed(own[2], len(self._edges))
        if not self._blocks:
            return own
        edges = np.concatenate([own.T, *(block.edges for block in self._blocks)]).T.copy()
        target, inside = edges[2], edges[2, own.shape[1]:]
        first = list(accumulate((len(block.n_edges) for block in self._blocks[:-1]), initial=len(self._edges)))
        inside += (inside >= 0) * np.repeat(first, [len(block.edges) for block in self._blocks])
        outside = target < POP
        target[outside] = _OUTSIDE - target[outside]
        return edges


@functools.cache
def _literal_block(text: str) -> Block:
    """What `TableBuilder.literal` needs; there are few such texts."""
    states = np.zeros((len(text), 4), dtype=np.uint8)
    states[:, 0] = RAW
    edges = [(ord(char), ord(char), state if state < len(text) else POP, ALWAYS, 0, 0) for state, char in enumerate(text, 1)]
    return Block(states, np.ones(len(text), dtype=np.int64), np.array(edges, dtype=np.int64).reshape(-1, 6))


def _text_block(dfa: Dfa, mode: int, bounded: bool) -> Block:
    quoted = mode in (JSON_STRING, JSON_PLAIN)
    rows: list[int] = []    # low, high, target of one edge after the other
    n_edges: list[int] = []
    for out, accepting in zip(dfa.edges, dfa.accepting, strict=True):
        for edge in out:
            rows += edge
        if accepting and quoted:
            rows += _CLOSING
        n_edges.append(len(out) + (accepting and quoted))
    edges = np.zeros((len(rows) // 3, 6), dtype=np.int64)
    edges[:, :3] = np.array(rows, dtype=np.int64).reshape(-1, 3)
    if bounded:
        inside = edges[:, 2] >= 0
        edges[inside, 3], edges[inside, 4] = TAKE, np.array(dfa.shortest())[edges[inside, 2]]
    states = np.zeros((len(n_edges), 4), dtype=np.uint8)
    states[:, 0], states[:, 1], states[:, 2] = mode, 0 if quoted else dfa.accepting, bounded
    if mode != RAW:
        open_states = {state: _asking(out, bounded, dfa) for state, out in enumerate(dfa.edges) if out and out[0][0] == 0}
        for state, kind in _free(open_states).items():
            states[state, 3] = kind
    return Block(states, np.array(n_edges, dtype=np.int64), edges)


def _asking(out: Edges, bounded: bool, dfa: Dfa) -> list[Edge]:
    if bounded:
        return [(low, high, target, TAKE, dfa.shortest()[target], 0) for low, high, target in out]
    return [(low, high, target, ALWAYS, 0, 0) for low, high, target in out]


def outside(state: int) -> int:
    """The target of an edge that leads out of a block."""
    return _OUTSIDE - state


def free_states(n_edges: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """1 for each state of a block that is FREE. [states] uint8."""
    low, high, target, op = edges[:, 0], edges[:, 1], edges[:, 2], edges[:, 3]
    n, state = len(n_edges), np.repeat(np.arange(len(n_edges)), n_edges)
    characters = low != CLOSE
    expected = np.where(np.diff(state, prepend=-1) != 0, 0, np.roll(high, 1) + 1)
    follows = (low == expected) | ((low == 0xE000) & (expected == 0xD800))     # no edge holds a surrogate
    refusing = np.bincount(state[characters & ~(follows & (op == ALWAYS))], minlength=n)
    free = (refusing == 0) & (np.bincount(state[characters & (high == CLOSE - 1)], minlength=n) > 0)
    inside = np.where(target >= 0, target, 0)
    while True:
        leading_out = np.bincount(state[characters & ~(free[inside] & (target >= 0))], minlength=n)
        left = free & (leading_out == 0)
        if (left == free).all():
            return np.where(free, FREE, 0).astype(np.uint8)
        free = left


def _free(states: Mapping[int, Sequence[Edge]]) -> dict[int, int]:
    """Which of some text states are FREE or FREE_COUNTED: the greatest set of states that take every character and lead into
    the set."""
    found = {}
    for state, edges in states.items():
        if len(edges) > 1 and _covers_all(edges):
            if all(edge[3:] == (ALWAYS, 0, 0) for edge in edges if edge[0] != CLOSE):
                found[state] = FREE
            elif all(edge[2:] == (state, TAKE, 0, 0) for edge in edges if edge[0] != CLOSE):
                found[state] = FREE_COUNTED
    while True:
        left = {state for state, kind in found.items() if kind == FREE_COUNTED or all(
            found.get(edge[2]) == FREE for edge in states[state] if edge[0] != CLOSE)}
        if len(left) == len(found):
            return found
        found = {state: found[state] for state in left}


def _covers_all(edges: Sequence[Edge]) -> bool:
    """Whether sorted edges leave out no character."""
    expected = 0
    for low, high, *_ in edges:
        if low != expected and (low, expected) != (0xE000, 0xD800):   # no edge holds a surrogate
            return False
        expected = high + 1
    return expected >= CLOSE


def _placed(states: np.ndarray, n_others: int) -> np.ndarray:
    """State numbers once the text automata stand behind the other states."""
    placed: np.ndarray = states - (states >= _FIRST_TEXT) * (_FIRST_TEXT - n_others)
    return placed


def _rows(rows: Sequence[tuple[int, ...]], width: int) -> np.ndarray:
    """The columns of some rows. [width, rows]"""
    return np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=len(rows) * width).reshape(-1, width).T.copy()


def _sums(lengths: np.ndarray) -> np.ndarray:
    begins = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=begins[1:])
    return begins


def _cuts(lengths: Iterable[int]) -> np.ndarray:
    return np.array([0, *accumulate(lengths)], dtype=np.int32)
