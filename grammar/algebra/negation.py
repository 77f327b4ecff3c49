"""What a shape leaves out of its type, as shapes.

Every keyword of a shape is negated on its own, and the values left out are the union. An object's members make one obligation,
whatever their number: some member is not as it should be, or is missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from grammar.algebra.shapes import (
    Array,
    Boolean,
    NameTest,
    Null,
    Number,
    NumberSet,
    Object,
    Shape,
    SomeItem,
    SomeMember,
    String,
    StringSet,
)
from grammar.algebra.terms import Terms
from grammar.number.numbers import Range
from grammar.schema.document import ANYTHING, Key


def negated_shape(shape: Shape, terms: Terms, not_names: Iterable[String | StringSet] = ()) -> tuple[Shape, ...]:
    """The values of the shape's type that do not have it. `not_names`: the names that an object's `names` leave out.

    Objects must have no obligations, and one of `rests` at most: they are what keywords say, not what became of them.
    """
    match shape:
        case Null():
            return ()
        case Boolean(values):
            return (Boolean(frozenset((True, False)) - values),) if len(values) < 2 else ()
        case Number():
            return tuple(_number(shape))
        case NumberSet(values):
            return (Number(without=frozenset(map(Fraction, values))),)
        case String():
            return tuple(_string(shape))
        case StringSet(values):
            return (String(without=frozenset(values)),)
        case Array():
            return tuple(_array(shape, terms))
        case Object():
            return tuple(_object(shape, terms, not_names))


def _number(shape: Number) -> Iterable[Shape]:
    bounds = shape.bounds
    if bounds.low is not None:
        yield Number(Range(high=bounds.low, high_open=not bounds.low_open))
    if bounds.high is not None:
        yield Number(Range(low=bounds.high, low_open=not bounds.high_open))
    if shape.whole is not None:
        yield Number(whole=not shape.whole)
    yield from (Number(not_multiples=(multiple,)) for multiple in shape.multiples)
    yield from (Number(multiples=(multiple,)) for multiple in shape.not_multiples)


def _string(shape: String) -> Iterable[Shape]:
    if shape.least:
        yield String(most=shape.least - 1)
    if shape.most is not None:
        yield String(least=shape.most + 1)
    yield from (String(not_patterns=(pattern,)) for pattern in shape.patterns)
    yield from (String(not_formats=(name,)) for name in shape.formats)


def _array(shape: Array, terms: Terms) -> Iterable[Shape]:
    if shape.least:
        yield Array(most=shape.least - 1)
    if shape.most is not None:
        yield Array(least=shape.most + 1)
    if shape.unique:
        yield Array(repeats=True)
    prefix = tuple(_or_none(terms.negated(key), terms) for key in shape.prefix)
    items = _or_none(terms.negated(shape.items), terms)
    if items is not None or any(key is not None for key in prefix):
        yield Array(some=(SomeItem(prefix, items),))
    for some in shape.some:
        if some.least:
            yield Array(some=(SomeItem(some.prefix, some.items, 0, some.least - 1),))
        if some.most is not None:
            yield Array(some=(SomeItem(some.prefix, some.items, some.most + 1),))


def _or_none(key: Key, terms: Terms) -> Key | None:
    return None if key == terms.nothing else key


def _object(shape: Object, terms: Terms, not_names: Iterable[String | StringSet]) -> Iterable[Shape]:
    assert not shape.some and len(shape.rests) <= 1, "the negation of an obligation is no shape"
    if shape.least:
        yield Object(most=shape.least - 1)
    if shape.most is not None:
        yield Object(least=shape.most + 1)
    named = {name: terms.negated(key) for name, key in shape.properties}
    others: dict[tuple[NameTest, Key], None] = {}
    for rest in shape.rests:
        patterns = tuple(pattern for pattern, _ in rest.patterns)
        others.update({(String(patterns=(pattern,)), terms.negated(key)): None for pattern, key in rest.patterns})
        others[String(not_patterns=patterns), terms.negated(rest.additional)] = None
    for test in not_names:
        if isinstance(test, StringSet):
            named.update((word, ANYTHING) for word in test.values)
        else:
            others[test, ANYTHING] = None
    open_others = tuple(other for other in others if other[1] != terms.nothing)
    live = [(name, key) for name, key in named.items() if key != terms.nothing]
    if not open_others and len(live) + len(shape.required) < 3:
        plain = _plain_member(live, shape.required, terms)
        if plain is not None:
            yield plain
            return
    if open_others or shape.required or live:
        yield Object(some=(SomeMember(tuple(named.items()), open_others, shape.required),))


def _plain_member(named: list[tuple[str, Key]], absent: tuple[str, ...], terms: Terms) -> Object | None:
    """What an obligation about a single name comes to: an object without one; None where it is about two names."""
    if not absent:
        return Object(tuple(named), (named[0][0],)) if len(named) == 1 else None
    if not named:
        return Object(((absent[0], terms.nothing),)) if len(absent) == 1 else None
    return Object(tuple(named)) if absent == (named[0][0],) else None
