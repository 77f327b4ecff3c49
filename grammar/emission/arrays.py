"""The rules of arrays.

`[`, an item, then TAKE at every comma, and DONE at the bracket. The registers a and b count what comes after the first item.
Where items have to satisfy more together, register c counts them: at every place an item is read by one of several calls,
each of which COUNTs for other obligations (`kernels.pushdown_tables.Tally`). Items that must differ are marked DISTINCT.
"""

from __future__ import annotations

from dataclasses import dataclass

from grammar.algebra.endless import Endless
from grammar.algebra.shapes import Array
from grammar.emission.rules import NEWLINE, Emission, Operation, Value
from grammar.emission.tables import Call, Edge
from grammar.emission.tallies import Counter
from grammar.errors import GrammarTooLarge
from kernels.pushdown_tables import (
    ALWAYS,
    AWAITS,
    CLOSE_ARRAY,
    COUNT,
    COUNTER_BITS,
    DISTINCT,
    DONE,
    NEXT_ITEM,
    POP,
    TAKE,
    TIGHT,
    UNBOUNDED,
)

_OPEN, _CLOSE, _COMMA = ord("["), ord("]"), ord(",")
_MOST_COUNTED = (1 << COUNTER_BITS) - 1


@dataclass(frozen=True, slots=True)
class _Place:
    """A position of the prefix, or all behind it: how its items are read, and what the edges after one of them ask."""

    calls: int
    may_end: Operation
    may_go_on: Operation


class Arrays:
    """Emits the arrays of one machine."""

    def __init__(self, emission: Emission) -> None:
        self._emission, self._endless = emission, Endless(emission.form)

    def call(self, shape: Array, canonical: bool) -> Call:
        """The rule of an array; with `canonical`, of one whose text is compared."""
        tight = shape.unique and self._is_tight(shape)
        identity = (shape.prefix, shape.items, shape.least == 0, shape.most == 0, shape.unique, shape.some, canonical, tight)
        start = self._emission.once(identity, lambda: self._rule(shape, canonical or shape.unique, TIGHT if tight else 0))
        return start, max(shape.least - 1, 0), UNBOUNDED if shape.most is None else shape.most - 1

    def _rule(self, shape: Array, canonical: bool, marks: int) -> int:
        tables, style = self._emission.tables, self._emission.style
        counted = not shape.some     # else large counts differ by what the counters still need
        awaits = marks | (AWAITS if shape.unique else 0) | style.calling
        returned = marks | (DISTINCT if shape.unique else 0)
        repeats = shape.items != self._emission.form.nothing
        places = self._places(shape, canonical)[:None if repeats else len(shape.prefix)]
        if repeats and not shape.prefix:   # the first item, before which the array may end, has a state of its own
            places = [places[0], places[0]]
        may_be_empty = shape.least == 0 and not any(some.least for some in shape.some)
        closing: list[Edge] = [(_CLOSE, _CLOSE, POP, ALWAYS, 0, 0)] if may_be_empty else []
        if not places or shape.most == 0:
            first = tables.state(space=style.space, counted=True, edges=closing)
            return tables.state(edges=[(_OPEN, _OPEN, first, ALWAYS, 0, 0)])
        before = [tables.state(space=style.inner, counted=counted, marks=awaits if n else marks | style.calling)
                  for n in range(len(places))]
        after = [tables.state(space=style.space, counted=counted, marks=returned) for _ in places]
        following = [*before[1:], *(before[-1:] if repeats else [])]
        for n, place in enumerate(places):
            tables.set_calls(before[n], place.calls, after[n])
            edges = [self._end(place)]
            if n < len(following):
                target = following[n]
                if style.pretty:
                    target = tables.state(counted=counted, marks=awaits, edges=[(NEWLINE, NEWLINE, target, ALWAYS, 0, 0)])
                edges.append((_COMMA, _COMMA, target, *place.may_go_on))
            tables.set_edges(after[n], edges)
        first = before[0]
        if style.pretty:
            first = tables.state(marks=marks, edges=[(NEWLINE, NEWLINE, first, ALWAYS, 0, 0), *closing])
        else:
            tables.set_edges(first, closing)
        return tables.state(counted=counted, edges=[(_OPEN, _OPEN, first, ALWAYS, 0, 0)])

    def _end(self, place: _Place) -> Edge:
        return self._emission.line(POP, _CLOSE, place.may_end, place.may_end, outer=True)

    def _places(self, shape: Array, canonical: bool) -> list[_Place]:
        """The positions of the prefix, then all behind it."""
        emission = self._emission
        if not shape.some:
            operations: tuple[Operation, Operation] = (DONE, 0, 0), (TAKE, 0, 0)
            return [_Place(emission.calls(Value(key), canonical=canonical), *operations)
                    for key in (*shape.prefix, shape.items) if emission.alive(key)]
        counters = [Counter(some.least, some.most) for some in shape.some]
        if max(counter.cap for counter in counters) > _MOST_COUNTED:
            raise GrammarTooLarge("items_counted", _MOST_COUNTED, max(counter.cap for counter in counters), keyword="contains")
        choices = [emission.form.item_choices(shape, place) for place in range(len(shape.prefix) + 1)]
        numbers = emission.tables.tally.add_array(counters, [[choice.serves for choice in place] for place in choices])
        return [_Place(emission.calls(*(Value(c.key, (COUNT, c.serves, number)) for c in place), canonical=canonical),
                       (CLOSE_ARRAY, 0, number), (NEXT_ITEM, 0, number))
                for place, number in zip(choices, numbers, strict=True)]

    def _is_tight(self, shape: Array) -> bool:
        """Whether some choice of items may leave too few values that differ for the items still needed.

        Where all places are alike it may not: the array's bounds say how many different items it has room for.
        """
        if not shape.some and not shape.prefix:
            return False
        nothing = self._emission.form.nothing
        return not all(self._endless.has(key) for key in (*shape.prefix, shape.items) if key != nothing)
