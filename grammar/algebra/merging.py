"""Unions of objects that each ask for one thing, as one object with one obligation.

Unions multiply where they are combined, obligations only add up. So `anyOf` over required names, `dependentRequired` and the
like are merged where they would meet other unions.
"""

from __future__ import annotations

from collections.abc import Sequence

from grammar.algebra.shapes import ANY_TEXT, Object, Shape, SomeMember
from grammar.algebra.terms import Terms
from grammar.schema.document import ANYTHING, Key


def merged(shapes: Sequence[Shape], terms: Terms) -> Object | None:
    """The object that has the values of all shapes together, if each of them asks for one thing only."""
    named: dict[str, list[Key]] = {}
    absent: dict[str, None] = {}
    for shape in shapes:
        one = _as_obligation(shape, terms)
        # An obligation with tests also says to which declared names they do not apply: it cannot be joined with others.
        if one is None or one.others:
            return None
        for name, key in one.named:
            named.setdefault(name, []).append(key)
        absent.update(dict.fromkeys(one.absent))
    joined = tuple((name, terms.any_of(keys)) for name, keys in named.items())
    return Object(some=(SomeMember(joined, (), tuple(absent)),))


def _as_obligation(shape: Shape, terms: Terms) -> SomeMember | None:
    """What a shape asks for as an obligation; None where it is more than one thing."""
    if not isinstance(shape, Object) or shape.rests or shape.least or shape.most is not None or shape.names != (ANY_TEXT,):
        return None
    if shape.some:
        return shape.some[0] if len(shape.some) == 1 and not shape.properties and not shape.required else None
    if len(shape.properties) > 1 or len(shape.required) > 1 or not (shape.properties or shape.required):
        return None
    if not shape.properties:
        return SomeMember(((shape.required[0], ANYTHING),))
    (name, key), = shape.properties
    if not shape.required:
        return SomeMember(((name, key),) if key != terms.nothing else (), (), (name,))
    return SomeMember(((name, key),)) if shape.required == (name,) else None
