"""What holds for every answer: ids, times, headers, and bodies that are too large."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from gateway.app import create_app
from gateway.settings import Settings
from tests.gateway.conftest import SECRET
from tests.support.http import CHAT, chat_body
from tests.support.memory_engine import MemoryEngine

pytestmark = pytest.mark.anyio
LIMIT_BYTES = 100_000


@pytest.fixture
def app(engine: MemoryEngine) -> FastAPI:
    return create_app(Settings(cache_secret=SECRET, max_body_bytes=LIMIT_BYTES), engine)


@pytest.fixture
def port(app: FastAPI) -> Iterator[int]:
    """The application on a real socket."""
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join(10)


@pytest.mark.parametrize("path", ["/health", "/nope", "/v1/models", "/docs", "/metrics"])
async def test_every_answer_has_an_id_a_time_and_safe_headers(client: httpx.AsyncClient, path: str) -> None:
    headers = (await client.get(path)).headers
    assert headers["x-request-id"].startswith("req_")
    assert int(headers["openai-processing-ms"]) >= 0
    assert headers["x-content-type-options"] == "nosniff"
    assert "default-src 'self'" in headers["content-security-policy"]
    assert "unsafe-inline" not in headers["content-security-policy"].split("style-src")[0]
    assert "access-control-allow-origin" not in headers


async def test_ids_differ(client: httpx.AsyncClient) -> None:
    assert len({(await client.get("/health")).headers["x-request-id"] for _ in range(20)}) == 20


async def test_a_sane_request_id_is_echoed(client: httpx.AsyncClient) -> None:
    answer = await client.post(CHAT, json=chat_body(), headers={"x-request-id": "trace-1:a.b_C"})
    assert answer.headers["x-request-id"] == "trace-1:a.b_C"


@pytest.mark.parametrize("given", ["a b", "x" * 129, "<script>", "a,b", ""])
async def test_an_odd_request_id_is_replaced(client: httpx.AsyncClient, given: str) -> None:
    assert (await client.get("/health", headers={"x-request-id": given})).headers["x-request-id"].startswith("req_")


async def test_other_origins_get_no_permission(client: httpx.AsyncClient) -> None:
    asked = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    answer = await client.options(CHAT, headers=asked)
    assert answer.status_code == 405
    assert "access-control-allow-origin" not in answer.headers


async def test_a_body_at_the_limit_is_read(client: httpx.AsyncClient) -> None:
    raw = json.dumps(chat_body(stop="z" * 10)).encode()
    answer = await client.post(CHAT, content=raw + b" " * (LIMIT_BYTES - len(raw)), headers={"content-type": "application/json"})
    assert answer.status_code == 200


async def test_one_byte_more_is_a_413_in_the_envelope(client: httpx.AsyncClient) -> None:
    answer = await client.post(CHAT, content=b" " * (LIMIT_BYTES + 1), headers={"content-type": "application/json"})
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "request_too_large"
    assert str(LIMIT_BYTES) in answer.json()["error"]["message"]


async def test_a_body_of_unannounced_length_is_stopped_at_the_limit(client: httpx.AsyncClient) -> None:
    made = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal made
        for _ in range(1000):
            made += 10_000
            yield b" " * 10_000

    answer = await client.post(CHAT, content=body(), headers={"content-type": "application/json"})
    assert answer.status_code == 413
    assert answer.headers["connection"] == "close"


def test_an_announced_length_is_refused_before_any_of_the_body_is_sent(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as wire:
        wire.sendall(f"POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
                     "content-length: 20000000000\r\n\r\n".encode())
        assert wire.recv(65536).startswith(b"HTTP/1.1 413 ")


def test_a_client_that_sends_twenty_megabytes_first_still_reads_its_413(port: int) -> None:
    answer = httpx.post(f"http://127.0.0.1:{port}{CHAT}", content=b"a" * 20_000_000,
                        headers={"content-type": "application/json"}, timeout=20)
    assert answer.status_code == 413
    assert answer.json()["error"]["type"] == "invalid_request_error"


async def test_a_413_is_whole_before_the_rest_of_the_body_is_thrown_away(app: FastAPI) -> None:
    """Only then is the connection closed: closing on unread data would reset it under the answer."""
    happened: list[str] = []
    parts = [{"type": "http.request", "body": b"x" * 1000, "more_body": more} for more in (True, True, False)]

    async def receive() -> dict[str, Any]:
        happened.append("read")
        return parts.pop(0)

    async def send(message: dict[str, Any]) -> None:
        happened.append("end" if message.get("more_body") is False else message["type"].removeprefix("http.response."))

    scope = {"type": "http", "method": "POST", "path": CHAT, "headers": [(b"content-length", b"200000")]}
    await app(scope, receive, send)
    assert happened == ["start", "body", "read", "read", "read", "end"]


def test_the_next_connection_works_after_a_413(port: int) -> None:
    url = f"http://127.0.0.1:{port}{CHAT}"
    assert httpx.post(url, content=b"a" * 1_000_000, headers={"content-type": "application/json"}, timeout=20).status_code == 413
    assert httpx.post(url, json=chat_body(), timeout=20).status_code == 200


def test_a_client_that_hangs_up_in_its_body_leaves_nothing_open(port: int, app: FastAPI, engine: MemoryEngine) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as wire:
        wire.sendall(f"POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
                     "content-length: 1000\r\n\r\n{".encode())
        deadline = time.monotonic() + 5
        while app.state.ledger.snapshot().open == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert app.state.ledger.snapshot().open == 1
    while app.state.ledger.snapshot().open and time.monotonic() < deadline:
        time.sleep(0.01)
    snapshot = app.state.ledger.snapshot()
    assert (snapshot.open, snapshot.cancelled, engine.requests) == (0, 1, [])


def test_a_client_that_hangs_up_on_a_real_socket_ends_its_generation(port: int, engine: MemoryEngine) -> None:
    engine.token_delay_s, engine.repeat = 0.01, 100
    body = json.dumps(chat_body(stream=True)).encode()
    with socket.create_connection(("127.0.0.1", port), timeout=10) as wire:
        wire.sendall(f"POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
                     f"content-length: {len(body)}\r\n\r\n".encode() + body)
        assert b"200 OK" in wire.recv(65536)
        assert len(engine.active) == 1
    deadline = time.monotonic() + 2
    while engine.active and time.monotonic() < deadline:
        time.sleep(0.005)
    assert engine.active == [] and len(engine.cancelled) == 1
