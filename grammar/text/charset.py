"""Sets of Unicode characters as sorted tuples of inclusive ranges. Surrogates are no characters and are never in a set."""

from __future__ import annotations

import bisect
from collections.abc import Iterable

CharSet = tuple[tuple[int, int], ...]

ALL: CharSet = ((0, 0xD7FF), (0xE000, 0x10FFFF))
EMPTY: CharSet = ()


def of(*ranges: tuple[int, int] | str) -> CharSet:
    """A set from ranges and from strings of single characters."""
    pairs: list[tuple[int, int]] = []
    for item in ranges:
        pairs.extend([(ord(c), ord(c)) for c in item] if isinstance(item, str) else [item])
    return meet(_merged(pairs), ALL)


def join(*sets: CharSet) -> CharSet:
    return _merged([pair for chars in sets for pair in chars])


def _merged(pairs: Iterable[tuple[int, int]]) -> CharSet:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(pairs):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return tuple(merged)


def meet(left: CharSet, right: CharSet) -> CharSet:
    found, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        low, high = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if low <= high:
            found.append((low, high))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return tuple(found)


def complement(chars: CharSet) -> CharSet:
    gaps, low = [], 0
    for first, last in chars:
        if low < first:
            gaps.append((low, first - 1))
        low = last + 1
    if low <= 0x10FFFF:
        gaps.append((low, 0x10FFFF))
    return meet(tuple(gaps), ALL)


def difference(left: CharSet, right: CharSet) -> CharSet:
    return meet(left, complement(right))


def holds(chars: CharSet, point: int) -> bool:
    """Whether a code point is in the set."""
    place = bisect.bisect_right(chars, (point, 0x110000))
    return place > 0 and point <= chars[place - 1][1]


DIGIT = of((0x30, 0x39))
WORD = of((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A), "_")
LINE_ENDS = of("\n\r\u2028\u2029")
