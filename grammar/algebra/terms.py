"""Schemas that no document wrote: they are parts like all others, so a key may name them, and equal ones are one part.

A part of kind NEGATED has the number of the part that is not to hold, one of kind ANY_OF the keys of which one is to hold, one of
kind ONLY a shape, which restrains the values of its type.
"""

from __future__ import annotations

from collections.abc import Iterable

from grammar.algebra.shapes import Shape
from grammar.schema.document import ANYTHING, Document, Key

NEGATED, ANY_OF, ONLY = "negated", "any_of", "only"     # kinds of parts


class Terms:
    """Conjunction, union and negation of keys."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self.nothing = document.nothing
        self._opposite: dict[int, int] = {}

    def both(self, *keys: Key) -> Key:
        """The key that asks for all. Its parts keep their order, which is the order of properties."""
        joined = keys[0]
        for key in keys[1:]:
            if key and key != joined:
                joined = joined + key if joined else key
        if len(joined) < 2:
            return joined
        joined = tuple(dict.fromkeys(joined))
        if self.nothing[0] in joined or (self._opposite and self._contradicts(joined)):
            return self.nothing
        return joined

    def negated(self, key: Key) -> Key:
        """The key of what does not satisfy `key`."""
        if not key or key == self.nothing:
            return ANYTHING if key else self.nothing
        return self.any_of(self._negated_part(number) for number in key)

    def any_of(self, keys: Iterable[Key]) -> Key:
        """The key of what satisfies one of `keys`; nothing where there is none."""
        wanted = {key: None for key in keys if key != self.nothing}
        if ANYTHING in wanted:
            return ANYTHING
        kept = tuple(key for key in wanted if not any(other != key and set(other) <= set(key) for other in wanted))
        if len(kept) < 2:
            return kept[0] if kept else self.nothing
        return self._document.synthetic(ANY_OF, kept, self._document.parts[kept[0][0]].pointer)

    def only(self, shape: Shape, pointer: str = "") -> Key:
        """The key of the values of a shape, and of all values of other types."""
        return self._document.synthetic(ONLY, shape, pointer)

    def implies(self, stronger: Key, weaker: Key) -> bool:
        """Whether what satisfies one key plainly satisfies the other: it has all its parts."""
        return not weaker or stronger == self.nothing or all(number in stronger for number in weaker)

    def _negated_part(self, number: int) -> Key:
        part = self._document.parts[number]
        if part.kind == NEGATED:
            return (part.value,)
        if part.kind == ANY_OF:
            return self.both(*map(self.negated, part.value))
        key = self._document.synthetic(NEGATED, number, part.pointer)
        self._opposite[number], self._opposite[key[0]] = key[0], number
        return key

    def _contradicts(self, parts: Key) -> bool:
        return any(self._opposite.get(number) in parts for number in parts if number in self._opposite)
