"""GET /v1/engine and its verbs: what they do, and to whom they are open."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI

from gateway.app import create_app
from gateway.settings import Settings
from tests.support.http import CHAT, Caller, chat_body, client_of, until
from tests.support.memory_engine import MemoryEngine

pytestmark = pytest.mark.anyio
KEY = "the operator's own key".replace(" ", "-")
TENANT = "alice:a-key-of-a-tenant"
OPERATOR = {"authorization": f"Bearer {KEY}"}
VERBS = ("drain", "resume", "sleep", "wake")


@pytest.fixture
def app(engine: MemoryEngine) -> FastAPI:
    settings = Settings(cache_secret="a secret of sixteen bytes or more", api_keys=(TENANT,), admin_key=KEY)
    return create_app(settings, engine)


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app, authorization="Bearer a-key-of-a-tenant") as client:
        yield client


async def told(client: httpx.AsyncClient, verb: str = "", status: int = 200) -> dict:
    path = f"/v1/engine/{verb}".rstrip("/")
    answer = await client.request("POST" if verb else "GET", path, headers=OPERATOR)
    assert answer.status_code == status, answer.text
    return answer.json()


async def test_the_status_says_what_runs(client: httpx.AsyncClient) -> None:
    assert await told(client) == {
        "status": "ready", "takes_requests": True, "open_requests": 0, "model": "memory", "epoch": ""}


async def test_draining_and_resuming(client: httpx.AsyncClient) -> None:
    assert (await told(client, "drain"))["status"] == "draining"
    assert (await client.post(CHAT, json=chat_body())).json()["error"]["code"] == "draining"
    assert (await told(client, "resume"))["status"] == "ready"
    assert (await client.post(CHAT, json=chat_body())).status_code == 200


async def test_asleep_it_answers_with_a_typed_503_until_it_is_woken(client: httpx.AsyncClient) -> None:
    assert (await told(client, "sleep"))["status"] == "asleep"
    refused = await client.post(CHAT, json=chat_body())
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "engine_asleep")
    assert "retry-after" in refused.headers
    ready = await client.get("/health/ready")
    assert (ready.status_code, ready.json()["status"]) == (503, "asleep")
    assert (await told(client, "wake"))["status"] == "ready"
    assert (await client.post(CHAT, json=chat_body())).status_code == 200


async def test_it_is_not_put_to_sleep_while_requests_are_in_it(
    app: FastAPI, client: httpx.AsyncClient, engine: MemoryEngine
) -> None:
    engine.token_delay_s = 0.02
    engine.repeat = 50
    app.state.admission._keys = []                     # the raw caller below sends no key
    caller = Caller(app, CHAT, chat_body(stream=True))
    await until(lambda: caller.text)
    assert (await told(client, "sleep", 409))["error"]["code"] == "engine_busy"
    assert (await told(client))["open_requests"] == 1
    caller.hang_up()
    await caller.task


async def test_an_engine_that_fell_asleep_by_itself_is_ready_and_woken_by_a_request(
    client: httpx.AsyncClient, engine: MemoryEngine
) -> None:
    engine.state, engine.sleeps_lightly = "asleep", True
    assert (await client.get("/health/ready")).status_code == 200
    assert (await client.post(CHAT, json=chat_body())).status_code == 200
    assert engine.state == "ready"


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer a-key-of-a-tenant"}, {"authorization": "Bearer x"}])
async def test_nobody_but_the_operator_may(app: FastAPI, engine: MemoryEngine, headers: dict[str, str]) -> None:
    async with client_of(app) as client:
        answers = [await client.get("/v1/engine", headers=headers)]
        answers += [await client.post(f"/v1/engine/{verb}", headers=headers) for verb in VERBS]
    assert [answer.status_code for answer in answers] == [401] * 5
    assert engine.state == "ready"
    assert not app.state.drain.begun


async def test_the_operators_key_is_no_tenants(app: FastAPI) -> None:
    async with client_of(app) as client:
        assert (await client.post(CHAT, json=chat_body(), headers=OPERATOR)).status_code == 401


@pytest.mark.parametrize("headers", [{}, OPERATOR, {"authorization": "Bearer "}])
async def test_without_an_operators_key_all_of_it_is_closed(engine: MemoryEngine, headers: dict[str, str]) -> None:
    app = create_app(Settings(cache_secret="a secret of sixteen bytes or more"), engine)
    async with client_of(app) as client:
        answers = [await client.get("/v1/engine", headers=headers)]
        answers += [await client.post(f"/v1/engine/{verb}", headers=headers) for verb in VERBS]
    assert [answer.status_code for answer in answers] == [403] * 5
    assert answers[0].json()["error"]["code"] == "no_operator"
    assert engine.state == "ready"
