"""What each keyword lets through and what not, one table; every row is also put to the jsonschema library."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from grammar import SchemaError, check_json_schema

CASES = [
    # schema, texts that satisfy it, texts that do not
    ({}, ["null", "true", "-1.5e3", '"x"', "[1, {}]", '{"a": [null]}'], []),
    (True, ["null", "{}"], []),
    ({"type": "null"}, ["null"], ["0", '""', "false"]),
    ({"type": "boolean"}, ["true", "false"], ["null", "1", '"true"']),
    ({"type": "integer"}, ["0", "-7", "123456789012"], ["1.5", '"1"', "true"]),
    ({"type": "number"}, ["0", "-0.5", "1e5", "1.5E-7"], ['"1"', "null"]),
    ({"type": ["string", "null"]}, ['"a"', "null"], ["1", "[]"]),
    ({"type": ["integer", "number"]}, ["1", "1.5"], ['"1"']),
    ({"enum": [1, "a", None, True, 2.5, [1, 2], {"k": "v"}]}, ["1", '"a"', "null", "true", "2.5", "[1, 2]", '{"k": "v"}'],
     ["2", '"b"', "false", "[1]", "[2, 1]", "{}", '{"k": "w"}', '{"k": "v", "l": 1}']),
    ({"const": {"a": [1, {"b": None}]}}, ['{"a": [1, {"b": null}]}'], ['{"a": [1, {"b": 0}]}', '{"a": [1]}', "null"]),
    ({"enum": ["a", "bb", "ccc", 4, -4], "maxLength": 2, "minimum": 0}, ['"a"', '"bb"', "4"], ['"ccc"', "-4"]),
    ({"type": "string", "enum": ["x", 1, None]}, ['"x"'], ["1", "null"]),
    ({"minLength": 2, "maxLength": 3}, ['"ab"', '"abc"', "1", "[]"], ['"a"', '"abcd"', '""']),
    ({"minLength": 2.0, "type": "string"}, ['"ab"'], ['"a"']),
    ({"pattern": "b+c"}, ['"bc"', '"abbcd"', "17"], ['"b"', '"c"', '""']),
    ({"pattern": "^[a-c]{2}$"}, ['"ab"', '"cc"'], ['"a"', '"abc"', '"ad"']),
    ({"type": "string", "pattern": "^a+$", "minLength": 2, "maxLength": 3}, ['"aa"', '"aaa"'], ['"a"', '"aaaa"', '"ab"']),
    ({"type": "string", "pattern": "^(ab)*$", "minLength": 1, "maxLength": 5}, ['"ab"', '"abab"'], ['""', '"ababab"', '"aba"']),
    ({"minimum": -2, "maximum": 10}, ["-2", "0", "10", '"x"'], ["-3", "11", "100"]),
    ({"type": "number", "exclusiveMinimum": 0.1, "exclusiveMaximum": 0.3}, ["0.2", "0.11", "0.2999"],
     ["0.1", "0.3", "0", "1", "-0.2"]),
    ({"type": "integer", "exclusiveMinimum": 5, "exclusiveMaximum": 8}, ["6", "7"], ["5", "8", "60"]),
    ({"type": "number", "minimum": 2.5}, ["2.5", "3", "1e20", "10.25"], ["2.4", "0", "-3", "2.49999999999"]),
    ({"type": "integer", "multipleOf": 7, "minimum": -14}, ["0", "7", "-14", "7000000007"], ["1", "-21", "8"]),
    ({"type": "integer", "multipleOf": 7.0}, ["0", "7000000007"], ["8", "10409109095160601"]),   # a multiple, but not in doubles
    ({"type": "array", "items": {"type": "integer"}}, ["[]", "[1]", "[1, 2, 3]"], ['["a"]', "[1, null]"]),
    ({"type": "array", "minItems": 1, "maxItems": 2}, ["[1]", '[1, "a"]'], ["[]", "[1, 2, 3]"]),
    ({"prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False}, ["[]", "[1]", '[1, "a"]'],
     ['["a"]', '[1, "a", 2]']),
    ({"prefixItems": [{"const": 1}], "items": {"const": 2}, "minItems": 2}, ["[1, 2]", "[1, 2, 2]"], ["[1]", "[1, 1]", "[2, 2]"]),
    ({"type": "array", "maxItems": 0}, ["[]"], ["[1]"]),
    ({"type": "object", "properties": {}}, ["{}", '{"a": 1}'], []),
    ({"type": "object", "additionalProperties": False}, ["{}"], ['{"a": 1}']),
    ({"properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a"]},
     ['{"a": 1}', '{"a": 1, "b": null}', '{"x": 1, "a": 1, "y": 2, "b": 3, "z": 4}', "7"], ["{}", '{"b": 1}', '{"a": "1"}']),
    ({"type": "object", "required": ["a", "b"]}, ['{"a": 1, "b": 2}', '{"x": 0, "a": 1, "b": 2}'], ["{}", '{"a": 1}']),
    ({"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "integer"}}, ['{"a": "s", "b": 1}'],
     ['{"a": 1, "b": "s"}', '{"aa": "s"}']),
    ({"type": "object", "properties": {"a": False}}, ["{}", '{"b": 1}', '{"aa": 1}'], ['{"a": 1}']),
    ({"properties": {"": {"const": 1}, "a\"b\\": {"const": 2}, "é": {"const": 3}}, "type": "object"},
     ['{"": 1, "a\\"b\\\\": 2, "é": 3}', '{"\\u00e9": 3}'], ['{"": 2}', '{"a\\"b\\\\": 1}', '{"\\u00E9": 1}']),
    ({"anyOf": [{"type": "integer", "minimum": 5}, {"type": "string"}]}, ["5", '"x"'], ["4", "null"]),
    ({"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"],
      "anyOf": [{"properties": {"k": {"const": "i"}, "v": {"type": "integer"}}, "required": ["v"]},
                {"properties": {"k": {"const": "s"}, "v": {"type": "string"}}, "required": ["v"]}]},
     ['{"k": "i", "v": 1}', '{"k": "s", "v": "x"}'],
     ['{"k": "i", "v": "x"}', '{"k": "s", "v": 1}', '{"k": "z", "v": 1}', '{"k": "i"}']),
    ({"allOf": [{"minimum": 3}, {"maximum": 5}], "type": "integer"}, ["3", "5"], ["2", "6"]),
    ({"allOf": [{"properties": {"a": {"minimum": 3}}}, {"properties": {"a": {"type": "integer"}}, "required": ["a"]}]},
     ['{"a": 4}'], ['{"a": 2}', '{"a": "x"}', "{}"]),
    ({"allOf": [{"type": "string", "pattern": "a"}, {"pattern": "b"}, {"pattern": "^.{0,3}$"}]}, ['"ab"', '"bxa"'],
     ['"a"', '"abxx"']),
    ({"oneOf": [{"type": "integer"}, {"type": "string", "maxLength": 1}]}, ["1", '"x"'], ["1.5", '"xx"']),
    ({"oneOf": [{"properties": {"t": {"const": "a"}}, "required": ["t"], "type": "object"},
                {"properties": {"t": {"const": "b"}}, "required": ["t"], "type": "object"}]}, ['{"t": "a"}', '{"t": "b"}'],
                ['{"t": "c"}', "{}"]),
    ({"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "properties": {
        "v": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}, "required": ["v"],
        "additionalProperties": False}}},
     ['{"v": 1}', '{"v": 1, "kids": [{"v": 2, "kids": []}, {"v": 3}]}'], ['{"kids": []}', '{"v": 1, "kids": [{"x": 1}]}']),
    ({"$ref": "#/definitions/short", "maxLength": 5, "definitions": {"short": {"type": "string", "minLength": 2}}},
     ['"ab"', '"abcde"'], ['"a"', '"abcdef"', "3"]),
    ({"$ref": "#/$defs/a~1b%25", "$defs": {"a/b%": {"const": 1}}}, ["1"], ["2"]),
    ({"properties": {"next": {"$ref": "#"}}, "additionalProperties": False, "type": "object"}, ["{}", '{"next": {"next": {}}}'],
     ['{"next": 1}', '{"x": {}}']),
    ({"$ref": "#here", "$defs": {"x": {"$anchor": "here", "type": "null"}}}, ["null"], ["1"]),
    ({"$id": "https://example.com/s.json", "$ref": "https://example.com/s.json#/$defs/x", "$defs": {"x": {"const": 3}}}, ["3"],
     ["4"]),
    ({"type": "string", "format": "date"}, ['"2024-02-29"', '"1999-12-31"'],
     ['"2023-02-29"', '"2024-13-01"', '"2024-1-1"', '"x"']),
    ({"type": "string", "format": "date-time"},
     ['"2024-02-29T23:59:59Z"', '"2024-01-01T00:00:00.123+05:30"', '"2024-01-01t00:00:00z"'],
     ['"2024-01-01 00:00:00Z"', '"2024-01-01T24:00:00Z"', '"2024-01-01T00:00:00"']),
    ({"type": "string", "format": "time"}, ['"23:59:59Z"', '"00:00:00.5-01:00"'], ['"24:00:00Z"', '"23:59:59"', '"23:59Z"']),
    ({"type": "string", "format": "uuid"}, ['"123e4567-e89b-12d3-a456-426614174000"'],
     ['"123e4567e89b12d3a456426614174000"', '"x"']),
    ({"type": "string", "format": "ipv4"}, ['"0.0.0.0"', '"255.10.9.1"'], ['"256.1.1.1"', '"1.2.3"', '"01.2.3.4"']),
    ({"type": "string", "format": "ipv6"},
     ['"::"', '"::1"', '"2001:db8::8:800:200C:417A"', '"1:2:3:4:5:6:7:8"', '"::ffff:1.2.3.4"'],
     ['":"', '"1:2:3"', '"1::2::3"', '"12345::"', '"1:2:3:4:5:6:7:8:9"']),
    ({"type": "string", "format": "email"}, ['"a.b+c@example.org"'], ['"a"']),
    ({"type": "string", "format": "made-up"}, ['"anything"'], []),
    ({"type": "string", "uniqueItems": True, "minProperties": 1}, ['"a"'], ["[]"]),   # say nothing about strings
    ({"title": "t", "description": "d", "default": 1, "examples": [2], "$comment": "c", "deprecated": True, "readOnly": True,
      "writeOnly": False, "x-order": 1, "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "null"}, ["null"],
      ["1"]),
]


@pytest.mark.parametrize(("schema", "valid", "invalid"), CASES, ids=[json.dumps(case[0])[:60] for case in CASES])
def test_what_satisfies_a_schema_can_be_written_and_nothing_else(admits, schema, valid, invalid):
    oracle = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
    assert [oracle.is_valid(json.loads(text)) for text in valid + invalid] == [True] * len(valid) + [False] * len(invalid)
    assert [text for text in valid if not admits(schema, text)] == []
    assert [text for text in invalid if admits(schema, text)] == []


@pytest.mark.parametrize("text",
                         ["a@", "@b", "a b@c.d", "http//x", "1http://x", "http://[::1", "-a.b", "a_b.c",
                          "a..b"])
@pytest.mark.parametrize("format_", ["email", "uri", "hostname"])
def test_a_format_that_the_oracle_cannot_check_here_is_still_enforced(admits, format_, text):
    assert not admits({"type": "string", "format": format_}, json.dumps(text))


@pytest.mark.parametrize(("format_", "text"), [
    ("time", "23:59:59Z"), ("time", "00:00:00.5-01:00"), ("uri", "https://user@example.com:80/a/b?c=d#e"),
    ("uri", "urn:isbn:123"),
    ("uri", "http://[::1]/"), ("hostname", "a-b.example.org"), ("hostname", "x" * 63)])
def test_a_format_admits_its_usual_forms(admits, format_, text):
    assert admits({"type": "string", "format": format_}, json.dumps(text))


def test_a_host_name_has_at_most_253_characters(admits):
    label = "a" * 62 + "."
    assert admits({"type": "string", "format": "hostname"}, json.dumps(label * 4 + "b"))
    assert not admits({"type": "string", "format": "hostname"}, json.dumps(label * 4 + "bb"))


@pytest.mark.parametrize("schema", [
    {"if": {"format": "hostname"}, "then": {}}, {"if": {"pattern": "\\w"}, "else": True},
    {"if": {"format": "email"}, "then": {"type": "string"}, "else": {"type": "string"}}], ids=str)
def test_a_condition_on_which_nothing_depends_asks_for_nothing(admits, schema):
    assert admits(schema, '"été"')


@pytest.mark.parametrize("schema", [
    {"type": "number", "not": {"type": "integer"}, "minimum": 1e17},
    {"type": "number", "minimum": 1e300, "not": {"multipleOf": 2}},
    {"not": {"pattern": ""}}, {"not": {"multipleOf": 1e-300}, "type": "number"}], ids=str)
def test_a_negation_that_leaves_nothing_to_write_leaves_no_value(schema):
    with pytest.raises(SchemaError, match="no value satisfies"):
        check_json_schema(schema)
    check_json_schema({"anyOf": [schema, {"type": "null"}]})
