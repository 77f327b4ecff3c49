"""Why a schema has no value: the place and the keywords, as one would name them by hand."""

from __future__ import annotations

import time
from copy import deepcopy
from typing import Any

import pytest

from grammar import SchemaError, check_json_schema

CLOSED = [{"type": "object", "properties": {name: {}}, "required": [name], "additionalProperties": False} for name in "ab"]
DEEP = {"type": "object", "properties": {"items": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/person"}}},
        "required": ["items"], "$defs": {"person": {"type": "object", "required": ["age"], "properties": {
            "name": {"type": "string"}, "age": {"title": "Age", "type": "integer", "minimum": 5, "maximum": 3}}}}}


def refusal(schema: Any) -> SchemaError:
    with pytest.raises(SchemaError, match="no value satisfies") as caught:
        check_json_schema(schema)
    return caught.value


@pytest.mark.parametrize(("schema", "pointer", "words"), [
    ({"type": "integer", "minimum": 5, "maximum": 3}, "", ['type "integer"', "minimum 5", "maximum 3"]),
    (DEEP, "/$defs/person/properties/age", ['type "integer"', "minimum 5", "maximum 3"]),
    ({"type": "string", "enum": [1, 2]}, "", ['type "string"', "enum [1, 2]"]),
    ({"type": "string", "pattern": "/^a$/"}, "", ['pattern "/^a$/"']),
    ({"allOf": [{"type": "string"}, {"title": "n", "type": "null"}]}, "",
     ['type "string" at /allOf/0', 'type "null" at /allOf/1']),
    ({"allOf": CLOSED}, "", ["additionalProperties false at /allOf/0", 'required ["b"] at /allOf/1']),
    ({"type": "object", "properties": {"n": {"$ref": "#"}}, "required": ["n"]}, "",
     ['$ref "#" at /properties/n', 'required ["n"]']),
    ({"type": "object", "properties": {"a": False, "b": {}}, "required": ["a", "b"]}, "", ["/properties/a (false)", "required"]),
    ({"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True, "minItems": 3}, "",
     ["enum [1, 2] at /items", "uniqueItems true", "minItems 3"]),
    ({"anyOf": [{"type": "string"}, {"type": "number", "minimum": 5}], "maximum": 3, "type": "integer"}, "",
     ['type "string" at /anyOf/0', "minimum 5 at /anyOf/1", "maximum 3"]),
    ({"not": {}}, "", ["not {}"]),
    ({"oneOf": [{}, True]}, "", ["oneOf [{}, true]"]),
    ({"type": "object", "properties": {"a/b": {"const": 1, "enum": [2]}}, "required": ["a/b"]}, "/properties/a~1b",
     ["const 1", "enum [2]"]),
], ids=lambda x: str(x)[:50])
def test_the_place_and_the_keywords_that_exclude_one_another_are_named(schema, pointer, words):
    error = refusal(schema)
    assert error.pointer == pointer
    assert all(word in error.reason for word in words)


def test_keywords_that_have_nothing_to_do_with_it_are_not_named():
    others = {f"p{n}": {"type": "string", "maxLength": n} for n in range(40)}
    date = {"type": "string", "format": "date", "maxLength": 3}
    schema = {"type": "object", "minProperties": 1, "properties": {**others, "x": date}, "required": ["p1", "x"]}
    error = refusal(schema)
    assert error.pointer == "/properties/x"
    assert error.reason.endswith('type "string", format "date" and maxLength 3 leave none')


def test_two_schemas_for_one_member_are_named_both():
    schema = {"type": "object", "required": ["k"], "$defs": {"a": {"properties": {"k": {"type": "null"}}}},
              "allOf": [{"$ref": "#/$defs/a"}, {"properties": {"k": {"type": "string"}}}]}
    reason = refusal(schema).reason
    assert reason.endswith('type "null" at /$defs/a/properties/k and type "string" at /allOf/1/properties/k leave none')


@pytest.mark.parametrize("schema", [
    {"type": "object", "properties": {"k": {"$ref": "#"}}, "required": ["k"], "patternProperties": {"k": {"maximum": 10}}},
    {"type": "array", "prefixItems": [{"contains": {"type": "integer"}}], "items": False, "contains": {"$ref": "#"}},
], ids=str)
def test_a_schema_inside_of_another_one_that_is_to_blame_too_is_no_trouble(schema):
    assert refusal(schema).pointer == ""


def test_the_schema_that_was_given_stays_as_it_is():
    schema = deepcopy(DEEP)
    refusal(schema)
    assert schema == DEEP


def test_of_a_large_schema_at_least_the_place_is_named_in_time():
    inner = {f"q{m}": {"pattern": f"^a{{{m}}}$"} for m in range(20)}
    members = {f"p{n}": {"type": "object", "properties": inner} for n in range(200)}
    empty = {"type": "string", "minLength": 2, "maxLength": 1}
    schema = {"type": "object", "properties": {**members, "x": empty}, "required": ["x"]}
    began_s = time.process_time()
    assert refusal(schema).pointer == "/properties/x"
    assert time.process_time() - began_s < 5


def test_a_schema_without_a_culprit_among_its_keywords_is_refused_all_the_same():
    assert refusal(False).reason == "no value satisfies the schema"


def test_a_schema_inside_another_that_has_no_value_either_is_refused_like_any_other():
    schema = {"type": "object", "required": ["ab"], "patternProperties": {"b": {"$ref": "#"}}, "dependentSchemas": {"ab": {
        "patternProperties": {"b": {"type": "number"}, "^$": {"propertyNames": {"type": "number"}}}}}}
    with pytest.raises(SchemaError, match="no value satisfies the schema"):
        check_json_schema(schema)
