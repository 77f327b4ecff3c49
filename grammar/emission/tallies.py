"""What tallied objects and arrays may still hold: the rows of `kernels.pushdown_tables.Tally`, worked out from their end.

A row is a set of numbers: of how many members may still come so that everything is met in the end. It is kept as sorted,
disjoint intervals.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, product
from math import prod

import numpy as np

from grammar.budget import Budget
from kernels.pushdown_tables import MOST_COUNTERS, NO_TALLY, UNBOUNDED, Tally

Row = tuple[tuple[int, int], ...]

_NONE_MORE: Row = ((0, 0),)


@dataclass(frozen=True, slots=True)
class Member:
    """A declared name, or a class of undeclared names, of a tallied object: the sets of obligations that its values can close, as
    bits, one for each choice of value; whether it is required; and what its absence closes."""

    choices: tuple[int, ...]
    required: bool = False
    absent: int = 0


@dataclass(frozen=True, slots=True)
class Counter:
    """How many items of an array are to satisfy something: `least` to `most` (None: no bound)."""

    least: int
    most: int | None

    @property
    def cap(self) -> int:
        """Beyond this number it does not matter how many, or there must be no more."""
        return self.least if self.most is None else self.most


class TallyBuilder:
    """Collects the tallied objects and arrays of a machine."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._objects: list[tuple[int, ...]] = []
        self._numbers: list[tuple[int, int, int]] = []
        self._choices: list[tuple[int, ...]] = []
        self._places: list[tuple[int, list[int], list[int], int]] = []
        self._rows: list[Row] = []

    def add_object(self, names: Sequence[Member], others: Sequence[Member], *, ordered: bool, remembers: bool, least: int,
                   most: int | None, obligations: int) -> int:
        """A tallied object; returns its number. `others` are the classes of undeclared names."""
        first = len(self._rows)
        self._rows.extend(chain.from_iterable(self._rows_of_object(names if ordered else (), others, obligations)))
        following = UNBOUNDED
        nexts: list[int] = []
        for n in range(len(names) - 1, -1, -1):
            nexts.append(following)
            following = n if names[n].required else following
        nexts = [*reversed(nexts), *[UNBOUNDED] * len(others)]
        self._objects.append((ordered, remembers, len(names), len(self._numbers), least, UNBOUNDED if most is None else most,
                              obligations, first))
        members = [*names, *others]
        self._numbers.extend((m.required, after, m.absent) for m, after in zip(members, nexts, strict=True))
        self._choices.extend(m.choices for m in members)
        return len(self._objects) - 1

    def add_array(self, counters: Sequence[Counter], places: Sequence[Sequence[int]]) -> list[int]:
        """The places of a tallied array: for each prefix position, then for all behind it, the sets of counters that its choices
        count for. Returns their numbers."""
        caps = [counter.cap for counter in counters]
        strict = [int(counter.most is not None) for counter in counters]
        padding = [0] * (MOST_COUNTERS - len(counters))
        numbers = []
        for rows in self._rows_of_array(counters, places):
            numbers.append(len(self._places))
            self._places.append((len(counters), caps + padding, strict + padding, len(self._rows)))
            self._rows.extend(rows)
        return numbers

    def build(self) -> Tally:
        """The finished columns."""
        if not self._objects and not self._places:
            return NO_TALLY
        ordered, remembers, names, numbers, least, most, obligations, rows = _columns(self._objects, 8)
        required, following, absent = _columns(self._numbers, 3)
        spans = np.array(list(chain.from_iterable(self._rows)), dtype=np.int64).reshape(-1, 2)
        counts, caps, strict, first = zip(*self._places, strict=True) if self._places else ((), (), (), ())
        return Tally(
            object_ordered=ordered.astype(np.uint8), object_remembers=remembers.astype(np.uint8),
            object_names=names.astype(np.int32), object_numbers=np.array([*numbers, len(self._numbers)], dtype=np.int32),
            object_least=least, object_most=most, object_obligations=obligations.astype(np.int32),
            object_rows=rows.astype(np.int32), number_required=required.astype(np.uint8), number_next=following,
            number_absent=absent, number_choices=_cuts(self._choices),
            choices=np.array(list(chain.from_iterable(self._choices)), dtype=np.int64),
            place_counters=np.array(counts, dtype=np.int32),
            place_cap=np.array(caps, dtype=np.int32).reshape(-1, MOST_COUNTERS),
            place_strict=np.array(strict, dtype=np.uint8).reshape(-1, MOST_COUNTERS),
            place_rows=np.array(first, dtype=np.int32), row_begin=_cuts(self._rows),
            row_low=spans[:, 0].copy(), row_high=spans[:, 1].copy())

    def _rows_of_object(self, names: Sequence[Member], others: Sequence[Member], obligations: int) -> list[list[Row]]:
        """A row for each set of closed obligations, of each name that may be the next allowed one, and behind them all."""
        sets = 1 << obligations
        self._pay((len(names) + 1) * sets)
        choices = {choice for other in others for choice in other.choices}
        rows = [_repeated(range(sets - 1, -1, -1), [closed == sets - 1 for closed in range(sets)],
                          [[closed | choice for choice in choices] for closed in range(sets)])]
        for name in reversed(names):
            after = rows[-1]
            rows.append([_union([*(() if name.required else (after[closed | name.absent],)),
                                 *(_one_more(after[closed | choice]) for choice in name.choices)]) for closed in range(sets)])
        return rows[::-1]

    def _rows_of_array(self, counters: Sequence[Counter], places: Sequence[Sequence[int]]) -> list[list[Row]]:
        """A row for each value of the counters, after an item at each place."""
        self._pay(prod(counter.cap + 1 for counter in counters) * len(places))
        values = list(_values(counters))
        met = [all(v >= counter.least for v, counter in zip(value, counters, strict=True)) for value in values]
        moves = {choice: [_counted(value, choice, counters) for value in values] for place in places for choice in place}
        tail = _repeated(range(len(values) - 1, -1, -1), met,
                         [[moves[choice][n] for choice in places[-1]] for n in range(len(values))])
        rows = [tail] * min(len(places), 2)
        for place in reversed(places[1:-1]):
            after = rows[-1]
            rows.append([_union([_NONE_MORE if met[n] else (), *(
                _one_more(after[target]) for choice in place if (target := moves[choice][n]) is not None)])
                for n in range(len(values))])
        return rows[::-1]

    def _pay(self, rows: int) -> None:
        self._budget.check("tally_rows", len(self._rows) + rows)
        self._budget.spend("automaton_steps", rows)


def _repeated(order: Iterable[int], met: Sequence[bool], moves: Sequence[Sequence[int | None]]) -> list[Row]:
    """The rows of states between which members of one kind lead, as often as they come. A move leads to the state itself or to
    an earlier one in `order`."""
    rows: list[Row] = [()] * len(met)
    for state in order:
        targets = {target for target in moves[state] if target is not None}
        row = _union([_NONE_MORE if met[state] else (), *(_one_more(rows[target]) for target in targets if target != state)])
        rows[state] = ((row[0][0], UNBOUNDED),) if row and state in targets else row
    return rows


def _values(counters: Sequence[Counter]) -> Iterable[tuple[int, ...]]:
    """All values that counters may have, the first one changing fastest."""
    for value in product(*(range(counter.cap + 1) for counter in reversed(counters))):
        yield value[::-1]


def _counted(value: tuple[int, ...], choice: int, counters: Sequence[Counter]) -> int | None:
    """The number of the value after an item that counts for the counters in `choice`; None where that is too many."""
    number, stride = 0, 1
    for i, counter in enumerate(counters):
        after = value[i] + (choice >> i & 1)
        if after > counter.cap:
            if counter.most is not None:
                return None
            after = counter.cap
        number, stride = number + after * stride, stride * (counter.cap + 1)
    return number


def _one_more(row: Row) -> Row:
    return tuple((low + 1, high if high == UNBOUNDED else high + 1) for low, high in row)


def _union(rows: Sequence[Row]) -> Row:
    spans = sorted(chain.from_iterable(rows))
    merged = spans[:1]
    for low, high in spans[1:]:
        if low <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return tuple(merged)


def _columns(rows: Sequence[tuple[int, ...]], width: int) -> Sequence[np.ndarray]:
    return list(np.array(rows, dtype=np.int64).reshape(-1, width).T.copy())


def _cuts(parts: Iterable[Sequence[object]]) -> np.ndarray:
    return np.cumsum([0, *map(len, parts)]).astype(np.int32)
