"""Explanations and drawings: they say what the compiler made, and nothing that it did not."""

from __future__ import annotations

import json
import re
from itertools import combinations
from math import dist
from xml.etree import ElementTree

import pytest

from grammar import SchemaError
from grammar.budget import Budget
from grammar.emission.tables import TableBuilder
from grammar.explain.diagram import characters, diagram
from grammar.explain.drawing import END, RADIUS, dot, drawing
from grammar.explain.explanation import explain_schema
from grammar.explain.page import in_words, page
from kernels.pushdown_tables import ALWAYS, CLOSE, JSON_STRING, KEY, KEY_IN, POP, TEXT, UNBOUNDED, Tables

PERSON = {"type": "object",
          "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 0, "maximum": 150}},
          "required": ["age"], "additionalProperties": False}
SCHEMAS = [
    PERSON, True, {"enum": ["red", "rose", "green", 3, None]}, {"type": "array", "items": {"type": "boolean"}, "minItems": 2},
    {"type": "string", "pattern": "^[A-Z]{3}-[0-9]+$"}, {"type": "object", "properties": {'<&"\\': {"const": 1}, "é": {}}},
    {"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": {"type": "integer"}}]
SVG = "{http://www.w3.org/2000/svg}"


def read(low: str | int, target: int, high: str | int | None = None, op: int = ALWAYS, x: int = 0, y: int = 0) -> tuple[int, ...]:
    first = ord(low) if isinstance(low, str) else low
    last = first if high is None else ord(high) if isinstance(high, str) else high
    return first, last, target, op, x, y


@pytest.fixture
def builder() -> TableBuilder:
    return TableBuilder(Budget())


def steps_of(tables: Tables, rule: int = 0) -> set[tuple[int, int, str, str]]:
    return {(s.source, s.target, s.label, s.asks) for s in diagram(tables).rules[rule].steps}


# --- diagrams


@pytest.mark.parametrize(("ranges", "raw", "words"), [
    ([(ord("a"), ord("z"))], False, "a–z"),
    ([(ord("0"), ord("9")), (ord("a"), ord("f")), (CLOSE, CLOSE)], False, '" 0–9 a–f'),
    ([(0, 0xD7FF), (0xE000, 0x10FFFF)], False, "any"),
    ([(0, 0x60), (0x62, 0xD7FF), (0xE000, 0x10FFFF)], False, "any but a"),
    ([(0x22, 0x22)], False, '\\"'),
    ([(0x22, 0x22)], True, '"'),
    ([(0x20, 0x20), (0x0A, 0x0A)], True, "␣ U+000A"),
    ([(0x80, 0xFF)], True, "byte 80–byte FF"),
    ([(n, n) for n in range(ord("a"), ord("z"), 2)], False, "a c e g …"),
])
def test_characters_are_told_in_few_words(ranges, raw, words):
    assert characters(ranges, raw) == words


def test_texts_with_no_way_out_between_are_one_step(builder):
    last = builder.state(final=True)
    middle = [builder.state(TEXT), builder.state(TEXT)]
    start = builder.state(TEXT, edges=[read("a", middle[0]), read("x", last, "z")])
    builder.set_edges(middle[0], [read("b", middle[1])])
    builder.set_edges(middle[1], [read("c", last)])
    assert steps_of(builder.build(start)) == {(start, last, "abc", ""), (start, last, "x–z", "")}


def test_a_state_that_may_end_is_not_joined_away(builder):
    end = builder.state(TEXT, final=True)
    middle = builder.state(TEXT, final=True, edges=[read("b", end)])
    start = builder.state(TEXT, edges=[read("a", middle)])
    assert steps_of(builder.build(start)) == {(start, middle, "a", ""), (middle, end, "b", "")}


def test_a_name_is_one_step_that_takes_its_property(builder):
    after = builder.state(final=True)
    closing = builder.state(JSON_STRING, edges=[read(CLOSE, after, op=KEY, x=3, y=UNBOUNDED)])
    start = builder.state(JSON_STRING, edges=[read("k", closing, op=KEY_IN, x=0, y=0), read("z", after)])
    assert (start, after, 'k"', "takes 3; required next: none") in steps_of(builder.build(start))


def test_a_call_names_the_rule_and_its_registers(builder):
    text = builder.state(edges=[read('"', POP)])
    listed = builder.reserve_list()
    builder.fill_list(listed, [(text, 2, UNBOUNDED)])
    after = builder.state(final=True)
    start = builder.state(calls=listed, then=after)
    made = diagram(builder.build(start))
    assert [(step.label, step.call) for step in made.rules[0].steps] == [("string 1(a=2, b=∞)", True)]
    assert [rule.title for rule in made.rules] == ["the answer", "string"]


def test_a_rule_with_too_many_states_is_counted_but_not_drawn(builder):
    last = builder.state(TEXT, final=True)
    states = [last]
    for _ in range(400):
        states.append(builder.state(TEXT, edges=[read("a", states[-1]), read("b", states[max(-2, -len(states))])]))
    rule = diagram(builder.build(states[-1])).rules[0]
    assert (len(rule.states), rule.drawn, rule.steps) == (401, (), ())


def test_only_the_first_rules_are_drawn(builder):
    words = [builder.literal(word) for word in ("one", "two", "six")]
    listed = builder.reserve_list()
    builder.fill_list(listed, [(word, 0, 0) for word in words])
    start = builder.state(calls=listed, then=builder.state(final=True))
    made = diagram(builder.build(start), most_rules=2)
    assert [bool(rule.drawn) for rule in made.rules] == [True, True, False, False]
    assert "2 more rules are not drawn" in drawing(made)


# --- drawings


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: json.dumps(schema)[:30])
def test_a_drawing_is_well_formed_and_shows_every_state_that_is_drawn(schema):
    made = explain_schema(schema).diagram
    root = ElementTree.fromstring(drawing(made))
    shown = sorted(int(text.text) for text in root.iter(f"{SVG}text") if text.get("class") == "n")
    assert shown == sorted(state for rule in made.rules for state in rule.drawn)
    assert not re.search(r"nan|inf", drawing(made))


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: json.dumps(schema)[:30])
def test_no_state_of_a_rule_lies_on_another_and_all_lie_in_the_picture(schema):
    root = ElementTree.fromstring(drawing(explain_schema(schema).diagram))
    width, height = (float(side) for side in root.get("viewBox").split()[2:])
    for rule in root.findall(f"{SVG}g"):
        circles = [(float(c.get("cx")), float(c.get("cy"))) for c in rule.iter(f"{SVG}circle")
                   if c.get("class") != "e" and float(c.get("r")) == RADIUS]
        assert all(dist(one, other) > 2 * RADIUS for one, other in combinations(circles, 2))
        assert all(0 < x < width and 0 < y < height for x, y in circles)


def test_steps_lead_to_the_right_unless_they_lead_back():
    made = explain_schema({"type": "integer", "minimum": 0, "maximum": 150}).diagram
    rule = next(rule for rule in made.rules if rule.title == "number")
    root = ElementTree.fromstring(drawing(made))
    x_of = {}
    for group in root.iter(f"{SVG}g"):
        text, circle = group.find(f"{SVG}text[@class='n']"), group.find(f"{SVG}circle")
        if text is not None and circle is not None:
            x_of[int(text.text)] = float(circle.get("cx"))
    assert all(x_of[step.source] < x_of[step.target] for step in rule.steps if step.target != END)


def test_dot_quotes_what_would_end_its_strings():
    text = dot(explain_schema({"enum": ['a"b\\']}).diagram)
    assert text.startswith("digraph grammar {")
    assert text.count("{") == text.count("}")
    assert all(len(re.findall(r'(?<!\\)(?:\\\\)*"', line)) % 2 == 0 for line in text.splitlines())


# --- explanations


def test_parts_stand_with_their_pointers():
    told = {part.pointer: part.says for part in explain_schema(PERSON).parts}
    assert "maxLength 20" in told["/properties/name"]
    assert "maximum 150" in told["/properties/age"]


def test_shapes_begin_with_the_whole_and_lead_to_its_members():
    shapes = explain_schema(PERSON).shapes
    assert len(shapes) == 3
    assert shapes[0].shapes[0].startswith("Object(properties: ['name' ")
    assert any("most: 20" in shape for line in shapes for shape in line.shapes)


def test_sizes_are_those_of_the_tables():
    told = explain_schema(PERSON)
    assert told.sizes["states"] == len(told.tables.mode) == sum(len(rule.states) for rule in told.diagram.rules)
    assert told.sizes["edges"] == len(told.tables.edge_low)


def test_the_time_is_that_of_the_clock_it_is_given():
    times = iter([5.0, 5.25])
    assert explain_schema(True, clock=lambda: next(times)).compile_ms == 250.0


@pytest.mark.parametrize(("text", "following", "may_end"), [
    ("", b"{", False), ('{"', b"an", False), ('{"age":4', b"0123456789}", False), ('{"age":15', b"0}", False),
    ('{"age":15}', b"", True), ('{"name":"x"', b",", False)])
def test_what_may_come_next_is_what_json_and_the_schema_allow(text, following, may_end):
    place = explain_schema(PERSON, style="compact").after(text)
    assert (bytes(place.following), place.may_end) == (following, may_end)


def test_a_text_is_read_up_to_what_the_schema_refuses():
    place = explain_schema(PERSON).after('{"age": 200')
    assert (place.read, place.refused) == (b'{"age": 20', b"0")


def test_what_has_no_alternative_is_told_as_text():
    assert explain_schema({"const": {"kind": "x"}}, style="compact").after('{"k').forced == 'ind":"x"}'


def test_tokens_are_named_where_a_vocabulary_is_given():
    place = explain_schema({"enum": ["red", "green"]}).after('"', [b"r", b"re", b"red", b"gr", b"blue", b"", b'"'])
    assert place.n_tokens == 4
    assert place.tokens == (b"red", b"gr", b"re", b"r")


def test_an_unsatisfiable_schema_is_refused_as_in_compiling():
    with pytest.raises(SchemaError, match="no value"):
        explain_schema({"type": "integer", "minimum": 2, "maximum": 1})


def test_words_and_page_tell_the_same_things():
    told = explain_schema(PERSON)
    words, html = (render(told, "person.json", told.after('{"age": 4')) for render in (in_words, page))
    for said in ("person.json", "answers can be held to this schema", "/properties/name", "Object(", "may end"):
        assert said in words
        assert said in html
    assert "<svg" in html


def test_a_page_escapes_what_the_schema_says():
    told = explain_schema({"type": "object", "properties": {"<script>": {"const": "</svg><b>"}}})
    html = page(told, "<i>", told.after('{"<script>'))
    assert not re.search(r"<script>|</svg><b>|<i>", html)
