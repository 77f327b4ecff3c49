"""What is not compiled is refused by keyword and JSON pointer, never approximated."""

from __future__ import annotations

import pytest

from grammar import SchemaError, check_json_schema, compile_json_schema

OBJECT = {"type": "object"}

NOT_SUPPORTED = [
    ({"pattern": "(a)\\1"}, "pattern", ""),
    ({"properties": {"a/b~c": {"items": {"pattern": "(a)\\1"}}}}, "pattern", "/properties/a~1b~0c/items"),
    ({"type": "object", "patternProperties": {"(a)\\1": {}}}, "patternProperties", ""),
    ({"type": "array", "not": {"uniqueItems": True}}, "uniqueItems", ""),
    ({"$defs": {"x": {"not": {"uniqueItems": True}}}, "items": {"$ref": "#/$defs/x"}}, "uniqueItems", "/$defs/x"),
    ({"type": "string", "not": {"format": "regex"}}, "format", "/not"),
    ({"$dynamicRef": "#x"}, "$dynamicRef", ""),
]

MALFORMED = [
    ({"type": "strnig"}, "type", ""),
    ({"type": []}, "type", ""),
    ({"properties": [1]}, "properties", ""),
    ({"properties": {"a": 1}}, None, "/properties/a"),
    ({"$schema": "https://json-schema.org/draft/2020-12/schema", "items": [{}]}, "items", ""),
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
    ({"$ref": "#/$defs/used", "$defs": {"used": {"type": "strnig"}}}, "type", "/$defs/used"),
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


@pytest.mark.parametrize("options", [{"property_order": "sorted"}, {"style": "prettier"}, {"unsupported": "warn"}])
def test_an_unknown_option_is_an_error_that_lists_the_known_ones(vocabulary, options):
    with pytest.raises(ValueError, match="must be one of"):
        compile_json_schema(OBJECT, vocabulary, **options)


@pytest.mark.parametrize(("schema", "keyword", "pointer"), NOT_SUPPORTED[:-1], ids=str)
def test_on_wish_it_is_left_out_instead_and_listed(schema, keyword, pointer, vocabulary):
    grammar = compile_json_schema(schema, vocabulary, unsupported="ignore")
    assert [(left.keyword, left.pointer) for left in grammar.not_enforced] == [(keyword, pointer)]
    assert grammar.not_enforced == check_json_schema(schema, unsupported="ignore")


def test_what_can_be_enforced_still_is_beside_what_is_left_out(vocabulary, admits):
    grammar = compile_json_schema({"type": "string", "pattern": "(a)\\1", "maxLength": 2}, vocabulary, unsupported="ignore")
    assert admits(grammar, '"xy"')
    assert not admits(grammar, '"xyz"')


def test_a_grammar_that_enforces_everything_lists_nothing(vocabulary):
    assert compile_json_schema({"type": "array", "uniqueItems": True}, vocabulary).not_enforced == ()


@pytest.mark.parametrize("schema", [
    {"type": ["string", "null"], "not": {"uniqueItems": True, "type": "string"}},
    {"type": "array", "uniqueItems": True, "not": {"uniqueItems": True, "maxItems": 3}},
    {"type": "array", "oneOf": [{"items": {"type": "string"}, "uniqueItems": True},
                                {"items": {"type": "integer"}, "uniqueItems": True}]},
], ids=str)
def test_the_negation_of_unique_items_is_refused_only_where_it_matters(schema):
    check_json_schema(schema)


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
