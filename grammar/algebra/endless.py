"""Which keys surely have more values than any answer can use up."""

from __future__ import annotations

from grammar.algebra.normal import NormalForm
from grammar.algebra.shapes import Array, Number, Object, Shape, String
from grammar.number import numbers
from grammar.schema.document import Key
from grammar.text import automata

ENOUGH = 100_000   # values: as many count as endless


class Endless:
    """Answers for the keys of one normal form. No is said where it is not plain."""

    def __init__(self, form: NormalForm) -> None:
        self._form = form
        self._known: dict[Key, bool] = {}

    def has(self, key: Key) -> bool:
        """Whether a key surely has that many values."""
        order, queue = [], [key]
        for one in queue:
            if one not in self._known:
                self._known[one] = False    # for now, and so for what leads back here
                order.append(one)
                queue.extend(member for shape in self._form.shapes.get(one, ()) for member in _members(shape))
        changed = True
        while changed:
            changed = False
            for one in reversed(order):
                if not self._known[one] and any(self._in_shape(shape) for shape in self._form.shapes.get(one, ())):
                    self._known[one] = changed = True
        return self._known[key]

    def _in_shape(self, shape: Shape) -> bool:
        match shape:
            case Number():
                return _many_numbers(shape)
            case String(least, most):
                if shape.plain:
                    return most != 0 and (most is None or most >= least)
                found = self._form.texts.of(shape)
                return most is None and found is not None and automata.count(found) is None
            case Array(prefix, items, _, most, _, some):
                reached = [*prefix, *([items] if items != self._form.nothing else [])][:most]
                return not some and any(self._known.get(item, False) for item in reached)
            case Object():
                return not shape.some and shape.most is None and any(self._known.get(key, False) for _, key in shape.properties)
        return False


def _many_numbers(shape: Number) -> bool:
    if shape.multiples or shape.whole is not True:
        return shape.bounds.low is None or shape.bounds.high is None or (
            not shape.multiples and shape.bounds.low < shape.bounds.high)
    low, high = numbers.integer_bounds(shape.bounds)
    return high - low - len(shape.without) >= ENOUGH


def _members(shape: Shape) -> list[Key]:
    if isinstance(shape, Array):
        return [*shape.prefix, shape.items]
    return [key for _, key in shape.properties] if isinstance(shape, Object) else []
