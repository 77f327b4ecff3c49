"""The keywords of JSON Schema: which are known, what form their values have, and where subschemas stand in them."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable
from typing import Any

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")

# Keywords that only describe, hold or name: those of the standard's drafts, and those that common tools write.
# A name that starts with "x-" or "_" is one of them.
ANNOTATIONS = frozenset({
    "title", "description", "default", "examples", "$schema", "$id", "id", "$comment", "$anchor", "$defs", "definitions",
    "deprecated",
    "readOnly", "writeOnly", "contentMediaType", "contentEncoding", "contentSchema", "$vocabulary", "links",
    "example", "externalDocs", "xml", "enumNames", "enumDescriptions", "markdownDescription", "markdownEnumDescriptions",
    "deprecationMessage", "errorMessage", "defaultSnippets", "tsType", "javaType", "$license", "author", "copyright", "version"})


def is_annotation(keyword: str) -> bool:
    """Whether a keyword restrains nothing."""
    return keyword in ANNOTATIONS or keyword.startswith(("x-", "_"))


GENERAL = frozenset({"type", "enum", "const", "$ref", "allOf", "anyOf", "oneOf"})
# Keywords that restrain one type only.
OF_TYPE = {
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
    "string": frozenset({"minLength", "maxLength", "pattern", "format"}),
    "array": frozenset({"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains",
                        "additionalItems", "unevaluatedItems"}),
    "object": frozenset({"properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties",
                         "maxProperties", "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties"}),
}
COMPILED = GENERAL.union(*OF_TYPE.values())
# Of those, what the compiler does not enforce, unless the value says nothing (see `says_nothing`).
NOT_ENFORCED = frozenset({
    "contains", "additionalItems", "unevaluatedItems", "patternProperties", "propertyNames", "dependentRequired",
    "dependentSchemas", "dependencies", "unevaluatedProperties", "uniqueItems", "minProperties", "maxProperties"})

ONE_SCHEMA = frozenset({"items", "additionalProperties", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties",
                        "not", "if", "then", "else", "additionalItems"})
SCHEMA_LIST = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
SCHEMA_MAP = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})


def says_nothing(keyword: str, value: Any) -> bool:
    """Whether a keyword that is not enforced restrains nothing with this value."""
    if keyword in ("uniqueItems", "minProperties"):
        return not value
    if keyword in ("propertyNames", "unevaluatedItems", "unevaluatedProperties", "additionalItems"):
        return value is True or value == {}
    return keyword in ("patternProperties", "dependentRequired", "dependentSchemas", "dependencies") and value == {}


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _count(value: Any) -> str | None:
    if is_number(value) and value >= 0 and value == int(value):
        return None
    return f"must be an integer of at least 0, not {_shown(value)}"


def _number(value: Any) -> str | None:
    return None if is_number(value) else f"must be a number, not {_shown(value)}"


def _positive(value: Any) -> str | None:
    return None if is_number(value) and value > 0 else f"must be a number above 0, not {_shown(value)}"


def _string(value: Any) -> str | None:
    return None if isinstance(value, str) else f"must be a string, not {_shown(value)}"


def _boolean(value: Any) -> str | None:
    return None if isinstance(value, bool) else f"must be true or false, not {_shown(value)}"


def _names(value: Any) -> str | None:
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return None
    return f"must be a list of strings, not {_shown(value)}"


def _type(value: Any) -> str | None:
    names = value if isinstance(value, list) else [value]
    for name in names:
        if not isinstance(name, str) or name not in TYPES:
            return f"names the type {_shown(name)}; the types are {', '.join(TYPES)}"
    return None if names else "must name a type"


def _list(value: Any) -> str | None:
    return None if isinstance(value, list) else f"must be a list, not {_shown(value)}"


def _schemas(value: Any) -> str | None:
    return None if isinstance(value, list) and value else f"must be a list of at least one schema, not {_shown(value)}"


def _map(value: Any) -> str | None:
    return None if isinstance(value, dict) else f"must be an object, not {_shown(value)}"


def _schema(value: Any) -> str | None:
    return None if isinstance(value, dict | bool) else f"must be a schema (an object, true or false), not {_shown(value)}"


_SHORT = reprlib.Repr()
_SHORT.maxother = _SHORT.maxstring = 60


def _shown(value: Any) -> str:
    return _SHORT.repr(value)


_FORMS: dict[str, Callable[[Any], str | None]] = {
    "type": _type, "enum": _list, "$ref": _string, "$anchor": _string, "$id": _string, "pattern": _string, "format": _string,
    "required": _names, "uniqueItems": _boolean, "multipleOf": _positive,
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
                     "minContains", "maxContains"), _count),
    **dict.fromkeys(SCHEMA_LIST, _schemas), **dict.fromkeys(SCHEMA_MAP, _map), **dict.fromkeys(ONE_SCHEMA, _schema),
}


def malformed(keyword: str, value: Any) -> str | None:
    """Why a keyword's value has the wrong form, or None."""
    form = _FORMS.get(keyword)
    return form(value) if form else None


def subschemas(schema: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    """(relative JSON pointer, subschema) for what stands where a schema must stand; values have their right form."""
    for keyword, value in schema.items():
        if keyword in ONE_SCHEMA:
            yield f"/{escaped(keyword)}", value
        elif keyword in SCHEMA_LIST:
            yield from ((f"/{keyword}/{n}", item) for n, item in enumerate(value))
        elif keyword in SCHEMA_MAP:
            yield from ((f"/{escaped(keyword)}/{escaped(name)}", item) for name, item in value.items())


def escaped(name: str) -> str:
    """A name as one step of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")
