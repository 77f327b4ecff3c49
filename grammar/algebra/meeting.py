"""Conjunction of shapes: the exact shape of what two shapes have in common, or None where that is plainly nothing.

Members of containers are joined by key, unseen; so a container may still turn out to have no value.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

from grammar.algebra.arrays import meet_arrays
from grammar.algebra.languages import Languages
from grammar.algebra.objects import Objects
from grammar.algebra.shapes import (
    Array,
    Boolean,
    Null,
    Number,
    NumberSet,
    Object,
    Shape,
    String,
    StringSet,
    joined,
)
from grammar.algebra.terms import Terms
from grammar.number import numbers

S = TypeVar("S")
T = TypeVar("T")


class Meeting:
    """Conjunction of shapes within one document."""

    def __init__(self, terms: Terms, languages: Languages, objects: Objects) -> None:
        self._terms, self._languages, self._objects = terms, languages, objects

    def meet(self, left: Shape, right: Shape) -> Shape | None:
        """The shape of the values that both have, or None where they have none in common at first sight."""
        match left, right:
            case Null(), Null():
                return left
            case Boolean(), Boolean():
                values = left.values & right.values
                return Boolean(values) if values else None
            case Number() | NumberSet(), Number() | NumberSet():
                return self._numbers(left, right)
            case String() | StringSet(), String() | StringSet():
                return self.texts(left, right)
            case Array(), Array():
                return meet_arrays(left, right, self._terms)
            case Object(), Object():
                return self._objects.meet(left, right)
        return None

    def possible(self, shape: Shape) -> bool:
        """Whether a shape of a scalar has a value. True for containers, whose members decide."""
        match shape:
            case Number():
                return _plainly_possible(shape) or not numbers.is_empty(shape)
            case String(least, most):
                if most is not None and least > most:
                    return False
                if shape.plain:
                    return True
                return self._languages.shortest(shape) is not None
            case NumberSet(values) | StringSet(values) | Boolean(values):
                return bool(values)
        return True

    def texts(self, left: String | StringSet, right: String | StringSet) -> String | StringSet | None:
        """The conjunction of two shapes of strings."""
        if isinstance(right, StringSet):
            left, right = right, left
        if isinstance(left, StringSet):
            if isinstance(right, StringSet):
                return _listed(StringSet, left.values, set(right.values).__contains__)
            return _listed(StringSet, left.values, lambda value: self._languages.matches(value, right))
        assert isinstance(right, String)
        met = left.meet(right)
        return met if self.possible(met) else None

    def _numbers(self, left: Number | NumberSet, right: Number | NumberSet) -> Shape | None:
        if isinstance(right, NumberSet):
            left, right = right, left
        if isinstance(left, NumberSet):
            if isinstance(right, NumberSet):
                return _listed(NumberSet, left.values, set(right.values).__contains__)
            return _listed(NumberSet, left.values, lambda value: numbers.holds(value, right))
        assert isinstance(right, Number)
        if left == _ANY_NUMBER or right == _ANY_NUMBER:
            return right if left == _ANY_NUMBER else left
        if left.whole is not None and right.whole is not None and left.whole != right.whole:
            return None
        met = Number(left.bounds.meet(right.bounds), right.whole if left.whole is None else left.whole,
                     joined(left.multiples, right.multiples), joined(left.not_multiples, right.not_multiples),
                     left.without | right.without)
        return met if self.possible(met) else None


_ANY_NUMBER = Number()


def _plainly_possible(shape: Number) -> bool:
    """Whether the bounds leave so much room that what is excluded cannot fill it."""
    bounds = shape.bounds
    if shape.multiples or shape.not_multiples or shape.whole is False:
        return False
    if shape.whole:
        low, high = numbers.integer_bounds(bounds)
        return high - low >= len(shape.without)
    return bounds.low is None or bounds.high is None or bounds.high - bounds.low > _WIDE


_WIDE = Fraction(1, 1000)


def _listed(kind: Callable[[tuple[T, ...]], S], values: tuple[T, ...], keep: Callable[[T], bool]) -> S | None:
    kept = tuple(value for value in values if keep(value))
    return kind(kept) if kept else None
