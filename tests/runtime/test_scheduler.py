"""The scheduler, driven without an engine: a row is computed by saying so, a token drawn by naming it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefix_cache import PrefixCache
from runtime.errors import QueueFull, RequestTooLong
from runtime.protocol import GenerationRequest, SamplingParams
from runtime.scheduler import Limits, Row, Scheduler
from runtime.sequence import Sequence

BLOCK = 4


def scheduler(n_blocks: int = 64, **limits: int) -> Scheduler:
    cache = PrefixCache(n_blocks, BLOCK, clock=lambda: 0.0, ttl_s=1e9)
    return Scheduler(cache, Limits(**{"context_tokens": 200, "running": 8, "step_tokens": 16, "waiting": 100, **limits}))


def request(name: str, prompt: list[int], max_tokens: int = 4, domain: bytes = b"d") -> GenerationRequest:
    return GenerationRequest(name, tuple(prompt), SamplingParams(max_tokens), domain)


def compute(s: Scheduler, rows: list[Row], token: int = 7, n_forced: int = 0) -> None:
    """Run the rows; a token drawn has `n_forced` more behind it. Sequences that have their answer leave."""
    for row in rows:
        n_missing = row.sequence.request.sampling.max_tokens - row.sequence.n_generated
        s.advance(row, [token] * min(1 + n_forced, n_missing) if row.draws else [])
        if row.sequence.n_generated == row.sequence.request.sampling.max_tokens:
            s.finish(row.sequence)


def drain(s: Scheduler) -> int:
    """Steps until nothing is left."""
    for n in range(10_000):
        rows = s.plan(0.0)
        if not rows:
            assert not s.waiting and not s.running, "nothing is planned and something is left"
            return n
        compute(s, rows)
    raise AssertionError("it does not end")


def shape(rows: list[Row]) -> list[tuple[str, int, int]]:
    return [(row.sequence.request.request_id, row.start, row.n_tokens) for row in rows]


def test_a_prompt_longer_than_the_budget_is_computed_in_chunks() -> None:
    s = scheduler(step_tokens=16)
    s.submit(request("a", list(range(40))), 0.0)
    seen = []
    for _ in range(3):
        rows = s.plan(0.0)
        seen += shape(rows)
        compute(s, rows)
    assert seen == [("a", 0, 16), ("a", 16, 16), ("a", 32, 8)]


def test_decodes_come_before_prompts_and_count_against_the_budget() -> None:
    s = scheduler(step_tokens=16)
    s.submit(request("a", [1, 2, 3]), 0.0)
    compute(s, s.plan(0.0))
    s.submit(request("b", list(range(100, 130))), 0.0)
    assert shape(s.plan(0.0)) == [("a", 3, 1), ("b", 0, 15)]


def test_what_a_grammar_forced_is_computed_with_the_token_before_it_in_one_row() -> None:
    s = scheduler(step_tokens=16)
    s.submit(request("a", [1, 2, 3], max_tokens=20), 0.0)
    compute(s, s.plan(0.0), n_forced=5)
    assert shape(s.plan(0.0)) == [("a", 3, 6)]


def test_forced_runs_share_what_the_budget_leaves_and_every_answer_has_its_one_token() -> None:
    s = scheduler(step_tokens=8, running=3)
    for name in "abc":
        s.submit(request(name, [ord(name)], max_tokens=20), 0.0)
    compute(s, s.plan(0.0), n_forced=5)
    assert shape(s.plan(0.0)) == [("a", 1, 6), ("b", 1, 1), ("c", 1, 1)]


def test_a_forced_run_cut_by_the_budget_goes_on_in_the_next_step_and_draws_at_its_end() -> None:
    s = scheduler(step_tokens=8, running=2)
    s.submit(request("a", [1], max_tokens=30), 0.0)
    compute(s, s.plan(0.0), n_forced=11)
    first = s.plan(0.0)
    assert shape(first) == [("a", 1, 8)] and not first[0].draws
    compute(s, first)
    second = s.plan(0.0)
    assert shape(second) == [("a", 9, 4)] and second[0].draws


def test_a_forced_run_comes_before_a_prompt() -> None:
    s = scheduler(step_tokens=16)
    s.submit(request("a", [1, 2, 3], max_tokens=20), 0.0)
    compute(s, s.plan(0.0), n_forced=5)
    s.submit(request("b", list(range(100, 130))), 0.0)
    assert shape(s.plan(0.0)) == [("a", 3, 6), ("b", 0, 10)]


def test_a_short_prompt_is_not_kept_waiting_by_a_long_one() -> None:
    s = scheduler(step_tokens=16)
    s.submit(request("long", list(range(150))), 0.0)
    compute(s, s.plan(0.0))
    s.submit(request("short", [5, 6, 7]), 0.0)
    assert ("short", 0, 3) in shape(s.plan(0.0))


def test_a_very_long_prompt_takes_a_small_share_of_the_steps_that_others_need() -> None:
    s = scheduler(n_blocks=200, context_tokens=700, step_tokens=24)
    s.submit(request("long", list(range(600))), 0.0)
    compute(s, s.plan(0.0))
    alone = dict((name, n) for name, _, n in shape(s.plan(0.0)))["long"]
    s.submit(request("medium", list(range(1000, 1090))), 0.0)
    shares = dict((name, n) for name, _, n in shape(s.plan(0.0)))
    assert 0 < shares["long"] < alone < 24
    assert shares["medium"] > 5 * shares["long"]


def test_a_request_joins_while_another_decodes_and_leaves_before_it() -> None:
    s = scheduler()
    s.submit(request("a", [1, 2], max_tokens=6), 0.0)
    compute(s, s.plan(0.0))
    s.submit(request("b", [3, 4], max_tokens=1), 0.0)
    compute(s, s.plan(0.0))
    assert shape(s.plan(0.0)) == [("a", 3, 1)]


def test_a_second_request_with_the_same_prompt_computes_only_what_is_not_cached() -> None:
    s = scheduler()
    s.submit(request("a", list(range(10)), max_tokens=1), 0.0)
    drain(s)
    second = s.submit(request("b", list(range(10)), max_tokens=1), 0.0)
    assert shape(s.plan(0.0)) == [("b", 8, 2)]
    assert second.cached_tokens == 8


def test_twins_in_the_queue_compute_their_prefix_once() -> None:
    s = scheduler(step_tokens=64)
    for name in "abc":
        s.submit(request(name, [*range(20), ord(name)]), 0.0)
    first = s.plan(0.0)
    assert shape(first) == [("a", 0, 21)]
    compute(s, first)
    assert shape(s.plan(0.0)) == [("a", 21, 1), ("b", 20, 1), ("c", 20, 1)]


def test_twins_in_other_domains_do_not_wait_for_each_other() -> None:
    s = scheduler(step_tokens=64)
    s.submit(request("a", list(range(20)), domain=b"one"), 0.0)
    s.submit(request("b", list(range(20)), domain=b"two"), 0.0)
    assert shape(s.plan(0.0)) == [("a", 0, 20), ("b", 0, 20)]


def test_what_can_never_fit_is_refused_at_once() -> None:
    s = scheduler(n_blocks=8)
    with pytest.raises(RequestTooLong, match="prompt is empty"):
        s.submit(request("a", []), 0.0)
    with pytest.raises(RequestTooLong, match="200 tokens and the context holds 200"):
        s.submit(request("b", list(range(200))), 0.0)
    with pytest.raises(RequestTooLong, match="whole KV cache holds 32"):
        s.submit(request("c", list(range(30)), max_tokens=3), 0.0)
    s.submit(request("d", list(range(30)), max_tokens=2), 0.0)


def test_a_full_queue_refuses() -> None:
    s = scheduler(waiting=2)
    s.submit(request("a", [1]), 0.0)
    s.submit(request("b", [2]), 0.0)
    with pytest.raises(QueueFull):
        s.submit(request("c", [3]), 0.0)


def test_the_youngest_gives_way_when_blocks_run_out_and_ends_all_the_same() -> None:
    s = scheduler(n_blocks=6)
    old = s.submit(request("old", list(range(0, 8)), max_tokens=12), 0.0)
    young = s.submit(request("young", list(range(50, 58)), max_tokens=12), 0.0)
    drain(s)
    assert old.preemptions == 0
    assert young.preemptions > 0
    assert young.n_generated == old.n_generated == 12


def test_who_had_to_give_way_goes_before_those_that_never_ran() -> None:
    s = scheduler(n_blocks=6, running=2)
    s.submit(request("old", list(range(0, 8)), max_tokens=12), 0.0)
    young = s.submit(request("young", list(range(50, 58)), max_tokens=12), 0.0)
    late = s.submit(request("late", [90], max_tokens=1), 0.0)
    while not young.preemptions:
        compute(s, s.plan(0.0))
    assert list(s.waiting) == [young, late]


def test_recomputing_after_a_preemption_is_no_hit() -> None:
    s = scheduler(n_blocks=6)
    s.submit(request("old", list(range(0, 8)), max_tokens=12), 0.0)
    young = s.submit(request("young", list(range(50, 58)), max_tokens=12), 0.0)
    drain(s)
    assert young.cached_tokens == 0
    assert young.recomputed_tokens > 0


def test_a_budget_below_one_token_a_sequence_is_refused() -> None:
    with pytest.raises(ValueError, match="step_tokens"):
        scheduler(step_tokens=4, running=8)


prompts = st.lists(st.integers(0, 2), min_size=1, max_size=40)
jobs = st.lists(st.tuples(prompts, st.integers(1, 12), st.integers(0, 5), st.sampled_from([b"x", b"y"])), min_size=1, max_size=12)


@settings(max_examples=150, deadline=None)
@given(jobs, st.integers(14, 40), st.integers(4, 20), st.sets(st.integers(0, 11)), st.integers(0, 9))
def test_every_request_ends_and_no_step_breaks_an_invariant(
        jobs, n_blocks: int, budget: int, cancelled: set[int], n_forced: int) -> None:
    s = scheduler(n_blocks=n_blocks, step_tokens=budget, running=4)
    arrivals = sorted(enumerate(jobs), key=lambda item: item[1][2])
    alive: dict[int, Sequence] = {}
    for now in range(2_000):
        while arrivals and arrivals[0][1][2] <= now:
            i, (prompt, max_tokens, _, domain) = arrivals.pop(0)
            alive[i] = s.submit(request(str(i), prompt, max_tokens, domain), now)
        if now == 6:
            for i in cancelled & alive.keys():
                if alive[i] in s.running or alive[i] in s.waiting:
                    s.finish(alive[i])
        rows = s.plan(now)
        check_plan(s, rows, budget)
        compute(s, rows, token=now % 3, n_forced=n_forced * (now % 2))
        s.cache.check()
        if not rows and not arrivals:
            break
    assert not s.running and not s.waiting
    stats = s.cache.stats()
    assert stats.blocks_used == 0
    assert stats.blocks_free + stats.blocks_cached == n_blocks


def check_plan(s: Scheduler, rows: list[Row], budget: int) -> None:
    assert sum(row.n_tokens for row in rows) <= budget
    assert len({id(row.sequence) for row in rows}) == len(rows)
    assert all(row.n_tokens > 0 and row.sequence in s.running for row in rows)
    assert all(row.start == row.sequence.n_computed for row in rows)
    assert all(len(row.sequence.blocks) * BLOCK >= row.start + row.n_tokens for row in rows)
    assert all(not w.blocks and w.lease is None for w in s.waiting)
    assert rows or not s.running, "something runs and nothing is planned"
    written = [b for row in rows for b in row.sequence.blocks[row.start // BLOCK:]]
    assert len(written) == len(set(written)), "two rows write into one block"
