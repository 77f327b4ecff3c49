"""Items that must differ, and members with undeclared names: what is admitted and what is refused."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from grammar.algebra.normal import normal_form
from grammar.budget import Budget
from grammar.emission.emit import Style, emit_json
from kernels.pushdown import FREE, ReferenceMachine
from tests.support.machines import admits, all_texts, machine_of

DIFFERENT: dict[str, Any] = {"type": "array", "uniqueItems": True}


@pytest.mark.parametrize("text", [
    "[1, 2, 12, -1, 0.5]", '["a", "A", "ab", ""]', "[[], [[]], {}]", '[1, "1", true, "true", null, "null"]',
    '[{"a": 1}, {"a": 2}, {"b": 1}]', '[{"a": [1, 2]}, {"a": [2, 1]}]', '["\\u0061", "b"]',
    '[{"a": 1, "b": 2}, {"b": 1, "a": 2}]'])
def test_items_that_differ_are_admitted_in_a_distinct_array(text):
    assert admits(machine_of(DIFFERENT), text)


@pytest.mark.parametrize("text", [
    "[1, 1]", "[1, 2, 1]", "[1, 1.0]", "[0.5, 0.50]", "[0.5, 5e-1]", "[100, 1e2]", '["a", "a"]', '["a", "\\u0061"]',
    '["é", "\\u00E9"]', "[[1], [ 1 ]]", '[{"a": 1}, { "a":1 }]',
    '[{"a": 1, "b": 2}, {"b": 2, "a": 1}]', '[[{"a": 1, "b": {"c": 1, "d": 2}}], [{"b": {"d": 2, "c": 1}, "a": 1}]]',
    '[{"a": 2}, {"a": 1, "a": 2}]', '[{"a": 1, "a": 1}]', "[null, null]", "[[], []]"])
def test_equal_items_are_refused_in_a_distinct_array_however_they_are_written(text):
    assert not admits(machine_of(DIFFERENT), text)


def test_an_item_that_could_only_repeat_others_is_not_begun():
    machine = machine_of({**DIFFERENT, "items": {"enum": ["ab", "ac", "b", 1, 12]}}, spaces=False)
    for text, refused in (('["ab","b",', '"ab"'), ('["ab","ac",', '"a'), ('["ab","ac","b",', '"'), ("[12,1", "2"),
                          ("[1,12,", "1"), ('["ab","ac","b",1,12', ","), ('["ab","ac","b",12,1', ",")):
        position = machine.advance(machine.start(), text.encode())
        assert position is not None
        assert machine.advance(position, refused.encode()) is None
    assert machine.advance(machine.start(), b"[1,12") is not None
    assert machine.advance(machine.start(), b'["ab","a') is not None


def test_places_of_a_distinct_array_that_compete_for_values_leave_one_another_enough():
    schema = {**DIFFERENT, "items": {"enum": [1, 2, 3]}, "contains": {"enum": [1, 2]}, "minContains": 2, "maxItems": 2}
    assert sorted(all_texts(machine_of(schema, spaces=False, escapes=False))) == [b"[1,2]", b"[2,1]"]


A_B_OR_C = {"type": "string", "pattern": "^[a-c]$"}


@pytest.mark.parametrize("schema", [
    {"prefixItems": [{"enum": [1, 2]}, {"const": 1}], "minItems": 2},
    {"prefixItems": [{"enum": [1, 2, 3]}, {"enum": [1, 2]}, {"const": 1}], "minItems": 2},
    {"prefixItems": [{"enum": [1, 2, 3]}, {"enum": [1, 2]}, {"const": 1}], "minItems": 3},
    {"prefixItems": [A_B_OR_C, {"const": "a"}], "minItems": 2},
    {"prefixItems": [A_B_OR_C, A_B_OR_C, {"enum": ["b", "c"]}], "minItems": 3},
    {"prefixItems": [A_B_OR_C, {"type": "array", "items": {"const": 1}, "maxItems": 1}, {"const": []}], "minItems": 3},
], ids=json.dumps)
def test_an_item_is_not_read_that_a_later_place_cannot_do_without(schema):
    schema = {"type": "array", "items": False, **schema}
    form = normal_form(schema, Budget())
    shapes = {**form.shapes, form.root: tuple(replace(shape, unique=True) for shape in form.shapes[form.root])}
    machine = ReferenceMachine(emit_json(replace(form, shapes=shapes), Style(spaces=False, escapes=False), Budget()))
    oracle = Draft202012Validator({**schema, "uniqueItems": True})
    items = [1, 2, 3, "a", "b", "c", [], [1]]
    valid = [list(value) for n in range(4) for value in itertools.product(items, repeat=n) if oracle.is_valid(list(value))]
    assert valid
    assert sorted(all_texts(machine)) == sorted(json.dumps(value, separators=(",", ":")).encode() for value in valid)


@pytest.mark.parametrize(("schema", "admitted", "refused"), [
    ({"minProperties": 2}, ['{"a":1,"b":1}', '{"":1,"a":1,"b":1}'], ["{}", '{"a":1}', '{"a":1,"a":2}', '{"a":1,"\\u0061":2}']),
    ({"maxProperties": 1}, ["{}", '{"a":1}'], ['{"a":1,"b":1}']),
    ({"maxProperties": 2, "required": ["b"]}, ['{"b":1}', '{"q":1,"b":1}', '{"b":1,"q":1}'],
     ["{}", '{"q":1}', '{"q":1,"r":1,"b":1}']),
    ({"patternProperties": {"^x": {"type": "integer"}, "1$": {"type": "string"}}}, ['{"x":1,"1":"a","y":null}'],
     ['{"x":"a"}', '{"1":1}', '{"x1":1}', '{"x1":"a"}']),
    ({"patternProperties": {"^x": {"minimum": 3}, "1$": {"maximum": 5}}, "additionalProperties": False},
     ['{"x1":4}', '{"x":9}', '{"1":0}', "{}"], ['{"x1":9}', '{"x1":2}', '{"y":1}']),
    ({"properties": {"x1": {"const": 1}}, "patternProperties": {"^x": {"type": "integer"}}}, ['{"x1":1,"x2":2}'],
     ['{"x1":2}', '{"x2":"a"}']),
    ({"propertyNames": {"pattern": "^[a-z]+$"}}, ['{"abc":1}', "{}"], ['{"A":1}', '{"":1}', '{"a1":1}']),
    ({"propertyNames": {"minLength": 2, "maxLength": 3}}, ['{"ab":1,"abc":2}'], ['{"a":1}', '{"abcd":1}']),
    ({"not": {"additionalProperties": {"type": "integer"}}}, ['{"a":"x"}', '{"a":1,"b":"x"}'],
     ["{}", '{"a":1}', '{"a":"x","a":1}']),
    ({"not": {"patternProperties": {"^x": {"type": "integer"}}}, "maxProperties": 2}, ['{"x":"a"}', '{"b":1,"xy":"a"}'],
     ["{}", '{"a":"a"}', '{"x":1}', '{"x":"a","b":1,"c":1}']),
], ids=str)
def test_undeclared_names_are_judged_by_their_patterns_and_counted(schema, admitted, refused):
    oracle = Draft202012Validator({"type": "object", **schema})
    for ordered in (True, False):
        machine = machine_of({"type": "object", **schema}, ordered=ordered)
        for text in admitted:
            assert oracle.is_valid(json.loads(text))
            assert admits(machine, text), text
        for text in refused:
            assert not oracle.is_valid(json.loads(text)) or "\\u0061" in text or text.count('"a"') > 1
            assert not admits(machine, text), text


def test_names_of_which_any_may_come_stay_free_of_conditions():
    for schema in ({}, {"patternProperties": {"^x": {"type": "integer"}}}, {"properties": {"ab": {}}, "minProperties": 1}):
        machine = machine_of({"type": "object", **schema})
        position = machine.advance(machine.start(), b'{"q')
        assert position is not None
        assert all(machine.tables.free[frame.state] == FREE for frame in position.frames)


def test_more_names_than_one_register_holds_come_in_any_order():
    names = [f"n{i}" for i in range(100)]
    schema = {"type": "object", "properties": {name: {"const": 1} for name in names}, "required": names[60:66],
              "additionalProperties": False}
    machine = machine_of(schema, ordered=False)
    assert admits(machine, json.dumps(dict.fromkeys(reversed(names), 1)))
    assert admits(machine, json.dumps(dict.fromkeys(names[60:66], 1)))
    assert not admits(machine, json.dumps(dict.fromkeys(names[60:65], 1)))
    assert not admits(machine, '{"n90": 1, "n90": 1')
