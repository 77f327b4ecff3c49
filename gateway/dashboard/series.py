"""What happened in the last quarter of an hour, in steps of five seconds.

The engine and the ledger only count upwards. A `Series` reads their counters at fixed intervals and keeps the
differences, so that the dashboard can draw rates without asking anyone to store history.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

STEP_S = 5.0
WINDOW_S = 900.0
MAX_TTFTS_PER_STEP = 200               # of each kind: what a step can cost in memory is bounded


@dataclass(frozen=True, slots=True)
class Counters:
    """Token counters at one moment; each only grows, until the engine starts anew."""

    cached_tokens: int = 0
    computed_tokens: int = 0
    generated_tokens: int = 0

    def since(self, earlier: Counters) -> Counters:
        """What was counted between the two. A counter that fell was started anew: all of it is new."""
        return Counters(
            _grown(earlier.cached_tokens, self.cached_tokens),
            _grown(earlier.computed_tokens, self.computed_tokens),
            _grown(earlier.generated_tokens, self.generated_tokens),
        )


@dataclass(frozen=True, slots=True)
class Step:
    """One interval: tokens counted in it, and the TTFTs of the requests that finished in it."""

    start_s: float                     # on the series' clock
    end_s: float
    tokens: Counters
    hit_ttfts_s: tuple[float, ...] = ()
    miss_ttfts_s: tuple[float, ...] = ()

    @property
    def length_s(self) -> float:
        return self.end_s - self.start_s


class Series:
    """The last `WINDOW_S` seconds as steps, oldest first. Bounded; time is passed in, never read."""

    def __init__(self, now_s: float, counters: Counters) -> None:
        self._steps: deque[Step] = deque(maxlen=int(WINDOW_S / STEP_S))
        self._last_s = now_s
        self._last = counters
        self._hits: list[float] = []
        self._misses: list[float] = []

    @property
    def end_s(self) -> float:
        """When the last step ended."""
        return self._last_s

    def note_ttft(self, ttft_s: float, *, hit: bool) -> None:
        """A request finished: its TTFT belongs to the step that is under way."""
        kept = self._hits if hit else self._misses
        if len(kept) < MAX_TTFTS_PER_STEP:
            kept.append(ttft_s)

    def close_step(self, now_s: float, counters: Counters) -> None:
        """End the step under way at `now_s`. A clock that did not move closes nothing."""
        if now_s <= self._last_s:
            return
        tokens = counters.since(self._last)
        self._steps.append(Step(self._last_s, now_s, tokens, tuple(self._hits), tuple(self._misses)))
        self._last_s, self._last = now_s, counters
        self._hits, self._misses = [], []

    def window(self) -> list[Step]:
        """Steps that overlap the `WINDOW_S` seconds before the last step's end; the first may begin before them."""
        return [step for step in self._steps if step.end_s > self._last_s - WINDOW_S]

    def minutes(self) -> Iterator[tuple[int, list[Step]]]:
        """The window cut into minutes, newest first: (minutes before the end, steps that ended in that minute)."""
        by_minute: dict[int, list[Step]] = {}
        for step in self.window():
            by_minute.setdefault(int((self._last_s - step.end_s) // 60), []).append(step)
        yield from sorted(by_minute.items())

    def recent_rate(self, now_s: float, counters: Counters, over_s: float = 10.0) -> tuple[float, float] | None:
        """(prompt, generated) tokens a second over the last `over_s` seconds or a little more; None before the first second."""
        tokens, start_s = counters.since(self._last), self._last_s
        for step in reversed(self._steps):
            if now_s - start_s >= over_s:
                break
            start_s, tokens = step.start_s, _sum(tokens, step.tokens)
        length_s = now_s - start_s
        if length_s < 1.0:
            return None
        return (tokens.cached_tokens + tokens.computed_tokens) / length_s, tokens.generated_tokens / length_s


async def close_steps_forever(close_step: Callable[[], None], every_s: float = STEP_S) -> None:
    """Call `close_step` every `every_s` seconds until cancelled."""
    while True:
        await asyncio.sleep(every_s)
        close_step()


def _grown(earlier: int, now: int) -> int:
    return now - earlier if now >= earlier else now


def _sum(a: Counters, b: Counters) -> Counters:
    return Counters(
        a.cached_tokens + b.cached_tokens,
        a.computed_tokens + b.computed_tokens,
        a.generated_tokens + b.generated_tokens,
    )
