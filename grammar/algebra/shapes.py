"""Shapes: the normal form of schemas. A schema is a list of shapes, any of which may hold; a shape restrains one JSON type.

Objects and arrays name the schemas of their members by key (see `grammar.schema.document`), so a recursive schema is a finite
graph. `grammar.algebra.meeting` has the exact conjunction of two shapes, `grammar.algebra.negation` what a shape leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeVar

from grammar.number.numbers import Range
from grammar.schema.document import ANYTHING, Key


@dataclass(frozen=True, slots=True)
class Null:
    pass


@dataclass(frozen=True, slots=True)
class Boolean:
    values: frozenset[bool] = frozenset((True, False))


@dataclass(frozen=True, slots=True)
class Number:
    """Numbers in `bounds`.

    `whole` True leaves only integers, False only the others; a number is a multiple of each of `multiples`, of none of
    `not_multiples` (all positive), and none of the numbers of `without`.
    """

    bounds: Range = field(default_factory=Range)
    whole: bool | None = None
    multiples: tuple[Fraction, ...] = ()
    not_multiples: tuple[Fraction, ...] = ()
    without: frozenset[Fraction] = frozenset()


@dataclass(frozen=True, slots=True)
class NumberSet:
    values: tuple[int | float, ...]


@dataclass(frozen=True, slots=True)
class String:
    """`least` to `most` characters (None: no bound), found by every regex of `patterns` and by none of `not_patterns`, in
    every format of `formats` and in none of `not_formats`, and none of the words of `without`."""

    least: int = 0
    most: int | None = None
    patterns: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    not_patterns: tuple[str, ...] = ()
    not_formats: tuple[str, ...] = ()
    without: frozenset[str] = frozenset()

    @property
    def plain(self) -> bool:
        """Whether lengths alone decide."""
        return not (self.patterns or self.formats or self.not_patterns or self.not_formats or self.without)

    def meet(self, other: String) -> String:
        """What both say. It may have no text."""
        if self == ANY_TEXT or other == ANY_TEXT:
            return other if self == ANY_TEXT else self
        return String(
            max(self.least, other.least), least_bound(self.most, other.most), joined(self.patterns, other.patterns),
            joined(self.formats, other.formats), joined(self.not_patterns, other.not_patterns),
            joined(self.not_formats, other.not_formats), self.without | other.without)


@dataclass(frozen=True, slots=True)
class StringSet:
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SomeItem:
    """An obligation of an array: between `least` and `most` (None: no bound) of its items serve it.

    Item i serves it where its value satisfies `prefix[i]`, behind the prefix `items`; with None in its place it never does.
    """

    prefix: tuple[Key | None, ...] = ()
    items: Key | None = None
    least: int = 1
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Array:
    """`least` to `most` items: the first ones as `prefix` says, the others as `items`; all different where `unique`; and every
    obligation of `some` is met. With `repeats` two items are equal, which no finished normal form asks for."""

    prefix: tuple[Key, ...] = ()
    items: Key = ANYTHING
    least: int = 0
    most: int | None = None
    unique: bool = False
    some: tuple[SomeItem, ...] = ()
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Rest:
    """What an undeclared name of an object may have: the conjunction of the keys whose pattern is found in the name, and
    `additional` where none is."""

    patterns: tuple[tuple[str, Key], ...] = ()
    additional: Key = ANYTHING


ANY_TEXT = String()
NameTest = String    # a test of an undeclared name is the string shape of the names that pass


@dataclass(frozen=True, slots=True)
class SomeMember:
    """An obligation of an object: a name of `named` is there with a value in its key, or an undeclared name that passes a test
    of `others` with a value in that key, or a name of `absent` is not there. All names are declared in the object."""

    named: tuple[tuple[str, Key], ...] = ()
    others: tuple[tuple[NameTest, Key], ...] = ()
    absent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Object:
    """Declared `properties` in their order, of which those of `required` are there; `rests` say what any other name may have,
    all of them together; `least` to `most` members (None: no bound); every obligation of `some` is met; every undeclared name
    has a shape of `names` (declared names that have none have the key `nothing`). `loose`: those that are declared only
    because the names that an object may have are few; the schema gives them no order."""

    properties: tuple[tuple[str, Key], ...] = ()
    required: tuple[str, ...] = ()
    rests: tuple[Rest, ...] = ()
    least: int = 0
    most: int | None = None
    some: tuple[SomeMember, ...] = ()
    names: tuple[String | StringSet, ...] = (ANY_TEXT,)
    loose: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether an undeclared name, if any, may be whatever it is, and members are neither counted nor obliged."""
        return (not any(rest.patterns for rest in self.rests) and self.least <= len(self.required) and self.most is None
                and not self.some and self.names == (ANY_TEXT,))

    @property
    def additional(self) -> Key:
        """The key of undeclared names in a plain object: its rests have no patterns, and are one at most."""
        return self.rests[0].additional if self.rests else ANYTHING


T = TypeVar("T")
Shape = Null | Boolean | Number | NumberSet | String | StringSet | Array | Object

ANY_SHAPES: dict[str, Shape] = {
    "null": Null(), "boolean": Boolean(), "number": Number(), "string": String(), "array": Array(), "object": Object()}

TYPE_OF: dict[type[Any], str] = {
    Null: "null", Boolean: "boolean", Number: "number", NumberSet: "number", String: "string", StringSet: "string",
    Array: "array", Object: "object"}


def least_bound(left: int | None, right: int | None) -> int | None:
    """The tighter of two upper bounds; None is no bound."""
    return right if left is None else left if right is None else min(left, right)


def joined(left: tuple[T, ...], right: tuple[T, ...]) -> tuple[T, ...]:
    """Both, each element once, in order."""
    return tuple(dict.fromkeys(left + right)) if left and right else left or right
