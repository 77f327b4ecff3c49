"""Which shapes plainly hold all values of another one: a union does well without the other."""

from __future__ import annotations

from collections.abc import Iterable

from grammar.algebra.shapes import ANY_SHAPES, ANY_TEXT, TYPE_OF, Array, Boolean, Number, Object, Shape, String
from grammar.algebra.terms import Terms
from grammar.number.numbers import Range
from grammar.schema.document import ANYTHING, Key

_MOST_COMPARED = 48     # shapes of one union


def without_included(shapes: Iterable[Shape], terms: Terms) -> tuple[Shape, ...]:
    """The shapes, in order, less those whose values another one of them plainly has."""
    listed = tuple(shapes)
    if len(listed) < 2 or len(listed) > _MOST_COMPARED:
        return listed
    kept: list[Shape] = []
    for shape in listed:
        if not any(includes(other, shape, terms) for other in kept):
            kept = [other for other in kept if not includes(shape, other, terms)]
            kept.append(shape)
    return tuple(kept)


def includes(wider: Shape, shape: Shape, terms: Terms) -> bool:
    """Whether `wider` plainly has every value of `shape`. False does not say that it has not."""
    match wider, shape:
        case Boolean(), Boolean():
            return wider.values >= shape.values
        case Number(), Number():
            return (_in_range(shape.bounds, wider.bounds) and wider.whole in (None, shape.whole)
                    and set(wider.multiples) <= set(shape.multiples)
                    and set(wider.not_multiples) <= set(shape.not_multiples) and wider.without <= shape.without)
        case String(), String():
            return (_counts_in(shape.least, shape.most, wider.least, wider.most)
                    and set(wider.patterns) <= set(shape.patterns) and set(wider.formats) <= set(shape.formats)
                    and set(wider.not_patterns) <= set(shape.not_patterns)
                    and set(wider.not_formats) <= set(shape.not_formats) and wider.without <= shape.without)
        case Array(), Array():
            return _includes_array(wider, shape, terms)
        case Object(), Object():
            return _includes_object(wider, shape, terms)
    return wider == shape or (wider in _ANY and TYPE_OF[type(wider)] == TYPE_OF[type(shape)])


def _in_range(inner: Range, outer: Range) -> bool:
    return outer.meet(inner) == inner


def _counts_in(least: int, most: int | None, at_least: int, at_most: int | None) -> bool:
    return least >= at_least and (at_most is None or (most is not None and most <= at_most))


def _includes_array(wider: Array, shape: Array, terms: Terms) -> bool:
    if not (_counts_in(shape.least, shape.most, wider.least, wider.most) and wider.unique <= shape.unique
            and wider.repeats <= shape.repeats and set(wider.some) <= set(shape.some)):
        return False
    n = max(len(wider.prefix), len(shape.prefix))
    return terms.implies(shape.items, wider.items) and all(
        terms.implies(_item(shape, i), _item(wider, i)) for i in range(n))


def _item(array: Array, i: int) -> Key:
    return array.prefix[i] if i < len(array.prefix) else array.items


def _includes_object(wider: Object, shape: Object, terms: Terms) -> bool:
    if not (set(wider.required) <= set(shape.required) and _counts_in(shape.least, shape.most, wider.least, wider.most)
            and set(wider.some) <= set(shape.some) and wider.names in (_ANY_NAME, shape.names)):
        return False
    closed = _additional(shape) == terms.nothing
    if wider.rests and not closed and not set(wider.rests) <= set(shape.rests):
        return False
    here, there = dict(shape.properties), dict(wider.properties)
    if not all(terms.implies(here[name], key) if name in here else closed or not key for name, key in there.items()):
        return False
    undeclared = [key for name, key in here.items() if name not in there and key != terms.nothing]
    if not undeclared:
        return True
    additional = _additional(wider)
    return wider.names == _ANY_NAME and additional is not None and all(terms.implies(key, additional) for key in undeclared)


def _additional(shape: Object) -> Key | None:
    """The key of undeclared names, where it is the same for all."""
    if any(rest.patterns for rest in shape.rests):
        return None
    return shape.rests[0].additional if shape.rests else ANYTHING


_ANY_NAME = (ANY_TEXT,)
_ANY = frozenset(ANY_SHAPES.values())
