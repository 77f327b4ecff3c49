"""What every request cost: one record each, running totals, and the last two hundred for a person to look at.

    account = ledger.open(endpoint="chat.completions", ...)
    account.first_token()
    account.close(status=200, finish="stop", usage=usage)

Of each record prompt_tokens == cached_tokens + computed_tokens. A request that ended before the engine had told
its count (refused, cancelled, failed) has zeros there; its completion tokens are those that were seen.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from runtime.protocol import Usage

KEPT_RECORDS = 200
Finish = Literal["stop", "length", "cancelled", "error"]
TTFT_BOUNDS_S = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
TOTAL_BOUNDS_S = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request that has ended, whichever way."""

    request_id: str
    tenant: str
    endpoint: str                      # "chat.completions", "completions"
    started_s: float                   # wall clock, seconds since the epoch
    status: int                        # HTTP; 499: the caller hung up
    finish: Finish
    error: str | None                  # the error's code
    prompt_tokens: int
    cached_tokens: int
    computed_tokens: int
    completion_tokens: int
    forced_tokens: int                 # of the completion: without a step of their own
    recomputed_tokens: int
    ttft_s: float | None               # at the gateway, from the request's arrival; None: no token was seen
    queue_s: float | None              # in the engine's queue; None: it never got out of it
    total_s: float
    stream: bool
    schema: bool                       # the answer was held to a schema, regex or choice

    def __post_init__(self) -> None:
        assert self.prompt_tokens == self.cached_tokens + self.computed_tokens, self

    @property
    def hit(self) -> bool:
        """Whether any of the prompt was read from cache."""
        return self.cached_tokens > 0


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of observations at most as large as each bound; the last count is of all beyond."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]            # one more than bounds, not cumulative
    total: float

    @property
    def n(self) -> int:
        return sum(self.counts)


class _Observations:
    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self._counts = [0] * (len(bounds) + 1)
        self._total = 0.0

    def add(self, value: float) -> None:
        self._counts[bisect_left(self.bounds, value)] += 1
        self._total += value

    def snapshot(self) -> Histogram:
        return Histogram(self.bounds, tuple(self._counts), self._total)


@dataclass(frozen=True, slots=True)
class LedgerSnapshot:
    """All since the gateway's start, and the last records, newest first."""

    requests: dict[tuple[str, int], int]     # (endpoint, HTTP status) -> count
    prompt_tokens: int
    cached_tokens: int
    computed_tokens: int
    completion_tokens: int
    forced_tokens: int                 # of the completion: without a step of their own
    recomputed_tokens: int
    answered: int                            # requests whose answer was complete
    hits: int                                # of these, those that read any of their prompt from cache
    cancelled: int
    failed: int
    open: int                                # requests that have not ended
    ttft_hit: Histogram
    ttft_miss: Histogram
    queue: Histogram
    total: Histogram
    recent: tuple[RequestRecord, ...]


@dataclass(slots=True, eq=False)
class Account:
    """A request that has not ended yet. Its owner must close it; only the first close counts."""

    request_id: str
    endpoint: str
    ledger: Ledger
    started_s: float
    began: float                             # the ledger's monotonic clock
    tenant: str = ""
    stream: bool = False
    schema: bool = False
    completion_tokens: int = 0               # seen so far
    ttft_s: float | None = field(default=None)
    closed: bool = False

    def first_token(self) -> None:
        """Note the moment of the first token. Later calls change nothing."""
        if self.ttft_s is None:
            self.ttft_s = self.ledger.clock() - self.began

    def close(self, status: int, finish: Finish, *, error: str | None = None, usage: Usage | None = None,
              queue_s: float | None = None) -> None:
        """End the request; `usage` and `queue_s` are the engine's where it came to them."""
        if self.closed:
            return
        self.closed = True
        counted = usage or Usage(0, 0, 0, self.completion_tokens)
        self.ledger._add(RequestRecord(
            self.request_id, self.tenant, self.endpoint, self.started_s, status, finish, error,
            counted.prompt_tokens, counted.cached_tokens, counted.computed_tokens,
            counted.completion_tokens, counted.forced_tokens, counted.recomputed_tokens,
            self.ttft_s, queue_s, self.ledger.clock() - self.began, self.stream, self.schema))


_COUNTED = ("prompt_tokens", "cached_tokens", "computed_tokens", "completion_tokens", "forced_tokens", "recomputed_tokens")


class Ledger:
    """Used on the event loop only. `clock` is monotonic, `wall_clock` is the time of day."""

    def __init__(self, clock: Callable[[], float], wall_clock: Callable[[], float]) -> None:
        self.clock = clock
        self.wall_clock = wall_clock
        self._requests: Counter[tuple[str, int]] = Counter()
        self._tokens: Counter[str] = Counter()
        self._outcomes: Counter[str] = Counter()
        self._open = 0
        self._ttft_hit = _Observations(TTFT_BOUNDS_S)
        self._ttft_miss = _Observations(TTFT_BOUNDS_S)
        self._queue = _Observations(TTFT_BOUNDS_S)
        self._total = _Observations(TOTAL_BOUNDS_S)
        self._recent: deque[RequestRecord] = deque(maxlen=KEPT_RECORDS)

    @property
    def n_open(self) -> int:
        """Requests that have not ended."""
        return self._open

    def open(self, request_id: str, endpoint: str) -> Account:
        self._open += 1
        return Account(request_id, endpoint, self, self.wall_clock(), self.clock())

    def _add(self, record: RequestRecord) -> None:
        self._open -= 1
        self._requests[record.endpoint, record.status] += 1
        for name in _COUNTED:
            self._tokens[name] += getattr(record, name)
        self._count_outcome(record)
        if record.tenant:                    # callers without a key must not wash the others out of the ring
            self._recent.append(record)

    def _count_outcome(self, record: RequestRecord) -> None:
        if record.finish in ("stop", "length"):
            self._outcomes["answered"] += 1
            self._outcomes["hits"] += record.hit
            self._total.add(record.total_s)
            if record.queue_s is not None:
                self._queue.add(record.queue_s)
            if record.ttft_s is not None:
                (self._ttft_hit if record.hit else self._ttft_miss).add(record.ttft_s)
        else:
            self._outcomes["cancelled" if record.finish == "cancelled" else "failed"] += 1

    def snapshot(self) -> LedgerSnapshot:
        tokens, outcomes = self._tokens, self._outcomes
        return LedgerSnapshot(
            requests=dict(self._requests),
            prompt_tokens=tokens["prompt_tokens"], cached_tokens=tokens["cached_tokens"],
            computed_tokens=tokens["computed_tokens"], completion_tokens=tokens["completion_tokens"],
            forced_tokens=tokens["forced_tokens"], recomputed_tokens=tokens["recomputed_tokens"],
            answered=outcomes["answered"], hits=outcomes["hits"], cancelled=outcomes["cancelled"], failed=outcomes["failed"],
            open=self._open,
            ttft_hit=self._ttft_hit.snapshot(), ttft_miss=self._ttft_miss.snapshot(),
            queue=self._queue.snapshot(), total=self._total.snapshot(),
            recent=tuple(reversed(self._recent)))
