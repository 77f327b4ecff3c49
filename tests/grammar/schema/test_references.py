"""Where references lead. Verdicts are those of the jsonschema library; where it differs from the standard, counted by hand."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for

from grammar.errors import GrammarTooLarge, SchemaError
from tests.support.modern import views_of, written_down

INT, STR, NULL = {"type": "integer"}, {"type": "string"}, {"type": "null"}
VALUES = [None, True, 1, 2.5, "a", [], [1], ["a"], [None], [[1]], [["a"]], {}, {"a": 1}, {"a": "x"}, {"a": None}, {"a": {"a": 1}},
          {"a": {"a": "x"}}, {"b": 1}, {"b": "x"}, {"a": 1, "b": 1}, {"a": [1]}, {"a": ["x"]}, {"data": 1, "kids": []},
          {"kids": [{"kids": [{"daat": 1}]}]}, {"kids": [{"kids": [{"data": 1}]}]}, {"kids": [1]}]
D4, D7 = "http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-07/schema#"
D2019 = "https://json-schema.org/draft/2019-09/schema"

TREE = {"$id": "https://example.com/tree", "$dynamicAnchor": "node", "type": "object",
        "properties": {"data": True, "kids": {"type": "array", "items": {"$dynamicRef": "#node"}}}}
OLD_TREE = {"$id": "https://example.com/tree", "$recursiveAnchor": True, "type": "object",
            "properties": {"data": True, "kids": {"type": "array", "items": {"$recursiveRef": "#"}}}}
LIST = {"$id": "list", "type": "array", "items": {"$dynamicRef": "#item"}, "$defs": {"any": {"$dynamicAnchor": "item"}}}

SCHEMAS = {
    "the whole": {"type": "object", "additionalProperties": {"$ref": "#"}},
    "a definition": {"$ref": "#/$defs/x", "$defs": {"x": INT}},
    "an escaped name": {"$ref": "#/$defs/a~1b~0c%25%22", "$defs": {"a/b~c%\"": INT}},
    "an empty name": {"$ref": "#/$defs//$defs/", "$defs": {"": {"$defs": {"": INT}}}},
    "an item of a list": {"allOf": [True, {"anyOf": [STR, INT]}], "properties": {"a": {"$ref": "#/allOf/1/anyOf/1"}}},
    "a property": {"properties": {"a": INT, "b": {"$ref": "#/properties/a"}}},
    "an unknown place": {"$ref": "#/components/schemas/x", "components": {"schemas": {"x": INT}}},
    "below another reference": {"$ref": "#/$defs/x/$defs/y", "$defs": {"x": {"$ref": "#/nowhere", "$defs": {"y": INT}}}},
    "a boolean": {"properties": {"a": {"$ref": "#/$defs/no"}, "b": {"$ref": "#/$defs/yes"}}, "$defs": {"no": False, "yes": True}},
    "an anchor": {"properties": {"a": {"$ref": "#here"}}, "$defs": {"x": {"$anchor": "here", **INT}}},
    "a dynamic anchor": {"properties": {"a": {"$ref": "#here"}}, "$defs": {"x": {"$dynamicAnchor": "here", **INT}}},
    "the own URI": {"$id": "https://example.com/s", "$ref": "https://example.com/s#/$defs/x", "$defs": {"x": INT}},
    "the own URI as a path": {"$id": "https://example.com/d/s", "$ref": "/d/s#/$defs/x", "$defs": {"x": INT}},
    "a sibling resource": {"$id": "https://example.com/d/s", "properties": {"a": {"$ref": "../e/t"}},
                           "$defs": {"x": {"$id": "https://example.com/e/t", **INT}}},
    "a resource without an absolute base": {"properties": {"a": {"$ref": "t.json"}}, "$defs": {"x": {"$id": "t.json", **INT}}},
    "an inner pointer": {"properties": {"a": {"$id": "https://example.com/t", "$ref": "#/$defs/x", "$defs": {"x": INT}}},
                         "$defs": {"x": STR}},
    "an inner anchor": {"$id": "https://example.com/s", "properties": {"a": {"$ref": "t#x"}, "b": {"$ref": "#x"}},
                        "$defs": {"x": {"$anchor": "x", **STR}, "y": {"$id": "t", "$defs": {"x": {"$anchor": "x", **INT}}}}},
    "a URN": {"$id": "urn:example:s?+r", "properties": {"a": {"$ref": "urn:example:t#x"}, "b": {"$ref": "#/$defs/y"}},
              "$defs": {"x": {"$id": "urn:example:t", "$anchor": "x", **INT}, "y": STR}},
    "out of an inner resource": {
        "$id": "https://example.com/s", "properties": {"a": {"$id": "t", "items": {"$ref": "s#/$defs/x"}}}, "$defs": {"x": INT}},
    "by a pointer into an inner resource": {
        "$id": "https://example.com/s", "$ref": "#/$defs/x/$defs/y", "$defs": {
            "x": {"$id": "t", "$defs": {"y": {"items": {"$ref": "#/$defs/z"}}, "z": INT}}, "z": STR}},
    "a name that is no $id": {"properties": {"$id": INT, "a": {"$ref": "#/properties/$id"}}, "enum": [{"$id": "x"}, {"a": 1}]},
    "beside other keywords": {"$ref": "#/$defs/x", "maxProperties": 1, "$defs": {"x": {"minProperties": 1}}},
    "a dynamic reference in one resource": {"items": {"$dynamicRef": "#x"}, "$defs": {"x": {"$dynamicAnchor": "x", **INT}}},
    "a dynamic reference to a plain anchor": {"items": {"$dynamicRef": "#x"}, "$defs": {"x": {"$anchor": "x", **INT}}},
    "a dynamic reference to a pointer": {"items": {"$dynamicRef": "#/$defs/x"}, "$defs": {"x": {"$dynamicAnchor": "x", **INT}}},
    "a dynamic reference beside a reference": {
        "items": {"$dynamicRef": "#x", "$ref": "#/$defs/y", "allOf": [True]},
        "$defs": {"x": {"$dynamicAnchor": "x", **INT}, "y": {"type": ["integer", "string"]}}},
    "a generic list": {
        "$id": "https://example.com/s", "$ref": "list", "$defs": {"i": {"$dynamicAnchor": "item", **INT}, "l": LIST}},
    "a generic list by two ways": {
        "$id": "https://example.com/s", "anyOf": [{"$ref": "ints"}, {"properties": {"a": {"$ref": "strings"}}, "type": "object"}],
        "$defs": {"i": {"$id": "ints", "$ref": "list", "$defs": {"i": {"$dynamicAnchor": "item", **INT}}},
                  "s": {"$id": "strings", "$ref": "list", "$defs": {"s": {"$dynamicAnchor": "item", **STR}}}, "l": LIST}},
    "a plain anchor of the same name": {"$id": "https://example.com/s", "$ref": "list", "$defs": {
        "i": {"$anchor": "item", **INT}, "l": LIST}},
    "a strict tree": {
        "$id": "https://example.com/strict", "$dynamicAnchor": "node", "$ref": "tree", "unevaluatedProperties": False,
        "$defs": {"tree": TREE}},
    "a strict tree of 2019": {"$schema": D2019, "$id": "https://example.com/strict", "$recursiveAnchor": True, "$ref": "tree",
                              "unevaluatedProperties": False, "$defs": {"tree": OLD_TREE}},
    "a tree of 2019 that is not told to be strict": {
        "$schema": D2019, "$id": "https://example.com/strict", "$ref": "tree", "$defs": {"tree": OLD_TREE}},
    "recursion of 2019 without an anchor": {
        "$schema": D2019, "additionalProperties": {"$recursiveRef": "#"}, "type": ["object", "integer"]},
    "an id of draft 4": {"$schema": D4, "id": "http://example.com/s", "properties": {"a": {"$ref": "t#/definitions/y"}},
                         "definitions": {"x": {"id": "t", "definitions": {"y": INT}}}},
    "an anchor of draft 7": {"$schema": D7, "properties": {"a": {"$ref": "#x"}}, "definitions": {"x": {"$id": "#x", **INT}}},
    "an id beside a reference of draft 7": {
        "$schema": D7, "$id": "http://example.com/s", "properties": {"a": {"$id": "http://example.com/t/", "$ref": "u"}},
        "definitions": {"x": {"$id": "u", **INT}, "y": {"$id": "t/u", **STR}}},
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_a_reference_leads_where_the_library_says(schema):
    oracle = validator_for(schema, default=Draft202012Validator)(schema)
    expected = [oracle.is_valid(value) for value in VALUES]
    assert True in expected
    assert False in expected
    modern = Draft202012Validator(written_down(views_of(schema)))
    assert [modern.is_valid(value) for value in VALUES] == expected


def test_a_dynamic_scope_ends_where_it_was_left():
    first = {"$id": "first", "$defs": {"x": {"$dynamicAnchor": "x", **STR}}}
    second = {"$id": "second", "$ref": "start", "$defs": {"x": {"$dynamicAnchor": "x", **NULL}}}
    schema = {"$id": "https://example.com/s", "if": first, "then": second, "$defs": {
        "start": {"$id": "start", "$dynamicRef": "inner#x"}, "inner": {"$id": "inner", "$dynamicAnchor": "x", **INT}}}
    modern = Draft202012Validator(written_down(views_of(schema)))
    assert [modern.is_valid(value) for value in (None, 1, "a")] == [True, False, False]


def test_resources_that_are_entered_by_nesting_belong_to_the_scope():
    schema = {"$id": "https://example.com/s", "$defs": {"x": {"$dynamicAnchor": "x", **INT}}, "items": {
        "$id": "inner", "items": {"$dynamicRef": "#x"}, "$defs": {"x": {"$dynamicAnchor": "x", **STR}}}}
    modern = Draft202012Validator(written_down(views_of(schema)))
    assert [modern.is_valid(value) for value in ([[1]], [["a"]])] == [True, False]


def test_an_id_that_is_an_anchor_only_is_one_in_a_schema_of_no_declared_draft():
    modern = Draft202012Validator(written_down(views_of({"items": {"$ref": "#x"}, "definitions": {"x": {"id": "#x", **INT}}})))
    assert [modern.is_valid(value) for value in ([1], ["a"])] == [True, False]


def test_an_id_of_another_draft_moves_no_pointers():
    schema = {"$ref": "#/definitions/x", "definitions": {"x": {
        "$schema": D4, "id": "schema/x", "definitions": {"y": INT},
        "properties": {"a": {"$ref": "#/definitions/x/definitions/y"}}}}}
    modern = Draft202012Validator(written_down(views_of(schema)))
    assert [modern.is_valid(value) for value in ({"a": 1}, {"a": "x"})] == [True, False]


@pytest.mark.parametrize(("schema", "pointer", "reason"), [
    ({"$ref": "#/$defs/none"}, "", "leads nowhere"),
    ({"items": {"$ref": "#/allOf/2"}, "allOf": [{}]}, "/items", "leads nowhere"),
    ({"$ref": "#/allOf/-1", "allOf": [{}]}, "", "leads nowhere"),
    ({"$ref": "#/title", "title": "t"}, "", "leads to no schema"),
    ({"$ref": "#/enum/0", "enum": [1]}, "", "leads to no schema"),
    ({"items": {"$ref": "#nowhere"}}, "/items", "no $anchor"),
    ({"$ref": "https://example.com/other.json"}, "", "never fetched"),
    ({"$id": "https://example.com/s", "properties": {"a/b": {"$ref": "other#/x"}}}, "/properties/a~1b", "never fetched"),
    ({"$ref": "other.json"}, "", "never fetched"),
    ({"$ref": "http://[", "$id": "https://example.com/"}, "", "no URI reference"),
    ({"$ref": "#/$defs/x", "$defs": {"x": {"$id": "t", "$ref": "#/$defs/x"}}}, "/$defs/x", "leads nowhere"),
], ids=lambda x: json.dumps(x) if isinstance(x, dict) else None)
def test_a_reference_that_leads_to_no_schema_is_refused_where_it_stands(schema, pointer, reason):
    with pytest.raises(SchemaError, match=reason.replace("$", r"\$")) as caught:
        views_of(schema)
    assert caught.value.pointer == pointer


@pytest.mark.parametrize(
    ("keyword", "value"), [("$ref", 5), ("$dynamicRef", {}), ("$recursiveRef", "#/x"), ("$dynamicRef", "#none")])
def test_a_malformed_reference_is_refused_by_its_keyword(keyword, value):
    with pytest.raises(SchemaError) as caught:
        views_of({"items": {keyword: value}})
    assert (caught.value.keyword, caught.value.pointer) == (keyword, "/items")


def test_what_nothing_leads_to_is_not_looked_at():
    schema = {"type": "null", "$defs": {"x": {"$ref": "https://example.com/other.json"}, "y": {"type": "strnig"}, "z": 5}}
    assert views_of(schema).root == {"type": "null"}


def test_a_pointer_may_lead_into_the_value_of_a_constant_as_in_the_library():
    schema = {"properties": {"a": {"$ref": "#/$defs/x/const"}}, "$defs": {"x": {"const": {"type": "integer"}}}}
    oracle, modern = Draft202012Validator(schema), Draft202012Validator(written_down(views_of(schema)))
    assert [modern.is_valid({"a": value}) for value in (1, "x")] == [oracle.is_valid({"a": value}) for value in (1, "x")] == [
        True, False]


def test_dynamic_scopes_without_number_are_too_large():
    def resource(n, others):
        return {"$id": f"r{n}", "anyOf": [{"$ref": f"r{other}"} for other in others], "items": {"$dynamicRef": f"#n{n}"},
                "$defs": {"a": {"$dynamicAnchor": f"n{n}"}}}

    def document(n_resources):
        every = range(n_resources)
        return {"$id": "https://example.com/", "$ref": "r0", "$defs": {f"r{n}": resource(n, every) for n in every}}

    views_of(document(3))
    with pytest.raises(GrammarTooLarge) as caught:
        views_of(document(30))
    assert caught.value.limit == "schema_values"
    chain = {f"r{n}": resource(n, [n + 1]) for n in range(900)}
    with pytest.raises(GrammarTooLarge):
        views_of({"$id": "https://example.com/", "$ref": "r0", "$defs": {**chain, "r900": {"$id": "r900"}}})
