"""Arrays of different items: how many there can be where the items have few values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

from grammar.algebra.choices import Choices
from grammar.algebra.inhabited import meets, tallied
from grammar.algebra.languages import Languages
from grammar.algebra.shapes import Array, Boolean, Null, Number, NumberSet, Object, Shape, String, StringSet, least_bound
from grammar.algebra.terms import Terms
from grammar.budget import Budget
from grammar.number.numbers import holds, integer_bounds
from grammar.schema.document import Key

Shapes = Mapping[Key, tuple[Shape, ...]]
Taken = dict[Any, int]      # value -> the place that has it
Values = frozenset[Any]     # of JSON values in a form in which equal ones are equal: ("number", Fraction) and the like

_MOST_VALUES = 1000     # of a key; beyond that a key counts as one of many values
_DEEPEST = 4            # containers in containers that are listed
_MOST_STEPS = 2000      # in looking for one array that meets obligations


class Unclear(Exception):
    """How many different items there are cannot be told."""


class _Many(Exception):
    """More values than are listed."""


class Uniqueness:
    """Counts the values of items."""

    def __init__(self, terms: Terms, languages: Languages, choices: Choices, budget: Budget) -> None:
        self._terms, self._languages, self._choices, self._budget = terms, languages, choices, budget
        self._known: dict[Key, Values | None] = {}

    def bounded(self, shape: Array, shapes: Shapes) -> Array | None:
        """The array with as many items at most as can be different; None where those are too few.

        Up to that number there are different values for all places, though not whatever the items before are: it is for the
        machine to leave enough. Raises Unclear where it cannot be told.
        """
        if shape.some:
            return shape if self._has_room(shape, shapes) or self._has_array(shape, shapes) else None
        most = shape.most
        taken: Taken = {}
        places: list[Values] = []       # of places with many values none, since nothing takes them all
        for place, key in enumerate(shape.prefix[:most]):
            values = self._values(key, shapes)
            places.append(values or frozenset())
            if values is not None and not self._take(place, places, taken):
                most = place
                break
        values = self._values(shape.items, shapes)
        if len(places) == len(shape.prefix) != most and values is not None and shape.items != self._terms.nothing:
            most = least_bound(most, len(places) + self._room(places, values))
        if most is not None and shape.least > most:
            return None
        return replace(shape, most=most, unique=most is None or most > 1)

    def _room(self, places: Sequence[Values], values: Values) -> int:
        """How many items with different ones of `values` fit behind some places: as many as these need not take.

        A value that is taken stays so while others are, so the places first take what they can of other values.
        """
        taken: Taken = {}
        others = [some - values for some in places]
        late = [place for place, some in enumerate(places) if some and not self._take(place, others, taken)]
        for place in late:
            self._take(place, places, taken)
        return len(values) - sum(1 for value in taken if value in values)

    def _take(self, place: int, places: Sequence[Values], taken: Taken) -> bool:
        """Give a place one of its values, others moving to another one of theirs where that helps; False where nothing does.

        `taken` is a matching, and grows along an augmenting path (C. Berge, "Two theorems in graph theory", 1957).
        """
        reached: dict[Any, int] = {}    # value -> the place from which it was reached
        queue = [place]
        for here in queue:      # grows meanwhile
            self._budget.spend("obligation_steps", 1 + len(places[here]) // 8)
            for value in places[here]:
                if value not in reached:
                    reached[value] = here
                    if value not in taken:
                        _move(value, place, reached, taken)
                        return True
                    queue.append(taken[value])
        return False

    def _has_room(self, shape: Array, shapes: Shapes) -> bool:
        """Whether every place has many values, and every obligation that needs several items has."""
        for place in range(len(shape.prefix) + 1):
            choices = [choice for choice in self._choices.item(shape, place) if shapes.get(choice.key)]
            many = [choice.serves for choice in choices if self._values(choice.key, shapes) is None]
            if choices and not many:
                return False
            for n, some in enumerate(shape.some):
                serving = [choice for choice in choices if choice.serves >> n & 1]
                if some.least > 1 and serving and not any(serves >> n & 1 for serves in many):
                    return False
        return True

    def _has_array(self, shape: Array, shapes: Shapes) -> bool:
        """Whether some array of different items meets all obligations: place by place, choice by choice, depth first."""
        longest = max(shape.least, len(shape.prefix)) + sum(some.least for some in shape.some)
        stack: list[tuple[tuple[int, ...], tuple[Values, ...], Taken]] = [((0,) * len(shape.some), (), {})]
        for _ in range(_MOST_STEPS):
            if not stack:
                return False
            tally, places, taken = stack.pop()
            place = len(places)
            self._budget.spend("obligation_steps", 1 + place // 8)
            if place >= shape.least and meets(tally, shape):
                return True
            if place == shape.most or place > longest:
                continue
            choices = [choice for choice in self._choices.item(shape, place) if shapes.get(choice.key)]
            for choice in sorted(choices, key=lambda choice: choice.serves.bit_count()):    # the last one is looked at first
                values, following = self._values(choice.key, shapes), tallied(tally, choice.serves, shape)
                longer, still = [*places, values or frozenset()], dict(taken)
                if following is not None and (values is None or self._take(place, longer, still)):
                    stack.append((following, tuple(longer), still))
        raise Unclear

    # --- the values of a key

    def _values(self, key: Key, shapes: Shapes) -> Values | None:
        """All values of a key; None where they are many."""
        if key not in self._known:
            try:
                self._known[key] = frozenset(self._of_key(key, shapes, 0))
            except _Many:
                self._known[key] = None
        return self._known[key]

    def _of_key(self, key: Key, shapes: Shapes, depth: int) -> set[Any]:
        if depth > _DEEPEST or not key:
            raise _Many
        found: set[Any] = set()
        for shape in shapes.get(key, ()):
            found.update(self._of_shape(shape, shapes, depth))
            if len(found) > _MOST_VALUES:
                raise _Many
        return found

    def _of_shape(self, shape: Shape, shapes: Shapes, depth: int) -> Iterable[Any]:
        match shape:
            case Null():
                return [("null", None)]
            case Boolean(values):
                return [("boolean", value) for value in values]
            case NumberSet(values):
                return [("number", Fraction(value)) for value in values]
            case StringSet(values):
                return [("string", value) for value in values]
            case Number():
                return self._of_numbers(shape)
            case String():
                words = self._languages.words(shape, _MOST_VALUES)
                if words is None:
                    raise _Many
                return [("string", word) for word in words]
            case Array():
                return self._of_array(shape, shapes, depth)
            case Object():
                return self._of_object(shape, shapes, depth)

    def _of_numbers(self, shape: Number) -> Iterable[Any]:
        bounds, integral = shape.bounds, shape.whole or any(multiple.denominator == 1 for multiple in shape.multiples)
        if bounds.low is not None and bounds.low == bounds.high:
            return [("number", bounds.low)]
        if not integral or bounds.low is None or bounds.high is None:
            raise _Many
        low, high = integer_bounds(bounds)
        if high - low > _MOST_VALUES * max(map(int, shape.multiples), default=1):
            raise _Many
        return [("number", Fraction(n)) for n in range(low, high + 1)
                if holds(n, shape)]

    def _of_array(self, shape: Array, shapes: Shapes, depth: int) -> Iterable[Any]:
        if shape.most is None or shape.most > _MOST_VALUES:
            raise _Many
        found: set[Any] = set()
        reached: dict[tuple[Any, ...], set[tuple[int, ...]]] = {(): {(0,) * len(shape.some)}}   # items -> tallies they may have
        for length in range(shape.most + 1):
            if length >= shape.least:
                found.update(("array", items) for items, tallies in reached.items()
                             if any(meets(tally, shape) for tally in tallies))
            if length == shape.most or not reached:
                break
            longer: dict[tuple[Any, ...], set[tuple[int, ...]]] = {}
            for choice in self._choices.item(shape, length):
                for items, value in product(reached, self._of_key(choice.key, shapes, depth + 1)):
                    moved = {after for tally in reached[items] if (after := tallied(tally, choice.serves, shape)) is not None}
                    if moved and not (shape.unique and value in items):
                        longer.setdefault((*items, value), set()).update(moved)
                if len(longer) + len(found) > _MOST_VALUES:
                    raise _Many
            reached = longer
        return found

    def _of_object(self, shape: Object, shapes: Shapes, depth: int) -> Iterable[Any]:
        if self._choices.extras(shape):
            raise _Many
        reached: dict[tuple[tuple[str, Any], ...], set[int]] = {(): {(1 << len(shape.some)) - 1}}   # members -> what may be open
        for name, key in shape.properties:
            absent = sum(1 << n for n, some in enumerate(shape.some) if name in some.absent)
            left = {} if name in shape.required else reached
            longer = {some: {bits & ~absent for bits in still} for some, still in left.items()}
            for choice in self._choices.member(shape, name, key):
                for some, value in product(reached, self._of_key(choice.key, shapes, depth + 1)):
                    longer.setdefault((*some, (name, value)), set()).update(bits & ~choice.serves for bits in reached[some])
                if len(longer) > _MOST_VALUES:
                    raise _Many
            reached = longer
        most = len(shape.properties) if shape.most is None else shape.most
        return [("object", frozenset(some)) for some, still in reached.items() if 0 in still and shape.least <= len(some) <= most]


def _move(value: Any, place: int, reached: Mapping[Any, int], taken: Taken) -> None:
    """Let each place on a path take the value that was reached from it, from a free value back to `place`."""
    while True:
        owner = reached[value]
        before = next((other for other, having in taken.items() if having == owner), None)
        taken[value] = owner
        if owner == place:
            return
        value = before
