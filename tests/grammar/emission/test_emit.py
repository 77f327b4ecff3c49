"""Whole languages: every text that a machine accepts, against all small values that jsonschema finds valid.

The schemas here have finitely many values, so that all that can be written is written, and a dead end cannot hide.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.support.machines import all_texts, machine_of

ONE_OR_TWO: dict[str, Any] = {"enum": [1, 2]}
CLOSED: dict[str, Any] = {"type": "object", "properties": {"a": {"enum": [1, 2]}, "b": {"enum": [1, "x"]}, "c": {"const": 1}},
                          "additionalProperties": False}
ITEMS: dict[str, Any] = {"type": "array", "items": {"enum": [1, 2, "x"]}, "maxItems": 3}

OBJECTS: list[dict[str, Any]] = [
    {},
    {"minProperties": 2},
    {"maxProperties": 1},
    {"minProperties": 1, "maxProperties": 2, "required": ["b"]},
    {"not": {"properties": {"a": {"const": 1}}, "required": ["b"]}},
    {"not": {"required": ["a", "b"]}},
    {"anyOf": [{"required": ["a"]}, {"required": ["b", "c"]}], "maxProperties": 2},
    {"dependentRequired": {"a": ["b"], "b": ["a"]}, "maxProperties": 2},
    {"dependentRequired": {"a": ["b"], "b": ["a"]}, "minProperties": 1, "maxProperties": 2},
    {"dependentSchemas": {"a": {"properties": {"b": {"const": "x"}}}}, "not": {"required": ["c"]}},
    {"if": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "then": {"required": ["b"]}, "else": {"maxProperties": 1}},
    {"not": {"additionalProperties": {"const": 1}}},
    {"not": {"propertyNames": {"enum": ["a", "b"]}}},
    {"not": {"minProperties": 2}},
    {"oneOf": [{"required": ["a"]}, {"required": ["b"]}, {"properties": {"c": False}}]},
    {"patternProperties": {"^[ab]$": {"type": "integer"}, "^[ac]$": {"not": {"const": 2}}}},
    {"propertyNames": {"pattern": "^[ac]"}, "minProperties": 1},
]

ARRAYS: list[dict[str, Any]] = [
    {},
    {"contains": {"const": 1}},
    {"contains": {"const": 1}, "minContains": 2},
    {"contains": {"const": 1}, "maxContains": 1},
    {"contains": {"const": 1}, "minContains": 0, "maxContains": 1},
    {"contains": {"const": 1}, "minItems": 3, "maxContains": 2},
    {"contains": {"const": 1}, "allOf": [{"contains": {"const": 2}}]},
    {"contains": {"const": 1}, "allOf": [{"contains": {"type": "integer"}, "minContains": 2, "maxContains": 2}]},
    {"contains": {"const": 1}, "allOf": [{"contains": {"const": 2}}, {"contains": {"const": "x"}}]},
    {"prefixItems": [{"const": "x"}], "contains": {"const": 2}, "maxItems": 2},
    {"prefixItems": [{"enum": ["x", 1]}, {"const": 2}], "contains": {"const": 1}},
    {"not": {"contains": {"const": 1}}},
    {"not": {"items": {"type": "integer"}}},
    {"not": {"prefixItems": [{"const": 1}, {"const": 2}]}},
    {"uniqueItems": True},
    {"uniqueItems": True, "minItems": 2},
    {"uniqueItems": True, "minItems": 3},
    {"uniqueItems": True, "maxItems": 2, "items": {"enum": [1, 12, 121, "a", "ab"]}},
    {"uniqueItems": True, "items": {"enum": [1, True, "1", None, 1.5]}},
    {"uniqueItems": True, "items": {"type": "array", "items": ONE_OR_TWO, "maxItems": 2}, "minItems": 2, "maxItems": 2},
    {"uniqueItems": True, "items": {"type": "array", "items": ONE_OR_TWO, "uniqueItems": True}, "maxItems": 2},
    {"uniqueItems": True, "maxItems": 2, "items": CLOSED | {"required": ["a"]}},
    {"uniqueItems": True, "maxItems": 2, "items": CLOSED | {"minProperties": 3}},
    {"uniqueItems": True, "items": {"type": "integer", "minimum": 9, "maximum": 11}},
    {"uniqueItems": True, "items": {"type": "boolean"}, "minItems": 2},
]


def written(schema: Any, **style: bool) -> list[bytes]:
    return list(all_texts(machine_of(schema, **({"spaces": False, "escapes": False} | style))))


def objects() -> Iterator[dict[str, Any]]:
    """All objects of CLOSED, members in all orders."""
    values = {"a": [1, 2], "b": [1, "x"], "c": [1]}
    for n in range(4):
        for names in itertools.permutations(values, n):
            for chosen in itertools.product(*(values[name] for name in names)):
                yield dict(zip(names, chosen, strict=True))


def arrays(items: list[Any], most: int) -> Iterator[list[Any]]:
    for n in range(most + 1):
        yield from (list(chosen) for chosen in itertools.product(items, repeat=n))


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


@pytest.mark.parametrize("keywords", OBJECTS, ids=json.dumps)
def test_the_objects_of_a_schema_are_exactly_what_can_be_written(keywords):
    schema = {**CLOSED, **keywords, "properties": {**CLOSED["properties"], **keywords.get("properties", {})}}
    valid = [value for value in objects() if Draft202012Validator(schema).is_valid(value)]
    assert valid
    assert sorted(written(schema, ordered=False)) == sorted(map(compact, valid))
    in_order = [value for value in valid if list(value) == sorted(value)]
    assert sorted(written(schema)) == sorted(map(compact, in_order))


@pytest.mark.parametrize("keywords", ARRAYS, ids=json.dumps)
def test_the_arrays_of_a_schema_are_exactly_what_can_be_written(keywords):
    schema = {**ITEMS, **keywords}
    if schema["items"].get("type") == "array":
        items: list[Any] = list(arrays([1, 2], 2))
    elif schema["items"].get("type") == "object":
        items = list(objects())
    else:
        items = [1, 2, "x", 9, 10, 11, 12, 121, "a", "ab", "1", 1.5, True, False, None]
    one = Draft202012Validator(schema["items"])
    items = [item for item in items if one.is_valid(item)]
    valid = [value for value in arrays(items, schema["maxItems"]) if Draft202012Validator(schema).is_valid(value)]
    assert valid
    assert sorted(written(schema, ordered=False)) == sorted(map(compact, valid))


def test_the_pretty_style_is_what_json_dumps_writes_with_an_indent():
    schema = {"type": "object", "properties": {
        "a": {"type": "array", "items": {"type": "array", "items": {"enum": [1, "é\n"]}, "maxItems": 2}, "maxItems": 1},
        "b": {"type": "object", "properties": {"c": {"type": "object", "properties": {"d": ONE_OR_TWO}, "required": ["d"],
                                                     "additionalProperties": False}}, "additionalProperties": False}},
        "additionalProperties": False, "minProperties": 1}
    machine = machine_of(schema, spaces=False, escapes=False, pretty=True)
    values: list[dict[str, Any]] = [
        {**left, **right}
        for left in ({}, {"a": []}, {"a": [[]]}, {"a": [[1]]}, {"a": [["é\n", 1]]})
        for right in ({}, {"b": {}}, {"b": {"c": {"d": 2}}}) if left or right]
    for value in values:
        text = json.dumps(value, indent=2, ensure_ascii=False).encode()
        position = machine.advance(machine.start(), text)
        assert position is not None
        assert machine.may_end(position)
        for n, byte in enumerate(text):
            if byte in b" \n" and text[n - 1:n] not in b'"':
                assert machine.advance(machine.start(), text[:n] + text[n + 1:]) is None or text[n + 1:n + 2] == b" "
                assert machine.advance(machine.start(), text[:n] + b" " + text[n:]) is None


def test_the_pretty_style_writes_nothing_else():
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": ONE_OR_TWO, "maxItems": 2}, "b": ONE_OR_TWO},
              "required": ["b"], "additionalProperties": False}
    values = [{**a, "b": b} for a in ({}, *({"a": items} for items in arrays([1, 2], 2))) for b in (1, 2)]
    expected = [json.dumps(value, indent=2).encode() for value in values]
    assert sorted(written(schema, pretty=True)) == sorted(expected)
