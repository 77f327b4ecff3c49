"""From schema to normal form: for every schema that a place in the answer may have, the list of its shapes.

A schema with `$ref`, combinators and siblings becomes a union of shapes: each part is a conjunction of what its keywords say, a
key is the conjunction of its parts, and a conjunction of unions is multiplied out, one JSON type at a time. Members of objects
and arrays stay keys, and only the keys that can be reached are worked on. Then what no value satisfies is taken out, so that no
mask leads into a dead end.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from grammar import formats
from grammar.algebra.arrays import settled_array
from grammar.algebra.choices import Choice, Choices, Extra
from grammar.algebra.combining import Combining
from grammar.algebra.culprit import no_value
from grammar.algebra.enforcement import Enforcement, NotEnforced
from grammar.algebra.inclusion import without_included
from grammar.algebra.inhabited import Inhabitation
from grammar.algebra.languages import Languages
from grammar.algebra.objects import Objects
from grammar.algebra.settling import Settling
from grammar.algebra.shapes import Array, Object, Shape, String
from grammar.algebra.terms import Terms
from grammar.algebra.uniqueness import Unclear, Uniqueness
from grammar.budget import Budget
from grammar.errors import GrammarTooLarge
from grammar.schema.document import ANYTHING, Document, Key
from grammar.text.texts import Texts

Shapes = dict[Key, tuple[Shape, ...]]


@dataclass(frozen=True, slots=True)
class NormalForm:
    """`shapes[key]` for `root` and every key its shapes name. No key is without a value, except `nothing`.

    not_enforced: what was left out, where that is allowed, and names that look like keywords and are none.
    """

    root: Key
    nothing: Key
    shapes: Shapes
    texts: Texts
    choices: Choices
    document: Document
    not_enforced: tuple[NotEnforced, ...] = ()
    decimal_integers: bool = True    # whether the type integer has 1.0

    def member_choices(self, shape: Object, name: str, key: Key) -> tuple[Choice, ...]:
        """What a declared name, whose own key is `key`, may do for the obligations of its object."""
        return tuple(choice for choice in self.choices.member(shape, name, key) if choice.key in self.shapes)

    def extra_choices(self, shape: Object) -> tuple[Extra, ...]:
        """Which undeclared names an object may have, and what they may do for its obligations."""
        return tuple(extra for extra in self.choices.extras(shape) if extra.key in self.shapes)

    def item_choices(self, shape: Array, place: int) -> tuple[Choice, ...]:
        """What an item at `place` may do for the obligations of its array; the place behind the prefix stands for all behind."""
        return tuple(choice for choice in self.choices.item(shape, place) if choice.key in self.shapes)


def normal_form(schema: Any, budget: Budget, enforcement: Enforcement | None = None) -> NormalForm:
    """Raises SchemaError where the schema is malformed, not supported, or satisfied by no value."""
    enforcement = enforcement or Enforcement()
    document = Document(schema, budget)
    work = _Normalising(document, budget, enforcement)
    shapes = work.explored(document.root)
    alive = work.alive(shapes)
    if document.root not in alive:
        trials = Budget(budget.limits)
        raise no_value(schema, work.dead_end(shapes, document.root, alive),
                       lambda changed, schemas: _has_none(changed, schemas, trials))
    shapes = work.pruned(shapes, document.root, alive)
    notices = tuple(NotEnforced(*notice) for notice in document.notices)
    return NormalForm(document.root, document.nothing, shapes, work.texts, work.choices, document, enforcement.left_out + notices,
                      document.decimal_integers)


def _has_none(schema: Any, parts: Sequence[Any], budget: Budget) -> bool:
    """Whether no value satisfies all of some parts of a schema. Raises SchemaError."""
    document = Document(schema, budget)
    work = _Normalising(document, budget, Enforcement(best_effort=True))
    key = Terms(document).both(ANYTHING, *(document.key_of_source(part) for part in parts))
    shapes = work.explored(key)
    return key not in work.alive(shapes)


class _Normalising:
    """The work on one document."""

    def __init__(self, document: Document, budget: Budget, enforcement: Enforcement) -> None:
        self._document, self._budget, self._enforcement = document, budget, enforcement
        self.texts = Texts(budget)
        self._terms, languages = Terms(document), Languages(self.texts)
        self.choices = Choices(self._terms, languages, budget)
        self._objects = Objects(self._terms, languages, self.choices, budget)
        self._combining = Combining(document, self._terms, languages, self._objects, budget, enforcement)
        self._settling = Settling(self._terms, languages, self.choices, self._objects, self._combining.disjointness, budget)
        self._inhabitation = Inhabitation(self.choices, document, budget)
        self._uniqueness = Uniqueness(self._terms, languages, self.choices, budget)

    def explored(self, root: Key) -> Shapes:
        """The settled shapes of `root` and of all keys that a member may have."""
        found: Shapes = {}
        queue = [root]
        for key in queue:
            if key not in found:
                self._combining.check_no_cycle(key)
                try:
                    found[key] = self._settled(key)
                except GrammarTooLarge as error:
                    raise error.at(self._document.pointer(key)) from None
                self._budget.check("nodes", len(found))
                queue.extend(member for shape in found[key] for member in self._inhabitation.members(shape)
                             if member not in found)
        return self._with_unique_bounds(found)

    def alive(self, shapes: Shapes) -> set[Key]:
        """The keys that some finite value satisfies."""
        return self._inhabitation.alive(shapes)

    def dead_end(self, shapes: Shapes, root: Key, alive: Collection[Key]) -> list[str]:
        """The pointers of the innermost schemas that no value satisfies together, and without which the root has none."""
        parts, found, key, seen = self._document.parts, root, root, set[Key]()
        while key not in seen:
            seen.add(key)
            if all(parts[number].kind == "schema" for number in key):
                found = key
            dead = self._inhabitation.needed_and_dead(shapes.get(key, ()), alive)
            key = dead if dead is not None and dead != self._document.nothing else key
        return [parts[number].pointer for number in found]

    def pruned(self, shapes: Shapes, root: Key, alive: Collection[Key]) -> Shapes:
        """What is reached from `root`, less what has no value."""
        kept: Shapes = {}
        queue = [root]
        for key in queue:
            if key not in kept:
                living = [self._inhabitation.pruned(shape, alive) for shape in shapes[key]
                          if self._inhabitation.has_value(shape, alive)]
                kept[key] = without_included(dict.fromkeys(living), self._terms)
                queue.extend(member for shape in kept[key] for member in self._inhabitation.members(shape)
                             if member in alive and member not in kept)
        return kept

    def _settled(self, key: Key) -> tuple[Shape, ...]:
        found: dict[Shape, None] = {}
        for shape in self._combining.shapes(key):
            match shape:
                case Object():
                    found.update(dict.fromkeys(self._settling.settled(shape)))
                case Array():
                    found.update(dict.fromkeys(self._settled_array(shape, key)))
                case String() if shape.formats:
                    found[_with_lengths_of_formats(shape)] = None
                case _:
                    found[shape] = None
        return tuple(found)

    def _settled_array(self, shape: Array, key: Key) -> tuple[Array, ...]:
        settled = settled_array(shape, self._terms, self._budget)
        if settled is not None and settled.repeats:
            pointer = self._document.pointer(key)
            self._enforcement.refuse("uniqueItems", pointer, "the negation of this keyword is not supported")
            settled = replace(settled, repeats=False)
        return () if settled is None else (settled,)

    def _with_unique_bounds(self, shapes: Shapes) -> Shapes:
        """Bound the arrays of different items by how many different ones there are."""
        for key, some in shapes.items():
            if any(isinstance(shape, Array) and shape.unique for shape in some):
                bounded = (self._bounded(shape, key, shapes) for shape in some)
                shapes[key] = tuple(shape for shape in bounded if shape is not None)
        return shapes

    def _bounded(self, shape: Shape, key: Key, shapes: Shapes) -> Shape | None:
        if not (isinstance(shape, Array) and shape.unique):
            return shape
        try:
            return self._uniqueness.bounded(shape, shapes)
        except Unclear:
            pointer = self._document.pointer(key)
            self._enforcement.refuse("uniqueItems", pointer, "how many different items there can be is not clear")
            return replace(shape, unique=False)


def _with_lengths_of_formats(shape: String) -> String:
    longest = [formats.LONGEST[name] for name in shape.formats if name in formats.LONGEST]
    if not longest:
        return shape
    return replace(shape, most=min(longest if shape.most is None else [*longest, shape.most]))
