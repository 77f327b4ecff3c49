"""Streams keep what SDKs rely on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st

from gateway.api import stream
from gateway.api.render import ChatShape, CompletionShape, Head
from gateway.api.stream import ChunkWriter
from gateway.app import create_app
from gateway.errors import InvalidRequest
from gateway.settings import Settings
from runtime.errors import EngineDied, RequestFaulted
from runtime.protocol import Delta, Finished, Usage
from tests.gateway.conftest import SECRET
from tests.support.http import CHAT, HELLO, Caller, chat_body, events, until
from tests.support.memory_engine import MemoryEngine

pytestmark = pytest.mark.anyio
HEAD = Head("chatcmpl-1", 1_700_000_000, "memory", "fp_1")
USAGE = Usage(10, 4, 6, 3)


def finished() -> Finished:
    return Finished("r", "stop", USAGE, 0.0)


def told(raw: bytes) -> list[Any]:
    return events(raw.decode())


def merged(n_choices: int, texts: dict[int, list[str]], order: list[int]) -> Iterator[tuple[int, Delta | Finished]]:
    """The choices' pieces, interleaved as `order` says, each choice ended once its pieces are out."""
    queues: dict[int, list[Delta | Finished]] = {
        i: [*(Delta("r", text, (1,)) for text in texts[i]), finished()] for i in range(n_choices)}
    for i in [*order, *(i for i in range(n_choices) for _ in range(50))]:
        if queues[i % n_choices]:
            yield i % n_choices, queues[i % n_choices].pop(0)


@pytest.mark.parametrize("shape", [ChatShape, CompletionShape])
@given(data=st.data(), n_choices=st.integers(1, 3), include_usage=st.booleans())
def test_the_invariants_hold_however_choices_interleave(
    shape: Any, data: st.DataObject, n_choices: int, include_usage: bool
) -> None:
    texts = {i: data.draw(st.lists(st.text("ab\n é", max_size=3), max_size=8)) for i in range(n_choices)}
    order = data.draw(st.lists(st.integers(0, 2), max_size=20))
    writer = ChunkWriter(HEAD, shape(), include_usage)
    raw = b"".join(writer.step(i, happened) for i, happened in merged(n_choices, texts, order)) + writer.closing(USAGE)
    *chunks, done = told(raw)
    assert done == "[DONE]"
    if include_usage:
        last = chunks.pop()
        assert last["choices"] == [] and last["usage"]["prompt_tokens_details"]["cached_tokens"] == 4
    for key in ("id", "object", "created", "model"):
        assert len({chunk[key] for chunk in chunks}) == 1
    assert all(("usage" in chunk) == include_usage and chunk.get("usage") is None for chunk in chunks)
    for i in range(n_choices):
        own = [choice for chunk in chunks for choice in chunk["choices"] if choice["index"] == i]
        assert [choice["finish_reason"] for choice in own] == [None] * (len(own) - 1) + ["stop"]
        if shape is ChatShape:
            assert [choice["delta"].get("role") for choice in own] == ["assistant"] + [None] * (len(own) - 1)
            assert "".join(choice["delta"].get("content", "") for choice in own) == "".join(texts[i])
        else:
            assert "".join(choice["text"] for choice in own) == "".join(texts[i])


def test_nothing_may_follow_a_choices_end() -> None:
    writer = ChunkWriter(HEAD, ChatShape(), False)
    writer.step(0, finished())
    with pytest.raises(AssertionError):
        writer.step(0, Delta("r", "more", (1,)))


def test_nothing_may_follow_the_close() -> None:
    writer = ChunkWriter(HEAD, ChatShape(), False)
    writer.step(0, finished())
    writer.closing(USAGE)
    with pytest.raises(AssertionError):
        writer.failing(InvalidRequest("late"))


def test_a_stream_does_not_close_before_its_choices() -> None:
    writer = ChunkWriter(HEAD, ChatShape(), False)
    writer.step(0, Delta("r", "a", (1,)))
    with pytest.raises(AssertionError):
        writer.closing(USAGE)


def test_tokens_without_text_make_no_chunk_of_their_own() -> None:
    writer = ChunkWriter(HEAD, ChatShape(), False)
    assert len(told(writer.step(0, Delta("r", "", (195,))))) == 1      # the opening
    assert writer.step(0, Delta("r", "", (169,))) == b""


def test_an_event_is_one_line_of_json() -> None:
    raw = stream.event({"text": "a\nb\r\n\u2028é"})
    assert raw.count(b"\n") == 2 and raw.endswith(b"\n\n") and raw.startswith(b"data: ")
    assert json.loads(raw[6:]) == {"text": "a\nb\r\n\u2028é"}


async def test_a_stream_joins_to_the_answer_in_one_body(client: httpx.AsyncClient) -> None:
    whole = (await client.post(CHAT, json=chat_body(n=2, seed=5))).json()
    answer = await client.post(CHAT, json=chat_body(n=2, seed=5, stream=True, stream_options={"include_usage": True}))
    *chunks, last, done = events(answer.text)
    assert done == "[DONE]"
    joined = {0: "", 1: ""}
    for chunk in chunks:
        for choice in chunk["choices"]:
            joined[choice["index"]] += choice["delta"].get("content") or ""
    assert list(joined.values()) == [choice["message"]["content"] for choice in whole["choices"]]
    for key in ("prompt_tokens", "completion_tokens", "total_tokens"):
        assert last["usage"][key] == whole["usage"][key]


async def test_the_headers_keep_proxies_from_holding_the_stream(client: httpx.AsyncClient) -> None:
    headers = (await client.post(CHAT, json=chat_body(stream=True))).headers
    assert headers["content-type"] == "text/event-stream; charset=utf-8"
    assert headers["cache-control"] == "no-cache, no-transform"
    assert headers["x-accel-buffering"] == "no"
    assert "content-length" not in headers and "x-request-id" in headers


async def test_the_first_chunk_has_the_role_and_an_empty_text(client: httpx.AsyncClient) -> None:
    first = events((await client.post(CHAT, json=chat_body(stream=True))).text)[0]
    assert first["choices"] == [{
        "index": 0, "delta": {"role": "assistant", "content": "", "refusal": None}, "logprobs": None, "finish_reason": None}]


async def test_without_include_usage_no_chunk_has_usage(client: httpx.AsyncClient) -> None:
    chunks = events((await client.post(CHAT, json=chat_body(stream=True))).text)[:-1]
    assert not any("usage" in chunk for chunk in chunks)


async def test_streamed_logprobs_equal_those_of_the_body(client: httpx.AsyncClient) -> None:
    fields = {"logprobs": True, "top_logprobs": 1, "max_tokens": 4}
    whole = (await client.post(CHAT, json=chat_body(**fields))).json()["choices"][0]["logprobs"]["content"]
    chunks = events((await client.post(CHAT, json=chat_body(stream=True, **fields))).text)[:-1]
    assert [token for chunk in chunks for c in chunk["choices"] if c["logprobs"] for token in c["logprobs"]["content"]] == whole


async def test_a_failure_before_the_first_token_has_its_http_status(client: httpx.AsyncClient, engine: MemoryEngine) -> None:
    engine.fault_after, engine.fault = 0, RequestFaulted("the row raised")
    answer = await client.post(CHAT, json=chat_body(stream=True))
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "request_faulted")


async def test_a_failure_in_mid_stream_is_one_error_event_and_no_done(
    client: httpx.AsyncClient, app: FastAPI, engine: MemoryEngine
) -> None:
    engine.fault_after, engine.fault, engine.token_delay_s = 3, EngineDied("the engine died"), 0.001
    answer = await client.post(CHAT, json=chat_body(stream=True, n=2))
    *chunks, last = events(answer.text)
    assert answer.status_code == 200
    assert last == {"error": {"message": "the engine died", "type": "server_error", "param": None, "code": "engine_died"}}
    assert all("error" not in chunk for chunk in chunks)
    (record,) = app.state.ledger.snapshot().recent
    assert (record.finish, record.error) == ("error", "engine_died")
    assert engine.active == []


async def test_a_stream_that_the_servers_end_cuts_says_so(app: FastAPI, engine: MemoryEngine) -> None:
    engine.token_delay_s, engine.repeat = 0.001, 1000
    caller = Caller(app, CHAT, chat_body(stream=True))
    await until(lambda: len(caller.sent) > 3)
    caller.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller.task
    assert events(caller.text)[-1]["error"]["code"] == "engine_unavailable"
    assert "[DONE]" not in caller.text
    (record,) = app.state.ledger.snapshot().recent
    assert (record.finish, record.error) == ("cancelled", "server_stopped")


async def test_a_silent_stream_is_kept_alive_by_comments(
    app: FastAPI, engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream.EventStream.__init__, "__kwdefaults__", {"keep_alive_s": 0.02})
    engine.token_delay_s = 0.1
    caller = Caller(app, CHAT, chat_body(stream=True, max_tokens=3))
    await caller.task
    assert caller.text.count(": ping\n\n") >= 4
    assert "".join(c["choices"][0]["delta"].get("content", "") for c in events(caller.text)[:-1]) == "You"


async def test_steps_that_came_together_are_sent_together(app: FastAPI, engine: MemoryEngine) -> None:
    caller = Caller(app, CHAT, chat_body(stream=True, messages=HELLO))
    await caller.task
    assert len(caller.sent) < len(events(caller.text))


async def test_a_reader_that_stalls_is_given_up_at_the_deadline(engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "LAST_WORD_S", 0.05)
    app = create_app(Settings(cache_secret=SECRET, request_timeout_s=0.2), engine)
    engine.token_delay_s, engine.repeat = 0.001, 1000
    caller = Caller(app, CHAT, chat_body(stream=True))
    await until(lambda: len(caller.sent) > 1)
    caller.reads.clear()
    await asyncio.wait_for(caller.task, 5)
    assert engine.active == [] and len(engine.cancelled) == 1
    (record,) = app.state.ledger.snapshot().recent
    assert (record.finish, record.error) == ("error", "request_timeout")
