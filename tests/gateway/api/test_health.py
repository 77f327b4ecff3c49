"""Whether the gateway lives, and whether it can serve."""

from __future__ import annotations

import httpx
import pytest

from tests.support.http import CHAT, chat_body
from tests.support.memory_engine import MemoryEngine

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("path", ["/health", "/health/ready"])
@pytest.mark.parametrize("state", ["starting", "restarting", "failed", "stopped"])
async def test_an_engine_that_takes_nothing_is_not_ready(
    client: httpx.AsyncClient, engine: MemoryEngine, path: str, state: str
) -> None:
    engine.state = state
    answer = await client.get(path)
    assert (answer.status_code, answer.json()["status"]) == (503, state)
    assert "retry-after" in answer.headers


@pytest.mark.parametrize("path", ["/health", "/health/ready"])
async def test_a_ready_engine_is_ready(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path)
    assert (answer.status_code, answer.json()) == (200, {"status": "ready", "model": "memory"})


async def test_the_gateway_lives_whatever_its_engine_does(client: httpx.AsyncClient, engine: MemoryEngine) -> None:
    engine.state = "failed"
    assert (await client.get("/health/live")).status_code == 200


@pytest.mark.parametrize("state", ["starting", "restarting", "failed"])
async def test_a_request_to_an_engine_that_takes_nothing_is_a_503(
    client: httpx.AsyncClient, engine: MemoryEngine, state: str
) -> None:
    engine.state = state
    answer = await client.post(CHAT, json=chat_body())
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "engine_unavailable")


@pytest.mark.parametrize("path", ["/health", "/health/live", "/health/ready"])
async def test_a_probe_may_ask_for_the_head_alone(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.head(path)
    assert (answer.status_code, answer.content) == (200, b"")


async def test_the_version_is_that_of_the_distribution(client: httpx.AsyncClient) -> None:
    from gateway import __version__
    assert (await client.get("/version")).json() == {"name": "turnstile", "version": __version__}
