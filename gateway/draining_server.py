"""uvicorn's server with another answer to a signal. Importing it imports uvicorn, which is slow: do so only to serve."""

from __future__ import annotations

import asyncio
import logging
from types import FrameType

import uvicorn

from gateway.drain import POLL_S, Drain

log = logging.getLogger("turnstile.gateway")


class DrainingServer(uvicorn.Server):
    """At the first signal it takes no more requests, and ends when those that run have ended; at the second one it ends at once.

    It listens until then, so that health checks and refused clients hear why.
    """

    def __init__(self, drain: Drain, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._drain = drain
        self._asked: tuple[int, FrameType | None] | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._asked is None:
            self._asked = (sig, frame)
            self._drain.begin()
        else:
            super().handle_exit(sig, frame)

    async def exit_when_drained(self, limit_s: float) -> None:
        """Runs beside the server: ends it after a signal, once no request is open or `limit_s` have passed."""
        while self._asked is None:
            await asyncio.sleep(POLL_S)
        if not await self._drain.emptied(limit_s):
            log.warning("%d requests were still running %g s after the signal (setting drain_timeout_s)",
                        self._drain.n_open, limit_s)
        super().handle_exit(*self._asked)
