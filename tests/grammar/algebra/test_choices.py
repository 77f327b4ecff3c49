"""What a place in a container may do for its container's obligations: the sets are counted by hand."""

from __future__ import annotations

from typing import Any

import pytest

from grammar.algebra.normal import NormalForm, normal_form
from grammar.algebra.shapes import ANY_TEXT, Array, Object
from grammar.budget import Budget
from grammar.errors import GrammarTooLarge


def form_and_shape(schema: Any) -> tuple[NormalForm, Any]:
    form = normal_form(schema, Budget())
    shape, = (shape for shape in form.shapes[form.root] if isinstance(shape, Array | Object))
    return form, shape


def serving(choices: Any) -> list[int]:
    return sorted(choice.serves for choice in choices)


def test_a_position_may_serve_any_set_of_the_obligations_that_have_a_value_in_common():
    form, shape = form_and_shape({"type": "array", "allOf": [{"contains": {"type": "integer"}}, {"contains": {"minimum": 5}}]})
    assert serving(form.item_choices(shape, 0)) == [0b00, 0b01, 0b10, 0b11]


def test_a_position_serves_no_two_obligations_that_exclude_each_other():
    form, shape = form_and_shape({"type": "array", "allOf": [{"contains": {"const": 1}}, {"contains": {"const": 2}}]})
    assert serving(form.item_choices(shape, 0)) == [0b00, 0b01, 0b10]


def test_a_value_that_always_serves_has_one_choice():
    form, shape = form_and_shape({"type": "array", "items": {"$ref": "#/$defs/s"}, "contains": {"$ref": "#/$defs/s"},
                                  "minContains": 2, "allOf": [{"contains": {"const": "x"}}], "$defs": {"s": {"type": "string"}}})
    assert shape.least == 2
    assert serving(form.item_choices(shape, 0)) == [0, 1]


def test_with_an_upper_bound_not_to_serve_is_a_demand_too():
    form, shape = form_and_shape({"type": "array", "items": {"enum": [1, 2]}, "contains": {"const": 1}, "maxContains": 1})
    not_serving, = (choice.key for choice in form.item_choices(shape, 0) if not choice.serves)
    assert [s.values for s in form.shapes[not_serving]] == [(2,)]


def test_members_and_undeclared_names_serve_the_negation_of_an_object():
    form, shape = form_and_shape({
        "type": "object", "properties": {"a": {"type": ["string", "null"]}, "b": {}},
        "not": {"properties": {"a": {"type": "string"}, "b": True}, "additionalProperties": {"type": "integer"}}})
    own = dict(shape.properties)
    assert serving(form.member_choices(shape, "a", own["a"])) == [0, 1]
    assert serving(form.member_choices(shape, "b", own["b"])) == [0]
    assert sorted((extra.serves, extra.names == ANY_TEXT) for extra in form.extra_choices(shape)) == [(0, True), (1, True)]


def test_undeclared_names_fall_into_classes_by_the_patterns_found_in_them():
    form, shape = form_and_shape({"type": "object", "patternProperties": {"^a": {"type": "string"}, "z$": {"maxLength": 2}},
                                  "additionalProperties": {"type": "null"}})
    classes = {(extra.names.patterns, extra.names.not_patterns) for extra in form.extra_choices(shape)}
    assert classes == {(("^a", "z$"), ()), (("^a",), ("z$",)), (("z$",), ("^a",)), ((), ("^a", "z$"))}


def test_a_pattern_that_forbids_its_names_leaves_the_others():
    form, shape = form_and_shape({"type": "object", "patternProperties": {"^secret": False}})
    extra, = form.extra_choices(shape)
    assert (extra.names.patterns, extra.names.not_patterns) == ((), ("^secret",))


def test_a_place_has_a_limit_of_different_obligations():
    wanted = [{"contains": {"multipleOf": n}} for n in (2, 3, 5, 7)]
    with pytest.raises(GrammarTooLarge, match="obligations of a place"):
        normal_form({"type": "array", "allOf": wanted}, Budget())
