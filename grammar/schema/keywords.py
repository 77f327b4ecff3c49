"""The keywords of JSON Schema: which are known, what form their values have, and where subschemas stand in them."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")

# Keywords that only describe, hold or name: those of the standard's drafts, and those that common tools write. A name that
# starts with "x-" or "_" is one of them. Other names restrain nothing either, but may be misspelled (see `meant_keyword`).
ANNOTATIONS = frozenset({
    "title", "description", "default", "examples", "$schema", "$id", "id", "$comment", "$anchor", "$dynamicAnchor",
    "$recursiveAnchor", "$defs", "definitions", "deprecated",
    "readOnly", "writeOnly", "contentMediaType", "contentEncoding", "contentSchema", "$vocabulary", "links",
    "example", "externalDocs", "xml", "enumNames", "enumDescriptions", "markdownDescription", "markdownEnumDescriptions",
    "deprecationMessage", "errorMessage", "defaultSnippets", "tsType", "javaType", "$license", "author", "copyright", "version",
    "nullable", "discriminator"})


def is_annotation(keyword: str) -> bool:
    """Whether a keyword is known to restrain nothing."""
    return keyword in ANNOTATIONS or keyword.startswith(("x-", "_"))


def is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) or isinstance(value, float) and math.isfinite(value)


def is_text(value: Any) -> bool:
    """Whether a value is a string of characters: a lone surrogate is none."""
    return isinstance(value, str) and (value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value))


def are_texts(values: Iterable[Any]) -> bool:
    """Whether all values are strings of characters."""
    try:
        return is_text("".join(values))
    except TypeError:
        return False


def _count(value: Any) -> str | None:
    if is_number(value) and value >= 0 and value == int(value):
        return None
    return f"must be an integer of at least 0, not {shown(value)}"


def _number(value: Any) -> str | None:
    return None if is_number(value) else f"must be a number, not {shown(value)}"


def _positive(value: Any) -> str | None:
    return None if is_number(value) and value > 0 else f"must be a number above 0, not {shown(value)}"


def _text(value: Any) -> str | None:
    return None if is_text(value) else f"must be a string of characters, not {shown(value)}"


def _boolean(value: Any) -> str | None:
    return None if isinstance(value, bool) else f"must be true or false, not {shown(value)}"


def names_form(value: Any) -> str | None:
    """Why a value is no list of names, or None."""
    if isinstance(value, list) and are_texts(value):
        return None
    hint = "; required: true is of draft-03, now the object lists the names" if isinstance(value, bool) else ""
    return f"must be a list of strings, not {shown(value)}{hint}"


def _names_of_names(value: Any) -> str | None:
    if not isinstance(value, dict) or not are_texts(value):
        return f"must be an object, not {shown(value)}"
    return next(filter(None, map(names_form, value.values())), None)


def _type(value: Any) -> str | None:
    if isinstance(value, str) and value in TYPES:
        return None
    names = value if isinstance(value, list) else [value]
    for name in names:
        if not isinstance(name, str) or name not in TYPES:
            return f"names the type {shown(name)}; the types are {', '.join(TYPES)}"
    return None if names else "must name a type"


def _list(value: Any) -> str | None:
    return None if isinstance(value, list) else f"must be a list, not {shown(value)}"


def _anything(value: Any) -> str | None:
    return None


def _schemas(value: Any) -> str | None:
    return None if isinstance(value, list) and value else f"must be a list of at least one schema, not {shown(value)}"


def _map(value: Any) -> str | None:
    return None if isinstance(value, dict) and are_texts(value) else f"must be an object, not {shown(value)}"


def no_schema(value: Any) -> str | None:
    """Why a value is no schema at first sight, or None."""
    return None if isinstance(value, dict | bool) else f"must be a schema (an object, true or false), not {shown(value)}"


_SHORT = reprlib.Repr()
_SHORT.maxother = _SHORT.maxstring = 60


def shown(value: Any) -> str:
    """A value in an error message, cut short."""
    return _SHORT.repr(value)


SCALAR, VALUES, REFERENCE, SCHEMA, SCHEMA_LIST, SCHEMA_MAP = range(6)


class Form(NamedTuple):
    """What a keyword must hold. `fault` says why a value has the wrong form, or None; `kind` is what stands in it."""

    fault: Callable[[Any], str | None]
    kind: int


# The keywords that restrain something, and `$recursiveRef`, which becomes a `$ref` as `$dynamicRef` does.
FORMS: dict[str, Form] = {
    "type": Form(_type, SCALAR), "pattern": Form(_text, SCALAR), "format": Form(_text, SCALAR),
    "required": Form(names_form, SCALAR), "uniqueItems": Form(_boolean, SCALAR), "multipleOf": Form(_positive, VALUES),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), Form(_number, SCALAR)),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains",
                     "maxContains"), Form(_count, SCALAR)),
    "dependentRequired": Form(_names_of_names, VALUES), "enum": Form(_list, VALUES), "const": Form(_anything, VALUES),
    **dict.fromkeys(("$ref", "$dynamicRef", "$recursiveRef"), Form(_text, REFERENCE)),
    **dict.fromkeys(("items", "additionalProperties", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties",
                     "not", "if", "then", "else"), Form(no_schema, SCHEMA)),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), Form(_schemas, SCHEMA_LIST)),
    **dict.fromkeys(("properties", "patternProperties", "dependentSchemas"), Form(_map, SCHEMA_MAP)),
}

_WRAPPERS = ("parameters", "inputSchema", "input_schema", "schema", "json_schema", "function")


def wrapped_schema(value: dict[str, Any]) -> str | None:
    """The pointer of the schema in a value that is none itself, but the description of a tool or of a response format."""
    if any(name in FORMS for name in value):
        return None
    for name in _WRAPPERS:
        inner = value.get(name)
        if isinstance(inner, dict):
            if any(keyword in FORMS for keyword in inner):
                return f"/{name}"
            deeper = next((word for word in _WRAPPERS if isinstance(inner.get(word), dict)
                           and any(keyword in FORMS for keyword in inner[word])), None)
            if deeper:
                return f"/{name}/{deeper}"
    return None


_HOLDERS = frozenset({keyword for keyword, form in FORMS.items() if form.kind in (SCHEMA, SCHEMA_LIST, SCHEMA_MAP)} | {
    "$defs", "definitions", "dependencies", "additionalItems", "contentSchema"})
_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions", "dependencies"})


def held_schemas(schema: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    """(relative JSON pointer, subschema) wherever a schema may stand, in any draft, whether it restrains anything or not."""
    for keyword, value in schema.items():
        if keyword not in _HOLDERS:
            continue
        if keyword in _MAPS:
            if isinstance(value, dict):
                yield from ((f"/{escaped(keyword)}/{escaped(name)}", item) for name, item in value.items() if is_text(name))
        elif isinstance(value, list):
            yield from ((f"/{keyword}/{n}", item) for n, item in enumerate(value))
        else:
            yield f"/{keyword}", value


def escaped(name: str) -> str:
    """A name as one step of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1") if "~" in name or "/" in name else name


def _less_one(name: str) -> set[str]:
    """A name in lower case, and all that is left of it when one character is missing."""
    name = name.lower()
    return {name, *(name[:n] + name[n + 1:] for n in range(len(name)))}


# Of short names only the case may differ: too many words are a letter away from "not" and "if".
_MISSPELLED: dict[str, str] = {
    less: keyword for keyword in sorted(FORMS) if len(keyword) > 4 for less in sorted(_less_one(keyword))}
_IN_LOWER_CASE = {keyword.lower(): keyword for keyword in FORMS}
_LONGEST = max(map(len, FORMS))


def meant_keyword(name: str) -> str | None:
    """The restraining keyword from which a name differs in case, or in one letter: missing, too many, wrong or misplaced."""
    if len(name) > _LONGEST + 1:
        return None
    found = (_MISSPELLED[less] for less in sorted(_less_one(name), key=len, reverse=True) if less in _MISSPELLED)
    return _IN_LOWER_CASE.get(name.lower()) or next(found, None)
