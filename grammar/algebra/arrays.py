"""Arrays: their conjunction, and the form in which they are settled before anything is made of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from grammar.algebra.shapes import Array, SomeItem, least_bound
from grammar.algebra.terms import Terms
from grammar.budget import Budget
from grammar.schema.document import Key


def meet_arrays(left: Array, right: Array, terms: Terms) -> Array | None:
    """The conjunction of two arrays, not settled; None where their counts or their demands on repeated items exclude it."""
    least, most = max(left.least, right.least), least_bound(left.most, right.most)
    unique, repeats = left.unique or right.unique, left.repeats or right.repeats
    if (most is not None and least > most) or (unique and repeats):
        return None
    n = max(len(left.prefix), len(right.prefix))
    prefix = tuple(terms.both(_item(left, i), _item(right, i)) for i in range(n))
    some = tuple(dict.fromkeys(left.some + right.some))
    return Array(prefix, terms.both(left.items, right.items), least, most, unique, some, repeats)


def settled_array(shape: Array, terms: Terms, budget: Budget) -> Array | None:
    """The settled form: every obligation is really open and as long as the prefix; the counts say no more than the items do.

    None where it plainly has no value. Raises GrammarTooLarge for more than four obligations.
    """
    if not shape.some:
        return _counted(shape, terms)
    n = max(len(shape.prefix), *(len(some.prefix) for some in shape.some))
    shape = replace(shape, prefix=tuple(_item(shape, i) for i in range(n)),
                    some=tuple(replace(some, prefix=tuple(_serving(some, i) for i in range(n))) for some in shape.some))
    while True:
        counted = _counted(shape, terms)
        settled = None if counted is None else _reduced(counted, terms)
        if settled is None or settled == shape:
            break
        shape = settled
    if settled is not None:
        budget.check("obligations_of_an_array", len(settled.some))
    return settled


def _item(array: Array, i: int) -> Key:
    return array.prefix[i] if i < len(array.prefix) else array.items


def _serving(some: SomeItem, i: int) -> Key | None:
    return some.prefix[i] if i < len(some.prefix) else some.items


def _counted(shape: Array, terms: Terms) -> Array | None:
    """The array cut off where no item can follow."""
    prefix, most = shape.prefix, shape.most
    if terms.nothing in prefix:
        most = least_bound(most, prefix.index(terms.nothing))
    elif shape.items == terms.nothing:
        most = least_bound(most, len(prefix))
    items = shape.items
    if most is not None and most <= len(prefix):
        prefix, items = prefix[:most], terms.nothing
    if most is not None and (shape.least > most or (shape.repeats and most < 2)):
        return None
    unique = shape.unique and (most is None or most > 1)
    if (prefix, items, most, unique) == (shape.prefix, shape.items, shape.most, shape.unique):
        return shape
    some = tuple(replace(one, prefix=one.prefix[:len(prefix)], items=one.items if items != terms.nothing else None)
                 for one in shape.some)
    return replace(shape, prefix=prefix, items=items, most=most, unique=unique, some=some)


@dataclass(slots=True)
class _Places:
    """The keys of an array's places while obligations are worked into them: the positions of the prefix, then all others."""

    keys: list[Key]
    least: int
    most: int | None

    def width(self, place: int) -> int | None:
        """How many items a place may hold; None without a bound."""
        if place < len(self.keys) - 1:
            return 1
        return None if self.most is None else max(self.most - place, 0)


def _reduced(shape: Array, terms: Terms) -> Array | None:
    """One round of simplification of the obligations."""
    places = _Places([*shape.prefix, shape.items], shape.least, shape.most)
    kept: dict[tuple[tuple[Key | None, ...], Key | None], SomeItem] = {}
    for some in shape.some:
        keys = [None if key is None or terms.both(base, key) == terms.nothing else key
                for base, key in zip(places.keys, (*some.prefix, some.items), strict=True)]
        same = tuple(keys[:-1]), keys[-1]
        bounds = SomeItem(*same, some.least, some.most)
        if same in kept:
            bounds = SomeItem(*same, max(some.least, kept[same].least), least_bound(some.most, kept[same].most))
        worked = _worked_in(bounds, places, terms)
        if worked is None:
            return None
        kept.pop(same, None)
        if worked.least or worked.most is not None:
            kept[same] = worked
    return replace(shape, prefix=tuple(places.keys[:-1]), items=places.keys[-1], least=places.least, most=places.most,
                   some=tuple(kept.values()))


def _worked_in(some: SomeItem, places: _Places, terms: Terms) -> SomeItem | None:
    """What of an obligation stays open; None where it cannot be met. What it means for single places goes into them."""
    keys = [*some.prefix, some.items]
    serving = [n for n, key in enumerate(keys) if key is not None and places.width(n) != 0]
    plain = [n for n in serving if terms.implies(places.keys[n], keys[n] or ())]
    widths = [places.width(n) for n in serving]
    at_most = None if None in widths else sum(width or 0 for width in widths)
    most = some.most if at_most is None or (some.most is not None and some.most < at_most) else None
    if (at_most is not None and some.least > at_most) or (most is not None and some.least > most):
        return None
    places.least = max(places.least, some.least)
    if len(plain) == len(keys):    # every item serves, so the counts are the array's
        places.most = least_bound(places.most, most)
        return _MET
    if most == 0:
        for n in serving:
            places.keys[n] = terms.both(places.keys[n], terms.negated(keys[n] or ()))
        return _MET
    if at_most is not None and some.least == at_most > 0:
        for n in serving:
            places.keys[n] = terms.both(places.keys[n], keys[n] or ())
        last = serving[-1]
        places.least = max(places.least, last + (places.width(last) or 0))
        return _MET
    certain = sum(1 for n in plain if n < len(keys) - 1 and n < places.least)
    if len(keys) - 1 in plain:
        certain += max(places.least - len(keys) + 1, 0)
    if most is not None and certain > most:
        return None
    return SomeItem(tuple(keys[:-1]), keys[-1], some.least if some.least > certain else 0, most)


_MET = SomeItem(least=0)
