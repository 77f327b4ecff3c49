"""What the dashboard knows at one moment, as numbers. Formatting is `view`'s work.

Where each number comes from:

    hit rates, tokens from cache    the ledger's totals: all requests finished since the gateway started
    TTFT percentiles                the ledger's ring: the last requests, see `Percentiles`
    tokens a second, charts         differences of the engine's own counters
    tiers, running, waiting         the engine's latest report
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Protocol

from gateway.dashboard.series import Counters, Series, Step
from gateway.ledger import LedgerSnapshot, RequestRecord
from runtime.protocol import EngineStats, ModelInfo


class EngineLike(Protocol):
    """The part of an engine that the dashboard reads."""

    @property
    def state(self) -> str: ...
    @property
    def model(self) -> ModelInfo | None: ...
    @property
    def stats(self) -> EngineStats: ...


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a whole; its rate is unknown, not zero, while the whole is empty."""

    part: int
    whole: int

    @property
    def rate(self) -> float | None:
        return self.part / self.whole if self.whole else None


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Of the requests in the ledger's ring that this kind applies to; with fewer than 100, p99 is the slowest of them."""

    n: int
    p50_s: float | None
    p99_s: float | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    tokens: Share                      # prompt tokens read from cache, of prompt tokens
    requests: Share                    # answered requests that read at least one token from cache, of those answered
    ended: int                         # requests that ended, answered or not
    unanswered: int                    # of these, failed or cancelled
    hit_ttft: Percentiles
    miss_ttft: Percentiles
    engine_state: str
    model: ModelInfo | None
    stats: EngineStats
    rates: tuple[float, float] | None  # (prompt, generated) tokens a second just now
    uptime_s: float                    # of the gateway
    steps: Sequence[Step]
    steps_end_s: float
    minutes: Sequence[tuple[int, Sequence[Step]]]
    recent: Sequence[RequestRecord]    # newest first


def counters_of(stats: EngineStats) -> Counters:
    return Counters(stats.cached_tokens, stats.computed_tokens, stats.generated_tokens)


def answered(record: RequestRecord) -> bool:
    """The answer was complete, or cut where the caller wanted it cut."""
    return record.finish in ("stop", "length")


def nearest_rank(values: Iterable[float], share: float) -> float | None:
    """The smallest value that at least `share` of the values do not exceed: always one that was measured."""
    ordered = sorted(values)
    return ordered[max(ceil(share * len(ordered)), 1) - 1] if ordered else None


def ttft_percentiles(records: Iterable[RequestRecord], *, hits: bool) -> Percentiles:
    """Over the answered ones among the records."""
    values = [r.ttft_s for r in records if answered(r) and r.ttft_s is not None and r.hit == hits]
    return Percentiles(len(values), nearest_rank(values, 0.5), nearest_rank(values, 0.99))


def take(
    ledger: LedgerSnapshot, engine: EngineLike, series: Series, *, now_s: float, uptime_s: float, tenant: str | None,
) -> Snapshot:
    """All that the page shows. `tenant`: only that tenant's requests are listed; None lists everyone's."""
    stats = engine.stats
    unanswered = ledger.failed + ledger.cancelled
    return Snapshot(
        tokens=Share(ledger.cached_tokens, ledger.prompt_tokens),
        requests=Share(ledger.hits, ledger.answered),
        ended=ledger.answered + unanswered,
        unanswered=unanswered,
        hit_ttft=ttft_percentiles(ledger.recent, hits=True),
        miss_ttft=ttft_percentiles(ledger.recent, hits=False),
        engine_state=engine.state,
        model=engine.model,
        stats=stats,
        rates=series.recent_rate(now_s, counters_of(stats)),
        uptime_s=uptime_s,
        steps=series.window(),
        steps_end_s=series.end_s,
        minutes=list(series.minutes()),
        recent=sorted((record for record in ledger.recent if tenant in (None, record.tenant)),
                      key=lambda record: record.started_s, reverse=True),      # the ledger has them as they ended
    )
