"""The end of taking requests, while those that have begun go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from gateway.errors import Draining

POLL_S = 0.05


class Drain:
    """Whether this gateway takes requests. Begun by a signal that ends the process, or by an operator, who may end it again."""

    def __init__(self, n_open: Callable[[], int]) -> None:
        """`n_open`: requests that have begun and not ended."""
        self._n_open = n_open
        self.begun = False

    @property
    def n_open(self) -> int:
        return self._n_open()

    def begin(self) -> None:
        self.begun = True

    def end(self) -> None:
        """Take requests again."""
        self.begun = False

    def refuse_if_begun(self) -> None:
        """Raises Draining where no request is taken any more."""
        if self.begun:
            raise Draining

    async def emptied(self, limit_s: float) -> bool:
        """Wait until no request is open, `limit_s` at most; whether it came to that."""
        try:
            async with asyncio.timeout(limit_s):
                while self._n_open() > 0:
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            return False
        return True
