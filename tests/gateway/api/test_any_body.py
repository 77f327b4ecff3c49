"""Whatever a body holds, the answer is an answer or a refusal: never a failure of the server's own."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from gateway.api.wire import REFUSED, ChatBody, CompletionBody
from gateway.app import create_app
from gateway.settings import Settings
from tests.gateway.conftest import SECRET
from tests.support.http import CHAT, chat_body, client_of
from tests.support.memory_engine import MemoryEngine

# All but stream, whose answer is no JSON.
NAMES = sorted({*ChatBody.model_fields, *CompletionBody.model_fields, *REFUSED} - {"stream"})
WORDS = ["text", "json_object", "json_schema", "type", "name", "schema", "function", "none", "compact", "5m", "role", "content",
         "user", "json", "regex", "choice", "string", "properties", "$ref", "#", "enum", "object", "ttl", "mode"]
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(WORDS) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=4), inner, max_size=4),
    max_leaves=12)
bodies = st.dictionaries(st.sampled_from(NAMES), json_values, min_size=1, max_size=2)


def status_of(app: FastAPI, path: str, raw: bytes) -> tuple[int, Any]:
    async def ask() -> tuple[int, Any]:
        async with client_of(app) as client:
            answer = await client.post(path, content=raw, headers={"content-type": "application/json"})
            return answer.status_code, answer.json()

    return asyncio.run(ask())


def judge(path: str, raw: bytes) -> None:
    engine = MemoryEngine()
    status, body = status_of(create_app(Settings(cache_secret=SECRET), engine), path, raw)
    assert status in (200, 400, 404), body
    if status != 200:
        assert set(body["error"]) == {"message", "type", "param", "code"}
        assert engine.requests == []
    assert engine.active == []


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(bodies)
def test_any_fields_of_a_chat(fields: dict[str, Any]) -> None:
    judge(CHAT, json.dumps(chat_body(max_tokens=3) | fields).encode())


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(bodies)
def test_any_fields_of_a_completion(fields: dict[str, Any]) -> None:
    judge("/v1/completions", json.dumps({"model": "memory", "prompt": "x", "max_tokens": 3} | fields).encode())


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=40))
def test_any_bytes(raw: bytes) -> None:
    judge(CHAT, raw)


MANY = 20_000
MANY_KEYS = {f"k{i}": 1 for i in range(MANY)}


@pytest.mark.parametrize("fields", [
    {"prompt": [None] * MANY}, {"prompt": [[None] * MANY]}, {"prompt": [{}] * MANY}, {"prompt": [1] * MANY + ["x"]},
    {"prompt": [[]] * MANY},
    {"messages": [1] * MANY}, {"messages": [{"role": "user", "content": [None] * MANY}]},
    {"messages": [{"role": "user", "content": "", "tool_calls": [1] * MANY}]}, {"modalities": [1] * MANY},
    {"logit_bias": {str(i): "x" for i in range(MANY)}}, {"stop": [None] * MANY}, {"stop_token_ids": [None] * MANY},
    {"guided_choice": [1] * 10_000}, {"structured_outputs": {"choice": [1] * 10_000}}, {"structured_outputs": MANY_KEYS},
    {"response_format": {"type": "text", **MANY_KEYS}}, {"prompt_cache_options": MANY_KEYS},
], ids=lambda fields: next(iter(fields)))
def test_many_wrong_items_make_few_complaints(fields: dict[str, Any]) -> None:
    """The reading holds up every stream: 1,000,000 nulls as a prompt took 33 s and 3 GB before the first one ended it."""
    body_type, body = (CompletionBody, {"model": "memory"}) if "prompt" in fields else (ChatBody, chat_body())
    with pytest.raises(ValidationError) as refused:
        body_type.model_validate(body | fields)
    assert refused.value.error_count() <= 12


def test_a_repetition_penalty_that_no_logit_survives_is_the_callers_mistake() -> None:
    engine = MemoryEngine()
    body = json.dumps(chat_body(repetition_penalty=1e-300)).encode()
    status, answer = status_of(create_app(Settings(cache_secret=SECRET), engine), CHAT, body)
    assert (status, answer["error"]["param"]) == (400, "repetition_penalty")
