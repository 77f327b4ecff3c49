"""Whether shapes plainly have no value in common: by scalars, counts, and members that both must have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Protocol

from grammar.algebra.meeting import Meeting
from grammar.algebra.objects import Objects
from grammar.algebra.shapes import Array, Object, Shape, least_bound
from grammar.algebra.terms import ANY_OF, NEGATED, Terms
from grammar.budget import Budget
from grammar.errors import Circular
from grammar.schema.document import Document, Key

_DEEPEST = 4            # members of members that are looked at
_MOST_PAIRS = 64        # alternatives of two members that are compared
_MOST_POSITIONS = 16    # items of two arrays that are compared


class KeyShapes(Protocol):
    """Where the shapes of members come from."""

    def types(self, key: Key) -> list[str]: ...
    def of_type(self, key: Key, type_name: str) -> tuple[Shape, ...]: ...


class Disjointness:
    """A quick, one-sided test: what it does not call apart may be apart all the same."""

    def __init__(self, document: Document, shapes: KeyShapes, meeting: Meeting, objects: Objects, terms: Terms,
                 budget: Budget) -> None:
        self._document, self._shapes, self._meeting, self._objects = document, shapes, meeting, objects
        self._terms, self._budget = terms, budget
        self._known: dict[tuple[Key, Key], bool] = {}
        self._depth = 0

    def overlap(self, shape: Shape, others: Iterable[Shape]) -> bool:
        """Whether a shape may have a value in common with one of some others of its type."""
        for other in others:
            self._budget.spend("pairs_of_one_of")
            if not self._apart(shape, other):
                return True
        return False

    def rivals(self, branches: Sequence[Sequence[Shape]]) -> list[list[list[int]]]:
        """For each shape of each branch, the other branches with which it may have a value in common, in order."""
        found: list[list[dict[int, None]]] = [[{} for _ in branch] for branch in branches]
        for n, branch in enumerate(branches):
            for m in range(n):
                self._budget.spend("pairs_of_one_of", len(branch) * len(branches[m]))
                for (i, here), (j, there) in product(enumerate(branch), enumerate(branches[m])):
                    if (m not in found[n][i] or n not in found[m][j]) and not self._apart(here, there):
                        found[n][i][m] = found[m][j][n] = None
        return [[sorted(others) for others in shapes] for shapes in found]

    def implies(self, base: Key, key: Key) -> bool:
        """Whether what satisfies `base` satisfies `key` too: its parts, and the negations of what is apart from it."""
        for number in key:
            part = self._document.parts[number]
            if number in base:
                continue
            if part.kind == ANY_OF and any(self.implies(base, other) for other in part.value):
                continue
            if part.kind == NEGATED and self._keys_apart(base, (part.value,)):
                continue
            return False
        return True

    def excludes(self, left: Shape, right: Shape) -> bool:
        """Whether two objects ask for one member that cannot be as both want it."""
        if not (isinstance(left, Object) and isinstance(right, Object) and (left.required or right.required)):
            return False
        here, there = dict(left.properties), dict(right.properties)
        return any(self._keys_apart(here[name], there[name]) for name in dict.fromkeys(left.required + right.required)
                   if name in here and name in there)

    def _apart(self, here: Shape, there: Shape) -> bool:
        if isinstance(here, Object) and isinstance(there, Object):
            return self._objects_apart(here, there)
        if isinstance(here, Array) and isinstance(there, Array):
            return self._arrays_apart(here, there)
        return self._meeting.meet(here, there) is None

    def _objects_apart(self, here: Object, there: Object) -> bool:
        required = dict.fromkeys(here.required + there.required)
        most = least_bound(here.most, there.most)
        if most is not None and max(here.least, there.least, len(required)) > most:
            return True
        one, other = dict(here.properties), dict(there.properties)
        pairs = [(one[name] if name in one else self._objects.key_of(here, name),
                  other[name] if name in other else self._objects.key_of(there, name)) for name in required]
        nothing = self._terms.nothing
        return (any(self._terms.both(left, right) == nothing for left, right in pairs)
                or any(self._keys_apart(left, right) for left, right in pairs))

    def _arrays_apart(self, here: Array, there: Array) -> bool:
        least, most = max(here.least, there.least), least_bound(here.most, there.most)
        if (most is not None and least > most) or (here.unique and there.repeats) or (here.repeats and there.unique):
            return True
        for n in range(min(least, _MOST_POSITIONS)):
            left = here.prefix[n] if n < len(here.prefix) else here.items
            right = there.prefix[n] if n < len(there.prefix) else there.items
            if self._terms.both(left, right) == self._terms.nothing or self._keys_apart(left, right):
                return True
        return False

    def _keys_apart(self, left: Key, right: Key) -> bool:
        if not left or not right or left == right:
            return False
        pair = (left, right) if left < right else (right, left)
        if pair in self._known:
            return self._known[pair]
        if self._depth >= _DEEPEST:
            return False
        self._depth += 1
        try:
            apart = self._known[pair] = self._all_apart(left, right)
        except Circular:
            return False    # one of them is what is being worked out; then the question stays open
        finally:
            self._depth -= 1
        return apart

    def _all_apart(self, left: Key, right: Key) -> bool:
        shared = set(self._shapes.types(left)).intersection(self._shapes.types(right))
        for name in shared:
            here, there = self._shapes.of_type(left, name), self._shapes.of_type(right, name)
            if len(here) * len(there) > _MOST_PAIRS:
                return False
            self._budget.spend("pairs_of_one_of", len(here) * len(there))
            if not all(self._apart(one, other) for one, other in product(here, there)):
                return False
        return True
