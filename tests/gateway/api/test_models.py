"""GET /v1/models."""

from __future__ import annotations

import httpx
import pytest

from gateway.app import create_app
from gateway.settings import Settings
from tests.gateway.conftest import SECRET
from tests.support.http import client_of
from tests.support.memory_engine import MemoryEngine

pytestmark = pytest.mark.anyio


async def test_the_model_is_listed_with_what_sdks_read(client: httpx.AsyncClient) -> None:
    body = (await client.get("/v1/models")).json()
    assert body["object"] == "list"
    (model,) = body["data"]
    assert (model["id"], model["object"], model["owned_by"], model["max_model_len"]) == ("memory", "model", "turnstile", 4096)
    assert isinstance(model["created"], int)


async def test_the_model_is_found_by_its_id(client: httpx.AsyncClient) -> None:
    assert (await client.get("/v1/models/memory")).json() == (await client.get("/v1/models")).json()["data"][0]


async def test_a_name_with_slashes_is_a_name() -> None:
    app = create_app(Settings(cache_secret=SECRET), MemoryEngine(name="owner/model"))
    async with client_of(app) as client:
        assert (await client.get("/v1/models/owner/model")).json()["id"] == "owner/model"


async def test_before_there_is_a_model_it_is_a_503() -> None:
    app = create_app(Settings(cache_secret=SECRET), MemoryEngine(ready=False))
    async with client_of(app) as client:
        answer = await client.get("/v1/models")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "engine_unavailable")
