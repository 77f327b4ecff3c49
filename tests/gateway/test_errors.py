"""Every error leaves in OpenAI's envelope."""

from __future__ import annotations

import logging

import httpx
import pytest
from fastapi import FastAPI

from gateway.errors import ApiError, envelope, of_fault
from runtime.errors import (
    EngineDied,
    EngineUnavailable,
    GrammarRefused,
    ModelUnreadable,
    QueueFull,
    RequestFaulted,
    RequestTooLong,
)
from tests.support.http import CHAT, chat_body
from tests.support.memory_engine import MemoryEngine

pytestmark = pytest.mark.anyio
KEYS = {"message", "type", "param", "code"}


def error_of(answer: httpx.Response) -> dict[str, str | None]:
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.json()) == {"error"}
    error = answer.json()["error"]
    assert set(error) == KEYS and error["message"] and error["type"]
    return error


@pytest.mark.parametrize(("method", "path", "status", "code"), [
    ("GET", "/nope", 404, "unknown_url"),
    ("POST", "/v1/nope", 404, "unknown_url"),
    ("GET", "/static/nope.js", 404, "unknown_url"),
    ("GET", CHAT, 405, "method_not_allowed"),
    ("DELETE", "/v1/models", 405, "method_not_allowed"),
    ("GET", "/v1/models/other", 404, "model_not_found"),
])
async def test_the_frameworks_own_errors_have_the_envelope(
    client: httpx.AsyncClient, method: str, path: str, status: int, code: str
) -> None:
    answer = await client.request(method, path)
    assert answer.status_code == status
    assert error_of(answer)["code"] == code


async def test_405_names_the_methods_that_are_allowed(client: httpx.AsyncClient) -> None:
    assert (await client.get(CHAT)).headers["allow"] == "POST"


@pytest.mark.parametrize(("fault", "status", "code", "type"), [
    (RequestTooLong("too long", "messages"), 400, "context_length_exceeded", "invalid_request_error"),
    (QueueFull("full"), 503, "overloaded", "server_error"),
    (EngineDied("died"), 502, "engine_died", "server_error"),
    (EngineUnavailable("starting"), 503, "engine_unavailable", "server_error"),
    (RequestFaulted("raised"), 500, "request_faulted", "server_error"),
])
async def test_an_engines_fault_has_its_status_and_code(
    client: httpx.AsyncClient, engine: MemoryEngine, fault: Exception, status: int, code: str, type: str
) -> None:
    engine.submit_fault = fault
    answer = await client.post(CHAT, json=chat_body())
    assert answer.status_code == status
    error = error_of(answer)
    assert (error["code"], error["type"], error["message"]) == (code, type, str(fault))


@pytest.mark.parametrize("fault", [QueueFull("full"), EngineUnavailable("starting"), EngineDied("died")])
def test_what_may_work_in_a_moment_says_when_to_try_again(fault: Exception) -> None:
    headers = of_fault(fault).headers
    assert 0 < int(headers["retry-after"]) <= 120
    assert "x-should-retry" not in headers


@pytest.mark.parametrize("fault", [RequestFaulted("raised"), ModelUnreadable("no file")])
def test_what_would_fail_again_tells_clients_not_to_retry(fault: Exception) -> None:
    headers = of_fault(fault).headers
    assert headers["x-should-retry"] == "false"
    assert "retry-after" not in headers


async def test_a_schema_that_only_the_engine_can_refuse_is_a_400_like_any_other(
    client: httpx.AsyncClient, engine: MemoryEngine
) -> None:
    engine.fault_after, engine.fault = 0, GrammarRefused("the automaton has 9 states more than it may have")
    wanted = {"type": "json_schema", "json_schema": {"name": "bike", "schema": {"type": "object"}}}
    answer = await client.post(CHAT, json=chat_body(response_format=wanted))
    error = error_of(answer)
    assert (answer.status_code, error["code"], error["param"]) == (400, "invalid_json_schema", "response_format")
    assert error["message"] == (
        "Invalid schema for response_format 'bike': the automaton has 9 states more than it may have")


async def test_a_bug_is_a_500_that_tells_nothing_of_itself(
    client: httpx.AsyncClient, engine: MemoryEngine, caplog: pytest.LogCaptureFixture
) -> None:
    engine.tokenizer.encode_chat = lambda messages: 1 / 0
    with caplog.at_level(logging.ERROR):
        answer = await client.post(CHAT, json=chat_body())
    error = error_of(answer)
    assert (answer.status_code, error["code"]) == (500, "internal_error")
    assert "division" not in answer.text
    assert answer.headers["x-should-retry"] == "false"
    assert answer.headers["x-request-id"] in caplog.text


async def test_after_a_bug_the_next_request_works(client: httpx.AsyncClient, engine: MemoryEngine) -> None:
    encode, engine.tokenizer.encode_chat = engine.tokenizer.encode_chat, lambda messages: 1 / 0
    assert (await client.post(CHAT, json=chat_body())).status_code == 500
    engine.tokenizer.encode_chat = encode
    assert (await client.post(CHAT, json=chat_body())).status_code == 200


def test_a_message_is_cut_before_it_can_fill_a_log() -> None:
    assert len(envelope(ApiError(400, "x" * 1_000_000))["error"]["message"]) < 3000


@pytest.mark.parametrize(("fields", "param", "code"), [
    ({"max_tokens": "many"}, "max_tokens", "invalid_type"),
    ({"max_tokens": 1.5}, "max_tokens", "invalid_type"),
    ({"max_tokens": True}, "max_tokens", "invalid_type"),
    ({"max_tokens": 0}, "max_tokens", "invalid_value"),
    ({"max_completion_tokens": -1}, "max_completion_tokens", "invalid_value"),
    ({"temperature": 9}, "temperature", "invalid_value"),
    ({"temperature": "0"}, "temperature", "invalid_type"),
    ({"top_p": -0.1}, "top_p", "invalid_value"),
    ({"n": 0}, "n", "invalid_value"),
    ({"n": 17}, "n", "invalid_value"),
    ({"seed": 2**63}, "seed", "invalid_value"),
    ({"stream": "yes"}, "stream", "invalid_type"),
    ({"stop": ["a", "b", "c", "d", "e"]}, "stop", "invalid_value"),
    ({"stop": ["a", ""]}, "stop[1]", "invalid_value"),
    ({"stop": ""}, "stop", "invalid_value"),
    ({"stop": [1]}, "stop[0]", "invalid_type"),
    ({"stop": "x" * 1025}, "stop", "invalid_value"),
    ({"presence_penalty": 2.1}, "presence_penalty", "invalid_value"),
    ({"repetition_penalty": 0}, "repetition_penalty", "invalid_value"),
    ({"logit_bias": {"5": 101}}, "logit_bias.5", "invalid_value"),
    ({"logit_bias": {"hello": 1}}, "logit_bias", "invalid_value"),
    ({"logit_bias": {"-1": 1}}, "logit_bias", "invalid_value"),
    ({"logit_bias": {"5": 1, "05": 1}}, "logit_bias", "invalid_value"),
    ({"logit_bias": {"99999": 1}}, "logit_bias", "invalid_value"),
    ({"stop_token_ids": [258]}, "stop_token_ids", "invalid_value"),
    ({"logprobs": True, "top_logprobs": 21}, "top_logprobs", "invalid_value"),
    ({"top_logprobs": 2}, "top_logprobs", "invalid_value"),
    ({"min_tokens": 5, "max_tokens": 4}, "min_tokens", "invalid_value"),
    ({"stream_options": {"include_usage": True}}, "stream_options", "invalid_value"),
    ({"stream": True, "stream_options": {"include_usage": "yes"}}, "stream_options.include_usage", "invalid_type"),
    ({"prompt_cache_retention": "forever"}, "prompt_cache_retention", "invalid_value"),
    ({"cache_salt": ""}, "cache_salt", "invalid_value"),
    ({"messages": []}, "messages", "invalid_value"),
    ({"messages": "hello"}, "messages", "invalid_type"),
    ({"messages": None}, "messages", "invalid_type"),
    ({"messages": [{"content": "hello"}]}, "messages[0].role", "missing_required_parameter"),
    ({"messages": [{"role": "king", "content": "hello"}]}, "messages[0].role", "invalid_value"),
    ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content", "invalid_type"),
    ({"messages": [{"role": "user"}]}, "messages[0].content", "missing_required_parameter"),
    ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text", "invalid_type"),
    ({"model": 5}, "model", "invalid_type"),
])
async def test_a_wrong_field_is_a_400_that_names_it(
    client: httpx.AsyncClient, fields: dict[str, object], param: str, code: str
) -> None:
    answer = await client.post(CHAT, json=chat_body(**fields))
    error = error_of(answer)
    assert (answer.status_code, error["param"], error["code"]) == (400, param, code), error["message"]
    assert error["type"] == "invalid_request_error"


@pytest.mark.parametrize("missing", ["model", "messages"])
async def test_a_missing_field_is_a_400_that_names_it(client: httpx.AsyncClient, missing: str) -> None:
    body = chat_body()
    del body[missing]
    answer = await client.post(CHAT, json=body)
    error = error_of(answer)
    assert (answer.status_code, error["param"], error["code"]) == (400, missing, "missing_required_parameter")


async def test_an_error_in_a_mounted_application_has_the_envelope_too(app: FastAPI, client: httpx.AsyncClient) -> None:
    assert error_of(await client.get("/static/"))["code"] == "unknown_url"
