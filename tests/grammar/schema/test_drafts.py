"""What a schema of each draft means: its modern view, written down again, must agree with the library's class for that draft."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft201909Validator, Draft202012Validator
from jsonschema.validators import validator_for

from grammar.errors import SchemaError
from tests.support.modern import views_of, written_down

D4, D6, D7 = (f"http://json-schema.org/draft-0{n}/schema#" for n in (4, 6, 7))
D2019, D2020 = (f"https://json-schema.org/draft/{name}/schema" for name in ("2019-09", "2020-12"))
ALL = (D4, D6, D7, D2019, D2020)

VALUES = [None, True, 0, 1, 5, 5.5, 10, "", "a", "abcdef", [], [1], ["a"], [1, "a"], [1, "a", None], [1, 2, 3, 4], {}, {"a": 1},
          {"a": 1, "b": 2}, {"b": "x"}, {"a": "x", "c": []}, {"a": {"a": {"a": 3}}}, {"a": 5, "b": 5, "c": 5}]

SCHEMAS = [
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    {"minimum": 5, "exclusiveMinimum": True},
    {"maximum": 5, "exclusiveMaximum": True},
    {"minimum": 5, "exclusiveMinimum": False},
    {"exclusiveMinimum": 5, "exclusiveMaximum": 10},
    {"items": [{"type": "integer"}, {"type": "string"}]},
    {"items": [{"type": "integer"}], "additionalItems": {"type": "string"}},
    {"items": [{"type": "integer"}, {"type": "string"}], "additionalItems": False},
    {"items": {"type": "integer"}, "additionalItems": False},
    {"additionalItems": False},
    {"prefixItems": [{"type": "integer"}], "items": {"type": "string"}},
    {"dependencies": {"a": ["b"], "b": {"maxProperties": 2}}},
    {"dependentRequired": {"a": ["b"]}},
    {"dependentSchemas": {"a": {"required": ["b"]}}},
    {"const": 5},
    {"contains": {"type": "string"}},
    {"contains": {"type": "integer"}, "minContains": 2, "maxContains": 3},
    {"contains": {"type": "integer"}, "minContains": 0},
    {"minContains": 3},
    {"propertyNames": {"maxLength": 0}},
    {"if": {"type": "integer"}, "then": {"minimum": 5}, "else": {"type": "string"}},
    {"then": False, "else": False},
    {"$ref": "#/definitions/x", "type": "string", "definitions": {"x": {"maxLength": 3}}},
    {"allOf": [{"$ref": "#/definitions/x", "maxLength": 0}], "definitions": {"x": {"type": ["string", "null"]}}},
    {"properties": {"a": True, "b": True}, "unevaluatedProperties": False},
    {"items": [True], "unevaluatedItems": False},
    {"prefixItems": [True], "unevaluatedItems": False},
    {"type": "string", "nullable": True},
    {"$recursiveRef": "#", "type": "object"},
    {"$id": "http://example.com/a", "properties": {"a": {"$ref": "b"}}, "definitions": {"x": {"$id": "b", "type": "integer"}}},
    {"id": "http://example.com/a", "properties": {"a": {"$ref": "b"}}, "definitions": {"x": {"id": "b", "type": "integer"}}},
    {"$id": "http://example.com/a", "properties": {"a": {"$ref": "#x"}}, "definitions": {"x": {"$id": "#x", "type": "integer"}}},
    {"properties": {"a": {"$ref": "#x"}}, "definitions": {"x": {"$anchor": "x", "type": "integer"}}},
    {"type": "array", "minItems": 2, "description": "d", "default": [], "x-vendor": {"type": "wrong"}, "vendor": 1},
]


def verdicts(validator, values):
    """What the library says of each value; an error where it fails itself."""
    found = []
    for value in values:
        try:
            found.append(validator.is_valid(value))
        except Exception as error:    # it fails in many ways on schemas that are malformed
            found.append(type(error).__name__)
    return found


@pytest.mark.parametrize("draft", ALL)
def test_a_schema_means_what_the_library_says_it_does_in_its_draft(draft):
    n_compared = 0
    for schema in ({"$schema": draft, **schema} for schema in SCHEMAS):
        oracle = validator_for(schema)(schema)
        expected = verdicts(oracle, VALUES)
        if _is_well_formed(oracle, schema) and all(isinstance(verdict, bool) for verdict in expected):
            n_compared += 1
            assert verdicts(Draft202012Validator(written_down(views_of(schema))), VALUES) == expected, schema
    assert n_compared > 20


def _is_well_formed(oracle, schema):
    return type(oracle)(oracle.META_SCHEMA).is_valid(schema)


def test_the_drafts_differ_where_the_table_above_says_they_may():
    meanings = {draft: [verdicts(Draft202012Validator(written_down(views_of({"$schema": draft, **schema}))), VALUES)
                        for schema in SCHEMAS if _read(draft, schema)] for draft in ALL}
    assert len({json.dumps(verdict) for verdict in meanings.values()}) == len(ALL)


def _read(draft, schema):
    try:
        views_of({"$schema": draft, **schema})
    except SchemaError:
        return False
    return True


@pytest.mark.parametrize("uri", [D7.rstrip("#"), D7])
def test_the_empty_fragment_of_a_dialect_makes_no_difference(uri):
    schema = {"$schema": uri, "$ref": "#/definitions/x", "type": "string", "definitions": {"x": {}}}
    assert views_of(schema).root is True or "type" not in views_of(schema).root


@pytest.mark.parametrize("uri", ["http://json-schema.org/draft-03/schema#", "http://json-schema.org/draft-03/schema"])
def test_drafts_that_are_too_old_are_refused_by_name(uri):
    with pytest.raises(SchemaError, match="draft-04") as caught:
        views_of({"$schema": uri, "type": "string"})
    assert caught.value.keyword == "$schema"


@pytest.mark.parametrize("uri", ["https://example.com/own-dialect", "http://json-schema.org/schema#", "no uri at all"])
def test_an_unknown_dialect_is_read_as_the_newest_draft(uri):
    schema = {"$schema": uri, "prefixItems": [{"type": "integer"}], "items": False, "unevaluatedItems": False}
    assert views_of(schema).root == {"prefixItems": [{"type": "integer"}], "items": False, "unevaluatedItems": False}


UNDECLARED = [
    # a schema that names no draft, and the same in the words of draft 2020-12
    ({"minimum": 5, "exclusiveMinimum": True}, {"exclusiveMinimum": 5}),
    ({"maximum": 5, "exclusiveMaximum": True, "minimum": 1, "exclusiveMinimum": False}, {"minimum": 1, "exclusiveMaximum": 5}),
    ({"exclusiveMinimum": 3}, {"exclusiveMinimum": 3}),
    ({"items": [{"type": "null"}], "additionalItems": False}, {"prefixItems": [{"type": "null"}], "items": False}),
    ({"items": [{"type": "null"}]}, {"prefixItems": [{"type": "null"}]}),
    ({"items": [], "additionalItems": False}, {"items": False}),
    ({"items": {"type": "null"}, "additionalItems": False}, {"items": {"type": "null"}}),
    ({"dependencies": {"a": ["b"], "c": "d", "e": {"required": ["f"]}}},
     {"dependentRequired": {"a": ["b"], "c": ["d"]}, "dependentSchemas": {"e": {"required": ["f"]}}}),
    ({"dependencies": {"a": ["b"]}, "dependentRequired": {"c": ["d"]}}, {"dependentRequired": {"c": ["d"], "a": ["b"]}}),
    ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
    ({"type": ["string", "number"], "nullable": True}, {"type": ["string", "number", "null"]}),
    ({"type": "string", "nullable": False}, {"type": "string"}),
    ({"nullable": True, "minLength": 2}, {"minLength": 2}),
    ({"id": "http://example.com/x", "type": "null", "definitions": {"id": "y"}}, {"type": "null"}),
]


@pytest.mark.parametrize(("schema", "modern"), UNDECLARED, ids=lambda x: json.dumps(x))
def test_what_an_undeclared_schema_borrows_from_elsewhere_is_honoured(schema, modern):
    oracle, own = Draft202012Validator(modern), Draft202012Validator(written_down(views_of(schema)))
    values = [*VALUES, {"c": 1}, {"c": 1, "d": 2}, {"e": 1}, {"e": 1, "f": 2}, [None], [None, 1], [None, None]]
    assert [own.is_valid(value) for value in values] == [oracle.is_valid(value) for value in values]


@pytest.mark.parametrize(("schema", "keyword"), [
    ({"exclusiveMinimum": True}, "exclusiveMinimum"),
    ({"items": [{}], "prefixItems": [{}]}, "items"),
    ({"items": [{}, 1]}, None),
    ({"items": [{}], "additionalItems": 1}, "additionalItems"),
    ({"dependencies": {"a": 1}}, "dependencies"),
    ({"dependencies": []}, "dependencies"),
    ({"dependencies": {"a": ["b"]}, "dependentRequired": {"a": ["c"]}}, "dependencies"),
    ({"minimum": "x", "exclusiveMinimum": True}, "minimum"),
    ({"$schema": D7, "exclusiveMinimum": True, "minimum": 1}, "exclusiveMinimum"),
    ({"$schema": D2020, "items": [{}]}, "items"),
    ({"$schema": D4, "$ref": 5}, "$ref"),
    ({"$schema": 5}, "$schema"),
    ({"properties": {"a": {"type": "string", "required": True}}}, "required"),
], ids=lambda x: json.dumps(x))
def test_what_cannot_be_translated_is_refused_by_the_name_it_has_in_the_source(schema, keyword):
    with pytest.raises(SchemaError) as caught:
        views_of(schema)
    assert caught.value.keyword == keyword


def test_pointers_are_those_of_the_source():
    with pytest.raises(SchemaError) as caught:
        views_of({"$schema": D7, "items": [{}, {"type": "strnig"}]})
    assert caught.value.pointer == "/items/1"
    with pytest.raises(SchemaError) as caught:
        views_of({"$schema": D7, "dependencies": {"a/b": {"type": "strnig"}}})
    assert caught.value.pointer == "/dependencies/a~1b"
    with pytest.raises(SchemaError) as caught:
        views_of({"items": [{}], "additionalItems": {"type": "strnig"}})
    assert caught.value.pointer == "/additionalItems"


def test_a_schema_within_may_be_of_another_draft():
    schema = {"$schema": D2020, "properties": {
        "a": {"$schema": D4, "$id": "http://example.com/old", "minimum": 5, "exclusiveMinimum": True, "const": 1},
        "b": {"$schema": D7, "$ref": "#/$defs/x", "type": "string"}, "c": {"$ref": "#/$defs/x", "type": "string"}},
        "$defs": {"x": {"maxLength": 3}}}
    properties = views_of(schema).root["properties"]
    assert properties["a"] == {"exclusiveMinimum": 5}
    assert "type" not in properties["b"]
    assert properties["c"]["type"] == "string"


def test_only_draft_4_has_no_integers_with_a_decimal_point():
    for draft in ALL:
        schema = {"$schema": draft, "type": "integer"}
        assert views_of(schema).decimal_integers is validator_for(schema)(schema).is_valid(1.0)
    assert views_of({"type": "integer"}).decimal_integers


def test_a_number_where_draft_4_has_a_boolean_is_kept_to_in_both_readings():
    schema = {"$schema": D4, "minimum": 5, "exclusiveMinimum": 1}
    view, oracle = Draft202012Validator(written_down(views_of(schema))), validator_for(schema)(schema)
    assert [view.is_valid(n) for n in (1, 4, 5, 6)] == [oracle.is_valid(n) for n in (1, 4, 5, 6)] == [False, False, False, True]
    assert views_of({"$schema": D4, "exclusiveMinimum": 1}).root == {"exclusiveMinimum": 1}


@pytest.mark.parametrize("additional", [True, False, {}, {"type": "integer"}, {"title": "anything"}], ids=str)
@pytest.mark.parametrize("inside", [False, True])
def test_what_additional_members_evaluate_in_draft_2019_is_no_more_than_its_validator_says(admits, additional, inside):
    says = {"properties": {"a": {}}, "additionalProperties": additional}
    schema = {"$schema": D2019, "type": "object", "unevaluatedProperties": False, **({"allOf": [says]} if inside else says)}
    judge = Draft201909Validator(schema)
    for value in ({}, {"a": 1}, {"x": 1}, {"a": 1, "x": "y"}):
        assert admits(schema, json.dumps(value)) == judge.is_valid(value)
