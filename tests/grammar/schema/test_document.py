"""Parts and keys: what is one and the same, and what is not."""

from __future__ import annotations

import pytest

from grammar.budget import Budget, Limits
from grammar.errors import GrammarTooLarge, SchemaError
from grammar.schema.document import ANYTHING, Document


def document(schema, **limits):
    return Document(schema, Budget(Limits(**limits)))


def members(schema):
    """The keys of the properties of a schema, by name."""
    found = document(schema)
    view = found.parts[found.root[0]].value
    return {name: found.key(item, "") for name, item in view["properties"].items()}, found


def test_true_and_whatever_says_nothing_is_the_empty_key():
    for schema in (True, {}, {"title": "t"}, {"minItems": 0, "properties": {}, "required": [], "uniqueItems": False},
                   {"then": False}):
        assert document(schema).root == ANYTHING


def test_false_is_the_key_of_nothing():
    assert document(False).root == document(False).nothing
    keys, found = members({"properties": {"a": False}})
    assert keys["a"] == found.nothing


def test_equal_subschemas_are_one_part_whatever_they_are_called():
    keys, found = members({"properties": {
        "a": {"type": "string", "maxLength": 3, "title": "the one"}, "b": {"type": "string", "maxLength": 3, "default": "x"},
        "c": {"type": "string", "maxLength": 4}, "d": {"$ref": "#/$defs/x"}},
        "$defs": {"x": {"type": "string", "maxLength": 3}}})
    assert keys["a"] == keys["b"] == keys["d"] != keys["c"]
    assert found.parts[keys["a"][0]].pointer == "/properties/a" or found.parts[keys["a"][0]].pointer == "/properties/b"


@pytest.mark.parametrize(("left", "right"), [
    ({"const": 1}, {"const": True}), ({"const": 0}, {"const": False}), ({"enum": ["1"]}, {"enum": [1]}),
    ({"const": [[]]}, {"const": [{}]}), ({"const": {"a": 1}}, {"const": {"b": 1}}),
    ({"const": {"a": [1]}}, {"const": {"a": [2]}}),
    ({"minimum": 1}, {"maximum": 1}), ({"multipleOf": 7}, {"multipleOf": 7.0}),
    ({"properties": {"a": {}, "b": {}}}, {"properties": {"b": {}, "a": {}}}), ({"items": True}, {"items": False}),
    ({"anyOf": [True, {"type": "null"}]}, {"anyOf": [{"type": "null"}, True]}), ({"items": False}, {"not": False}),
    ({"dependentRequired": {"a": ["b"]}}, {"dependentRequired": {"a": ["c"]}}),
])
def test_different_subschemas_are_different_parts(left, right):
    keys, _ = members({"properties": {"l": left, "r": right}})
    assert keys["l"] != keys["r"]


def test_the_same_words_in_two_resources_are_different_parts_where_they_lead_elsewhere():
    def resource(uri, schema):
        return {"$id": uri, "items": {"$ref": "#/$defs/x"}, "$defs": {"x": schema}}

    keys, _ = members({"properties": {"a": resource("http://x/a", {"type": "null"}),
                                      "b": resource("http://x/b", {"type": "string"})}})
    assert keys["a"] != keys["b"]


def test_a_reference_alone_has_the_key_of_what_it_leads_to():
    keys, found = members({"properties": {"a": {"$ref": "#/$defs/x"}, "b": {"type": "null"}, "c": {"$ref": "#/$defs/y"}},
                           "$defs": {"x": {"$ref": "#/properties/b"}, "y": True}})
    assert keys["a"] == keys["b"]
    assert keys["c"] == ANYTHING
    assert found.parts[keys["a"][0]].value == {"type": "null"}


@pytest.mark.parametrize("schema", [
    {"$ref": "#"}, {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}])
def test_references_that_lead_in_a_circle_are_refused(schema):
    with pytest.raises(SchemaError, match="leads back to itself") as caught:
        document(schema)
    assert caught.value.keyword == "$ref"


def test_the_target_of_a_reference_with_siblings_is_a_view():
    found = document({"$ref": "#/$defs/x", "maxLength": 3, "$defs": {"x": {"minLength": 2, "title": "t"}}})
    view = found.parts[found.root[0]].value
    assert view["$ref"].view == {"minLength": 2}
    assert found.parts[found.key(view["$ref"].view, "")[0]].pointer == "/$defs/x"


def test_a_constant_is_one_part_and_never_the_part_of_a_schema():
    found = document({"enum": [{"type": "null"}, [1], [1], 1, True]})
    values = found.parts[found.root[0]].value["enum"]
    keys = [found.constant(value, "/enum") for value in values]
    assert keys[1] == keys[2]
    assert len(set(keys)) == 4
    assert all(found.parts[number].constant for key in keys for number in key)


def test_synthetic_parts_are_one_for_each_kind_and_payload():
    found = document({"type": "null"})
    negated = found.synthetic("negated", found.root)
    assert negated == found.synthetic("negated", found.root) != found.synthetic("any_of", found.root)
    part = found.parts[negated[0]]
    assert (part.kind, part.value, part.constant) == ("negated", found.root, False)


def test_values_of_the_document_are_counted_whether_schemas_or_constants():
    document({"properties": {name: {"type": "null"} for name in "abcdefgh"}}, schema_values=30)
    for schema in ({"properties": {name: {"type": "null"} for name in "abcdefgh"}}, {"enum": list(range(25))},
                   {"const": {"a": [[1] * 9] * 9}}, {"anyOf": [{}] * 20}):
        with pytest.raises(GrammarTooLarge) as caught:
            document(schema, schema_values=15)
        assert caught.value.limit == "schema_values"


def test_depth_is_counted_in_brackets_whether_of_schemas_or_of_constants():
    lists, schemas = 1, True
    for _ in range(30):
        lists, schemas = [lists], {"anyOf": [schemas]}
    for schema in ({"const": lists}, schemas):
        document(schema, schema_depth=70)
        with pytest.raises(GrammarTooLarge) as caught:
            document(schema, schema_depth=20)
        assert caught.value.limit == "schema_depth"


def test_a_list_that_contains_itself_is_too_deep_and_not_endless():
    endless = {"properties": {}}
    endless["properties"]["a"] = endless
    loop = []
    loop.append(loop)
    for schema in (endless, {"const": loop}):
        with pytest.raises(GrammarTooLarge):
            document(schema)


def test_values_that_are_shared_in_memory_are_read_once():
    shared = {"type": "null"}
    for _ in range(60):
        shared = {"anyOf": [shared, {"items": shared}]}
    value = 1
    for _ in range(60):
        value = [value, value]
    for schema in (shared, {"const": value}):       # written out, each would have more than 2**60 values
        budget = Budget()
        Document(schema, budget)
        assert 60 <= budget.used().get("schema_values", 0) < 1_000


@pytest.mark.parametrize("schema", [
    {"enum": [{1, 2}]}, {"const": float("nan")}, {"const": [float("inf")]}, {1: 2}, {"const": "\ud800"}, {"const": {"\udc00": 1}},
    {"properties": {"\ud800": {}}}, {"required": ["\ud800"]}, {"pattern": "\ud800"}, {"minimum": float("inf")},
    {"properties": {1: {}}}, {"const": {1: 1}}, {"dependentRequired": {"a": [1]}}])
def test_what_no_json_text_can_say_is_refused(schema):
    with pytest.raises(SchemaError):
        document(schema)


NOTICED = [
    ({"minLenght": 3}, "minLenght", "minLength"), ({"maxlength": 3}, "maxlength", "maxLength"),
    ({"require": ["a"]}, "require", "required"), ({"additonalProperties": False}, "additonalProperties", "additionalProperties"),
    ({"Type": "null"}, "Type", "type"), ({"patern": "x"}, "patern", "pattern"), ({"formats": "date"}, "formats", "format"),
    ({"$schema": "http://json-schema.org/draft-04/schema#", "const": 1}, "const", "draft-04"),
    ({"$schema": "http://json-schema.org/draft-07/schema#", "dependentRequired": {}}, "dependentRequired", "draft-07"),
    ({"$schema": "https://json-schema.org/draft/2020-12/schema", "dependencies": {}}, "dependencies", "2020-12"),
]


@pytest.mark.parametrize(("schema", "keyword", "words"), NOTICED)
def test_a_name_that_looks_like_a_keyword_but_is_none_restrains_nothing_and_is_noticed(schema, keyword, words):
    found = document({"type": "object", "properties": {"a": schema}})
    assert [(notice.keyword, notice.pointer) for notice in found.notices] == [(keyword, "/properties/a")]
    assert words in found.notices[0].reason
    assert found.root == document({"type": "object", "properties": {"a": {}}}).root


@pytest.mark.parametrize(
    "name", ["vendor", "x-type", "_type", "id", "note", "max", "hidden", "name", "", "title", "a" * 500, "iff"])
def test_other_names_are_annotations(name):
    found = document({"type": "null", name: {"type": "wrong"}})
    assert found.notices == ()
    assert found.parts[found.root[0]].value == {"type": "null"}


def test_lists_that_translation_makes_are_told_apart_though_they_come_and_go():
    wanted = {f"p{n}": {"dependencies": {"a": f"b{n // 2}", "c": [f"d{n // 2}"]}} for n in range(400)}
    keys, found = members({"properties": wanted})
    assert len(set(keys.values())) == 200
    for n in range(400):
        view = found.parts[keys[f"p{n}"][0]].value
        assert view == {"dependentRequired": {"a": [f"b{n // 2}"], "c": [f"d{n // 2}"]}}


@pytest.mark.parametrize(("given", "keyword", "place"), [
    ({"name": "f", "description": "d", "parameters": {"type": "object"}}, "parameters", "/parameters"),
    ({"name": "f", "schema": {"properties": {}}, "strict": True}, "schema", "/schema"),
    ({"function": {"name": "f", "parameters": {"type": "object"}}}, "function", "/function/parameters"),
])
def test_what_only_has_a_schema_in_it_is_noticed(given, keyword, place):
    notice, = document(given).notices
    assert (notice.keyword, notice.pointer) == (keyword, "")
    assert place in notice.reason


@pytest.mark.parametrize("schema", [
    {"type": "object", "properties": {"schema": {"type": "string"}}}, {"type": "object", "parameters": {"type": "object"}},
    {"parameters": [1]}, {}, {"$ref": "#/schema/a", "schema": {"a": {"type": "null"}}}])
def test_a_schema_is_not_taken_for_something_that_has_one_in_it(schema):
    assert document(schema).notices == ()
