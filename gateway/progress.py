"""How far a download is: one moving line on a terminal, a line every so often elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

BAR_CELLS = 30
PLAIN_LINE_EVERY_S = 5.0


class Progress:
    """Shows `done` of `total` bytes on `out`. `close()` ends the moving line."""

    def __init__(self, label: str, total_bytes: int, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._label = label
        self._total = max(1, total_bytes)
        self._out = out
        self._clock = clock
        self._moving = out.isatty()
        self._started = self._last_line = clock()
        self._shown = 0
        if not self._moving:
            self._line(f"{label}: {megabytes(total_bytes)}")

    def show(self, done_bytes: int) -> None:
        now = self._clock()
        self._shown = min(done_bytes, self._total)
        share = self._shown / self._total
        speed = self._shown / max(now - self._started, 0.1)
        text = f"{100 * share:3.0f} %  {megabytes(self._shown)} of {megabytes(self._total)}  {megabytes(speed)}/s"
        if self._moving:
            filled = int(share * BAR_CELLS)
            self._out.write(f"\r{self._label}  [{'#' * filled}{'.' * (BAR_CELLS - filled)}] {text}\x1b[K")
            self._out.flush()
        elif now - self._last_line >= PLAIN_LINE_EVERY_S:
            self._last_line = now
            self._line(f"{self._label}: {text}")

    def close(self) -> None:
        if self._moving:
            self._out.write("\n")
            self._out.flush()

    def _line(self, text: str) -> None:
        self._out.write(text + "\n")
        self._out.flush()


def megabytes(n_bytes: float) -> str:
    """Decimal megabytes, as download sizes are usually told."""
    return f"{n_bytes / 1e6:.1f} MB"
