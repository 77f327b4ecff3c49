"""The application's life and its engine's."""

from __future__ import annotations

import asyncio

import pytest

from gateway.app import create_app
from gateway.settings import Settings
from runtime.errors import EngineUnavailable
from tests.gateway.conftest import SECRET
from tests.support.http import CHAT, chat_body, client_of, until
from tests.support.memory_engine import MemoryEngine

pytestmark = pytest.mark.anyio


async def test_an_engine_to_be_started_is_started_and_stopped_with_the_application() -> None:
    engine = MemoryEngine(ready=False)
    app = create_app(Settings(cache_secret=SECRET), engine)
    async with app.router.lifespan_context(app), client_of(app) as client:
        await until(lambda: engine.started == 1)
        assert (await client.get("/health/ready")).status_code == 503
        assert (await client.post(CHAT, json=chat_body())).status_code == 503
        engine.may_start.set()
        await until(lambda: engine.state == "ready")
        assert (await client.post(CHAT, json=chat_body())).status_code == 200
        assert engine.stopped == 0
    assert (engine.started, engine.stopped) == (1, 1)


async def test_an_engine_that_the_caller_started_stays_the_callers() -> None:
    engine = MemoryEngine()
    app = create_app(Settings(cache_secret=SECRET), engine)
    async with app.router.lifespan_context(app):
        pass
    assert (engine.started, engine.stopped) == (0, 0)


async def test_an_engine_that_cannot_start_leaves_an_application_that_says_so() -> None:
    engine = MemoryEngine(ready=False)

    async def start() -> None:
        engine.state = "failed"
        raise EngineUnavailable("no such model file")

    engine.start = start
    app = create_app(Settings(cache_secret=SECRET), engine)
    async with app.router.lifespan_context(app), client_of(app) as client:
        await until(lambda: engine.state == "failed")
        assert (await client.get("/health/ready")).json()["status"] == "failed"
        assert (await client.get("/health/live")).status_code == 200


async def test_an_application_can_end_while_its_engine_still_loads() -> None:
    engine = MemoryEngine(ready=False)
    app = create_app(Settings(cache_secret=SECRET), engine)
    async with asyncio.timeout(2), app.router.lifespan_context(app):
        await until(lambda: engine.started == 1)
    assert engine.stopped == 1


async def test_the_state_has_what_other_rooms_read(engine: MemoryEngine) -> None:
    settings = Settings(cache_secret=SECRET)
    app = create_app(settings, engine)
    assert app.state.settings is settings and app.state.engine is engine
    assert app.state.ledger.snapshot().open == 0 and app.state.admission.open
