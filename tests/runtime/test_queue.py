"""Who is admitted next, asked of the queue alone and of a scheduler under load."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefix_cache import PrefixCache
from runtime.protocol import GenerationRequest, SamplingParams
from runtime.queue import LEVEL_S, MOST_PASSED_OVER, MOST_REMEMBERED, WINDOW, Queue
from runtime.scheduler import MOST_PREEMPTIONS, Limits, Scheduler
from runtime.sequence import Sequence


def waiting(name: str, tenant: str = "t", arrived_s: float = 0.0, priority: int = 0) -> Sequence:
    return Sequence(GenerationRequest(name, (1, 2, 3), SamplingParams(4), b"d", tenant=tenant, priority=priority), arrived_s)


def names(queue: Queue, cached: dict[str, int] | None = None) -> list[str]:
    return [s.request.request_id for s in queue.in_order(lambda s: (cached or {}).get(s.request.request_id, 0))]


def queue_of(*sequences: Sequence) -> Queue:
    queue = Queue()
    for sequence in sequences:
        queue.arrive(sequence)
    return queue


def test_one_tenant_is_served_in_order_of_arrival() -> None:
    assert names(queue_of(waiting("b", arrived_s=2), waiting("a", arrived_s=1), waiting("c", arrived_s=3))) == ["a", "b", "c"]


def test_a_lower_priority_number_goes_first_and_a_level_is_worth_a_fixed_time_of_waiting() -> None:
    old = waiting("old", arrived_s=0, priority=1)
    assert names(queue_of(old, waiting("urgent", arrived_s=LEVEL_S - 1))) == ["urgent", "old"]
    assert names(queue_of(old, waiting("late", arrived_s=LEVEL_S + 1))) == ["old", "late"]


def test_the_tenant_with_fewer_tokens_served_goes_first_whatever_its_priorities() -> None:
    greedy, modest = waiting("greedy", "g", 0, priority=-100), waiting("modest", "m", 1)
    queue = queue_of(greedy, modest)
    queue.serve(greedy, 10)
    assert names(queue) == ["modest", "greedy"]


def test_what_is_served_while_candidates_are_looked_at_counts_at_once() -> None:
    first, second, other = waiting("a1", "a", 0), waiting("a2", "a", 1), waiting("b1", "b", 2)
    queue = queue_of(first, second, other)
    order = []
    for sequence in queue.in_order(lambda s: 0):
        order.append(sequence.request.request_id)
        queue.admit(sequence)
        queue.serve(sequence, 100)
    assert order == ["a1", "b1", "a2"]


def test_a_tenant_that_comes_back_starts_level_with_those_that_stayed() -> None:
    idle, busy = waiting("idle", "i"), waiting("busy", "b")
    queue = queue_of(idle, busy)
    queue.withdraw(idle)
    queue.leave(idle)
    queue.serve(busy, 1000)
    queue.arrive(waiting("back", "i"))
    assert queue.served("i") == queue.served("b") == 1000


def test_a_pause_forgives_no_debt() -> None:
    greedy, other = waiting("g", "greedy"), waiting("o", "other")
    queue = queue_of(greedy, other)
    queue.serve(greedy, 500)
    queue.withdraw(greedy)
    queue.leave(greedy)
    queue.arrive(waiting("again", "greedy"))
    assert queue.served("greedy") == 500 > queue.served("other")


def test_a_younger_request_with_a_cached_prefix_goes_first_but_not_for_ever() -> None:
    old = waiting("old", arrived_s=0)
    queue = queue_of(old)
    for n in range(MOST_PASSED_OVER):
        lucky = waiting(f"lucky{n}", arrived_s=n + 1)
        queue.arrive(lucky)
        assert names(queue, {lucky.request.request_id: 64})[0] == lucky.request.request_id
        queue.admit(lucky)
    queue.arrive(waiting("late", arrived_s=99))
    assert names(queue, {"late": 64}) == ["old", "late"]


def test_being_looked_at_without_being_admitted_costs_nobody_their_turn() -> None:
    old, lucky = waiting("old", arrived_s=0), waiting("lucky", arrived_s=1)
    queue = queue_of(old, lucky)
    for _ in range(3 * MOST_PASSED_OVER):
        assert names(queue, {"lucky": 64}) == ["lucky", "old"]


def test_the_cache_chooses_only_among_the_first_of_equal_priority() -> None:
    many = [waiting(f"r{n}", arrived_s=n) for n in range(WINDOW + 1)]
    assert names(queue_of(*many), {f"r{WINDOW}": 64})[0] == "r0"
    assert names(queue_of(waiting("a"), waiting("b", arrived_s=0.1, priority=1)), {"b": 64})[0] == "a"


def test_who_had_to_give_way_comes_before_every_tenant() -> None:
    back = waiting("back", "greedy")
    queue = queue_of(back, waiting("new", "modest"))
    queue.serve(back, 1000)
    queue.admit(back)
    queue.put_back(back)
    assert names(queue) == ["back", "new"]


def test_counters_of_absent_tenants_are_bounded() -> None:
    queue = Queue()
    for n in range(MOST_REMEMBERED + 50):
        passing = waiting("r", f"tenant{n}")
        queue.arrive(passing)
        queue.serve(passing, 1)
        queue.withdraw(passing)
        queue.leave(passing)
    assert queue.served("tenant49") == 0
    assert queue.served(f"tenant{MOST_REMEMBERED + 49}") > 0


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 20), st.integers(-2, 2), st.integers(0, 5)), max_size=30))
def test_every_waiting_sequence_is_offered_once(jobs) -> None:
    made = [waiting(str(n), tenant, arrived, priority) for n, (tenant, arrived, priority, _) in enumerate(jobs)]
    queue = queue_of(*made)
    offered = names(queue, {str(n): cached for n, (*_, cached) in enumerate(jobs)})
    assert Counter(offered) == Counter(s.request.request_id for s in queue) == Counter(str(n) for n in range(len(made)))


def jain(shares: list[float]) -> float:
    return sum(shares) ** 2 / (len(shares) * sum(share * share for share in shares))


@pytest.mark.parametrize("budget", [32, 128])
def test_backlogged_tenants_with_requests_of_very_different_sizes_get_equal_shares(budget: int) -> None:
    sizes = {"a": 8, "b": 8, "c": 32, "d": 128}
    cache = PrefixCache(256, 4, clock=lambda: 0.0, ttl_s=1e9)
    scheduler = Scheduler(cache, Limits(context_tokens=400, running=8, step_tokens=budget, waiting=10_000))
    served: Counter[str] = Counter()
    fresh = 0
    for _ in range(3_000):
        for tenant, size in sizes.items():      # always something waiting for everybody
            while sum(s.request.tenant == tenant for s in scheduler.waiting) < 4:
                fresh += 1
                prompt = tuple(range(fresh * 200, fresh * 200 + size))
                scheduler.submit(GenerationRequest(str(fresh), prompt, SamplingParams(size // 2), b"d", tenant=tenant), fresh)
        for row in scheduler.plan(0.0):
            served[row.sequence.request.tenant] += row.n_tokens
            scheduler.advance(row, [7] if row.draws else [])
            if row.sequence.n_generated == row.sequence.request.sampling.max_tokens:
                scheduler.finish(row.sequence)
    assert jain([served[tenant] for tenant in sizes]) >= 0.95


def test_no_sequence_gives_way_more_often_than_the_bound_and_all_end() -> None:
    cache = PrefixCache(24, 4, clock=lambda: 0.0, ttl_s=1e9)
    scheduler = Scheduler(cache, Limits(context_tokens=96, running=8, step_tokens=32, waiting=100))
    made = [scheduler.submit(GenerationRequest(str(n), tuple(range(n * 50, n * 50 + 8)), SamplingParams(60), b"d"), n)
            for n in range(20)]
    ended = 0
    for _ in range(20_000):
        rows = scheduler.plan(0.0)
        if not rows:
            break
        for row in rows:
            scheduler.advance(row, [7] if row.draws else [])
            if row.sequence.n_generated == 60:
                scheduler.finish(row.sequence)
                ended += 1
        cache.check()
    assert ended == 20
    assert max(s.preemptions for s in made) <= MOST_PREEMPTIONS
    assert sum(s.preemptions for s in made) > 0
