"""What the keywords of one schema object say by themselves, without its references and combinators; and what they leave out.

Everything here is asked for one JSON type at a time, so that nothing is worked out, or refused, for a type that cannot come.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from fractions import Fraction
from typing import Any

from grammar import formats
from grammar.algebra.enforcement import Enforcement
from grammar.algebra.languages import Languages
from grammar.algebra.meeting import Meeting
from grammar.algebra.negation import negated_shape
from grammar.algebra.objects import Objects
from grammar.algebra.shapes import (
    ANY_SHAPES,
    ANY_TEXT,
    Array,
    Boolean,
    Null,
    Number,
    NumberSet,
    Object,
    Rest,
    Shape,
    SomeItem,
    String,
    StringSet,
)
from grammar.algebra.terms import Terms
from grammar.errors import GrammarTooLarge, PatternError
from grammar.number.numbers import Range
from grammar.schema.document import ANYTHING, Document, Key, Part
from grammar.schema.keywords import escaped

_LARGEST_COUNT = 1_000_000_000
Names = tuple[String | StringSet, ...]


class OwnKeywords:
    """The shapes of single parts. Raises SchemaError for what is refused."""

    def __init__(self, document: Document, terms: Terms, languages: Languages, meeting: Meeting, objects: Objects,
                 enforcement: Enforcement, names_of: Callable[[Key], Names]) -> None:
        self._document, self._terms, self._languages, self._meeting = document, terms, languages, meeting
        self._objects, self._enforcement, self._names_of = objects, enforcement, names_of
        self._listed: dict[int, dict[str, list[Shape]]] = {}
        self._weakened: set[tuple[int, str]] = set()    # where keywords were left out: then the negation leaves out nothing
        self._types: dict[int, Collection[str]] = {}
        self._typed: dict[tuple[int, str], Shape | None] = {}

    def types(self, number: int) -> Collection[str]:
        """The types that `type`, `const` and `enum` leave."""
        if number not in self._types:
            self._types[number] = _types(self._document.parts[number])
        return self._types[number]

    def shapes(self, number: int, type_name: str) -> tuple[Shape, ...]:
        """What a schema object or constant says of one type."""
        part = self._document.parts[number]
        if part.constant:
            return tuple(self._constants(number, [part.value], part.pointer).get(type_name, ()))
        if type_name not in self.types(number):
            return ()
        typed = self._typed_shape(number, type_name)
        if typed is None:
            return ()
        shapes: tuple[Shape, ...] = (typed,)
        for listed in self._lists(number, part, type_name):
            met = (self._meeting.meet(one, shape) for one in listed for shape in shapes)
            shapes = tuple(shape for shape in met if shape is not None)
        return shapes

    def negated(self, number: int, type_name: str) -> tuple[Shape, ...]:
        """What it leaves out of one type."""
        part = self._document.parts[number]
        if type_name not in self.types(number):
            return (ANY_SHAPES[type_name],)
        if part.constant:
            return self._negated_list(self._constants(number, [part.value], part.pointer)[type_name])
        typed = self._typed_shape(number, type_name)
        if typed is None or (number, type_name) in self._weakened:
            return (ANY_SHAPES[type_name],)
        shapes = list(self._negated_typed(typed, part))
        for listed in self._lists(number, part, type_name):
            shapes.extend(self._negated_list(listed))
        return tuple(shapes)

    def _negated_typed(self, typed: Shape, part: Part) -> tuple[Shape, ...]:
        if isinstance(typed, String):
            for name in typed.formats:
                if name not in formats.NEGATABLE:
                    self._enforcement.refuse("format", part.pointer, f"the negation of the format {name!r} is not supported")
                    return (ANY_TEXT,)
        not_names: Names = ()
        if isinstance(typed, Object) and "propertyNames" in part.value:
            key = self._document.key(part.value["propertyNames"], f"{part.pointer}/propertyNames")
            not_names = self._names_of(self._terms.negated(key))
        return tuple(shape for shape in negated_shape(typed, self._terms, not_names) if self._meeting.possible(shape))

    def _negated_list(self, listed: list[Shape]) -> tuple[Shape, ...]:
        """The values of a type that are none of a list."""
        left: tuple[Shape, ...] = negated_shape(listed[0], self._terms)
        for one in listed[1:]:
            met = (self._meeting.meet(here, there) for here in left for there in negated_shape(one, self._terms))
            left = tuple(shape for shape in met if shape is not None)
        return left

    # --- listed values

    def _lists(self, number: int, part: Part, type_name: str) -> Iterable[list[Shape]]:
        for keyword in ("const", "enum"):
            if keyword in part.value:
                values = part.value["enum"] if keyword == "enum" else [part.value["const"]]
                identity = number if keyword == "enum" else -1 - number
                yield self._constants(identity, values, f"{part.pointer}/{keyword}").get(type_name, [])

    def _constants(self, identity: int, values: list[Any], pointer: str) -> dict[str, list[Shape]]:
        """The shapes of listed values by type: scalars together, each container as one of fixed members."""
        if identity in self._listed:
            return self._listed[identity]
        kinds: dict[str, list[Any]] = {}
        for value in values:
            kinds.setdefault(_type_of(value), []).append(value)
        shapes: dict[str, list[Shape]] = {}
        for kind, some in kinds.items():
            match kind:
                case "null":
                    shapes[kind] = [Null()]
                case "boolean":
                    shapes[kind] = [Boolean(frozenset(some))]
                case "number":
                    shapes[kind] = [NumberSet(tuple(dict.fromkeys(some)))]
                case "string":
                    shapes[kind] = [StringSet(tuple(dict.fromkeys(some)))]
                case "array":
                    shapes[kind] = [self._constant_array(value, pointer) for value in some]
                case "object":
                    shapes[kind] = [self._constant_object(value, pointer) for value in some]
        self._listed[identity] = shapes
        return shapes

    def _constant_array(self, value: list[Any], pointer: str) -> Shape:
        prefix = tuple(self._document.constant(item, pointer) for item in value)
        return Array(prefix, self._terms.nothing, len(value), len(value))

    def _constant_object(self, value: dict[str, Any], pointer: str) -> Shape:
        properties = tuple((name, self._document.constant(item, pointer)) for name, item in value.items())
        return Object(properties, tuple(value), (Rest((), self._terms.nothing),))

    # --- keywords of one type

    def _typed_shape(self, number: int, type_name: str) -> Shape | None:
        """What the keywords of one type say; None where that is impossible at first sight."""
        identity = number, type_name
        if identity not in self._typed:
            part = self._document.parts[number]
            n_refused = self._enforcement.n_refused
            shape = self._typed_shape_afresh(part.value, part.pointer, type_name)
            if self._enforcement.n_refused > n_refused:
                self._weakened.add(identity)
            self._typed[identity] = shape if self._meeting.possible(shape) else None
        return self._typed[identity]

    def _typed_shape_afresh(self, schema: dict[str, Any], pointer: str, type_name: str) -> Shape:
        match type_name:
            case "number":
                return _number(schema)
            case "string":
                return self._string(schema, pointer)
            case "array":
                return self._array(schema, pointer)
            case "object":
                return self._object(schema, pointer)
        return ANY_SHAPES[type_name]

    def _string(self, schema: dict[str, Any], pointer: str) -> Shape:
        least, most = _counts(schema, "minLength", "maxLength", pointer)
        name = schema.get("format")
        if name in formats.REFUSED:
            self._enforcement.refuse("format", pointer, f"the format {name!r} is not supported")
        named = (name,) if name in formats.ENFORCED else ()
        patterns = (schema["pattern"],) if "pattern" in schema and self._enforced(schema["pattern"], "pattern", pointer) else ()
        return String(least, most, patterns, named)

    def _enforced(self, pattern: str, keyword: str, pointer: str) -> bool:
        """Whether a regex is enforced. Raises SchemaError where it is neither enforced nor left out."""
        try:
            self._languages.check(pattern)
        except PatternError as error:
            self._enforcement.refuse(keyword, pointer, str(error))
            return False
        return True

    def _array(self, schema: dict[str, Any], pointer: str) -> Shape:
        key = self._document.key
        prefix = tuple(key(item, f"{pointer}/prefixItems/{n}") for n, item in enumerate(schema.get("prefixItems", ())))
        items = key(schema["items"], f"{pointer}/items") if "items" in schema else ANYTHING
        some: tuple[SomeItem, ...] = ()
        if "contains" in schema:
            least, most = _counts(schema, "minContains", "maxContains", pointer, otherwise=1)
            if least or most is not None:
                some = (SomeItem((), key(schema["contains"], f"{pointer}/contains"), least, most),)
        return Array(prefix, items, *_counts(schema, "minItems", "maxItems", pointer), schema.get("uniqueItems", False), some)

    def _object(self, schema: dict[str, Any], pointer: str) -> Shape:
        key = self._document.key
        properties = tuple((name, key(item, f"{pointer}/properties/{escaped(name)}"))
                           for name, item in schema.get("properties", {}).items())
        additional = ANYTHING
        if "additionalProperties" in schema:
            additional = key(schema["additionalProperties"], f"{pointer}/additionalProperties")
        required = tuple(dict.fromkeys(schema.get("required", ())))
        if not _BEYOND_PLAIN & schema.keys():
            return Object(properties, required, (Rest((), additional),) if additional else ())
        patterns = tuple((pattern, key(item, f"{pointer}/patternProperties/{escaped(pattern)}"))
                         for pattern, item in schema.get("patternProperties", {}).items()
                         if self._enforced(pattern, "patternProperties", pointer))
        names: Names = (ANY_TEXT,)
        if "propertyNames" in schema:
            names = self._names_of(key(schema["propertyNames"], f"{pointer}/propertyNames"))
        shape = Object(properties, required, (Rest(patterns, additional),) if patterns or additional else (),
                       *_counts(schema, "minProperties", "maxProperties", pointer), (), names)
        return self._objects.with_rests_on_declared(shape)


_BEYOND_PLAIN = {"patternProperties", "propertyNames", "minProperties", "maxProperties"}


def _types(part: Part) -> Collection[str]:
    if part.constant:
        return (_type_of(part.value),)
    if isinstance(part.value, bool):
        return ANY_SHAPES if part.value else ()
    types: Collection[str] = ANY_SHAPES
    schema = part.value
    if "type" in schema:
        named = schema["type"] if isinstance(schema["type"], list) else (schema["type"],)
        types = dict.fromkeys("number" if name == "integer" else name for name in named)
    if "const" in schema:
        types = [name for name in types if name == _type_of(schema["const"])]
    if "enum" in schema:
        listed = {_type_of(value) for value in schema["enum"]}
        types = [name for name in types if name in listed]
    return types


def _type_of(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
    return "array" if isinstance(value, list) else "object"


def _number(schema: dict[str, Any]) -> Shape:
    bounds = Range()
    for keyword, is_low, is_open in _BOUNDS:
        if keyword in schema:
            exact = Fraction(schema[keyword])
            bounds = bounds.meet(Range(low=exact, low_open=is_open) if is_low else Range(high=exact, high_open=is_open))
    types = schema.get("type", "number")
    whole = True if "integer" in types and "number" not in types else None
    multiple = schema.get("multipleOf")
    return Number(bounds, whole, () if multiple is None else (Fraction(str(multiple)),))


_BOUNDS = (("minimum", True, False), ("exclusiveMinimum", True, True),
           ("maximum", False, False), ("exclusiveMaximum", False, True))


def _counts(schema: dict[str, Any], least: str, most: str, pointer: str, otherwise: int = 0) -> tuple[int, int | None]:
    """A pair of count keywords. An upper bound that no answer can reach is none."""
    low, high = int(schema.get(least, otherwise)), schema.get(most)
    if low > _LARGEST_COUNT:
        raise GrammarTooLarge("items_or_characters_at_least", _LARGEST_COUNT, low, keyword=least, pointer=pointer)
    return low, None if high is None or high > _LARGEST_COUNT else int(high)
