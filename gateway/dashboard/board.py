"""The dashboard of one application: its history, its listeners, and what they are told.

A `Board` reads the ledger and the engine and changes neither.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

from gateway.dashboard.series import Series
from gateway.dashboard.snapshot import EngineLike, Snapshot, answered, counters_of, take
from gateway.dashboard.view import Section, view
from gateway.ledger import Ledger, RequestRecord

MAX_LISTENERS = 32
TELL_S = 1.0                           # at most one event in so many seconds
KEEP_ALIVE_S = 15.0
RECONNECT_MS = 2000


class Board:
    """Used on the event loop only. `clock` is monotonic; a listener is told something every `tell_s` seconds at most."""

    def __init__(self, ledger: Ledger, engine: EngineLike, clock: Callable[[], float], tell_s: float = TELL_S) -> None:
        self._ledger = ledger
        self._engine = engine
        self._clock = clock
        self._tell_s = tell_s
        self._started_s = clock()
        self._series = Series(self._started_s, counters_of(engine.stats))
        self._newest: RequestRecord | None = None
        self._listeners = 0
        self._closed = asyncio.Event()
        self._views: dict[str | None, tuple[float, dict[str, Section]]] = {}

    def close_step(self) -> None:
        """End the step of the history that is under way: what was counted since the last call becomes one point."""
        recent = self._ledger.snapshot().recent
        for record in recent:
            if record is self._newest:
                break
            if answered(record) and record.ttft_s is not None:
                self._series.note_ttft(record.ttft_s, hit=record.hit)
        self._newest = recent[0] if recent else None
        self._series.close_step(self._clock(), counters_of(self._engine.stats))

    def snapshot(self, tenant: str | None) -> Snapshot:
        """The numbers of this moment; `tenant` limits the list of requests to one tenant's."""
        now_s = self._clock()
        return take(
            self._ledger.snapshot(), self._engine, self._series,
            now_s=now_s, uptime_s=now_s - self._started_s, tenant=tenant)

    def view(self, tenant: str | None) -> dict[str, Section]:
        """The page's sections at this moment."""
        return view(self.snapshot(tenant))

    def admit_listener(self) -> bool:
        """Take one of `MAX_LISTENERS` places; whoever got one must give it back with `dismiss_listener`."""
        if self._listeners >= MAX_LISTENERS or self._closed.is_set():
            return False
        self._listeners += 1
        return True

    def dismiss_listener(self) -> None:
        self._listeners -= 1

    @property
    def listeners(self) -> int:
        return self._listeners

    async def events(self, tenant: str | None) -> AsyncIterator[bytes]:
        """Server-sent events until `close`: first all sections, then those that changed, else keep-alive comments."""
        yield f"retry: {RECONNECT_MS}\n\n".encode()
        told: dict[str, Section] = {}
        told_s = self._clock()
        while not self._closed.is_set():
            now = self._shared_view(tenant)
            changed = {name: section for name, section in now.items() if told.get(name) != section}
            if changed:
                yield _event(changed)
                told, told_s = now, self._clock()
            elif self._clock() - told_s >= KEEP_ALIVE_S:
                yield b": still here\n\n"
                told_s = self._clock()
            await self._pause(self._tell_s)

    def close(self) -> None:
        """End all event streams: open ones would keep a server from shutting down."""
        self._closed.set()

    async def _pause(self, length_s: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closed.wait(), length_s)

    def _shared_view(self, tenant: str | None) -> dict[str, Section]:
        """A view at most half a telling old, made once for all listeners of a tenant."""
        now_s = self._clock()
        made_s, sections = self._views.get(tenant, (now_s, {}))
        if not sections or now_s - made_s >= self._tell_s / 2:
            sections = self.view(tenant)
            self._views[tenant] = (now_s, sections)
        return sections


def _event(sections: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(sections, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()
