"""One record a request, and sums that hold."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.ledger import KEPT_RECORDS, Ledger
from runtime.protocol import Usage


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(clock: Clock) -> Ledger:
    return Ledger(clock, lambda: 1_000_000.0)


def finish(ledger: Ledger, usage: Usage, ttft_s: float | None = None, clock: Clock | None = None) -> None:
    account = ledger.open("r", "chat.completions")
    account.tenant = "alice"
    if ttft_s is not None and clock is not None:
        clock.now_s += ttft_s
        account.first_token()
    account.close(200, "stop", usage=usage)


def test_a_record_tells_times_and_counts(ledger: Ledger, clock: Clock) -> None:
    account = ledger.open("chatcmpl-1", "chat.completions")
    account.tenant, account.stream, account.schema = "alice", True, True
    clock.now_s = 0.25
    account.first_token()
    clock.now_s = 0.5
    account.first_token()
    account.close(200, "length", usage=Usage(30, 16, 14, 5, 2), queue_s=0.125)
    (record,) = ledger.snapshot().recent
    assert (record.request_id, record.tenant, record.endpoint, record.started_s) == (
        "chatcmpl-1", "alice", "chat.completions", 1_000_000.0)
    assert (record.queue_s, record.ttft_s, record.total_s) == (0.125, 0.25, 0.5)
    assert (ledger.snapshot().queue.n, ledger.snapshot().queue.total) == (1, 0.125)
    assert (record.prompt_tokens, record.cached_tokens, record.computed_tokens) == (30, 16, 14)
    assert (record.completion_tokens, record.recomputed_tokens) == (5, 2)
    assert (record.status, record.finish, record.error, record.stream, record.schema) == (200, "length", None, True, True)


def test_only_the_first_close_counts(ledger: Ledger) -> None:
    account = ledger.open("r", "completions")
    account.close(499, "cancelled", error="client_closed_request")
    account.close(200, "stop", usage=Usage(1, 0, 1, 1))
    snapshot = ledger.snapshot()
    assert snapshot.requests == {("completions", 499): 1}
    assert (snapshot.cancelled, snapshot.answered, snapshot.open) == (1, 0, 0)


def test_a_cancelled_request_keeps_the_tokens_that_were_seen(ledger: Ledger) -> None:
    account = ledger.open("r", "chat.completions")
    account.tenant, account.completion_tokens = "alice", 7
    account.close(499, "cancelled")
    (record,) = ledger.snapshot().recent
    assert (record.prompt_tokens, record.completion_tokens, record.ttft_s) == (0, 7, None)


def test_a_usage_that_does_not_add_up_is_a_bug(ledger: Ledger) -> None:
    with pytest.raises(AssertionError):
        finish(ledger, Usage(30, 16, 15, 1))


def test_the_ring_keeps_the_last_records_newest_first(ledger: Ledger) -> None:
    for i in range(KEPT_RECORDS + 5):
        account = ledger.open(str(i), "completions")
        account.tenant = "alice"
        account.close(200, "stop", usage=Usage(1, 0, 1, 1))
    recent = ledger.snapshot().recent
    assert [record.request_id for record in recent] == [str(i) for i in range(KEPT_RECORDS + 4, 4, -1)]
    assert ledger.snapshot().answered == KEPT_RECORDS + 5


def test_open_requests_are_counted_until_they_end(ledger: Ledger) -> None:
    first, second = ledger.open("1", "completions"), ledger.open("2", "completions")
    assert ledger.snapshot().open == 2
    first.close(200, "stop")
    second.close(500, "error")
    assert ledger.snapshot().open == 0


def test_first_tokens_of_hits_and_misses_are_kept_apart(ledger: Ledger, clock: Clock) -> None:
    finish(ledger, Usage(100, 96, 4, 1), 0.03, clock)
    finish(ledger, Usage(100, 0, 100, 1), 0.7, clock)
    finish(ledger, Usage(100, 0, 100, 1), 70.0, clock)
    snapshot = ledger.snapshot()
    assert (snapshot.ttft_hit.n, snapshot.ttft_miss.n) == (1, 2)
    assert snapshot.ttft_hit.counts[snapshot.ttft_hit.bounds.index(0.05)] == 1
    assert snapshot.ttft_miss.counts[snapshot.ttft_miss.bounds.index(1.0)] == 1
    assert snapshot.ttft_miss.counts[-1] == 1
    assert snapshot.ttft_miss.total == pytest.approx(70.7)


def test_an_observation_on_a_bound_belongs_below_it(ledger: Ledger, clock: Clock) -> None:
    finish(ledger, Usage(1, 0, 1, 1), 0.5, clock)
    miss = ledger.snapshot().ttft_miss
    assert miss.counts[miss.bounds.index(0.5)] == 1


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 5000), st.integers(0, 500)), max_size=50))
def test_totals_are_the_sums_of_the_records(requests: list[tuple[int, int, int]]) -> None:
    ledger = Ledger(itertools.count().__next__, lambda: 0.0)
    for cached, computed, completion in requests:
        finish(ledger, Usage(cached + computed, cached, computed, completion))
    snapshot = ledger.snapshot()
    assert snapshot.prompt_tokens == snapshot.cached_tokens + snapshot.computed_tokens
    assert snapshot.cached_tokens == sum(cached for cached, _, _ in requests)
    assert snapshot.completion_tokens == sum(completion for _, _, completion in requests)
    assert snapshot.hits == sum(cached > 0 for cached, _, _ in requests)
    assert snapshot.answered == len(requests)
