"""The drafts of JSON Schema, and how a schema object of an older one reads in the words of the newest.

Which keywords exist in a draft, and what they do there, follows the `jsonschema` library, which is the judge of answers. A schema
that names no draft, or one that nobody knows, is read as draft 2020-12, and what it borrows from older drafts and from OpenAPI
3.0 is honoured as far as it can mean one thing only.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from grammar.errors import SchemaError
from grammar.schema.keywords import FORMS, Form, is_number, names_form, shown


@dataclass(slots=True)
class Reading:
    """One schema object on its way to draft 2020-12. `sources`: where a keyword's value stood, if not under its own name."""

    schema: dict[str, Any]
    pointer: str
    modern: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)

    def malformed(self, keyword: str, reason: str) -> SchemaError:
        return SchemaError(reason, keyword=keyword, pointer=self.pointer)


Rewrite = Callable[[Reading, str], None]


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """One draft. `forms` has what restrains something, by its name and with its meaning in draft 2020-12.

    absent: names that restrain something in other drafts, and nothing in this one.
    rewrites: for keywords that draft 2020-12 spells in another way.
    unusual: names that make `modernised` necessary.
    """

    name: str
    forms: dict[str, Form]
    absent: frozenset[str]
    rewrites: dict[str, Rewrite]
    unusual: frozenset[str]
    id_keyword: str = "$id"
    lone_reference: bool = False        # what stands beside a $ref says nothing
    decimal_integers: bool = True       # 1.0 is an integer
    schemas_evaluate: bool = True       # a member counts as evaluated where additionalProperties is a schema, not just true

    def has_to_translate(self, schema: dict[str, Any]) -> bool:
        """Whether a schema object is in other words than those of draft 2020-12."""
        if not self.unusual.isdisjoint(schema) or (self.lone_reference and "$ref" in schema):
            return True
        return "items" in schema and isinstance(schema["items"], list)


def modernised(schema: dict[str, Any], draft: Draft, pointer: str) -> Reading:
    """The keywords of a schema object in the words of draft 2020-12, its subschemas as they are. Raises SchemaError.

    Names that the draft does not know are left out, and so is a keyword without the partner that gives it a meaning.
    """
    reading = Reading(schema, pointer)
    for keyword, value in schema.items():
        if keyword not in draft.absent and keyword not in draft.rewrites and _PARTNERS.get(keyword, keyword) in schema:
            reading.modern[keyword] = value
    for keyword, rewrite in draft.rewrites.items():
        if keyword in schema:
            rewrite(reading, keyword)
    return reading


_PARTNERS = {"then": "if", "else": "if", "minContains": "contains", "maxContains": "contains"}


def _items(reading: Reading, _: str) -> None:
    """A list under `items` is what later became `prefixItems`, and only beside it `additionalItems` says something."""
    items, modern = reading.schema["items"], reading.modern
    if not isinstance(items, list):
        modern["items"] = items
        return
    if "prefixItems" in modern:
        raise reading.malformed("items", "must be a schema where there is prefixItems, not a list")
    if items:
        modern["prefixItems"] = items
        reading.sources["prefixItems"] = "items"
    if "additionalItems" in reading.schema:
        modern["items"] = reading.schema["additionalItems"]
        reading.sources["items"] = "additionalItems"


def _said_by_items(reading: Reading, _: str) -> None:
    """`additionalItems` is read together with `items`."""


def _dependencies(reading: Reading, keyword: str) -> None:
    """A list of names is what later became `dependentRequired`, a schema `dependentSchemas`."""
    dependencies = reading.schema[keyword]
    if not isinstance(dependencies, dict):
        raise reading.malformed(keyword, f"must be an object, not {shown(dependencies)}")
    names: dict[str, Any] = dict(reading.modern.get("dependentRequired", ()))
    schemas: dict[str, Any] = dict(reading.modern.get("dependentSchemas", ()))
    for name, wanted in dependencies.items():
        if name in names or name in schemas:
            raise reading.malformed(keyword, f"{shown(name)} stands in the newer form of this keyword too")
        if isinstance(wanted, dict | bool):
            schemas[name] = wanted
        elif isinstance(wanted, str):
            names[name] = [wanted]
        elif names_form(wanted) is None:
            names[name] = wanted
        else:
            raise reading.malformed(keyword, f"must hold schemas and lists of strings, not {shown(wanted)}")
    for modern, found in (("dependentRequired", names), ("dependentSchemas", schemas)):
        if found:
            reading.modern[modern] = found
            reading.sources[modern] = reading.sources.get(modern, keyword)


_BOUND_OF = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}


def _exclusive(reading: Reading, keyword: str) -> None:
    """A boolean says of the bound beside it whether it is exclusive itself; a number is a bound, as it is today."""
    exclusive, bound = reading.schema[keyword], _BOUND_OF[keyword]
    if not isinstance(exclusive, bool):
        reading.modern[keyword] = exclusive
    elif exclusive:
        if bound not in reading.schema:
            raise reading.malformed(keyword, f"says nothing without {bound}; today it is a number, a bound of its own")
        reading.modern.pop(bound, None)
        reading.modern[keyword] = reading.schema[bound]
        reading.sources[keyword] = bound


def _exclusive_in_draft_4(reading: Reading, keyword: str) -> None:
    """Draft-04 knows booleans only. A number is written by who thinks of a later draft: both readings are kept to."""
    exclusive, bound = reading.schema[keyword], _BOUND_OF[keyword]
    if not is_number(exclusive) or bound not in reading.schema or not is_number(reading.schema[bound]) or not exclusive:
        _exclusive(reading, keyword)
        return
    tighter = max if keyword == "exclusiveMinimum" else min
    reading.modern.pop(bound, None)
    reading.modern[keyword] = tighter(exclusive, reading.schema[bound])


def _nullable(reading: Reading, keyword: str) -> None:
    """OpenAPI 3.0: null is one of the types, if there is a type at all."""
    types = reading.schema.get("type")
    if reading.schema[keyword] is True and types is not None:
        reading.modern["type"] = [*types, "null"] if isinstance(types, list) else [types, "null"]


def _additional_members(reading: Reading, keyword: str) -> None:
    """In draft 2019-09 the judge counts members as evaluated under `true`, and not under a schema that says as little."""
    value = reading.schema[keyword]
    says_nothing = isinstance(value, dict) and not any(name in FORMS for name in value)
    reading.modern[keyword] = _ANY_TYPE if says_nothing else value


_ANY_TYPE = {"type": ["null", "boolean", "number", "string", "array", "object"]}


def _draft(name: str, absent: frozenset[str], rewrites: dict[str, Rewrite], *, id_keyword: str = "$id",
           lone_reference: bool = False, decimal_integers: bool = True, schemas_evaluate: bool = True) -> Draft:
    written = {modern for keyword in rewrites for modern in _WRITES.get(keyword, (keyword,))}
    forms = {keyword: form for keyword, form in FORMS.items() if keyword not in absent or keyword in written}
    unusual = (written & absent) | (rewrites.keys() - {"items"}) | (_PARTNERS.keys() & forms.keys())
    return Draft(name, forms, absent, rewrites, frozenset(unusual), id_keyword, lone_reference, decimal_integers,
                 schemas_evaluate)


_WRITES = {"items": ("prefixItems", "items"), "additionalItems": (), "dependencies": ("dependentRequired", "dependentSchemas"),
           "nullable": ("type",)}
_LIST_ITEMS: dict[str, Rewrite] = {"items": _items, "additionalItems": _said_by_items}
_OLD: dict[str, Rewrite] = {**_LIST_ITEMS, "dependencies": _dependencies}

_SINCE_2020 = frozenset({"prefixItems", "$dynamicRef"})
_SINCE_2019 = frozenset({"minContains", "maxContains", "unevaluatedItems", "unevaluatedProperties", "dependentRequired",
                         "dependentSchemas", "$recursiveRef"}) | _SINCE_2020
_SINCE_7 = frozenset({"if", "then", "else"}) | _SINCE_2019
_SINCE_6 = frozenset({"const", "contains", "propertyNames"}) | _SINCE_7

DRAFT_4 = _draft(
    "draft-04", _SINCE_6, {**_OLD, "exclusiveMinimum": _exclusive_in_draft_4, "exclusiveMaximum": _exclusive_in_draft_4},
    id_keyword="id", lone_reference=True, decimal_integers=False)
DRAFT_6 = _draft("draft-06", _SINCE_7, _OLD, lone_reference=True)
DRAFT_7 = _draft("draft-07", _SINCE_2019, _OLD, lone_reference=True)
DRAFT_2019 = _draft(
    "draft 2019-09", _SINCE_2020 | {"dependencies"},
    {**_LIST_ITEMS, **dict.fromkeys(("additionalProperties", "unevaluatedProperties"), _additional_members)},
    schemas_evaluate=False)
DRAFT_2020 = _draft("draft 2020-12", frozenset({"$recursiveRef", "additionalItems", "dependencies"}), {})
UNDECLARED = _draft(
    "undeclared draft", frozenset(),
    {**_OLD, "exclusiveMinimum": _exclusive, "exclusiveMaximum": _exclusive, "nullable": _nullable})

BY_URI = {
    "http://json-schema.org/draft-04/schema": DRAFT_4, "http://json-schema.org/draft-06/schema": DRAFT_6,
    "http://json-schema.org/draft-07/schema": DRAFT_7, "https://json-schema.org/draft/2019-09/schema": DRAFT_2019,
    "https://json-schema.org/draft/2020-12/schema": DRAFT_2020}
_TOO_OLD = re.compile(r"https?://json-schema\.org/draft-0?[123]/")


def named_draft(uri: Any, pointer: str, otherwise: Draft) -> Draft:
    """The draft that a `$schema` names; `otherwise` where nobody knows it. Raises SchemaError for one that is not supported."""
    if not isinstance(uri, str):
        raise SchemaError(f"must be a string, not {shown(uri)}", keyword="$schema", pointer=pointer)
    if _TOO_OLD.match(uri):
        raise SchemaError("drafts before draft-04 are not supported", keyword="$schema", pointer=pointer)
    return BY_URI.get(uri.removesuffix("#"), otherwise)
