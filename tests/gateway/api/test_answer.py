"""A request's way: who hangs up, what takes too long, and what the ledger keeps of it."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from gateway.app import create_app
from gateway.ledger import RequestRecord
from gateway.settings import Settings
from runtime.errors import QueueFull
from tests.gateway.conftest import SECRET
from tests.support.http import CHAT, Caller, chat_body, client_of, events, until
from tests.support.memory_engine import MemoryEngine

pytestmark = pytest.mark.anyio


def only_record(app: FastAPI) -> RequestRecord:
    snapshot = app.state.ledger.snapshot()
    assert snapshot.open == 0
    (record,) = snapshot.recent
    return record


@pytest.mark.parametrize("n", [1, 3])
async def test_hanging_up_in_mid_stream_cancels_at_once(app: FastAPI, engine: MemoryEngine, n: int) -> None:
    engine.token_delay_s, engine.repeat = 0.005, 1000
    caller = Caller(app, CHAT, chat_body(stream=True, n=n))
    await until(lambda: len(caller.sent) > 2)
    caller.hang_up()
    await asyncio.wait_for(caller.task, 0.5)
    assert engine.active == [] and len(engine.cancelled) == n
    record = only_record(app)
    assert (record.status, record.finish, record.error) == (499, "cancelled", "client_closed_request")
    assert record.completion_tokens > 0 and record.ttft_s is not None and record.stream
    assert "[DONE]" not in caller.text


async def test_hanging_up_while_a_body_is_made_cancels_at_once(app: FastAPI, engine: MemoryEngine) -> None:
    engine.token_delay_s, engine.repeat = 0.005, 1000
    caller = Caller(app, CHAT, chat_body())
    await until(lambda: engine.active)
    await asyncio.sleep(0.03)
    assert caller.sent == []
    caller.hang_up()
    await asyncio.wait_for(caller.task, 0.5)
    assert engine.active == [] and len(engine.cancelled) == 1
    record = only_record(app)
    assert (record.status, record.finish) == (499, "cancelled")
    assert record.completion_tokens > 0


@pytest.mark.parametrize("stream", [True, False])
async def test_hanging_up_before_the_first_token_cancels_at_once(app: FastAPI, engine: MemoryEngine, stream: bool) -> None:
    engine.first_delay_s = 10
    caller = Caller(app, CHAT, chat_body(stream=stream))
    await until(lambda: engine.active)
    caller.hang_up()
    await asyncio.wait_for(caller.task, 0.5)
    assert engine.active == [] and len(engine.cancelled) == 1
    assert only_record(app).finish == "cancelled"


async def test_a_server_that_stops_cancels_what_runs(app: FastAPI, engine: MemoryEngine) -> None:
    engine.first_delay_s = 10
    caller = Caller(app, CHAT, chat_body())
    await until(lambda: engine.active)
    caller.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller.task
    assert engine.active == []
    assert only_record(app).error == "server_stopped"


async def test_the_next_request_works_after_a_hang_up(app: FastAPI, engine: MemoryEngine, client: httpx.AsyncClient) -> None:
    engine.first_delay_s = 10
    caller = Caller(app, CHAT, chat_body())
    await until(lambda: engine.active)
    caller.hang_up()
    await caller.task
    engine.first_delay_s = 0
    assert (await client.post(CHAT, json=chat_body())).status_code == 200


@pytest.fixture
def hurried(engine: MemoryEngine) -> FastAPI:
    return create_app(Settings(cache_secret=SECRET, request_timeout_s=0.1), engine)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_request_that_takes_too_long_to_begin_is_a_504(hurried: FastAPI, engine: MemoryEngine, stream: bool) -> None:
    engine.first_delay_s = 10
    async with client_of(hurried) as client:
        answer = await client.post(CHAT, json=chat_body(stream=stream))
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["type"]) == (504, "request_timeout", "timeout")
    assert answer.headers["x-should-retry"] == "false"
    assert engine.active == [] and len(engine.cancelled) == 1
    assert only_record(hurried).error == "request_timeout"


async def test_a_stream_that_takes_too_long_ends_with_an_error_event(hurried: FastAPI, engine: MemoryEngine) -> None:
    engine.token_delay_s, engine.repeat = 0.005, 1000
    async with client_of(hurried) as client:
        answer = await client.post(CHAT, json=chat_body(stream=True))
    assert answer.status_code == 200
    assert events(answer.text)[-1]["error"]["code"] == "request_timeout"
    assert engine.active == []


async def test_an_answer_leaves_its_record(client: httpx.AsyncClient, app: FastAPI) -> None:
    body = (await client.post(CHAT, json=chat_body(response_format={"type": "json_object"}))).json()
    record = only_record(app)
    assert (record.request_id, record.endpoint, record.status, record.finish) == (body["id"], "chat.completions", 200, "stop")
    assert (record.prompt_tokens, record.completion_tokens) == (24, 2)
    assert record.schema and not record.stream
    assert record.ttft_s is not None and 0 < record.ttft_s <= record.total_s


async def test_a_stream_leaves_its_record(client: httpx.AsyncClient, app: FastAPI) -> None:
    answer = await client.post(CHAT, json=chat_body(stream=True, max_tokens=3))
    record = only_record(app)
    assert record.request_id == events(answer.text)[0]["id"]
    assert (record.status, record.finish, record.stream, record.completion_tokens) == (200, "length", True, 3)


@pytest.mark.parametrize(("fields", "status", "error"), [
    ({"n": 0}, 400, "invalid_value"), ({"model": "x"}, 404, "model_not_found"),
    ({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "x"}}}}, 400,
     "invalid_json_schema"),
])
async def test_a_refusal_leaves_its_record(
    client: httpx.AsyncClient, app: FastAPI, fields: dict[str, Any], status: int, error: str
) -> None:
    await client.post(CHAT, json=chat_body(**fields))
    record = only_record(app)
    assert (record.status, record.finish, record.error) == (status, "error", error)
    assert (record.prompt_tokens, record.completion_tokens, record.ttft_s) == (0, 0, None)


async def test_a_full_queue_leaves_its_record(client: httpx.AsyncClient, app: FastAPI, engine: MemoryEngine) -> None:
    engine.submit_fault = QueueFull("full")
    answer = await client.post(CHAT, json=chat_body(n=4))
    assert answer.status_code == 503 and "retry-after" in answer.headers
    assert only_record(app).error == "overloaded"


async def test_a_large_prompt_does_not_hold_up_the_event_loop(engine: MemoryEngine, client: httpx.AsyncClient) -> None:
    encode, engine.tokenizer.encode_chat = engine.tokenizer.encode_chat, lambda messages: time.sleep(0.5) or encode(messages)
    large = asyncio.create_task(client.post(CHAT, json=chat_body(messages=[{"role": "user", "content": "x" * 5000}])))
    await asyncio.sleep(0.05)
    began = time.monotonic()
    assert (await client.get("/health/live")).status_code == 200
    assert time.monotonic() - began < 0.3
    assert (await large).status_code == 400


async def test_many_at_once_do_not_mix(client: httpx.AsyncClient, engine: MemoryEngine) -> None:
    engine.token_delay_s = 0.0005

    async def ask(i: int) -> str:
        answer = await client.post(CHAT, json=chat_body(stream=i % 2 == 0, messages=[{"role": "user", "content": f"number {i}"}]))
        if i % 2:
            return json.loads(answer.text)["choices"][0]["message"]["content"]
        return "".join(c["choices"][0]["delta"].get("content", "") for c in events(answer.text)[:-1])

    assert await asyncio.gather(*map(ask, range(30))) == [f"You said: number {i}" for i in range(30)]
