"""Draining: what has begun goes on, what comes is told to go elsewhere, and a process ends when it is empty."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import time

import httpx
import pytest
from fastapi import FastAPI

from gateway.drain import Drain
from tests.support.http import CHAT, Caller, chat_body, client_of, events, until
from tests.support.memory_engine import MemoryEngine
from tests.support.served import Server, serve

pytestmark = pytest.mark.timeout(240)


@pytest.mark.anyio
async def test_a_draining_gateway_refuses_with_a_typed_503_and_finishes_what_it_has(
    app: FastAPI, client: httpx.AsyncClient, engine: MemoryEngine
) -> None:
    engine.token_delay_s = 0.02
    running = Caller(app, CHAT, chat_body(stream=True))
    await until(lambda: running.text)
    app.state.drain.begin()
    refused = await client.post(CHAT, json=chat_body())
    assert refused.status_code == 503
    assert refused.json()["error"]["code"] == "draining"
    assert int(refused.headers["retry-after"]) > 0
    await running.task
    assert running.text.endswith("data: [DONE]\n\n")
    assert len(engine.requests) == 1


@pytest.mark.anyio
async def test_health_tells_of_it_and_the_gateway_itself_is_live(app: FastAPI, client: httpx.AsyncClient) -> None:
    app.state.drain.begin()
    ready = await client.get("/health/ready")
    assert (ready.status_code, ready.json()["status"]) == (503, "draining")
    assert (await client.get("/health/live")).status_code == 200
    app.state.drain.end()
    assert (await client.get("/health/ready")).status_code == 200


@pytest.mark.anyio
async def test_emptied_says_whether_all_have_ended_within_the_limit() -> None:
    left = [3, 2, 1, 0]
    assert await Drain(lambda: left.pop(0) if len(left) > 1 else left[0]).emptied(60)
    assert not await Drain(lambda: 1).emptied(0.1)
    assert await asyncio.wait_for(Drain(lambda: 0).emptied(0.0), 5)


def opened_stream(server: Server, n_tokens: int):
    body = {"model": server_model(server), "messages": [{"role": "user", "content": "Count."}], "stream": True,
            "max_tokens": n_tokens, "ignore_eos": True, "temperature": 0}
    return httpx.stream("POST", server.url + CHAT, json=body, timeout=120)


def server_model(server: Server) -> str:
    return httpx.get(server.url + "/v1/models").json()["data"][0]["id"]


def flags(model_path, folder, *more: str) -> list[str]:
    return [str(model_path), "--data-dir", str(folder), "--kv-cache-tokens", "4096", "--max-context-tokens", "2048", *more]


def test_sigterm_lets_a_stream_end_refuses_new_requests_and_exits_with_0(model_path, tmp_path) -> None:
    with serve(tmp_path, *flags(model_path, tmp_path, "--drain-timeout-s", "120")) as server:
        model = server_model(server)
        with opened_stream(server, 300) as stream:
            lines = stream.iter_lines()
            seen = [next(lines)]
            server.process.send_signal(signal.SIGTERM)
            wait_for(lambda: httpx.get(server.url + "/health/ready").json()["status"] == "draining")
            assert httpx.get(server.url + "/health/live").status_code == 200
            refused = httpx.post(server.url + CHAT, json=chat_body(model=model))
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "draining")
            seen += lines
        told = events("\n\n".join(line for line in seen if line) + "\n\n")
        assert told[-1] == "[DONE]"
        assert told[-2]["choices"][0]["finish_reason"] == "length"
        assert server.process.wait(30) == 0
        assert "Traceback" not in server.log.read_text()


def test_what_still_runs_after_the_limit_is_cut_and_says_so(model_path, tmp_path) -> None:
    with serve(tmp_path, *flags(model_path, tmp_path, "--drain-timeout-s", "0")) as server, opened_stream(server, 2000) as stream:
        lines = stream.iter_lines()
        seen = [next(lines)]
        server.process.send_signal(signal.SIGTERM)
        seen += lines
        last = json.loads([line for line in seen if line.startswith("data: ")][-1].removeprefix("data: "))
        assert last["error"]["code"] == "engine_unavailable"
        assert server.process.wait(30) == 0


def test_a_second_signal_ends_it_at_once(model_path, tmp_path) -> None:
    limit = ("--drain-timeout-s", "600")
    with serve(tmp_path, *flags(model_path, tmp_path, *limit)) as server, opened_stream(server, 2000) as stream:
        lines = stream.iter_lines()                    # kept: without it the stream would be closed
        next(lines)
        server.process.send_signal(signal.SIGTERM)
        wait_for(lambda: httpx.get(server.url + "/health/ready").json()["status"] == "draining")
        with pytest.raises(subprocess.TimeoutExpired):
            server.process.wait(0.5)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) == 0


def wait_for(holds, within_s: float = 20.0) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, "it never came to hold"
        time.sleep(0.02)


@pytest.mark.anyio
async def test_a_drained_gateway_that_resumes_answers_again(app: FastAPI) -> None:
    async with client_of(app) as client:
        app.state.drain.begin()
        assert (await client.post(CHAT, json=chat_body())).status_code == 503
        app.state.drain.end()
        assert (await client.post(CHAT, json=chat_body())).status_code == 200
