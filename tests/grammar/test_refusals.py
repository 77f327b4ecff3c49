"""What is not compiled is refused by keyword and JSON pointer, never approximated."""

from __future__ import annotations

import pytest

from grammar import SchemaError, check_json_schema, compile_json_schema

OBJECT = {"type": "object"}

NOT_SUPPORTED = [
    ({"not": {"type": "null"}}, "not", ""),
    ({"if": {}, "then": {}}, "if", ""),
    ({"type": "array", "uniqueItems": True}, "uniqueItems", ""),
    ({"type": "array", "contains": {}}, "contains", ""),
    ({"properties": {"a": {"patternProperties": {"^x": {}}}}}, "patternProperties", "/properties/a"),
    ({"items": {"propertyNames": {"maxLength": 3}}}, "propertyNames", "/items"),
    ({"minProperties": 1}, "minProperties", ""),
    ({"maxProperties": 1}, "maxProperties", ""),
    ({"dependentRequired": {"a": ["b"]}}, "dependentRequired", ""),
    ({"unevaluatedProperties": False}, "unevaluatedProperties", ""),
    ({"$dynamicRef": "#x"}, "$dynamicRef", ""),
    ({"anyOf": [{}, {"properties": {"a/b~c": {"frobnicate": 1}}}]}, "frobnicate", "/anyOf/1/properties/a~1b~0c"),
    ({"type": "number", "multipleOf": 0.01}, "multipleOf", ""),
    ({"type": "string", "format": "regex"}, "format", ""),
    ({"$defs": {"x": {"format": "iri"}}, "items": {"$ref": "#/$defs/x"}}, "format", "/$defs/x"),
    ({"oneOf": [{"type": "integer", "minimum": 0}, {"type": "integer", "maximum": 10}]}, "oneOf", ""),
    ({"pattern": "(?=a)b"}, "pattern", ""),
    ({"pattern": "(a)\\1"}, "pattern", ""),
    ({"items": {"pattern": "\\bword\\b"}}, "pattern", "/items"),
]

MALFORMED = [
    ({"type": "strnig"}, "type", ""),
    ({"type": []}, "type", ""),
    ({"properties": [1]}, "properties", ""),
    ({"properties": {"a": 1}}, None, "/properties/a"),
    ({"items": [{}]}, "items", ""),
    ({"required": "a"}, "required", ""),
    ({"required": [1]}, "required", ""),
    ({"enum": "a"}, "enum", ""),
    ({"minLength": -1}, "minLength", ""),
    ({"maxItems": 1.5}, "maxItems", ""),
    ({"minItems": True}, "minItems", ""),
    ({"minimum": "0"}, "minimum", ""),
    ({"multipleOf": 0}, "multipleOf", ""),
    ({"exclusiveMinimum": True}, "exclusiveMinimum", ""),
    ({"anyOf": []}, "anyOf", ""),
    ({"anyOf": {}}, "anyOf", ""),
    ({"anyOf": [{}, None]}, None, "/anyOf/1"),
    ({"additionalProperties": "no"}, "additionalProperties", ""),
    ({"pattern": "("}, "pattern", ""),
    ({"properties": {"a": {"pattern": "[z-a]"}}}, "pattern", "/properties/a"),
    ({"$defs": {"unused": {"type": "strnig"}}}, "type", "/$defs/unused"),
    ({"$ref": "#/$defs/none"}, "$ref", ""),
    ({"items": {"$ref": "#nowhere"}}, "$ref", "/items"),
    ({"$ref": "https://example.com/other.json"}, "$ref", ""),
    ({"$ref": 5}, "$ref", ""),
    ({"title": "t", "$ref": "#/title"}, "$ref", ""),
]

NO_VALUE = [
    False,
    {"enum": []},
    {"type": "string", "enum": [1]},
    {"type": "integer", "minimum": 2, "maximum": 1},
    {"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2},
    {"type": "integer", "multipleOf": 10, "minimum": 1, "maximum": 9},
    {"type": "string", "minLength": 3, "maxLength": 2},
    {"type": "string", "pattern": "^a{3}$", "maxLength": 2},
    {"type": "string", "pattern": "^(aa)*$", "minLength": 3, "maxLength": 3},
    {"type": "string", "allOf": [{"pattern": "^a"}, {"pattern": "^b"}]},
    {"type": "array", "minItems": 1, "items": False},
    {"type": "array", "minItems": 3, "prefixItems": [{}, {}], "items": {"enum": []}},
    {"type": "object", "properties": {"a": False}, "required": ["a"]},
    {"type": "object", "required": ["a"], "additionalProperties": False},
    {"type": "object", "properties": {"n": {"$ref": "#"}}, "required": ["n"]},
    {"allOf": [{"type": "string"}, {"type": "integer"}]},
    {"const": 1, "enum": [2]},
]


@pytest.mark.parametrize(("schema", "keyword", "pointer"), NOT_SUPPORTED + MALFORMED, ids=str)
def test_the_error_names_keyword_and_pointer(schema, keyword, pointer):
    with pytest.raises(SchemaError) as caught:
        check_json_schema(schema)
    assert (caught.value.keyword, caught.value.pointer) == (keyword, pointer)
    assert (pointer or "the root") in str(caught.value)
    assert keyword is None or repr(keyword) in str(caught.value)


@pytest.mark.parametrize("schema", NO_VALUE, ids=str)
def test_a_schema_that_nothing_satisfies_is_refused(schema):
    with pytest.raises(SchemaError, match="no value satisfies"):
        check_json_schema(schema)


@pytest.mark.parametrize("schema",
                         [None, 1, "{}", [], ["type"], {"enum": [{1, 2}]}, {"const": float("nan")}, {1: 2}, {"const": "\ud800"}])
def test_what_is_no_json_schema_is_refused(schema):
    with pytest.raises(SchemaError):
        check_json_schema(schema)


@pytest.mark.parametrize("schema", [
    {"$ref": "#"},
    {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
    {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}},
    {"anyOf": [{"type": "null"}, {"$ref": "#"}]},
], ids=str)
def test_a_reference_that_leads_back_without_progress_is_refused(schema):
    with pytest.raises(SchemaError) as caught:
        check_json_schema(schema)
    assert caught.value.keyword == "$ref"


@pytest.mark.parametrize("schema", [
    {"type": "string", "uniqueItems": True, "contains": {"not": {}}},
    {"type": "array", "uniqueItems": False, "minProperties": 2},
    {"type": "object", "minProperties": 0, "patternProperties": {}, "propertyNames": True},
    {"$defs": {"unused": {"not": {}}}},
    {"properties": {"not": {}, "if": {}, "type": {"type": "string"}}},
], ids=str)
def test_a_keyword_that_restrains_nothing_here_is_no_reason_to_refuse(schema):
    check_json_schema(schema)


@pytest.mark.parametrize("options", [{"property_order": "sorted"}, {"style": "pretty"}])
def test_an_unknown_option_is_an_error_that_lists_the_known_ones(vocabulary, options):
    with pytest.raises(ValueError, match="must be one of"):
        compile_json_schema(OBJECT, vocabulary, **options)


def test_impossible_branches_are_pruned_and_the_others_stay(admits):
    schema = {"anyOf": [{"type": "string", "minLength": 3, "maxLength": 2},
                        {"properties": {"a": {"enum": []}, "b": {}}, "type": "object"},
                        {"type": "array", "prefixItems": [{"type": "null"}, False]}]}
    assert admits(schema, '{"b": 1}')
    assert admits(schema, "[null]")
    for text in ('"', '{"a": 1}', "[null, "):
        assert not admits(schema, text + "1]")


def test_the_check_without_vocabulary_agrees_with_compiling(vocabulary):
    for schema, *_ in NOT_SUPPORTED + MALFORMED:
        with pytest.raises(SchemaError) as checked:
            check_json_schema(schema)
        with pytest.raises(SchemaError) as compiled:
            compile_json_schema(schema, vocabulary)
        assert str(checked.value) == str(compiled.value)
