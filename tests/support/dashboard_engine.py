"""A gateway for the dashboard's tests: the real ledger and routes, an engine whose numbers the test sets.

    stage = Stage()
    stage.answer(prompt=1500, cached=1488, completion=40, ttft_s=0.06, total_s=0.9)
    app = stage.app()

Time is the stage's own: it moves only when a request takes some or the test says so.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random

import uvicorn
from fastapi import FastAPI

from gateway import dashboard, errors
from gateway.admission import Admission
from gateway.dashboard.board import Board
from gateway.dashboard.page import Pages, static_files
from gateway.dashboard.routes import Dashboard
from gateway.dashboard.series import STEP_S
from gateway.dashboard.sessions import Sessions
from gateway.ledger import Finish, Ledger
from runtime.protocol import EngineStats, ModelInfo, PoolStats, Usage

NOON_S = 1_796_040_000.0               # 2026-11-30 12:00 UTC, the stage's time of day at its start
POOL = PoolStats(
    "device", blocks_total=4096, blocks_free=4096, blocks_cached=0, blocks_used=0, block_tokens=16, block_bytes=368_640)
MODEL = ModelInfo(
    "smollm2-135m-instruct", context_tokens=8192, vocabulary_size=49_152, kernels="native", device="cpu", load_s=1.4)


@dataclass(slots=True)
class StillEngine:
    """Reports what it is told to report."""

    state: str = "ready"
    model: ModelInfo | None = MODEL
    stats: EngineStats = field(default_factory=lambda: EngineStats(pools=(POOL,)))


class Stage:
    def __init__(self, api_keys: tuple[str, ...] = ()) -> None:
        self.now_s = 1000.0
        self.engine = StillEngine()
        self.ledger = Ledger(self.clock, self.time_of_day)
        self.admission = Admission(api_keys, b"a secret of sixteen bytes or more")
        self.board = Board(self.ledger, self.engine, self.clock, tell_s=0.1)
        self.sessions = Sessions(b"another secret", self.time_of_day)
        self._n_requests = 0

    def clock(self) -> float:
        return self.now_s

    def time_of_day(self) -> float:
        return NOON_S + self.now_s - 1000.0

    def answer(
        self, *, prompt: int, cached: int, completion: int, ttft_s: float | None, total_s: float, tenant: str = "anonymous",
        endpoint: str = "chat.completions", schema: bool = False, finish: Finish = "stop", status: int = 200,
        error: str | None = None,
    ) -> None:
        """One request from arrival to end; engine and ledger both count it."""
        self._n_requests += 1
        account = self.ledger.open(f"request-{self._n_requests}", endpoint)
        account.tenant, account.schema = tenant, schema
        began_s = self.now_s
        if ttft_s is not None:
            self.pass_time(ttft_s)
            account.first_token()
        self.pass_time(began_s + total_s - self.now_s)
        usage = Usage(prompt, cached, prompt - cached, completion)
        account.close(status, finish, error=error, usage=usage)
        self._count(usage)

    def _count(self, usage: Usage) -> None:
        stats = self.engine.stats
        self.engine.stats = replace(
            stats,
            cached_tokens=stats.cached_tokens + usage.cached_tokens,
            computed_tokens=stats.computed_tokens + usage.computed_tokens,
            generated_tokens=stats.generated_tokens + usage.completion_tokens,
        )

    def hold(self, *, used: int, cached: int, **counters: int) -> None:
        """Set the pool's blocks and any other counter of the engine's."""
        pool = replace(POOL, blocks_used=used, blocks_cached=cached, blocks_free=POOL.blocks_total - used - cached)
        self.engine.stats = replace(self.engine.stats, pools=(pool,), **counters)

    def pass_time(self, length_s: float) -> None:
        """Let time pass as the history's task would see it: a step at each multiple of five seconds."""
        end_s = self.now_s + length_s
        while (next_s := (self.now_s // STEP_S + 1) * STEP_S) <= end_s:
            self.now_s = next_s
            self.board.close_step()
        self.now_s = end_s

    def app(self) -> FastAPI:
        app = FastAPI()
        app.state.ledger, app.state.engine, app.state.admission = self.ledger, self.engine, self.admission
        app.state.dashboard = Dashboard(self.board, self.sessions, Pages(), static_files())
        errors.install(app)
        app.include_router(dashboard.router)
        app.include_router(dashboard.front_door)
        return app


def busy_quarter_of_an_hour() -> Stage:
    """A stage with a plausible load behind it: the same at every call."""
    stage, random = Stage(), Random(7)
    tenants = ("search", "support-bot", "billing", "research")
    while stage.now_s < 1000.0 + 1140.0:
        busy = 0.25 + 0.75 * abs(((stage.now_s / 260.0) % 2) - 1)
        for _ in range(random.choice((1, 2, 3, 4)) if random.random() < busy else 0):
            _one_request(stage, random, random.choice(tenants))
        stage.pass_time(STEP_S)
    stage.answer(
        prompt=0, cached=0, completion=0, ttft_s=None, total_s=0.004, tenant="research", finish="error", status=400,
        error="invalid_json_schema", schema=True)
    for cached, ttft_s in ((1936, 0.058), (1936, 0.061), (0, 1.31)):
        stage.answer(prompt=2011, cached=cached, completion=96, ttft_s=ttft_s, total_s=2.4, tenant="search", schema=True)
    stage.pass_time(STEP_S - stage.now_s % STEP_S)       # no step is left half done: the pictures are the same each time
    stage.hold(
        used=312, cached=2871, running=3, waiting=1, evicted_blocks=418, expired_blocks=96, preemptions=2, recomputed_tokens=544)
    return stage


def _one_request(stage: Stage, random: Random, tenant: str) -> None:
    prefix = random.choice((640, 1504, 1504, 1936))
    tail, completion = random.randrange(20, 160), random.randrange(12, 120)
    cached = prefix if random.random() < 0.78 else random.choice((0, 0, 480))
    ttft_s = 0.02 + (prefix + tail - cached) * 0.00055 * random.uniform(0.85, 1.25)
    stage.answer(
        prompt=prefix + tail, cached=cached, completion=completion, ttft_s=ttft_s,
        total_s=ttft_s + completion * 0.009, tenant=tenant, schema=random.random() < 0.6,
        endpoint=random.choice(("chat.completions", "chat.completions", "completions")),
        finish="length" if random.random() < 0.12 else "stop")


@contextmanager
def served(app: FastAPI) -> Iterator[str]:
    """The application on a free port of this machine, in a thread; gives its origin."""
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning", timeout_graceful_shutdown=2))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline_s = time.monotonic() + 10
    while not server.started and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert server.started, "the server did not start within ten seconds"
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
