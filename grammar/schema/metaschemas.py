"""The schemas of schemas: what a `$ref` to the address of a draft of JSON Schema leads to.

They accept exactly what the published ones accept, and are made from what sets the drafts apart. What the published ones define
under a name can be referred to by it here too.
"""

from __future__ import annotations

from typing import Any

from grammar.schema.drafts import BY_URI, DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019, DRAFT_2020, Draft
from grammar.schema.keywords import FORMS, SCHEMA, SCHEMA_LIST, SCHEMA_MAP, TYPES

_NUMBER, _STRING, _BOOLEAN, _OBJECT = ({"type": name} for name in ("number", "string", "boolean", "object"))
_URI, _REFERENCE, _REGEX = ({"type": "string", "format": name} for name in ("uri", "uri-reference", "regex"))
_COUNT = {"type": "integer", "minimum": 0}
_NAMES_OF_COUNTS = ("positiveInteger", "positiveIntegerDefault0", "nonNegativeInteger", "nonNegativeIntegerDefault0")
_TYPE_NAMES = {"enum": sorted(TYPES)}
_TYPES = {"anyOf": [_TYPE_NAMES, {"type": "array", "items": _TYPE_NAMES, "minItems": 1, "uniqueItems": True}]}
_NAMES = {"type": "array", "items": _STRING, "uniqueItems": True}
_ANCHOR = {"type": "string", "pattern": "^[A-Za-z_][-A-Za-z0-9._]*$"}
_OLD_ANCHOR = {"type": "string", "pattern": "^[A-Za-z][-A-Za-z0-9.:_]*$"}
_ID = {"type": "string", "format": "uri-reference", "pattern": "^[^#]*#?$"}


def metaschema(uri: str) -> dict[str, Any] | None:
    """The schema that a draft publishes at `uri`, or None: a new dictionary each time, in the words of draft-04 or 2020-12."""
    draft = BY_URI.get(uri)
    if draft is None:
        return None
    old = draft in (DRAFT_4, DRAFT_6, DRAFT_7)
    this = {"$ref": "#"} if old else {"$dynamicRef": "#meta"}
    properties = {**_validating(draft, this), **_describing(draft, this)}
    found = {"properties": properties, "definitions": {
        "schemaArray": _some(this), "simpleTypes": _TYPE_NAMES, "stringArray": properties["required"],
        **dict.fromkeys(_NAMES_OF_COUNTS, _COUNT)}}
    if draft is DRAFT_4:
        return {"$schema": uri, "type": "object", **found,
                "dependencies": {"exclusiveMinimum": ["minimum"], "exclusiveMaximum": ["maximum"]}}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": ["object", "boolean"], **found,
            **({} if old else {"$dynamicAnchor": "meta"})}


def _validating(draft: Draft, this: dict[str, Any]) -> dict[str, Any]:
    """What must stand under the keywords that restrain something."""
    found: dict[str, Any] = {
        "type": _TYPES, "pattern": _REGEX, "format": _STRING, "required": _NAMES, "uniqueItems": _BOOLEAN,
        "multipleOf": {"type": "number", "exclusiveMinimum": 0}, "enum": {"type": "array"},
        **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _NUMBER),
        **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains",
                         "maxContains"), _COUNT),
        "dependentRequired": {"type": "object", "additionalProperties": _NAMES},
        **dict.fromkeys(("$ref", "$dynamicRef", "$recursiveRef"), _REFERENCE)}
    for keyword, form in FORMS.items():
        if form.kind in (SCHEMA, SCHEMA_LIST):
            found[keyword] = this if form.kind == SCHEMA else _some(this)
        elif form.kind == SCHEMA_MAP:
            found[keyword] = _named(this)
    found["patternProperties"] = {**_named(this), "propertyNames": {"format": "regex"}}
    found = {keyword: value for keyword, value in found.items() if keyword not in draft.absent}
    if draft is not DRAFT_2020:
        found["additionalItems"], found["items"] = this, {"anyOf": [this, _some(this)]}
    if draft is DRAFT_4:
        either = {"anyOf": [_BOOLEAN, this]}
        found |= {"multipleOf": {"type": "number", "minimum": 0, "exclusiveMinimum": True}, "required": {**_NAMES, "minItems": 1},
                  "enum": {"type": "array", "minItems": 1, "uniqueItems": True}, "patternProperties": _named(this),
                  "exclusiveMinimum": _BOOLEAN, "exclusiveMaximum": _BOOLEAN,
                  "additionalItems": either, "additionalProperties": either}
        del found["$ref"]
    return found


def _describing(draft: Draft, this: dict[str, Any]) -> dict[str, Any]:
    """What must stand under the keywords that hold, name or describe."""
    names = {"type": "object", "additionalProperties": {"anyOf": [this, _DEPENDENT_NAMES[draft.name]]}}
    found: dict[str, Any] = {"title": _STRING, "description": _STRING, "definitions": _named(this), "dependencies": names}
    if draft is DRAFT_4:
        return {**found, "id": _STRING, "$schema": _STRING}
    found |= {"$schema": _URI, "examples": {"type": "array"}}
    if draft is DRAFT_6:
        return {**found, "$id": _REFERENCE}
    found |= {"$comment": _STRING, "readOnly": _BOOLEAN, "contentMediaType": _STRING, "contentEncoding": _STRING}
    if draft is DRAFT_7:
        return {**found, "$id": _REFERENCE}
    return {**found, "$id": _ID, "$defs": _named(this), "contentSchema": this, "writeOnly": _BOOLEAN, "deprecated": _BOOLEAN,
            "$vocabulary": {"type": "object", "propertyNames": _URI, "additionalProperties": _BOOLEAN},
            **({"$anchor": _OLD_ANCHOR, "$recursiveAnchor": _BOOLEAN} if draft is DRAFT_2019 else {
                "$anchor": _ANCHOR, "$dynamicAnchor": _ANCHOR, "$recursiveAnchor": _ANCHOR, "$recursiveRef": _REFERENCE})}


_DEPENDENT_NAMES = {draft.name: {**_NAMES, "minItems": 1} if draft is DRAFT_4 else _NAMES for draft in BY_URI.values()}


def _some(this: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "minItems": 1, "items": this}


def _named(this: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": this}
