"""A gateway over an engine in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI

from gateway.app import create_app
from gateway.settings import Settings
from tests.support.http import client_of
from tests.support.memory_engine import MemoryEngine

SECRET = "a secret of sixteen bytes or more"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def engine() -> MemoryEngine:
    return MemoryEngine()


@pytest.fixture
def app(engine: MemoryEngine) -> FastAPI:
    return create_app(Settings(cache_secret=SECRET), engine)


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        yield client
