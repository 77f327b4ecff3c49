"""Twenty schemas, each answered by the real model over HTTP and judged by jsonschema."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest
from jsonschema import Draft202012Validator


def closed(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False, **more}


SHORT = {"type": "string", "maxLength": 20}
DIGIT = {"type": "integer", "minimum": 0, "maximum": 9}
SCHEMAS: dict[str, Any] = {
    "flat": closed({"name": SHORT, "age": {"type": "integer", "minimum": 0, "maximum": 120}}),
    "enum": closed({"mood": {"enum": ["calm", "angry", "glad"]}, "loud": {"type": "boolean"}}),
    "const": closed({"version": {"const": 3}, "kind": {"const": "order"}}),
    "mixed enum": {"enum": ["a", 1, None, True, {"x": [1, 2]}]},
    "nested": closed({"outer": closed({"inner": closed({"ok": {"type": "boolean"}})})}),
    "array of enums": {"type": "array", "items": {"enum": ["red", "green"]}, "minItems": 2, "maxItems": 4},
    "array of objects": closed({"lines": {"type": "array", "minItems": 1, "maxItems": 2,
                                          "items": closed({"sku": SHORT, "n": DIGIT})}}),
    "optional": {"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": "null"}, "c": {"enum": [1, 2]}},
                 "required": ["b"], "additionalProperties": False},
    "integer range": {"type": "integer", "minimum": -5, "maximum": 1234},
    "number range": closed({"share": {"type": "number", "minimum": 0, "maximum": 1}}),
    "exclusive bounds": closed({"n": {"type": "integer", "exclusiveMinimum": 9, "exclusiveMaximum": 12}}),
    "pattern": closed({"plate": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"}}),
    "pattern and length": closed({"code": {"type": "string", "pattern": "^[a-z]+$", "minLength": 3, "maxLength": 6}}),
    "anyOf": {"anyOf": [closed({"cat": {"type": "boolean"}}), closed({"dog": {"enum": ["big", "small"]}})]},
    "nullable": closed({"middle_name": {"type": ["string", "null"], "maxLength": 12}}),
    "recursive": {"$ref": "#/$defs/list",
                  "$defs": {"list": closed({"v": {"type": "boolean"},
                                            "next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/list"}]}})}},
    "defs": {"$defs": {"colour": {"enum": ["black", "white"]}}, **closed({"front": {"$ref": "#/$defs/colour"},
                                                                         "back": {"$ref": "#/$defs/colour"}})},
    "map": {"type": "object", "properties": {"id": {"type": "integer", "minimum": 1, "maximum": 99}}, "required": ["id"],
            "additionalProperties": {"type": "boolean"}},
    "unusual keys": closed({"größe": {"enum": ["klein", "groß"]}, "emoji 😀": {"type": "boolean"}, "quo\"te": {"type": "null"}}),
    "matrix": {"type": "array", "minItems": 2, "maxItems": 2,
               "items": {"type": "array", "items": DIGIT, "minItems": 3, "maxItems": 3}},
}

KEYWORDS: dict[str, Any] = {
    "not": closed({"word": {"enum": ["yes", "no", "maybe"], "not": {"enum": ["yes", "no"]}}}),
    "if, then, else": {**closed({"kind": {"enum": ["cat", "dog"]}, "lives": {"type": "integer", "minimum": 0, "maximum": 99}}),
                       "if": {"properties": {"kind": {"const": "cat"}}}, "then": {"properties": {"lives": {"const": 9}}},
                       "else": {"properties": {"lives": {"maximum": 1}}}},
    "contains": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "contains": {"const": "c"}, "minItems": 3, "maxItems": 3},
    "uniqueItems": {"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "minItems": 3},
    "patternProperties": {"type": "object", "patternProperties": {"^n_[a-z]{1,3}$": DIGIT},
                          "additionalProperties": False, "minProperties": 1, "maxProperties": 2},
    "dependentRequired": {"type": "object", "properties": {"card": DIGIT, "address": {"enum": ["here", "there"]}},
                          "required": ["card"], "dependentRequired": {"card": ["address"]}, "additionalProperties": False},
    "multipleOf": closed({"price": {"type": "number", "minimum": 0, "maximum": 100, "multipleOf": 0.01}}),
}

# A model this small does not end by itself what may go on for ever: here it is shown an answer to copy.
PROMPTS = {"recursive": 'Repeat exactly: {"v":true,"next":null}', "map": 'Repeat exactly: {"id":7}'}


def ask(client: openai.OpenAI, model: str, schema: Any, **params: Any):
    response_format = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}
    return client.chat.completions.create(model=model, response_format=response_format, **{
        "messages": [{"role": "user", "content": "Answer in JSON with a short made-up example."}],
        "max_tokens": 160, "temperature": 0, **params})


def ask_named(client: openai.OpenAI, model: str, name: str):
    prompt = PROMPTS.get(name, "Answer in JSON with a short made-up example.")
    return ask(client, model, SCHEMAS[name], messages=[{"role": "user", "content": prompt}])


@pytest.fixture(scope="module")
def answers(client: openai.OpenAI, model: str) -> dict[str, Any]:
    """All schemas asked at once, as a busy server sees them."""
    with ThreadPoolExecutor(8) as pool:
        return dict(zip(SCHEMAS, pool.map(lambda name: ask_named(client, model, name), SCHEMAS), strict=True))


def test_there_are_twenty() -> None:
    assert len(SCHEMAS) == 20


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_answer_validates_and_ends_by_itself(answers: dict[str, Any], name: str) -> None:
    choice = answers[name].choices[0]
    assert choice.finish_reason == "stop", choice.message.content
    Draft202012Validator(SCHEMAS[name]).validate(json.loads(choice.message.content))


@pytest.mark.parametrize("name", KEYWORDS)
def test_every_keyword_is_kept(client: openai.OpenAI, model: str, name: str) -> None:
    choice = ask(client, model, KEYWORDS[name], temperature=1.0, seed=3).choices[0]
    assert choice.finish_reason == "stop", choice.message.content
    Draft202012Validator(KEYWORDS[name]).validate(json.loads(choice.message.content))


def test_an_answer_cut_by_max_tokens_says_length_and_has_usage(client: openai.OpenAI, model: str) -> None:
    answer = ask(client, model, SCHEMAS["array of objects"], max_tokens=4)
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == 4
    with pytest.raises(json.JSONDecodeError):
        json.loads(answer.choices[0].message.content)


@pytest.mark.parametrize("seed", range(3))
def test_a_high_temperature_does_not_get_round_the_mask(client: openai.OpenAI, model: str, seed: int) -> None:
    choice = ask(client, model, SCHEMAS["pattern"], temperature=2.0, seed=seed).choices[0]
    assert choice.finish_reason == "stop"
    assert Draft202012Validator(SCHEMAS["pattern"]).is_valid(json.loads(choice.message.content))


def test_properties_come_in_the_schemas_order(client: openai.OpenAI, model: str) -> None:
    schema = closed({"zebra": {"type": "boolean"}, "apple": {"type": "boolean"}, "mango": {"type": "boolean"}})
    answer = ask(client, model, schema)
    assert list(json.loads(answer.choices[0].message.content)) == ["zebra", "apple", "mango"]


def test_json_object_regex_and_choice(client: openai.OpenAI, model: str) -> None:
    messages = [{"role": "user", "content": 'Reply with {"ok": true} and nothing else.'}]
    answer = client.chat.completions.create(model=model, messages=messages, temperature=0, max_tokens=200,
                                            response_format={"type": "json_object"})
    assert answer.choices[0].message.content.startswith("{")
    if answer.choices[0].finish_reason == "stop":
        assert isinstance(json.loads(answer.choices[0].message.content), dict)
    answer = client.chat.completions.create(model=model, messages=messages, temperature=0, max_tokens=30,
                                            extra_body={"structured_outputs": {"regex": "[0-9]{4}-[0-9]{2}"}})
    year, month = answer.choices[0].message.content.split("-")
    assert (len(year), len(month)) == (4, 2)
    answer = client.chat.completions.create(model=model, messages=messages, temperature=0, max_tokens=30,
                                            extra_body={"structured_outputs": {"choice": ["maybe", "never"]}})
    assert answer.choices[0].message.content in ("maybe", "never")


@pytest.mark.parametrize(("schema", "names"), [
    ({"type": "object", "properties": {"a": {"type": "strnig"}}}, ["/properties/a", "type", "strnig"]),
    ({"type": "object", "properties": {"a": {"$ref": "#/$defs/nope"}}}, ["/properties/a", "$ref"]),
    ({"$ref": "http://127.0.0.1:9/schema.json"}, ["$ref"]),
    ({"type": "array", "items": {"type": "string", "pattern": "(a)\\1"}}, ["/items", "pattern", "backreference"]),
    ({"type": "object", "properties": {"a": {"type": "string", "pattern": "(unclosed"}}}, ["/properties/a", "pattern"]),
])
def test_a_schema_that_can_not_be_kept_is_a_400_that_names_the_place(
        client: openai.OpenAI, model: str, schema: Any, names: list[str]) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        ask(client, model, schema)
    for name in names:
        assert name in refused.value.body["message"]
