"""Collects the states of a machine and flattens them into `kernels.pushdown.Tables`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from grammar.automata import Dfa
from grammar.budget import Budget
from kernels.pushdown import (
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

_FIRST_TEXT = 1 << 30    # states of text automata are numbered from here until the number of the others is known


@dataclass(frozen=True, slots=True)
class TextBlock:
    """The states of one text automaton as columns. Targets count from the block's own start."""

    mode: int
    final: np.ndarray       # [states] uint8
    counted: bool
    free: np.ndarray        # [states] uint8
    n_edges: np.ndarray     # [states] int64
    edges: np.ndarray       # [edges, 6] int64


class TableBuilder:
    """States are added, then given their edges; call lists are reserved, then filled."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._mode, self._space, self._final, self._counted = bytearray(), bytearray(), bytearray(), bytearray()
        self._edges: list[Sequence[Edge]] = []
        self._call_list: list[int] = []
        self._call_return: list[int] = []
        self._lists: list[Sequence[Call]] = []
        self._keys: list[int] = []
        self._texts: list[TextBlock] = []
        self._n_text_states = 0

    def state(self, mode: int = RAW, *, space: bool = False, final: bool = False, counted: bool = False,
              edges: Sequence[Edge] = (), calls: int = NO_CALLS, then: int = 0) -> int:
        """A new state. `calls` is a call list, `then` the state after the called rule."""
        self._budget.check("table_states", len(self._edges) + self._n_text_states + 1)
        self._mode.append(mode)
        self._space.append(space)
        self._final.append(final)
        self._counted.append(counted)
        self._edges.append(edges)
        self._call_list.append(calls)
        self._call_return.append(then)
        return len(self._edges) - 1

    def set_edges(self, state: int, edges: Iterable[Edge]) -> None:
        self._edges[state] = sorted(edges)

    def set_calls(self, state: int, calls: int, then: int) -> None:
        self._call_list[state], self._call_return[state] = calls, then

    def reserve_list(self) -> int:
        self._lists.append(())
        return len(self._lists) - 1

    def fill_list(self, number: int, calls: Sequence[Call]) -> None:
        self._lists[number] = calls

    def key_range(self, keys: Sequence[int]) -> tuple[int, int]:
        """Store sorted key numbers; the range for a KEY_IN edge."""
        self._keys.extend(keys)
        return len(self._keys) - len(keys), len(self._keys)

    def text(self, dfa: Dfa, mode: int, *, bounded: bool = False) -> int:
        """The states of a text automaton; returns its start.

        In the modes of JSON strings an accepted text closes its string and ends the rule; in the others its last state is final.
        With `bounded` register b counts down the characters left, and no edge is open that leads too far from the end.
        """
        self._budget.check("table_states", len(self._edges) + self._n_text_states + len(dfa.edges))
        kind = mode, bounded
        if kind not in dfa.blocks:
            dfa.blocks[kind] = _text_block(dfa, mode, bounded)
        self._texts.append(dfa.blocks[kind])
        self._n_text_states += len(dfa.edges)
        return _FIRST_TEXT + self._n_text_states - len(dfa.edges)

    def literal(self, text: str) -> int:
        """The states of one fixed ASCII text that ends its rule; returns the start."""
        following = POP
        for char in reversed(text):
            following = self.state(edges=[(ord(char), ord(char), following, ALWAYS, 0, 0)])
        return following

    def build(self, root: int) -> Tables:
        """The finished machine, starting in state `root`."""
        n, n_text = len(self._edges), self._n_text_states
        edges = self._all_edges()
        low, high, target, op, x, y = edges.T
        calls = _rows((call for listed in self._lists for call in listed), 3)
        return Tables(
            mode=_joined(self._mode, [np.full(len(t.final), t.mode) for t in self._texts]),
            space=_joined(self._space, [np.zeros(n_text)]),
            final=_joined(self._final, [t.final for t in self._texts]),
            counted=_joined(self._counted, [np.full(len(t.final), t.counted) for t in self._texts]),
            free=_joined(_free(self._mode, self._edges), [t.free for t in self._texts]),
            edge_begin=_cuts(np.concatenate([[len(e) for e in self._edges], *(t.n_edges for t in self._texts)])),
            call_list=np.array(self._call_list + [NO_CALLS] * n_text, dtype=np.int32),
            call_return=np.array(self._call_return + [0] * n_text, dtype=np.int32),
            edge_low=low.astype(np.int32), edge_high=high.astype(np.int32), edge_target=target.astype(np.int32),
            edge_op=op.astype(np.uint8), edge_x=x.copy(), edge_y=y.copy(),
            list_begin=_cuts([len(listed) for listed in self._lists]),
            call_start=_placed(calls[:, 0], n).astype(np.int32), call_a=calls[:, 1].copy(), call_b=calls[:, 2].copy(),
            keys=np.array(self._keys, dtype=np.int32), root=int(_placed(np.array([root]), n)[0]),
            reach=int(x[op == TAKE].max(initial=0)))

    def _all_edges(self) -> np.ndarray:
        """The edges of all states in order, with their targets in final numbers."""
        own = _rows((edge for out in self._edges for edge in out), 6)
        own[:, 2] = _placed(own[:, 2], len(self._edges))
        parts, first = [own], len(self._edges)
        for text in self._texts:
            moved = text.edges.copy()
            moved[:, 2] += np.where(moved[:, 2] == POP, 0, first)
            parts.append(moved)
            first += len(text.final)
        return np.concatenate(parts)


def _text_block(dfa: Dfa, mode: int, bounded: bool) -> TextBlock:
    nearest = dfa.shortest() if bounded else []
    quoted = mode in (JSON_STRING, JSON_PLAIN)
    states: list[list[Edge]] = []
    for out, accepting in zip(dfa.edges, dfa.accepting, strict=True):
        if bounded:
            edges = [(low, high, target, TAKE, nearest[target], 0) for low, high, target in out]
        else:
            edges = [(low, high, target, ALWAYS, 0, 0) for low, high, target in out]
        if accepting and quoted:
            edges.append((CLOSE, CLOSE, POP, ALWAYS, 0, 0))
        states.append(edges)
    return TextBlock(
        mode=mode, counted=bounded, final=np.array([a and not quoted for a in dfa.accepting], dtype=np.uint8),
        free=np.frombuffer(_free([mode] * len(states), states), dtype=np.uint8),
        n_edges=np.array([len(e) for e in states], dtype=np.int64), edges=_rows((edge for out in states for edge in out), 6))


def _free(modes: Sequence[int], states: Sequence[Sequence[Edge]]) -> bytes:
    """FREE, FREE_COUNTED or 0 for each state: the greatest set of states that take every character and lead into the set."""
    free = bytearray(len(states))
    for state, (mode, edges) in enumerate(zip(modes, states, strict=True)):
        if mode != RAW and len(edges) > 1 and _covers_all(edges):
            if all(edge[3:] == (ALWAYS, 0, 0) for edge in edges if edge[0] != CLOSE):
                free[state] = FREE
            elif all(edge[2:] == (state, TAKE, 0, 0) for edge in edges if edge[0] != CLOSE):
                free[state] = FREE_COUNTED
    candidates = [state for state, kind in enumerate(free) if kind == FREE]
    while True:
        left = [s for s in candidates if all(free[edge[2]] == FREE for edge in states[s] if edge[0] != CLOSE)]
        if len(left) == len(candidates):
            return bytes(free)
        for state in set(candidates) - set(left):
            free[state] = 0
        candidates = left


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
    return np.where(states >= _FIRST_TEXT, states - _FIRST_TEXT + n_others, states)


def _rows(rows: Iterable[tuple[int, ...]], width: int) -> np.ndarray:
    return np.fromiter((value for row in rows for value in row), dtype=np.int64).reshape(-1, width)


def _joined(own: bytes | bytearray, others: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.frombuffer(bytes(own), dtype=np.uint8), *others]).astype(np.uint8)


def _cuts(lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int32)
