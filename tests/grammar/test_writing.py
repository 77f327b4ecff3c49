"""The serialisation: spaces, order of keys, escapes, spellings of numbers."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammar import compile_json_schema

PAIR = {"type": "object", "properties": {"b": {"type": "array", "items": {"type": "integer"}}, "a": {"type": "string"}},
        "required": ["b"]}
VALUE = {"b": [1, 2], "a": "x"}


@pytest.mark.parametrize("options",
                         [{}, {"indent": 2}, {"indent": 4}, {"indent": "\t"}, {"indent": 0}, {"separators": (",", ":")}], ids=str)
def test_what_json_dumps_writes_is_admitted(admits, options):
    assert admits(PAIR, json.dumps(VALUE, **options))


def test_deep_pretty_printing_is_admitted(admits):
    value: list = []
    for _ in range(15):
        value = [value]
    assert admits({}, json.dumps(value, indent=4))


@pytest.mark.parametrize("text", ['{  "b": [1]}', '{"b":  [1]}', '{"b": [1\t]}', '{"b":\n\n\n[1]}', '{"b": [1]} ', ' {"b": [1]}'])
def test_more_than_the_bounded_whitespace_is_refused(admits, text):
    assert not admits(PAIR, text)


def test_a_model_cannot_go_on_with_newlines_or_spaces(feed, vocabulary):
    grammar = compile_json_schema(PAIR, vocabulary)
    assert feed(grammar, "{" + "\n" * 60) is None
    assert feed(grammar, "{\n" + " " * 64) is not None
    assert feed(grammar, "{\n" + " " * 65) is None


def test_compact_means_no_whitespace_outside_strings(admits):
    assert admits(PAIR, '{"b":[1,2],"a":"x y"}', style="compact")
    assert not admits(PAIR, '{"b": [1,2]}', style="compact")
    assert not admits(PAIR, '{"b":[1, 2]}', style="compact")
    assert not admits(PAIR, '{"b":[1]\n}', style="compact")


@pytest.mark.parametrize("value", [VALUE, {"b": []}, {"b": [1], "a": "é\n\"", "c": {"d": {}, "e": [[], [1.5, None]]}}], ids=str)
def test_pretty_is_what_json_dumps_writes_with_an_indent_of_two(admits, value):
    pretty = json.dumps(value, indent=2, ensure_ascii=False)
    assert admits(PAIR, pretty, style="pretty")
    others = [json.dumps(value), json.dumps(value, indent=4), json.dumps(value, indent=2, separators=(",", ":"))]
    for text in (*others, pretty + "\n", pretty.replace("\n}", "}"), pretty.replace("\n  ", "\n   "),
                 pretty.replace("\n  ", "\n\n  ")):
        assert not admits(PAIR, text, style="pretty")


def test_pretty_leaves_no_choice_between_tokens_of_json(feed, allowed, vocabulary):
    grammar = compile_json_schema({**PAIR, "additionalProperties": False}, vocabulary, style="pretty")
    for text, following in (("{", "\n"), ("{\n", " "), ("{\n ", " "), ("{\n  ", '"'), ('{\n  "b":', " "),
                            ('{\n  "b": [\n  ', " ")):
        matcher = feed(grammar, text)
        assert matcher is not None
        assert {vocabulary.token_bytes[token][:1] for token in allowed(matcher)} == {following.encode()}


def test_properties_come_in_the_order_of_the_schema(admits):
    assert admits(PAIR, '{"b": [], "a": ""}')
    assert not admits(PAIR, '{"a": "", "b": []}')


def test_in_any_order_each_property_comes_once_and_required_ones_must_come(admits):
    schema = {**PAIR, "required": ["b", "z"], "additionalProperties": {"type": "null"}}
    for text in ('{"a": "", "b": [], "z": null}', '{"z": null, "b": []}', '{"q": null, "b": [], "r": null, "a": "", "z": null}'):
        assert admits(schema, text, property_order="any")
    for text in ('{"a": "", "z": null}', '{"b": [], "z": null, "b": []}', '{"b": [], "q": 1, "z": null}', '{"b": []}'):
        assert not admits(schema, text, property_order="any")


def test_a_closed_object_in_any_order_has_no_dead_end_after_its_last_key(admits):
    schema = {"type": "object", "properties": {"aa": {}, "ab": {}}, "additionalProperties": False}
    assert admits(schema, '{"ab": 1, "aa": 2}', property_order="any")
    for text in ('{"ab": 1, "ab"', '{"aa": 1, "ab": 2,'):
        assert not admits(schema, text + ": 3}", property_order="any")


@pytest.mark.parametrize("name", ["a", "\\u0061", "\\u0041"])
def test_an_additional_key_is_no_declared_name_however_it_is_spelled(admits, name):
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "A": {"type": "integer"}}}
    assert not admits(schema, f'{{"{name}": "text"}}')
    assert admits(schema, f'{{"{name}": 1}}')


def test_a_property_cannot_come_twice(admits):
    assert not admits({"type": "object", "properties": {"a": {}}}, '{"a": 1, "a": 2}')
    assert not admits({"type": "object", "properties": {"a": {}}}, '{"a": 1, "\\u0061": 2}')


@pytest.mark.parametrize(
    "text", ['"\\"\\\\\\/\\b\\f\\n\\r\\t"', '"\\u0000\\uFFFF"', '"é日😀"', '"\\ud83d\\uDE00"', '"\\u2028"', '"\x7f"'])
def test_every_way_to_write_a_character_is_admitted(admits, text):
    assert json.loads(text)
    assert admits({"type": "string"}, text)
    assert admits({"const": json.loads(text)}, text)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=12))
def test_compact_writes_a_string_as_json_dumps_does_and_in_no_other_way(admits, text):
    plain, ascii_only = json.dumps(text, ensure_ascii=False), json.dumps(text)
    for schema in ({"type": "string"}, {"const": text}, {"type": "string", "pattern": "^", "maxLength": 12}):
        assert admits(schema, plain, style="compact")
        assert admits(schema, ascii_only, style="compact") == (ascii_only == plain)
        assert admits(schema, ascii_only)


@pytest.mark.parametrize("text", ['"\\/"', '"\\u0061"', '"\\u0022"', '"\\u000a"', '"\\u001F"', '"\\u007f"', '"\\ud83d\\ude00"'])
def test_compact_refuses_every_other_spelling_of_a_character(admits, text):
    assert json.loads(text)
    assert admits({"type": "string"}, text)
    assert not admits({"type": "string"}, text, style="compact")
    assert not admits({"const": json.loads(text)}, text, style="compact")


def test_compact_begins_no_escape_that_cannot_end(feed, vocabulary):
    letters = compile_json_schema({"type": "string", "pattern": "^[a-z]*$"}, vocabulary, style="compact")
    assert feed(letters, '"a\\') is None
    quote = compile_json_schema({"const": 'a"b'}, vocabulary, style="compact")
    assert feed(quote, '"a\\') is not None
    assert feed(quote, '"a\\u') is None
    control = compile_json_schema({"const": "\x1e"}, vocabulary, style="compact")
    assert feed(control, '"\\u001e"') is not None
    for text in ('"\\u0', '"\\u00', '"\\u001'):
        assert feed(control, text) is not None
    for text in ('"\\u1', '"\\u01', '"\\u000', '"\\u001f', '"\\n'):
        assert feed(control, text) is None


@pytest.mark.parametrize("text",
                         [b'"\n"', b'"\x00"', b'"\x1f"', b'"\\x41"', b'"\\ud83d"', b'"\\ude00"', b'"\\ud83d\\u0041"',
                          b'"\\ud83dx"',
                                  b'"\\u12g4"', b'"\xff"', b'"\xc0\xaf"', b'"\xed\xa0\x80"', b'"\xf4\x90\x80\x80"', b'"\xe9"',
                                  b'"\x80"', b"'a'"])
def test_what_is_no_json_string_is_refused(admits, text):
    assert not admits({"type": "string"}, text)


@pytest.mark.parametrize("text", ["ab", "😀😀", "\\ud83d\\ude00\\uD83D\\uDE00", "\\u0061é"])
def test_length_counts_characters_not_bytes_or_escapes(admits, text):
    assert admits({"type": "string", "minLength": 2, "maxLength": 2}, f'"{text}"')
    assert not admits({"type": "string", "maxLength": 1}, f'"{text}"')
    assert not admits({"type": "string", "minLength": 3}, f'"{text}"')


def test_an_escape_cannot_begin_where_no_character_fits(feed, vocabulary):
    digit = compile_json_schema({"type": "string", "pattern": "^[0-9]$"}, vocabulary)
    assert feed(digit, '"\\u003') is not None      # 30 to 39 are the digits
    assert feed(digit, '"\\u004') is None
    assert feed(digit, '"5\\') is None
    astral = compile_json_schema({"type": "string", "pattern": "^😀$"}, vocabulary)
    assert feed(astral, '"\\ud83d\\ude00"') is not None
    for text in ('"\\ud83c', '"\\ud83d\\ude01', '"\\u0', "\"\u00e9"):
        assert feed(astral, text) is None


@pytest.mark.parametrize("text", ["01", "+1", ".5", "1.", "-", "1e", "1e+", "--1", "0x1", "1e400", "NaN", "Infinity", "-0"])
def test_what_is_no_json_number_of_bounded_length_is_refused(admits, text):
    assert not admits({"type": "number"}, text)


def test_digits_do_not_go_on_for_ever_and_the_number_can_end_anywhere(feed, vocabulary):
    number = compile_json_schema({"type": "number"}, vocabulary)
    assert feed(number, "0." + "0" * 200) is None
    assert feed(number, "1" * 31) is None
    for text in ("-" + "1" * 30, "0." + "0" * 30, "1" * 30 + "." + "2" * 30, "1.5e-99"):
        matcher = feed(number, text)
        assert matcher is not None
        assert matcher.may_end


@pytest.mark.parametrize("value", [1e-05, 1.5e-09, 1e16, 2.5e22, 0.1, 123.456, 1e-7])
def test_a_double_as_json_dumps_writes_it_is_admitted_within_bounds(admits, value):
    text = json.dumps(value)
    assert admits({"type": "number"}, text)
    assert admits({"type": "number", "minimum": 0}, text)
    assert admits({"type": "number", "exclusiveMinimum": 0}, text)
    assert not admits({"type": "number", "maximum": 0}, text)


def test_a_listed_number_is_written_as_listed_or_without_exponent(admits):
    schema = {"enum": [1.0, 1e-7, 5]}
    for text in ("1", "1.0", "1e-07", "0.0000001", "5", "5.0"):
        assert admits(schema, text)
    for text in ("10", "1.00", "5.00", "0.000001"):
        assert not admits(schema, text)


@pytest.mark.parametrize("schema", [
    {"type": "object", "propertyNames": {"enum": ["amber", "birch", "cedar"]}},
    {"type": "object", "propertyNames": {"enum": ["amber", "birch", "cedar"]}, "minProperties": 2},
    {"type": "object", "patternProperties": {"^(amber|birch|cedar)$": {"type": "integer"}}, "additionalProperties": False},
    {"type": "object", "propertyNames": {"enum": ["amber", "birch", "cedar"]}, "required": ["amber"]},
], ids=str)
def test_names_that_are_listed_and_not_declared_come_in_any_order_and_once(admits, schema):
    assert admits(schema, '{"cedar": 1, "amber": 2}')
    assert admits(schema, '{"amber": 1, "cedar": 2}')
    assert not admits(schema, '{"amber": 1, "amber": 2}')
