"""From schema to normal form: for every schema that a place in the answer may have, the list of its shapes.

A schema with `$ref`, `allOf`, `anyOf` and siblings becomes a union of shapes: each part is a conjunction of what its keywords
say, a key is the conjunction of its parts, and a conjunction of unions is multiplied out. Members of objects and arrays stay
keys, and only the keys that can be reached are worked on. Then what no value satisfies is taken out, so that no mask leads into
a dead end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from grammar import keywords
from grammar.budget import Budget
from grammar.document import ANYTHING, Document, Key, Part
from grammar.errors import GrammarTooLarge, PatternError, SchemaError
from grammar.own import own_shapes
from grammar.shapes import (
    ANY_SHAPES,
    Array,
    Boolean,
    Meeting,
    Null,
    Number,
    NumberSet,
    Object,
    Shape,
    String,
    StringSet,
    Texts,
)


@dataclass(frozen=True, slots=True)
class NormalForm:
    """`shapes[key]` for `root` and every key its shapes name. No key is without a value, except `nothing`."""

    root: Key
    nothing: Key
    shapes: dict[Key, tuple[Shape, ...]]
    texts: Texts


@dataclass(frozen=True, slots=True)
class _Disjoint:
    """A oneOf is an anyOf as long as no value satisfies two of its branches and `rest`, the keywords beside it."""

    rest: Key
    left: Key
    right: Key
    branches: tuple[int, int]
    pointer: str


def normal_form(schema: Any, budget: Budget) -> NormalForm:
    """Raises SchemaError where the schema is malformed, not supported, or satisfied by no value."""
    document = Document(schema, budget)
    texts = Texts(budget)
    work = _Normaliser(document, texts, budget)
    root = document.key(schema, "")
    shapes = work.explore(root, _members)
    work.check_disjoint()
    alive = _inhabited(shapes)
    if root not in alive:
        raise SchemaError("no value satisfies the schema")
    pruned = {key: tuple(_pruned(s, alive, document.nothing) for s in shapes[key] if _has_value(s, alive)) for key in alive}
    return NormalForm(root, document.nothing, _reachable(root, pruned), texts)


_TYPE_OF = {Null: "null", Boolean: "boolean", Number: "number", NumberSet: "number", String: "string", StringSet: "string",
            Array: "array", Object: "object"}


class _Normaliser:
    def __init__(self, document: Document, texts: Texts, budget: Budget) -> None:
        self._document, self._texts, self._budget = document, texts, budget
        self._meeting = Meeting(document, texts)
        self._of_part: dict[int, tuple[Shape, ...]] = {}
        self._of_key: dict[Key, tuple[Shape, ...]] = {ANYTHING: tuple(ANY_SHAPES.values())}
        self._open: list[int] = []      # parts being worked on, outermost first
        self._disjoint: list[_Disjoint] = []
        self._listed: dict[Key, frozenset[str] | None] = {}

    def explore(self, root: Key, members: Callable[[Shape], Iterable[Key]]) -> dict[Key, tuple[Shape, ...]]:
        """The shapes of `root` and of all keys reached from it by `members`."""
        found: dict[Key, tuple[Shape, ...]] = {}
        queue = [root]
        for key in queue:
            if key not in found:
                found[key] = self.shapes(key)
                self._budget.check("nodes", len(found))
                queue.extend(member for shape in found[key] for member in members(shape) if member not in found)
        return found

    def check_disjoint(self) -> None:
        """Raises SchemaError for a oneOf of which two branches have a value in common."""
        for claim in self._disjoint:    # grows meanwhile
            if self._plainly_disjoint(claim.left, claim.right):
                continue
            both = self._document.both(claim.rest, self._document.both(claim.left, claim.right))
            if both in _inhabited(self.explore(both, _needed_members)):
                i, j = claim.branches
                raise SchemaError(f"branches {i} and {j} have a value in common, and then oneOf is not supported",
                                  keyword="oneOf", pointer=claim.pointer)

    def shapes(self, key: Key) -> tuple[Shape, ...]:
        """The shapes of one key."""
        if key not in self._of_key:
            shapes: tuple[Shape, ...] = self._part(key[0])
            for number in key[1:]:
                shapes = self._conjunction(shapes, self._part(number))
            self._of_key[key] = shapes
        return self._of_key[key]

    def _part(self, number: int) -> tuple[Shape, ...]:
        if number in self._of_part:
            return self._of_part[number]
        part = self._document.parts[number]
        if number in self._open:
            raise SchemaError("it leads back to itself with no property or item between", keyword="$ref", pointer=part.pointer)
        self._open.append(number)
        try:
            self._budget.check("nesting_of_combinators", len(self._open))
            self._of_part[number] = self._of_part_afresh(part)
        except GrammarTooLarge as error:
            if error.pointer:
                raise
            raise GrammarTooLarge(error.limit, error.allowed, error.needed, pointer=part.pointer) from None
        except PatternError as error:
            raise SchemaError(str(error), keyword="pattern", pointer=part.pointer) from None
        finally:
            self._open.pop()
        return self._of_part[number]

    def _of_part_afresh(self, part: Part) -> tuple[Shape, ...]:
        schema, pointer = part.value, part.pointer
        if part.constant or isinstance(schema, bool):
            return own_shapes(part, self._document, self._meeting)
        _refuse_unknown(schema, pointer)
        shapes = own_shapes(part, self._document, self._meeting)
        if "$ref" in schema:
            shapes = self._conjunction(shapes, self._branch(*self._document.target(schema["$ref"], pointer)))
        for n, branch in enumerate(schema.get("allOf", ())):
            shapes = self._conjunction(shapes, self._branch(branch, f"{pointer}/allOf/{n}"))
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                branches = [self._branch(b, f"{pointer}/{keyword}/{n}") for n, b in enumerate(schema[keyword])]
                self._budget.spend("shapes", sum(map(len, branches)))
                shapes = self._conjunction(shapes, _union(branches))
        if "oneOf" in schema:
            self._claim_disjoint(schema, pointer)
        return shapes

    def _branch(self, schema: Any, pointer: str) -> tuple[Shape, ...]:
        return self.shapes(self._document.key(schema, pointer))

    def _claim_disjoint(self, schema: dict[str, Any], pointer: str) -> None:
        rest = self._document.without(schema, "oneOf", pointer)
        keys = [self._document.key(b, f"{pointer}/oneOf/{n}") for n, b in enumerate(schema["oneOf"])]
        for j in range(len(keys)):
            for i in range(j):
                self._budget.spend("pairs_of_one_of")
                self._disjoint.append(_Disjoint(rest, keys[i], keys[j], (i, j), pointer))

    def _plainly_disjoint(self, left: Key, right: Key) -> bool:
        """The quick half of the check: different types, or different texts under one required name."""
        return all(self._apart(here, there) for here in self.shapes(left) for there in self.shapes(right))

    def _apart(self, here: Shape, there: Shape) -> bool:
        if _TYPE_OF[type(here)] != _TYPE_OF[type(there)]:
            return True
        if not (isinstance(here, Object) and isinstance(there, Object)):
            return False
        one, other = dict(here.properties), dict(there.properties)
        for name in set(here.required) & one.keys() & other.keys():
            words, others = self._texts_of(one[name]), self._texts_of(other[name])
            if words is not None and others is not None and words.isdisjoint(others):
                return True
        return False

    def _texts_of(self, key: Key) -> frozenset[str] | None:
        """The strings that a key lists, where it does nothing else."""
        if key not in self._listed:
            first, *others = (*self.shapes(key), None)
            self._listed[key] = frozenset(first.values) if isinstance(first, StringSet) and others == [None] else None
        return self._listed[key]

    def _conjunction(self, left: tuple[Shape, ...], right: tuple[Shape, ...]) -> tuple[Shape, ...]:
        if left == self._of_key[ANYTHING] or right == self._of_key[ANYTHING]:
            return right if left == self._of_key[ANYTHING] else left
        self._budget.spend("shapes", len(left) * len(right))
        met = (self._meeting.meet(here, there) for here in left for there in right)
        return _union([[shape for shape in met if shape is not None]])


def _union(branches: Iterable[Iterable[Shape]]) -> tuple[Shape, ...]:
    """All shapes once; sets of strings and of numbers are put together."""
    others: dict[Shape, None] = {}
    strings: dict[str, None] = {}
    values: dict[int | float, None] = {}
    for shape in (shape for shapes in branches for shape in shapes):
        if isinstance(shape, StringSet):
            strings.update(dict.fromkeys(shape.values))
        elif isinstance(shape, NumberSet):
            values.update(dict.fromkeys(shape.values))
        else:
            others[shape] = None
    sets: list[Shape] = [StringSet(tuple(strings))] if strings else []
    return (*others, *sets, *([NumberSet(tuple(values))] if values else ()))


def _refuse_unknown(schema: dict[str, Any], pointer: str) -> None:
    for keyword in schema:
        if keyword not in keywords.COMPILED and not keywords.is_annotation(keyword):
            raise SchemaError("this keyword is not supported", keyword=keyword, pointer=pointer)


def _members(shape: Shape) -> Iterable[Key]:
    """The keys that the values in a container may have."""
    if isinstance(shape, Array):
        yield from shape.prefix
        yield shape.items
    elif isinstance(shape, Object):
        yield from (key for _, key in shape.properties)
        yield shape.additional


def _needed_members(shape: Shape) -> Iterable[Key]:
    """The keys without which a container has no value."""
    if isinstance(shape, Array):
        yield from shape.prefix[:shape.least]
        if shape.least > len(shape.prefix):
            yield shape.items
    elif isinstance(shape, Object):
        own = dict(shape.properties)
        yield from (own.get(name, shape.additional) for name in shape.required)


def _has_value(shape: Shape, alive: set[Key]) -> bool:
    return all(key in alive for key in _needed_members(shape))


def _inhabited(shapes: dict[Key, tuple[Shape, ...]]) -> set[Key]:
    """The keys that some finite value satisfies: the least fixed point, members first."""
    alive: set[Key] = set()
    waiting = list(reversed(shapes))
    while True:
        still: list[Key] = []
        for key in waiting:
            if any(_has_value(shape, alive) for shape in shapes[key]):
                alive.add(key)
            else:
                still.append(key)
        if len(still) == len(waiting):
            return alive
        waiting = still


def _pruned(shape: Shape, alive: set[Key], nothing: Key) -> Shape:
    """A shape with a value, less the members that can have none."""
    if isinstance(shape, Array):
        n = next((n for n, key in enumerate(shape.prefix) if key not in alive), len(shape.prefix))
        if n == len(shape.prefix) and shape.items in alive:
            return shape
        return Array(shape.prefix[:n], nothing, shape.least, n if shape.most is None else min(n, shape.most))
    if isinstance(shape, Object):
        properties = tuple((name, key if key in alive else nothing) for name, key in shape.properties)
        return replace(shape, properties=properties, additional=shape.additional if shape.additional in alive else nothing)
    return shape


def _reachable(root: Key, shapes: dict[Key, tuple[Shape, ...]]) -> dict[Key, tuple[Shape, ...]]:
    found: dict[Key, tuple[Shape, ...]] = {}
    queue = [root]
    for key in queue:
        if key not in found:
            found[key] = shapes[key]
            queue.extend(member for shape in shapes[key] for member in _members(shape) if member in shapes)
    return found
