"""Shapes: the normal form of schemas. A schema is a list of shapes, any of which may hold; a shape restrains one JSON type.

Objects and arrays name the schemas of their members by key (see `grammar.document`), so a recursive schema is a finite
graph. `Meeting.meet` is the exact conjunction of two shapes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar

from grammar import automata, formats, numbers, regex
from grammar.automata import Dfa
from grammar.budget import Budget
from grammar.document import ANYTHING, Document, Key
from grammar.numbers import Range


@dataclass(frozen=True, slots=True)
class Null:
    pass


@dataclass(frozen=True, slots=True)
class Boolean:
    values: frozenset[bool] = frozenset((True, False))


@dataclass(frozen=True, slots=True)
class Number:
    """Numbers in a range; only integers with `integer`, only integers that it divides with `multiple`."""

    bounds: Range = field(default_factory=Range)
    integer: bool = False
    multiple: int | None = None


@dataclass(frozen=True, slots=True)
class NumberSet:
    values: tuple[int | float, ...]


@dataclass(frozen=True, slots=True)
class String:
    """`least` to `most` characters (None: no bound), found by every regex of `patterns`, in every format of `formats`."""

    least: int = 0
    most: int | None = None
    patterns: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StringSet:
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Array:
    """`least` to `most` items: the first ones as `prefix` says, the others as `items`."""

    prefix: tuple[Key, ...] = ()
    items: Key = ANYTHING
    least: int = 0
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Object:
    """`properties` in their order; a `required` name that is none of them, and any other name, has the schema `additional`."""

    properties: tuple[tuple[str, Key], ...] = ()
    required: tuple[str, ...] = ()
    additional: Key = ANYTHING


T = TypeVar("T")
Shape = Null | Boolean | Number | NumberSet | String | StringSet | Array | Object

ANY_SHAPES: dict[str, Shape] = {
    "null": Null(), "boolean": Boolean(), "number": Number(), "string": String(), "array": Array(), "object": Object()}


class Texts:
    """The automata of string shapes, each made once in a compilation."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._searches: dict[str, Dfa | None] = {}
        self._automata: dict[String, Dfa | None] = {}

    def of(self, shape: String) -> Dfa | None:
        """What the patterns, the formats and the lower bound accept; None where that is nothing.

        An upper bound is not in the automaton: it is a register at run time, and the caller compares it with `shortest()`.
        """
        key = String(shape.least, None, shape.patterns, shape.formats)
        if key not in self._automata:
            self._automata[key] = self._build(key)
        return self._automata[key]

    def search(self, pattern: str) -> Dfa | None:
        """The texts in which a regex is found. Raises PatternError."""
        if pattern not in self._searches:
            self._searches[pattern] = automata.from_regex(regex.searched(regex.parse(pattern, self._budget)), self._budget)
        return self._searches[pattern]

    def _build(self, shape: String) -> Dfa | None:
        parts = [self.search(pattern) for pattern in shape.patterns]
        parts += [formats.automaton(name) for name in shape.formats]
        found = parts[0]
        for part in parts[1:]:
            if found is None or part is None:
                return None
            found = automata.intersection(found, part, self._budget)
        return None if found is None else automata.at_least(found, shape.least, self._budget)


class Meeting:
    """Conjunction of shapes within one document."""

    def __init__(self, document: Document, texts: Texts) -> None:
        self._document, self._texts = document, texts

    def meet(self, left: Shape, right: Shape) -> Shape | None:
        """The shape of the values that both have, or None where they have none in common at first sight.

        Members are only joined by key, so a shape may still turn out to have no value.
        """
        match left, right:
            case Null(), Null():
                return left
            case Boolean(), Boolean():
                values = left.values & right.values
                return Boolean(values) if values else None
            case Number() | NumberSet(), Number() | NumberSet():
                return self._numbers(left, right)
            case String() | StringSet(), String() | StringSet():
                return self._strings(left, right)
            case Array(), Array():
                return self._arrays(left, right)
            case Object(), Object():
                return self._objects(left, right)
        return None

    def possible(self, shape: Shape) -> bool:
        """Whether a shape of a scalar has a value. True for containers, whose members decide."""
        match shape:
            case Number(bounds, integer, multiple):
                if multiple is not None:
                    low, high = numbers.integer_bounds(bounds)
                    return -(-low // multiple) * multiple <= high
                return numbers.number_automaton(bounds, integer) is not None
            case String(least, most, patterns, formats_):
                if most is not None and least > most:
                    return False
                if not patterns and not formats_:
                    return True
                found = self._texts.of(shape)
                return found is not None and (most is None or found.shortest()[0] <= most)
            case Array(_, _, least, most):
                return most is None or least <= most
            case NumberSet(values) | StringSet(values) | Boolean(values):
                return bool(values)
        return True

    def _numbers(self, left: Number | NumberSet, right: Number | NumberSet) -> Shape | None:
        if isinstance(right, NumberSet):
            left, right = right, left
        if isinstance(left, NumberSet):
            if isinstance(right, NumberSet):
                return _listed(NumberSet, left.values, set(right.values).__contains__)
            return _listed(NumberSet, left.values, lambda value: _is_in(value, right))
        assert isinstance(right, Number)
        multiple = left.multiple or right.multiple
        if left.multiple and right.multiple:
            multiple = math.lcm(left.multiple, right.multiple)
        met = Number(left.bounds.meet(right.bounds), left.integer or right.integer, multiple)
        return met if self.possible(met) else None

    def _strings(self, left: String | StringSet, right: String | StringSet) -> Shape | None:
        if isinstance(right, StringSet):
            left, right = right, left
        if isinstance(left, StringSet):
            if isinstance(right, StringSet):
                return _listed(StringSet, left.values, set(right.values).__contains__)
            return _listed(StringSet, left.values, lambda value: self._matches(value, right))
        assert isinstance(right, String)
        met = String(
            max(left.least, right.least), _least_bound(left.most, right.most),
            tuple(dict.fromkeys(left.patterns + right.patterns)), tuple(dict.fromkeys(left.formats + right.formats)))
        return met if self.possible(met) else None

    def _matches(self, value: str, shape: String) -> bool:
        if len(value) < shape.least or (shape.most is not None and len(value) > shape.most):
            return False
        parts = [self._texts.search(pattern) for pattern in shape.patterns] + [formats.automaton(name) for name in shape.formats]
        return all(part is not None and part.accepts(value) for part in parts)

    def _arrays(self, left: Array, right: Array) -> Shape | None:
        both = self._document.both
        n = max(len(left.prefix), len(right.prefix))
        prefix = tuple(both(_item(left, i), _item(right, i)) for i in range(n))
        met = Array(prefix, both(left.items, right.items), max(left.least, right.least), _least_bound(left.most, right.most))
        return met if self.possible(met) else None

    def _objects(self, left: Object, right: Object) -> Shape:
        both = self._document.both
        here, there = dict(left.properties), dict(right.properties)
        names = dict.fromkeys([*here, *there])
        properties = tuple(
            (name, both(here.get(name, left.additional), there.get(name, right.additional))) for name in names)
        return Object(properties, tuple(dict.fromkeys(left.required + right.required)), both(left.additional, right.additional))


def _listed(kind: Callable[[tuple[T, ...]], Shape], values: tuple[T, ...], keep: Callable[[T], bool]) -> Shape | None:
    kept = tuple(value for value in values if keep(value))
    return kind(kept) if kept else None


def _item(array: Array, i: int) -> Key:
    return array.prefix[i] if i < len(array.prefix) else array.items


def _least_bound(left: int | None, right: int | None) -> int | None:
    return right if left is None else left if right is None else min(left, right)


def _is_in(value: int | float, shape: Number) -> bool:
    exact = Fraction(value)
    if (shape.integer or shape.multiple) and exact.denominator != 1:
        return False
    return shape.bounds.holds(exact) and (not shape.multiple or exact % shape.multiple == 0)
