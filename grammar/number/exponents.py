"""The digits of exponents within some ranges, as states to be put behind the letter e."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterable

from grammar.text.dfa import Edges

Ranges = tuple[tuple[int, int], ...]    # inclusive, sorted, disjoint

_ZERO = ord("0")


@functools.lru_cache(maxsize=512)
def exponent_states(ranges: Ranges, shortest: bool) -> tuple[tuple[tuple[tuple[int, int, int], ...], ...], tuple[bool, ...]]:
    """Edges and acceptance of the states that read an exponent with its sign; the first is the start, right behind the e.

    One or two digits, or three without a leading zero; `shortest`: two at the least, and no sign but a minus. At most 999.
    """
    return _Magnitudes(shortest).build(ranges)


class _Magnitudes:
    def __init__(self, shortest: bool) -> None:
        self._shortest = shortest
        self._edges: list[Edges] = [[]]
        self._accepting = [False]
        self._known: dict[Hashable, int] = {}

    def build(self, ranges: Ranges) -> tuple[tuple[tuple[tuple[int, int, int], ...], ...], tuple[bool, ...]]:
        positive = _bits((max(low, 0), high) for low, high in ranges if high >= 0)
        negative = _bits((max(-high, 0), -low) for low, high in ranges if low <= 0)
        start: Edges = []
        if positive and not self._shortest:
            magnitude = self._digits(positive)
            start = [(ord("+"), ord("+"), self._state(False, magnitude)), *magnitude]
        if negative:
            start.append((ord("-"), ord("-"), self._state(False, self._digits(negative))))
        self._edges[0] = sorted(start)
        return tuple(map(tuple, self._edges)), tuple(self._accepting)

    def _state(self, accepts: bool, edges: Edges) -> int:
        """The state with these edges."""
        key = accepts, tuple(edges)
        if key not in self._known:
            self._known[key] = len(self._edges)
            self._edges.append(edges)
            self._accepting.append(accepts)
        return self._known[key]

    def _digits(self, bits: int) -> Edges:
        """The edges of the first digit of the numbers whose bits are set."""
        edges: Edges = []
        for first in range(10):
            second: Edges = []
            for number in range(10 * first, 10 * first + 10):
                here, longer = bits >> number & 1, bits >> (10 * number) & 0x3FF if first else 0
                if here or longer:
                    third = runs([(_ZERO + d, _ZERO + d, self._state(True, [])) for d in range(10) if longer >> d & 1])
                    second.append((_ZERO + number % 10, _ZERO + number % 10, self._state(bool(here), third)))
            accepts = bool(bits >> first & 1) and not self._shortest
            if second or accepts:
                edges.append((_ZERO + first, _ZERO + first, self._state(accepts, runs(second))))
        return runs(edges)


def runs(edges: Edges) -> Edges:
    """The same edges, neighbours with one target put together."""
    joined: Edges = []
    for low, high, target in edges:
        if joined and joined[-1][2] == target and joined[-1][1] + 1 == low:
            joined[-1] = joined[-1][0], high, target
        else:
            joined.append((low, high, target))
    return joined


def _bits(ranges: Iterable[tuple[int, int]]) -> int:
    found = 0
    for low, high in ranges:
        found |= (1 << (high + 1)) - (1 << low)
    return found
