"""What the operations cost, counted in calls of Python functions and compared as ratios, never in seconds alone."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from prefix_cache import PrefixCache
from prefix_cache.retention import LazyQueue

DOMAIN = b"tenant"


def calls(action: Callable[[], object]) -> int:
    """How many functions, Python's and C's, `action` calls."""
    n_calls = 0

    def note(_frame: object, event: str, _argument: Any) -> None:
        nonlocal n_calls
        n_calls += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return n_calls


def serve(cache: PrefixCache, tokens: list[int]) -> None:
    lease = cache.acquire(DOMAIN, tokens)
    blocks = lease.blocks + cache.allocate(len(tokens) // cache.block_tokens - len(lease.blocks))
    cache.commit(lease, tokens, blocks)
    cache.release(lease, blocks[len(lease.blocks) :])


def new_cache(n_blocks: int) -> PrefixCache:
    ticks = count()
    return PrefixCache(n_blocks, 16, clock=lambda: float(next(ticks)), ttl_s=1e9)


def test_matching_a_hundred_thousand_tokens_takes_no_more_steps_than_matching_a_thousand() -> None:
    def steps(n_tokens: int) -> int:
        cache = new_cache(7000)
        serve(cache, list(range(n_tokens)))
        prompt = [*range(n_tokens), 0]
        assert cache.peek(DOMAIN, prompt) == n_tokens
        return calls(lambda: cache.acquire(DOMAIN, prompt))

    assert steps(100_000) <= steps(1_600) + 5


def test_a_divergence_deep_inside_a_long_run_is_found_by_halving() -> None:
    cache = new_cache(7000)
    serve(cache, list(range(100_000)))
    prompt = list(range(100_000))
    prompt[70_000] = -1
    assert cache.peek(DOMAIN, prompt) == 70_000 // 16 * 16
    assert calls(lambda: cache.peek(DOMAIN, prompt)) < 60


def test_a_prompt_of_many_nodes_costs_a_few_steps_for_each() -> None:
    cache = new_cache(7000)
    tokens = list(range(96_000))
    for end in range(1600, 96_001, 1600):
        serve(cache, tokens[:end])
        serve(cache, [*tokens[: end - 16], *[-end] * 16])    # a branch, so that the run can't grow in one node
    assert cache.peek(DOMAIN, tokens) == 96_000 - 16
    assert cache.stats().nodes >= 100
    assert calls(lambda: cache.peek(DOMAIN, tokens)) < 20 + 4 * cache.stats().nodes


def test_a_prompt_in_an_array_is_matched_without_reading_its_tokens_one_by_one() -> None:
    cache = new_cache(100)
    serve(cache, list(range(1600)))
    prompt = array("i", range(1601))
    assert cache.peek(DOMAIN, prompt) == 1600


@pytest.mark.parametrize("n_wanted", [1, 16])
def test_eviction_costs_the_same_in_a_tree_of_ten_thousand_nodes_as_in_one_of_a_hundred(n_wanted: int) -> None:
    def steps(n_nodes: int) -> float:
        cache = new_cache(n_nodes)
        for first in range(n_nodes):
            serve(cache, [first] * 16)
        for first in range(0, n_nodes, 3):
            cache.release(cache.acquire(DOMAIN, [first] * 17))
        return calls(lambda: [cache.allocate(n_wanted) for _ in range(20 // n_wanted)])

    assert steps(10_000) <= 2 * steps(100)


def test_hits_without_pressure_do_not_grow_the_queues() -> None:
    cache = new_cache(100)
    for first in range(100):
        serve(cache, [first] * 16)
    for turn in range(5000):
        cache.release(cache.acquire(DOMAIN, [turn % 100] * 17))
    assert len(cache.by_recency) <= 100
    assert len(cache.by_deadline) <= 100


def test_flushed_nodes_do_not_stay_in_the_queues() -> None:
    cache = new_cache(100)
    for turn in range(1000):
        serve(cache, [turn] * 16)
        cache.flush()
    assert len(cache.by_recency) <= LazyQueue._SLACK + 1
    assert len(cache.by_deadline) <= LazyQueue._SLACK + 1


def test_decoding_commits_cost_the_same_however_long_the_prompt_is() -> None:
    def steps(n_tokens: int) -> int:
        cache = new_cache(7000)
        tokens = array("i", range(n_tokens))
        lease = cache.acquire(DOMAIN, tokens)
        blocks = cache.allocate(n_tokens // 16)
        cache.commit(lease, tokens, blocks)
        tokens.extend(range(16))
        blocks += cache.allocate(1)
        return calls(lambda: cache.commit(lease, tokens, blocks))

    assert steps(96_000) == steps(160)
