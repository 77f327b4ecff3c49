"""What the keywords of one schema object say by themselves, without its references and combinators."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from grammar import formats, keywords
from grammar.document import ANYTHING, Document, Key, Part
from grammar.errors import GrammarTooLarge, SchemaError
from grammar.keywords import escaped
from grammar.numbers import Range
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
)

_LARGEST_COUNT = 1_000_000_000


def own_shapes(part: Part, document: Document, meeting: Meeting) -> tuple[Shape, ...]:
    """The shapes of a part: a constant, a boolean schema, or the keywords of a schema object that stand for themselves.

    Raises SchemaError for what is not enforced and PatternError for a regex.
    """
    if part.constant:
        return tuple(_constants([part.value], part.pointer, document))
    if isinstance(part.value, bool):
        return tuple(ANY_SHAPES.values()) if part.value else ()
    schema, pointer = part.value, part.pointer
    shapes = [shape for shape in _typed(schema, pointer, document) if meeting.possible(shape)]
    for keyword in ("const", "enum"):
        if keyword in schema:
            values = schema["enum"] if keyword == "enum" else [schema["const"]]
            listed = list(_constants(values, f"{pointer}/{keyword}", document))
            met = (meeting.meet(one, shape) for one in listed for shape in shapes)
            shapes = [shape for shape in met if shape is not None]
    return tuple(shapes)


def _constants(values: list[Any], pointer: str, document: Document) -> Iterable[Shape]:
    """The shapes of listed values: scalars together, each container as one of fixed members."""
    kinds = {kind: [v for v in values if _kind(v) == kind] for kind in ("null", "boolean", "number", "string")}
    if kinds["null"]:
        yield Null()
    if kinds["boolean"]:
        yield Boolean(frozenset(kinds["boolean"]))
    if kinds["number"]:
        yield NumberSet(tuple(dict.fromkeys(kinds["number"])))
    if kinds["string"]:
        yield StringSet(tuple(dict.fromkeys(kinds["string"])))
    for value in values:
        if isinstance(value, list):
            prefix = tuple(document.constant(item, pointer) for item in value)
            yield Array(prefix, document.nothing, len(value), len(value))
        elif isinstance(value, dict):
            properties = tuple((name, document.constant(item, pointer)) for name, item in value.items())
            yield Object(properties, tuple(value), document.nothing)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else "string" if isinstance(value, str) else "container"


def _typed(schema: dict[str, Any], pointer: str, document: Document) -> Iterable[Shape]:
    """One shape for each type that `type` leaves, with the keywords of that type."""
    types = schema.get("type", list(ANY_SHAPES))
    types = dict.fromkeys(types if isinstance(types, list) else [types])
    if "number" in types:
        types.pop("integer", None)
    for name in types:
        _refuse_not_enforced(schema, "number" if name == "integer" else name, pointer)
        match name:
            case "number" | "integer":
                yield _number(schema, name == "integer", pointer)
            case "string":
                yield _string(schema, pointer)
            case "array":
                yield _array(schema, pointer, document)
            case "object":
                yield _object(schema, pointer, document)
            case _:
                yield ANY_SHAPES[name]


def _refuse_not_enforced(schema: dict[str, Any], type_name: str, pointer: str) -> None:
    for keyword in keywords.OF_TYPE.get(type_name, frozenset()) & keywords.NOT_ENFORCED:
        if keyword in schema and not keywords.says_nothing(keyword, schema[keyword]):
            raise SchemaError("this keyword is not supported", keyword=keyword, pointer=pointer)


def _number(schema: dict[str, Any], integer: bool, pointer: str) -> Shape:
    bounds = Range()
    for keyword, is_low, is_open in (("minimum", True, False), ("exclusiveMinimum", True, True),
                                     ("maximum", False, False), ("exclusiveMaximum", False, True)):
        if keyword in schema:
            exact = Fraction(schema[keyword])
            bounds = bounds.meet(Range(low=exact, low_open=is_open) if is_low else Range(high=exact, high_open=is_open))
    multiple = schema.get("multipleOf")
    if multiple is None:
        return Number(bounds, integer)
    if multiple != int(multiple):
        raise SchemaError("only multiples of an integer are supported", keyword="multipleOf", pointer=pointer)
    if isinstance(multiple, float):    # then readers divide in doubles, which are exact up to here
        bounds = bounds.meet(Range(Fraction(-2**53), Fraction(2**53)))
    return Number(bounds, integer, int(multiple))


def _string(schema: dict[str, Any], pointer: str) -> Shape:
    least, most = _counts(schema, "minLength", "maxLength", pointer)
    named: tuple[str, ...] = ()
    name = schema.get("format")
    if name in formats.REFUSED:
        raise SchemaError(f"the format {name!r} is not supported", keyword="format", pointer=pointer)
    if name in formats.ENFORCED:
        named = (name,)
        if name in formats.LONGEST:
            most = formats.LONGEST[name] if most is None else min(most, formats.LONGEST[name])
    patterns = (schema["pattern"],) if "pattern" in schema else ()
    return String(least, most, patterns, named)


def _counts(schema: dict[str, Any], least: str, most: str, pointer: str) -> tuple[int, int | None]:
    """A pair of count keywords. An upper bound that no answer can reach is none."""
    low, high = int(schema.get(least, 0)), schema.get(most)
    if low > _LARGEST_COUNT:
        raise GrammarTooLarge("items_or_characters_at_least", _LARGEST_COUNT, low, keyword=least, pointer=pointer)
    return low, None if high is None or high > _LARGEST_COUNT else int(high)


def _array(schema: dict[str, Any], pointer: str, document: Document) -> Shape:
    prefix = tuple(document.key(item, f"{pointer}/prefixItems/{n}") for n, item in enumerate(schema.get("prefixItems", ())))
    items = document.key(schema["items"], f"{pointer}/items") if "items" in schema else ANYTHING
    return Array(prefix, items, *_counts(schema, "minItems", "maxItems", pointer))


def _object(schema: dict[str, Any], pointer: str, document: Document) -> Shape:
    properties: tuple[tuple[str, Key], ...] = tuple(
        (name, document.key(item, f"{pointer}/properties/{escaped(name)}")) for name,
        item in schema.get("properties", {}).items())
    additional = ANYTHING
    if "additionalProperties" in schema:
        additional = document.key(schema["additionalProperties"], f"{pointer}/additionalProperties")
    return Object(properties, tuple(dict.fromkeys(schema.get("required", ()))), additional)
