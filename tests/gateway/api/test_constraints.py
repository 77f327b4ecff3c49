"""What the answer must look like is found, checked and passed on whole."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

import httpx
import jsonschema
import pytest

from gateway.api.constraints import MAX_SOURCE_CHARACTERS, Constraint, ConstraintChecker, constraint_of
from gateway.api.wire import ChatBody
from gateway.errors import InvalidRequest
from grammar import GrammarTooLarge, Limits, SchemaError
from grammar.algebra.enforcement import NotEnforced
from runtime.protocol import GrammarSpec
from tests.support.http import CHAT, chat_body
from tests.support.memory_engine import MemoryEngine

pytestmark = pytest.mark.anyio
SCHEMA = {
    "type": "object",
    "properties": {"reasoning": {"type": "string"}, "answer": {"type": "integer"}, "certain": {"type": "boolean"}},
    "required": ["reasoning", "answer", "certain"],
    "additionalProperties": False,
}


def response_format(schema: Any, name: str = "bike") -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema, "strict": True}}


async def error_of(client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    answer = await client.post(CHAT, json=chat_body(**fields))
    assert answer.status_code == 400, answer.text
    return answer.json()["error"]


@pytest.mark.parametrize(("fields", "spec"), [
    ({"response_format": response_format({"type": "string"})}, GrammarSpec("json_schema", '{"type":"string"}')),
    ({"response_format": response_format(True)}, GrammarSpec("json_schema", "true")),
    ({"response_format": {"type": "json_object"}}, GrammarSpec("json_object", "")),
    ({"structured_outputs": {"json": {"type": "string"}}}, GrammarSpec("json_schema", '{"type":"string"}')),
    ({"structured_outputs": {"json": '{ "type" : "string" }'}}, GrammarSpec("json_schema", '{"type":"string"}')),
    ({"structured_outputs": {"regex": "[a-z]+"}}, GrammarSpec("regex", "[a-z]+")),
    ({"structured_outputs": {"choice": ["yes", "nö", "yes"]}}, GrammarSpec("choice", '["yes","nö"]')),
    ({"structured_outputs": {"json_object": True}}, GrammarSpec("json_object", "")),
    ({"structured_outputs": {"json_object": True, "style": "free"}}, GrammarSpec("json_object", "", "free")),
    ({"response_format": {"type": "json_object"}, "structured_outputs": {"style": "free"}},
     GrammarSpec("json_object", "", "free")),
    ({"guided_json": {"type": "null"}}, GrammarSpec("json_schema", '{"type":"null"}')),
    ({"guided_json": '{"type": "null"}'}, GrammarSpec("json_schema", '{"type":"null"}')),
    ({"guided_regex": "[0-9]{3}"}, GrammarSpec("regex", "[0-9]{3}")),
    ({"guided_choice": ["a", "b"]}, GrammarSpec("choice", '["a","b"]')),
    ({"guided_grammar": 'start: "a"'}, GrammarSpec("ebnf", 'start: "a"')),
    ({"structured_outputs": {"grammar": 'root ::= "a"'}}, GrammarSpec("ebnf", 'root ::= "a"')),
    ({"response_format": {"type": "structural_tag", "format": {"type": "const_string", "value": "a"}}},
     GrammarSpec("structural_tag", '{"type":"structural_tag","format":{"type":"const_string","value":"a"}}')),
    ({"response_format": {"type": "structural_tag", "triggers": ["<f"], "structures": [
        {"begin": "<f>", "schema": {"const": None}, "end": "</f>"}]}},
     GrammarSpec("structural_tag", '{"type":"structural_tag","structures":[{"begin":"<f>","schema":{"const":null},"end":"</f>"}],'
                                   '"triggers":["<f"]}')),
    ({"structured_outputs": {"structural_tag": '{"type": "structural_tag", "format": {"type": "any_text"}}'}},
     GrammarSpec("structural_tag", '{"type":"structural_tag","format":{"type":"any_text"}}')),
    ({"structured_outputs": {"json": True, "style": "pretty", "property_order": "any", "unsupported": "ignore"}},
     GrammarSpec("json_schema", "true", "pretty", "any", "ignore")),
    ({"response_format": response_format({"type": "null"}), "structured_outputs": {"unsupported": "ignore"}},
     GrammarSpec("json_schema", '{"type":"null"}', unsupported="ignore")),
    ({"response_format": {"type": "text"}}, None),
    ({"response_format": {"type": "text"}, "guided_choice": ["a"]}, GrammarSpec("choice", '["a"]')),
    ({"response_format": None, "structured_outputs": None}, None),
])
async def test_a_constraint_reaches_the_engine_as_it_was_meant(
    client: httpx.AsyncClient, engine: MemoryEngine, fields: dict[str, Any], spec: GrammarSpec | None
) -> None:
    answer = await client.post(CHAT, json=chat_body(**fields))
    assert answer.status_code == 200, answer.text
    assert engine.requests[0].grammar == spec


async def test_properties_keep_the_order_of_the_body(client: httpx.AsyncClient, engine: MemoryEngine) -> None:
    answer = await client.post(CHAT, json=chat_body(response_format=response_format(SCHEMA)))
    assert list(json.loads(engine.requests[0].grammar.source)["properties"]) == ["reasoning", "answer", "certain"]
    value = json.loads(answer.json()["choices"][0]["message"]["content"])
    jsonschema.validate(value, SCHEMA)


def test_the_servers_style_holds_where_the_body_names_none() -> None:
    body = ChatBody.model_validate(chat_body(response_format={"type": "json_object"}))
    assert constraint_of(body, "free").spec.style == "free"
    named = ChatBody.model_validate(chat_body(structured_outputs={"json_object": True, "style": "compact"}))
    assert constraint_of(named, "free").spec.style == "compact"


@pytest.mark.parametrize("fields", [
    {"response_format": response_format(SCHEMA), "structured_outputs": {"regex": "a"}},
    {"response_format": {"type": "json_object"}, "guided_choice": ["a"]},
    {"structured_outputs": {"regex": "a", "choice": ["a"]}},
    {"guided_regex": "a", "guided_choice": ["a"]},
])
async def test_two_constraints_are_refused(client: httpx.AsyncClient, fields: dict[str, Any]) -> None:
    assert "one constraint only" in (await error_of(client, **fields))["message"]


@pytest.mark.parametrize(("wanted", "param"), [
    ({"type": "xml"}, "response_format.type"),
    ({}, "response_format.type"),
    ({"type": "json_schema"}, "response_format.json_schema"),
    ({"type": "json_schema", "json_schema": {"schema": {}}}, "response_format.json_schema.name"),
    ({"type": "json_schema", "json_schema": {"name": "x"}}, "response_format.json_schema.schema"),
    ({"type": "json_schema", "json_schema": {"name": "no name!", "schema": {}}}, "response_format.json_schema.name"),
    ({"type": "json_schema", "json_schema": {"name": "x" * 65, "schema": {}}}, "response_format.json_schema.name"),
    ({"type": "json_schema", "json_schema": {"name": "x\n", "schema": {}}}, "response_format.json_schema.name"),
    ({"type": "json_schema", "json_schema": {"name": "x", "schema": {}, "strict": "yes"}}, "response_format.json_schema.strict"),
    ({"type": "json_schema", "json_schema": {"name": "x", "schema": "{}"}}, "response_format.json_schema.schema"),
    ({"type": "json_schema", "json_schema": {"name": "x", "schema": []}}, "response_format.json_schema.schema"),
    ({"type": "json_object", "schema": {"type": "string"}}, "response_format.schema"),
    ({"type": "json_object", "json_schema": {"name": "x", "schema": {}}}, "response_format.json_schema"),
    ({"type": "json_object", "format": {}}, "response_format.format"),
    ({"type": "structural_tag", "json_schema": {"name": "x", "schema": {}}}, "response_format.json_schema"),
    ({"type": "structural_tag", "triggers": [""]}, "response_format.triggers[0]"),
    ("json_object", "response_format"),
])
async def test_a_malformed_response_format_is_a_400_that_names_the_place(
    client: httpx.AsyncClient, wanted: Any, param: str
) -> None:
    assert (await error_of(client, response_format=wanted))["param"] == param


@pytest.mark.parametrize(("wanted", "param"), [
    ({}, "structured_outputs"),
    ({"lark": "start: 'a'"}, "structured_outputs.lark"),
    ({"grammar": ""}, "structured_outputs.grammar"),
    ({"structural_tag": "{"}, "structured_outputs"),
    ({"structural_tag": []}, "structured_outputs.structural_tag"),
    ({"json": True, "unsupported": "drop"}, "structured_outputs.unsupported"),
    ({"regex": ""}, "structured_outputs.regex"),
    ({"choice": []}, "structured_outputs.choice"),
    ({"choice": ["a", ""]}, "structured_outputs.choice[1]"),
    ({"json": "{not json"}, "structured_outputs"),
    ({"json": "[]"}, "structured_outputs"),
    ({"json_object": True, "style": "any"}, "structured_outputs.style"),
])
async def test_malformed_structured_outputs_are_a_400_that_names_the_place(
    client: httpx.AsyncClient, wanted: Any, param: str
) -> None:
    assert (await error_of(client, structured_outputs=wanted))["param"] == param


@pytest.mark.parametrize(("schema", "keyword", "pointer"), [
    ({"type": "object", "properties": {"a": {"type": "strnig"}}}, "type", "/properties/a"),
    ({"type": "object", "properties": {"a": {"$ref": "#/$defs/nope"}}}, "$ref", "/properties/a"),
    ({"$ref": "http://127.0.0.1:9/schema.json"}, "$ref", ""),
    ({"type": "object", "properties": {"foo": "bar"}}, "", "/properties/foo"),
])
async def test_a_schema_that_cannot_be_kept_is_refused_before_anything_is_queued(
    client: httpx.AsyncClient, engine: MemoryEngine, schema: Any, keyword: str, pointer: str
) -> None:
    error = await error_of(client, response_format=response_format(schema))
    assert error["message"].startswith("Invalid schema for response_format 'bike': ")
    assert keyword in error["message"] and pointer in error["message"]
    assert (error["code"], error["param"], error["type"]) == ("invalid_json_schema", "response_format", "invalid_request_error")
    assert engine.requests == []


async def test_a_regex_that_is_none_is_refused_under_its_own_name(client: httpx.AsyncClient, engine: MemoryEngine) -> None:
    error = await error_of(client, structured_outputs={"regex": "(unclosed"})
    assert error["message"].startswith("Invalid regex for structured_outputs: ")
    assert (error["code"], error["param"]) == ("invalid_json_schema", "structured_outputs")
    assert engine.requests == []


async def test_a_schema_too_long_to_check_says_by_how_much(client: httpx.AsyncClient) -> None:
    schema = {"enum": ["x" * (MAX_SOURCE_CHARACTERS + 10)]}
    error = await error_of(client, response_format=response_format(schema))
    n_more = len(json.dumps(schema, separators=(",", ":"))) - MAX_SOURCE_CHARACTERS
    assert f" {n_more} more than " in error["message"]


@pytest.mark.parametrize(("fields", "place"), [
    ({"structured_outputs": {"grammar": 'start: "a" b\n'}}, "line 1, column 12"),
    ({"guided_grammar": "root ::= [a-z\n"}, "line 1, column 10"),
    ({"response_format": {"type": "structural_tag", "format": {"type": "tag", "begin": "<a>", "end": "</a>", "content": {
        "type": "json_schema", "json_schema": {"properties": {"x": {"type": "strnig"}}}}}}},
     "/format/content/json_schema/properties/x, keyword 'type'"),
    ({"response_format": {"type": "structural_tag", "format": {"type": "haiku"}}}, "/format/type"),
    ({"response_format": {"type": "structural_tag"}}, "there must be a format, or structures"),
])
async def test_a_grammar_or_tag_that_cannot_be_kept_is_refused_by_its_place(
    client: httpx.AsyncClient, engine: MemoryEngine, fields: dict[str, Any], place: str
) -> None:
    error = await error_of(client, **fields)
    assert place in error["message"]
    assert error["code"] == "invalid_json_schema"
    assert engine.requests == []


REMOTE = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a)\\1$"}}, "required": ["a"]}


async def test_what_is_not_enforced_is_told_in_the_body(client: httpx.AsyncClient) -> None:
    answer = await client.post(CHAT, json=chat_body(
        response_format=response_format(REMOTE), structured_outputs={"unsupported": "ignore"}))
    assert answer.status_code == 200, answer.text
    [left_out] = answer.json()["not_enforced"]
    assert (left_out["keyword"], left_out["pointer"]) == ("pattern", "/properties/a")
    assert left_out["reason"]


async def test_nothing_is_told_where_everything_has_to_be_enforced(client: httpx.AsyncClient) -> None:
    answer = await client.post(CHAT, json=chat_body(response_format=response_format({"type": "string"})))
    assert "not_enforced" not in answer.json()
    assert "backreference" in (await error_of(client, response_format=response_format(REMOTE)))["message"]


async def test_a_misspelled_keyword_is_told_without_being_asked_for(client: httpx.AsyncClient) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "minLenght": 3}}}
    answer = await client.post(CHAT, json=chat_body(response_format={"type": "json_schema", "json_schema": {
        "name": "a", "schema": schema}}))
    [told] = answer.json()["not_enforced"]
    assert (told["keyword"], told["pointer"]) == ("minLenght", "/properties/a")


async def test_a_stream_tells_what_is_not_enforced_beside_each_last_chunk(client: httpx.AsyncClient) -> None:
    answer = await client.post(CHAT, json=chat_body(
        response_format=response_format(REMOTE), structured_outputs={"unsupported": "ignore"}, stream=True, n=2))
    chunks = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
    told = [chunk for chunk in chunks if "not_enforced" in chunk]
    assert [chunk["choices"][0]["finish_reason"] for chunk in told] == ["stop", "stop"]
    assert {one["keyword"] for chunk in told for one in chunk["not_enforced"]} == {"pattern"}


class CountingCheck:
    """Refuses sources that say so; counts its calls, and in which thread they came."""

    def __init__(self) -> None:
        self.sources: list[str] = []
        self.threads: set[int] = set()

    def __call__(self, spec: GrammarSpec, limits: Limits) -> tuple[NotEnforced, ...]:
        self.sources.append(spec.source)
        self.threads.add(threading.get_ident())
        if "bad" in spec.source:
            raise SchemaError("it is bad", keyword="not", pointer="/properties/x")
        return ()


def constraint(source: str, kind: Any = "json_schema") -> Constraint:
    return Constraint(GrammarSpec(kind, source), "response_format", "Invalid schema for response_format 'n'")


async def test_each_constraint_is_checked_once_and_not_on_the_event_loop() -> None:
    check = CountingCheck()
    checker = ConstraintChecker(check)
    for _ in range(3):
        await checker.check(constraint("good"))
        with pytest.raises(InvalidRequest):
            await checker.check(constraint("bad"))
    checker.close()
    assert check.sources == ["good", "bad"]
    assert threading.get_ident() not in check.threads


async def test_the_same_text_of_another_kind_is_another_constraint() -> None:
    check = CountingCheck()
    checker = ConstraintChecker(check)
    await checker.check(constraint("[0-9]", "regex"))
    await checker.check(constraint("[0-9]", "choice"))
    checker.close()
    assert len(check.sources) == 2


async def test_only_so_many_verdicts_are_remembered_the_least_used_goes_first() -> None:
    check = CountingCheck()
    checker = ConstraintChecker(check, remembered=2)
    for source in ("a", "b", "a", "c", "a", "b"):
        await checker.check(constraint(source))
    checker.close()
    assert check.sources == ["a", "b", "c", "b"]


async def test_a_refusal_names_the_schema_the_place_and_the_keyword() -> None:
    checker = ConstraintChecker(CountingCheck())
    with pytest.raises(InvalidRequest) as refused:
        await checker.check(constraint("bad"))
    checker.close()
    assert refused.value.message == (
        "Invalid schema for response_format 'n': at /properties/x, keyword 'not': it is bad")


async def test_a_slow_check_does_not_hold_up_the_event_loop() -> None:
    checker = ConstraintChecker(lambda spec, limits: time.sleep(0.3) or ())
    checking = asyncio.create_task(checker.check(constraint("slow")))
    await asyncio.sleep(0)
    began = time.monotonic()
    await asyncio.sleep(0.01)
    assert time.monotonic() - began < 0.2
    await checking
    checker.close()


async def test_the_same_constraint_asked_for_many_times_at_once_is_checked_once() -> None:
    check = CountingCheck()
    checker = ConstraintChecker(check)
    await asyncio.gather(*(checker.check(constraint("good")) for _ in range(20)))
    checker.close()
    assert check.sources == ["good"]


async def test_one_who_hangs_up_takes_no_verdict_from_the_others() -> None:
    may_go_on = threading.Event()

    def check(spec: GrammarSpec, limits: Limits) -> tuple[NotEnforced, ...]:
        assert may_go_on.wait(10)
        return ()

    checker = ConstraintChecker(check)
    first, second = (asyncio.create_task(checker.check(constraint("slow"))) for _ in range(2))
    await asyncio.sleep(0.01)
    first.cancel()
    may_go_on.set()
    assert await second == ()
    checker.close()


async def test_schemas_made_to_be_expensive_do_not_hold_up_an_ordinary_one() -> None:
    done: list[str] = []

    def check(spec: GrammarSpec, limits: Limits) -> tuple[NotEnforced, ...]:
        if spec.source.startswith("bomb"):
            time.sleep(limits.automaton_steps / 1_000_000)      # half a second with all limits, a twentieth of it at first
            raise GrammarTooLarge("automaton_steps", limits.automaton_steps, limits.automaton_steps + 1)
        done.append(spec.source)
        return ()

    checker = ConstraintChecker(check)
    bombs = [asyncio.create_task(checker.check(constraint(f"bomb {n}"))) for n in range(20)]
    await asyncio.sleep(0)
    began = time.monotonic()
    await checker.check(constraint("ordinary"), "another tenant")
    waited_s = time.monotonic() - began
    assert not all(bomb.done() for bomb in bombs)
    checker.close()
    await asyncio.gather(*bombs, return_exceptions=True)
    assert done == ["ordinary"]
    assert waited_s < 1.5


async def test_a_bomb_is_refused_by_the_limit_that_it_met() -> None:
    checker = ConstraintChecker(lambda spec, limits: GrammarRefusal.at(limits))
    with pytest.raises(InvalidRequest, match="needs at least 20001 nodes, the limit is 20000"):
        await checker.check(constraint("bomb"))
    checker.close()


class GrammarRefusal:
    @staticmethod
    def at(limits: Limits) -> tuple[NotEnforced, ...]:
        raise GrammarTooLarge("nodes", limits.nodes, limits.nodes + 1)
