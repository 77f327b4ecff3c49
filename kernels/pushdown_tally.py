"""What tallied objects and arrays ask of their registers: the operations from MORE to COUNT of `kernels.pushdown_tables`.

All are allowed only if the object or array can still be finished afterwards, so no member leads into a dead end.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from kernels.pushdown_tables import (
    CLOSE_ARRAY,
    CLOSED_SHIFT,
    COUNT,
    COUNTER_BITS,
    DEPTH_SHIFT,
    MORE,
    MOST_OBLIGATIONS,
    NAME,
    NAME_IN,
    NEXT_ITEM,
    OTHER,
    SERVE,
    UNBOUNDED,
    Tally,
)

_MEMBERS = (1 << CLOSED_SHIFT) - 1
_OBLIGATIONS = (1 << MOST_OBLIGATIONS) - 1
_COUNTER = (1 << COUNTER_BITS) - 1


class Registers(NamedTuple):
    a: int
    b: int
    c: int


class _Object(NamedTuple):
    """One row of the object columns, and its numbers' columns by number."""

    ordered: bool
    names: int
    least: int
    most: int
    obligations: int
    rows: int
    required: list[int]
    following: list[int]
    absent: list[int]
    choices: list[list[int]]


class _Place(NamedTuple):
    cap: list[int]       # as many as it has counters
    strict: list[int]
    rows: int


class Tallies:
    """The operations over one `Tally`. `after` is the door: the registers after an operation, or None where it is not allowed."""

    def __init__(self, tally: Tally, keys: list[int]) -> None:
        self._keys = keys
        cuts = tally.number_choices.tolist()
        choices = tally.choices.tolist()
        by_number = [choices[begin:end] for begin, end in pairwise(cuts)]
        numbers = tally.object_numbers.tolist()
        heads = zip(*(column.tolist() for column in (
            tally.object_ordered, tally.object_names, tally.object_least, tally.object_most, tally.object_obligations,
            tally.object_rows)), strict=True)
        required, following, absent = (
            column.tolist() for column in (tally.number_required, tally.number_next, tally.number_absent))
        self._objects = [
            _Object(bool(ordered), names, least, most, obligations, rows, required[begin:end], following[begin:end],
                    absent[begin:end], by_number[begin:end])
            for (begin, end), (ordered, names, least, most, obligations, rows) in zip(pairwise(numbers), heads, strict=True)]
        self._places = [_Place(cap[:n], strict[:n], rows) for n, cap, strict, rows in zip(
            *(c.tolist() for c in (tally.place_counters, tally.place_cap, tally.place_strict, tally.place_rows)), strict=True)]
        cuts = tally.row_begin.tolist()
        spans = list(zip(tally.row_low.tolist(), tally.row_high.tolist(), strict=True))
        self._rows = [spans[begin:end] for begin, end in pairwise(cuts)]

    def after(self, registers: Registers, op: int, x: int, y: int) -> Registers | None:
        """The registers after one of the operations MORE to COUNT; None where it is not allowed."""
        if op in (NEXT_ITEM, CLOSE_ARRAY, COUNT):
            return self._array(registers, op, x, self._places[y])
        found = self._objects[y]
        if op == NAME:
            return self._name(registers, x, found)
        if op == OTHER:
            return self._other(registers, x, found)
        if op == SERVE:
            after = registers._replace(c=registers.c | x << CLOSED_SHIFT)
            return after if self._can_finish(after, found) else None
        if op == NAME_IN:
            numbers = self._keys[x >> 32:x & 0xFFFFFFFF]
            allowed = any((self._name if j < found.names else self._other)(registers, j, found) is not None for j in numbers)
        elif op == MORE:
            allowed = self._can_finish(registers, found, at_least=1)
        else:
            allowed = self._may_close(registers, found)
        return registers if allowed else None

    def _fits(self, row: int, least: int, most: int) -> bool:
        """Whether some number from `least` to `most` is in a row."""
        return any(max(low, least) <= min(high, most) for low, high in self._rows[row])

    # --- objects

    def _name(self, registers: Registers, x: int, found: _Object) -> Registers | None:
        """After the declared name x, whose value is still to come."""
        a, b, c = registers
        if not found.ordered:
            if a >> x & 1:
                return None
            after = Registers(a | 1 << x, b, _counted(c, found))
        elif not a <= x <= b:
            return None
        else:
            for skipped in range(a, x) if found.obligations else ():
                c |= found.absent[skipped] << CLOSED_SHIFT
            after = Registers(x + 1, found.following[x], _counted(c, found))
        return after if self._some_value(after, x, found) else None

    def _other(self, registers: Registers, x: int, found: _Object) -> Registers | None:
        after = registers._replace(c=_counted(registers.c, found))
        return after if self._some_value(after, x, found) else None

    def _some_value(self, registers: Registers, x: int, found: _Object) -> bool:
        """Whether, with some value of member x, which is counted, the object can be finished."""
        return any(self._can_finish(registers._replace(c=registers.c | served << CLOSED_SHIFT), found)
                   for served in found.choices[x])

    def _can_finish(self, registers: Registers, found: _Object, at_least: int = 0) -> bool:
        """Whether the object can end after `at_least` members more, or some greater number."""
        members, closed = registers.c & _MEMBERS, registers.c >> CLOSED_SHIFT & _OBLIGATIONS
        least = max(found.least - members, at_least)
        most = found.most if found.most == UNBOUNDED else found.most - members
        if found.ordered:
            return self._fits(found.rows + (registers.a << found.obligations | closed), least, most)
        return any(self._fits(found.rows + reached, least - taken, most - taken)
                   for reached, counts in _ways(registers.a, closed, found).items()
                   for taken in range(found.names + 1) if counts >> taken & 1)

    def _may_close(self, registers: Registers, found: _Object) -> bool:
        a, b, c = registers
        members, closed = c & _MEMBERS, c >> CLOSED_SHIFT & _OBLIGATIONS
        missing = range(a, found.names) if found.ordered else [x for x in range(found.names) if not a >> x & 1]
        if b != UNBOUNDED if found.ordered else any(found.required[x] for x in missing):
            return False
        for x in missing if found.obligations else ():
            closed |= found.absent[x]
        return closed == (1 << found.obligations) - 1 and found.least <= members <= found.most

    # --- arrays

    def _array(self, registers: Registers, op: int, x: int, place: _Place) -> Registers | None:
        a, b, c = registers
        counters = [c >> COUNTER_BITS * i & _COUNTER for i in range(len(place.cap))]
        if op == COUNT:
            for i, (cap, strict) in enumerate(zip(place.cap, place.strict, strict=True)):
                if x >> i & 1:
                    if counters[i] == cap and strict:
                        return None
                    counters[i] = min(counters[i] + 1, cap)
        row, stride = place.rows, 1
        for counter, cap in zip(counters, place.cap, strict=True):
            row, stride = row + counter * stride, stride * (cap + 1)
        if op == NEXT_ITEM:
            return Registers(max(a - 1, 0), b if b == UNBOUNDED else b - 1, c) if self._fits(row, max(a, 1), b) else None
        if op == CLOSE_ARRAY:
            return registers if a == 0 and self._fits(row, 0, 0) else None
        depth = c >> DEPTH_SHIFT << DEPTH_SHIFT
        packed = sum(counter << COUNTER_BITS * i for i, counter in enumerate(counters))
        return Registers(a, b, depth | packed) if self._fits(row, a, b) else None


def _counted(c: int, found: _Object) -> int:
    """One member more; beyond the least number it does not matter how many, where any number may come."""
    return c if found.most == UNBOUNDED and c & _MEMBERS >= found.least else c + 1


def _ways(seen: int, closed: int, found: _Object) -> dict[int, int]:
    """What the unseen names of an unordered object can do: obligations closed then -> bit set of how many names are taken."""
    ways = {closed: 1}
    for x in range(found.names):
        if seen >> x & 1:
            continue
        following: dict[int, int] = {}
        for before, counts in ways.items():
            if not found.required[x]:
                without = before | found.absent[x]
                following[without] = following.get(without, 0) | counts
            for served in found.choices[x]:
                after = before | served
                following[after] = following.get(after, 0) | counts << 1
        ways = following
    return ways
