"""How many different items an array can have, counted by hand; and which, tried one by one."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from grammar import CompiledGrammar, compile_json_schema
from grammar.algebra.normal import normal_form
from grammar.budget import Budget
from grammar.errors import SchemaError


def bounds(**keywords: Any) -> list[tuple[int, int | None, bool]]:
    """(least, most, unique) of the arrays of a schema with `uniqueItems`."""
    form = normal_form({"type": "array", "uniqueItems": True, **keywords}, Budget())
    return [(shape.least, shape.most, shape.unique) for shape in form.shapes[form.root]]


@pytest.mark.parametrize(("items", "most"), [
    ({"type": "boolean"}, 2), ({"type": ["boolean", "null"]}, 3), ({"enum": ["a", "b", "a", 1, 1.0]}, 3),
    ({"type": "integer", "minimum": 3, "maximum": 9}, 7), ({"type": "integer", "minimum": 3, "maximum": 9, "multipleOf": 3}, 3),
    ({"type": "string", "pattern": "^[ab]c?$"}, 4), ({"type": "string", "maxLength": 0}, None),
    ({"type": "array", "items": {"type": "boolean"}, "maxItems": 2}, 7),
    ({"type": "object", "properties": {"a": {"type": "boolean"}}, "additionalProperties": False}, 3),
    ({"anyOf": [{"enum": [1, 2, 3]}, {"type": "integer", "minimum": 2, "maximum": 4}]}, 4),
], ids=str)
def test_the_items_have_so_many_values(items, most):
    expected = (0, 1, False) if most is None else (0, most, True)
    assert bounds(items=items) == [expected]


@pytest.mark.parametrize("items", [{"type": "string"}, {"type": "number", "minimum": 0, "maximum": 1}, {"type": "object"}, True],
                         ids=str)
def test_items_of_many_values_have_no_bound(items):
    assert bounds(items=items) == [(0, None, True)]


def test_the_items_of_the_prefix_use_up_values_of_those_behind_it():
    assert bounds(prefixItems=[{"const": 1}], items={"enum": [1, 2]}) == [(0, 2, True)]


def test_a_prefix_that_repeats_a_constant_ends_there():
    assert bounds(prefixItems=[{"const": 1}, {"const": 1}, {"const": 2}]) == [(0, 1, False)]


def test_an_array_that_needs_more_items_than_there_are_values_has_no_value():
    with pytest.raises(SchemaError, match="no value satisfies"):
        bounds(items={"type": "boolean"}, minItems=3)


@pytest.mark.parametrize(("keywords", "most"), [
    ({"prefixItems": [{"enum": [1, 2]}, {"enum": [2, 3]}, {"enum": [2, 3]}], "items": False}, 3),
    ({"prefixItems": [{"enum": [1, 2]}, {"enum": [1, 2]}, {"enum": [1, 2]}, {}]}, 2),
    ({"prefixItems": [{}, {"type": "boolean"}, {"type": "boolean"}], "items": {"type": "boolean"}}, 3),
    ({"prefixItems": [{"enum": [1, 2, 3]}, {"enum": [1]}, {"enum": [1, 2]}], "items": {"enum": [1, 2, 3, 4]}}, 4),
], ids=str)
def test_there_are_as_many_items_as_places_can_have_different_values(keywords, most):
    assert bounds(**keywords) == [(0, most, True)]


SMALL = [1, 2, 3, "a", [], [1], [1, 2], [2, 1], {"a": 1}, {"b": 1}]
FEW_ARRAYS = {"type": "array", "items": {"enum": [1, 2]}, "maxItems": 2, "contains": {"const": 1}, "uniqueItems": True}
FEW_OBJECTS = {"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 1}}, "additionalProperties": False,
               "anyOf": [{"required": ["a"]}, {"required": ["b"]}], "not": {"required": ["a", "b"]}}


@pytest.mark.parametrize("keywords", [
    {"prefixItems": [{"enum": [1, 2]}, {"enum": [2, 3]}, {"enum": [2, 3]}], "items": False, "minItems": 2},
    {"prefixItems": [{"enum": [1, 2, 3]}, {"enum": [1, 2]}], "items": {"enum": [1, 2, 3]}, "minItems": 3},
    {"items": {"enum": [1, 2, "a"]}, "contains": {"enum": [1, 2]}, "minContains": 2},
    {"items": {"enum": [1, 2, "a"]}, "contains": {"enum": [1, 2]}, "maxContains": 1, "minItems": 2},
    {"prefixItems": [{"enum": [1, "a"]}], "items": {"enum": [1, 2]}, "contains": {"const": 1}, "minItems": 2},
    {"items": FEW_ARRAYS, "minItems": 2, "maxItems": 3}, {"items": FEW_OBJECTS, "minItems": 2},
], ids=str)
def test_every_array_of_different_items_can_be_written_and_no_other_one(vocabulary, keywords):
    schema = {"type": "array", "uniqueItems": True, **keywords}
    grammar = CompiledGrammar(compile_json_schema(schema, vocabulary, style="compact").tables, vocabulary, "reference")
    written, dead_ends = whole_language(grammar, b'[]{}":,123ab')
    judge = Draft202012Validator(schema)
    assert dead_ends == []
    assert written == {json.dumps(items, separators=(",", ":")) for n in range(4) for items in map(list, permutations(SMALL, n))
                       if judge.is_valid(items)}


@pytest.mark.parametrize("keywords", [
    {"prefixItems": [{"enum": [1, 2]}, {"enum": [1, 2]}, {"enum": [1, 2]}], "minItems": 3},
    {"items": {"enum": [1, 2, 3]}, "contains": {"enum": [3]}, "minContains": 2}, {"items": FEW_ARRAYS, "minItems": 4},
    {"items": FEW_OBJECTS, "minItems": 3},
], ids=str)
def test_where_places_cannot_all_be_different_there_is_no_value(keywords):
    with pytest.raises(SchemaError, match="no value satisfies"):
        bounds(**keywords)


def whole_language(grammar, alphabet: bytes) -> tuple[set[str], list[bytes]]:
    """The texts that a grammar has, and the beginnings behind which none comes."""
    written, dead_ends = set(), []
    stack = [(b"", grammar.new_state())]
    while stack:
        text, matcher = stack.pop()
        goes_on = matcher.may_end
        if matcher.may_end:
            written.add(text.decode())
        for byte in alphabet:
            after = matcher.fork()
            if after.accept(byte):
                stack.append((text + bytes([byte]), after))
                goes_on = True
        if not goes_on:
            dead_ends.append(text)
    return written, dead_ends


def test_one_item_is_always_different():
    assert bounds(maxItems=1) == [(0, 1, False)]
