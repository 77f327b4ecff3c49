"""The gateway keeps nothing of requests that have ended, however they ended."""

from __future__ import annotations

import gc
import random

import pytest
from fastapi import FastAPI

from gateway.ledger import KEPT_RECORDS
from tests.support.http import CHAT, Caller, chat_body, until
from tests.support.memory_engine import MemoryEngine

pytestmark = pytest.mark.anyio
KINDS = (
    {"stream": True}, {}, {"n": 3}, {"best_of": 3}, {"use_beam_search": True, "n": 2}, {"logprobs": True, "top_logprobs": 2},
    {"response_format": {"type": "json_object"}}, {"temperature": 99}, {"model": "none"})


async def send(app: FastAPI, rng: random.Random) -> None:
    """A request of some kind; a third of those that stream hang up on the way."""
    fields = rng.choice(KINDS)
    caller = Caller(app, CHAT, chat_body(**{"max_tokens": rng.randrange(1, 20), **fields}))
    if "stream" in fields and rng.random() < 1 / 3:
        await until(lambda: caller.sent)
        caller.hang_up()
    await caller.task


def n_objects(engine: MemoryEngine) -> int:
    engine.requests.clear()                        # the test engine's own notes
    engine.cancelled.clear()
    engine._prompts.clear()
    gc.collect()
    return len(gc.get_objects())


async def test_hundreds_of_requests_leave_no_objects_behind(app: FastAPI, engine: MemoryEngine) -> None:
    rng = random.Random(5)
    for _ in range(2 * KEPT_RECORDS):              # until the ledger's ring and all caches are full
        await send(app, rng)
    before = n_objects(engine)
    for _ in range(500):
        await send(app, rng)
    assert n_objects(engine) - before < 250, "half an object a request"
    assert app.state.ledger.n_open == 0
    assert engine.active == []
