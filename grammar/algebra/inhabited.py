"""Which keys have a value, and what is left of shapes once members without one are taken out.

A key is alive where some finite value satisfies it: the least fixed point, members first. A container is alive where its counts,
its required members and its obligations can all be met by members that are alive, one choice at each place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from grammar.algebra.choices import Choices
from grammar.algebra.shapes import Array, Object, Rest, Shape
from grammar.budget import Budget
from grammar.errors import GrammarTooLarge
from grammar.schema.document import Document, Key

Shapes = dict[Key, tuple[Shape, ...]]


class Inhabitation:
    """The analysis of one normal form."""

    def __init__(self, choices: Choices, document: Document, budget: Budget) -> None:
        self._choices, self._document, self._budget = choices, document, budget
        self._nothing = document.nothing

    def alive(self, shapes: Shapes) -> set[Key]:
        """The keys that some finite value satisfies."""
        alive: set[Key] = set()
        waiting = list(reversed(shapes))
        while True:
            still = []
            for key in waiting:
                try:
                    lives = any(self.has_value(shape, alive) for shape in shapes[key])
                except GrammarTooLarge as error:
                    raise error.at(self._document.pointer(key)) from None
                if lives:
                    alive.add(key)
                else:
                    still.append(key)
            if len(still) == len(waiting):
                return alive
            waiting = still

    def has_value(self, shape: Shape, alive: Collection[Key]) -> bool:
        """Whether a shape has a value, given the keys that have one."""
        if isinstance(shape, Array):
            if shape.some:
                return self._meets_array(shape, alive)
            return (all(key in alive for key in shape.prefix[:shape.least])
                    and (shape.least <= len(shape.prefix) or shape.items in alive))
        if isinstance(shape, Object):
            if shape.some or shape.most is not None or shape.least > len(shape.required):
                return self._meets_object(shape, alive)
            if not shape.required:
                return True
            own = dict(shape.properties)
            return all(own[name] in alive for name in shape.required)
        return True

    def needed_and_dead(self, shapes: Collection[Shape], alive: Collection[Key]) -> Key | None:
        """A key without value that the members of the only one of some shapes need; None where that is not to blame."""
        if len(shapes) != 1:
            return None
        shape, = shapes
        needed: Iterable[Key] = ()
        if isinstance(shape, Array):
            needed = (*shape.prefix[:shape.least], *([shape.items] if shape.least > len(shape.prefix) else []))
        elif isinstance(shape, Object):
            required = set(shape.required)
            needed = [key for name, key in shape.properties if name in required]
        return next((key for key in needed if key not in alive), None)

    def members(self, shape: Shape) -> Iterable[Key]:
        """The keys that the values in a container may have."""
        if isinstance(shape, Array):
            if not shape.some:
                yield from shape.prefix
                yield shape.items
                return
            for place in range(len(shape.prefix) + 1):
                yield from (choice.key for choice in self._choices.item(shape, place))
        elif isinstance(shape, Object):
            if shape.some:
                for name, key in shape.properties:
                    yield from (choice.key for choice in self._choices.member(shape, name, key))
            else:
                yield from (key for _, key in shape.properties)
            yield from (extra.key for extra in self._choices.extras(shape))

    def pruned(self, shape: Shape, alive: Collection[Key]) -> Shape:
        """A shape with a value, less the members that can have none."""
        if isinstance(shape, Array):
            return self._pruned_array(shape, alive)
        if isinstance(shape, Object):
            properties = tuple((name, key if key in alive else self._nothing) for name, key in shape.properties)
            rests = shape.rests
            if shape.rests and not any(extra.key in alive for extra in self._choices.extras(shape)):
                rests = (Rest((), self._nothing),)
            if properties != shape.properties or rests is not shape.rests:
                return replace(shape, properties=properties, rests=rests)
        return shape

    def _pruned_array(self, shape: Array, alive: Collection[Key]) -> Array:
        places = range(len(shape.prefix) + 1)
        lives = [any(choice.key in alive for choice in self._choices.item(shape, place)) for place in places]
        n = lives.index(False) if False in lives else len(lives)
        if n == len(lives) or (n == len(shape.prefix) and shape.items == self._nothing):
            return shape
        some = tuple(replace(one, prefix=one.prefix[:n], items=None) for one in shape.some)
        most = n if shape.most is None else min(n, shape.most)
        return replace(shape, prefix=shape.prefix[:n], items=self._nothing, most=most, some=some)

    # --- obligations and counts

    def _meets_object(self, shape: Object, alive: Collection[Key]) -> bool:
        """Whether some choice of members meets all: name by name, the counts that leave each set of obligations open."""
        required = set(shape.required)
        counts = {(1 << len(shape.some)) - 1: 1}    # open obligations -> bit n: with n members so far
        for name, key in shape.properties:
            serves = [choice.serves for choice in self._choices.member(shape, name, key) if choice.key in alive]
            absent = sum(1 << n for n, some in enumerate(shape.some) if name in some.absent)
            following: dict[int, int] = {}
            self._budget.spend("obligation_steps", len(counts) * (1 + len(serves)))
            for still, numbers in counts.items():
                if name not in required:
                    following[still & ~absent] = following.get(still & ~absent, 0) | numbers
                for served in serves:
                    following[still & ~served] = following.get(still & ~served, 0) | numbers << 1
            counts = following
        extras = {extra.serves for extra in self._choices.extras(shape) if extra.key in alive}
        return any(self._can_end(still, numbers, extras, shape) for still, numbers in counts.items())

    def _can_end(self, still: int, numbers: int, extras: set[int], shape: Object) -> bool:
        if not extras:
            return still == 0 and any(numbers >> n & 1 for n in range(shape.least, _end(numbers, shape.most)))
        fewest = (numbers & -numbers).bit_length() - 1
        needed = _fewest_to_cover(still, extras)
        return needed is not None and (shape.most is None or max(fewest + needed, shape.least) <= shape.most)

    def _meets_array(self, shape: Array, alive: Collection[Key]) -> bool:
        """Whether some array meets all: length by length, the tallies that the obligations can have."""
        tallies = {(0,) * len(shape.some)}
        length = 0
        while True:
            if length >= shape.least and any(meets(tally, shape) for tally in tallies):
                return True
            if not tallies or (shape.most is not None and length >= shape.most):
                return False
            serves = [choice.serves for choice in self._choices.item(shape, length) if choice.key in alive]
            self._budget.spend("obligation_steps", len(tallies) * (1 + len(serves)))
            following = {met for tally in tallies for served in serves if (met := tallied(tally, served, shape)) is not None}
            if length >= len(shape.prefix) and following <= tallies and length >= shape.least:
                return False
            if length >= len(shape.prefix) and following == tallies:
                length = shape.least - 1    # nothing changes any more until enough items are there
            tallies, length = following, length + 1


def _end(numbers: int, most: int | None) -> int:
    longest = numbers.bit_length()
    return longest if most is None else min(longest, most + 1)


def _fewest_to_cover(bits: int, covers: set[int]) -> int | None:
    """The least number of sets of `covers` that have all of `bits` together; None where even all of them have not."""
    reached, n = {bits}, 0
    while 0 not in reached:
        following = reached | {rest & ~cover for rest in reached for cover in covers}
        if following == reached:
            return None
        reached, n = following, n + 1
    return n


def meets(tally: tuple[int, ...], shape: Array) -> bool:
    """Whether the obligations of an array have enough items."""
    return all(count >= some.least for count, some in zip(tally, shape.some, strict=True))


def tallied(tally: tuple[int, ...], served: int, shape: Array) -> tuple[int, ...] | None:
    """The tally behind one more item; counts beyond what matters stay as they are, None beyond an upper bound."""
    counts = []
    for n, (count, some) in enumerate(zip(tally, shape.some, strict=True)):
        if served >> n & 1:
            count += 1
            if some.most is not None and count > some.most:
                return None
        counts.append(count if some.most is not None else min(count, some.least))
    return tuple(counts)
