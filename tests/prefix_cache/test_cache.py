"""What a user of the prefix cache relies on, one behaviour a test."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from prefix_cache import CacheStats, InvalidCommit, InvalidTokens, Lease, LeaseEnded, PoolExhausted, PrefixCache

DOMAIN = b"tenant"
BLOCK = 4


class Clock:
    """Seconds that pass only when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(clock: Clock) -> PrefixCache:
    return PrefixCache(n_blocks=16, block_tokens=BLOCK, clock=clock, ttl_s=300)


def run(n_blocks: int, first: int = 0) -> list[int]:
    """`n_blocks` whole blocks of tokens; different `first`s differ from the first token on."""
    return [first * 1000 + i for i in range(n_blocks * BLOCK)]


def compute(
    cache: PrefixCache, tokens: Sequence[int], domain: bytes = DOMAIN, ttl_s: float | None = None
) -> tuple[Lease, list[int]]:
    """A sequence that has computed and committed all its tokens: its lease and its blocks."""
    lease = cache.acquire(domain, tokens)
    blocks = lease.blocks + cache.allocate(-(-len(tokens) // BLOCK) - len(lease.blocks))
    cache.commit(lease, tokens, blocks, ttl_s)
    return lease, blocks


def serve(cache: PrefixCache, tokens: Sequence[int], domain: bytes = DOMAIN, ttl_s: float | None = None) -> list[int]:
    """A request from beginning to end; returns its blocks."""
    lease, blocks = compute(cache, tokens, domain, ttl_s)
    cache.release(lease, blocks[len(lease.blocks) :])
    cache.check()
    return blocks


def hit(cache: PrefixCache, tokens: Sequence[int], domain: bytes = DOMAIN) -> int:
    """How many tokens a request would find, without a trace of having asked."""
    return cache.peek(domain, tokens)


def counts(stats: CacheStats) -> tuple[int, int, int]:
    return stats.blocks_free, stats.blocks_cached, stats.blocks_used


def test_two_requests_with_the_same_prefix_share_blocks(cache: PrefixCache) -> None:
    first, blocks = compute(cache, [*run(3), 7])
    second = cache.acquire(DOMAIN, [*run(3), 8, 9])
    assert second.blocks == blocks[:3]
    assert second.n_tokens == 3 * BLOCK
    cache.check()
    cache.release(first, blocks)
    cache.release(second)


def test_a_whole_prompt_match_leaves_one_token_to_compute(cache: PrefixCache) -> None:
    serve(cache, run(3))
    assert hit(cache, run(3)) == 2 * BLOCK
    assert hit(cache, [*run(3), 5]) == 3 * BLOCK


def test_a_partial_block_is_not_reused(cache: PrefixCache) -> None:
    serve(cache, run(2)[:-1])
    assert hit(cache, [*run(2), 1, 2, 3]) == BLOCK


def test_a_sequence_that_diverges_inside_a_block_reuses_the_blocks_before(cache: PrefixCache) -> None:
    serve(cache, run(3))
    other = run(3)
    other[2 * BLOCK - 1] = -1
    assert hit(cache, other) == BLOCK


def test_the_empty_prompt_and_one_token_match_nothing(cache: PrefixCache) -> None:
    serve(cache, run(2))
    assert hit(cache, []) == 0
    assert hit(cache, [0]) == 0
    cache.release(cache.acquire(DOMAIN, []))
    cache.check()


def test_equal_blocks_behind_different_prefixes_are_different(cache: PrefixCache) -> None:
    serve(cache, run(1, 1) + run(1, 9))
    assert hit(cache, [*run(1, 2), *run(1, 9), 0]) == 0


def test_an_answer_is_found_by_the_next_turn(cache: PrefixCache) -> None:
    lease, blocks = compute(cache, run(2))
    said = run(2) + run(2, 5)
    blocks += cache.allocate(2)
    cache.commit(lease, said, blocks)
    cache.release(lease, blocks)
    assert hit(cache, [*said, 1]) == 4 * BLOCK


def test_an_answer_committed_block_by_block_is_one_node(cache: PrefixCache) -> None:
    lease, blocks = compute(cache, run(1))
    for n in range(2, 9):
        blocks += cache.allocate(1)
        cache.commit(lease, run(n), blocks)
        cache.check()
    assert cache.stats().nodes == 1
    cache.release(lease, blocks)
    assert hit(cache, [*run(8), 0]) == 8 * BLOCK


def test_a_commit_can_be_repeated(cache: PrefixCache) -> None:
    lease, blocks = compute(cache, run(3))
    before = cache.stats()
    cache.commit(lease, run(3), blocks)
    cache.commit(lease, run(1), blocks[:1])
    assert cache.stats() == before
    cache.check()


def test_a_twin_keeps_its_own_block_and_its_continuation_hangs_below_the_first_ones(cache: PrefixCache) -> None:
    """Two sequences compute the same two blocks side by side; the second one goes on alone."""
    one, two = cache.acquire(DOMAIN, run(2)), cache.acquire(DOMAIN, run(2))
    blocks_one, blocks_two = cache.allocate(2), cache.allocate(2)
    cache.commit(one, run(2), blocks_one)
    cache.commit(two, run(2), blocks_two)
    cache.check()
    assert cache.stats().inserted_blocks == 2
    blocks_two += cache.allocate(1)
    cache.commit(two, run(3), blocks_two)
    cache.check()
    cache.release(one, blocks_one)
    assert counts(cache.stats()) == (11, 0, 5), "the first one's blocks stay locked for what hangs below them"
    cache.release(two, blocks_two)
    assert counts(cache.stats()) == (13, 3, 0), "the twin's two private copies are free"
    lease = cache.acquire(DOMAIN, [*run(3), 0])
    assert lease.blocks == [*blocks_one, blocks_two[2]]


def test_a_twin_that_diverges_inside_the_others_run_splits_it(cache: PrefixCache) -> None:
    one, two = cache.acquire(DOMAIN, run(3)), cache.acquire(DOMAIN, run(1) + run(2, 7))
    blocks_one, blocks_two = cache.allocate(3), cache.allocate(3)
    cache.commit(one, run(3), blocks_one)
    cache.commit(two, run(1) + run(2, 7), blocks_two)
    cache.check()
    assert cache.stats().nodes == 3
    cache.release(two, blocks_two)
    cache.release(one, blocks_one)
    cache.check()
    assert counts(cache.stats()) == (11, 5, 0)


def test_what_one_lease_adds_below_a_shared_prefix_is_not_locked_by_the_other(cache: PrefixCache) -> None:
    one, blocks_one = compute(cache, run(2))
    two = cache.acquire(DOMAIN, [*run(2), 1])
    blocks_one += cache.allocate(2)
    cache.commit(one, run(4), blocks_one)
    cache.release(one, blocks_one)
    cache.check()
    assert counts(cache.stats()) == (12, 2, 2)
    cache.release(two)


def test_least_recently_used_goes_first(cache: PrefixCache) -> None:
    for first in (1, 2, 3):
        serve(cache, run(4, first))
    cache.release(cache.acquire(DOMAIN, [*run(4, 1), 0]))
    take(cache, 4 + 4)
    assert [hit(cache, [*run(4, first), 0]) for first in (1, 2, 3)] == [16, 0, 16]
    take(cache, 8 + 4)
    assert [hit(cache, [*run(4, first), 0]) for first in (1, 2, 3)] == [16, 0, 0]


def take(cache: PrefixCache, n: int) -> None:
    """Allocate and give back, which leaves at least `n` blocks free."""
    cache.release(cache.acquire(b"passer-by", []), cache.allocate(n))
    cache.check()


def test_the_tail_of_a_sequence_goes_first(cache: PrefixCache) -> None:
    serve(cache, run(16))
    for evicted in range(1, 16):
        take(cache, evicted)
        assert hit(cache, [*run(16), 0]) == (16 - evicted) * BLOCK


def test_a_shared_prefix_goes_after_all_that_hangs_below_it(cache: PrefixCache) -> None:
    serve(cache, run(4) + run(4, 1))
    serve(cache, run(4) + run(4, 2))
    take(cache, 16 - 5)
    assert hit(cache, [*run(4), *run(4, 1)]) == 4 * BLOCK
    assert hit(cache, [*run(4), *run(4, 2)]) == 5 * BLOCK
    take(cache, 16 - 3)
    assert hit(cache, [*run(4), *run(4, 2)]) == 3 * BLOCK


def test_what_is_locked_is_never_evicted(cache: PrefixCache) -> None:
    lease, _blocks = compute(cache, run(6))
    serve(cache, run(6, 1))
    assert cache.available == 10
    cache.allocate(10)
    assert hit(cache, [*run(6), 0]) == 6 * BLOCK
    assert hit(cache, [*run(6, 1), 0]) == 0
    with pytest.raises(PoolExhausted):
        cache.allocate(1)
    cache.check()
    cache.release(lease)


def test_pool_exhausted_changes_nothing(cache: PrefixCache) -> None:
    compute(cache, run(6))
    serve(cache, run(6, 1))
    before = cache.stats()
    with pytest.raises(PoolExhausted) as refusal:
        cache.allocate(11)
    assert (refusal.value.needed, refusal.value.available) == (11, 10)
    assert cache.stats() == before
    assert hit(cache, [*run(6, 1), 0]) == 6 * BLOCK
    cache.check()


def test_an_expired_prefix_is_unreachable_even_when_memory_is_free(cache: PrefixCache, clock: Clock) -> None:
    serve(cache, run(3))
    clock.now += 299.9
    assert hit(cache, [*run(3), 0]) == 3 * BLOCK
    clock.now += 0.1
    assert hit(cache, [*run(3), 0]) == 0
    assert cache.acquire(DOMAIN, [*run(3), 0]).n_tokens == 0
    assert cache.stats().blocks_free > 0


def test_a_hit_starts_the_time_to_live_anew(cache: PrefixCache, clock: Clock) -> None:
    serve(cache, run(3))
    for _ in range(5):
        clock.now += 299
        lease = cache.acquire(DOMAIN, [*run(3), 0])
        assert lease.n_tokens == 3 * BLOCK
        cache.release(lease)
    clock.now += 300
    assert hit(cache, [*run(3), 0]) == 0


def test_a_hit_on_the_beginning_leaves_the_rest_to_its_own_deadline(cache: PrefixCache, clock: Clock) -> None:
    serve(cache, run(4))
    clock.now += 200
    cache.release(cache.acquire(DOMAIN, [*run(2), 0]))
    clock.now += 200
    assert hit(cache, [*run(4), 0]) == 2 * BLOCK


def test_a_look_does_not_refresh(cache: PrefixCache, clock: Clock) -> None:
    serve(cache, run(2))
    clock.now += 200
    cache.peek(DOMAIN, [*run(2), 0])
    clock.now += 100
    assert cache.peek(DOMAIN, [*run(2), 0]) == 0


def test_a_prefix_lives_as_long_as_what_hangs_below_it(cache: PrefixCache, clock: Clock) -> None:
    serve(cache, run(2), ttl_s=10)
    serve(cache, run(4), ttl_s=1000)
    clock.now += 999
    assert hit(cache, [*run(4), 0]) == 4 * BLOCK


def test_a_short_lived_continuation_does_not_shorten_its_prefix(cache: PrefixCache, clock: Clock) -> None:
    serve(cache, run(2))
    serve(cache, run(4), ttl_s=10)
    clock.now += 10
    assert hit(cache, [*run(4), 0]) == 2 * BLOCK


def test_a_time_to_live_of_zero_keeps_nothing(cache: PrefixCache) -> None:
    serve(cache, run(4), ttl_s=0)
    assert counts(cache.stats()) == (16, 0, 0)


def test_expire_frees_what_nobody_holds(cache: PrefixCache, clock: Clock) -> None:
    serve(cache, run(3))
    serve(cache, run(5, 1), ttl_s=1000)
    clock.now += 300
    assert cache.expire() == 3
    assert counts(cache.stats()) == (11, 5, 0)
    assert cache.stats().evicted_expired == 3
    assert cache.expire() == 0


def test_expired_blocks_are_taken_before_recent_ones(cache: PrefixCache, clock: Clock) -> None:
    serve(cache, run(5, 1), ttl_s=1000)
    serve(cache, run(5, 2), ttl_s=10)
    clock.now += 10
    take(cache, 6 + 5)
    assert hit(cache, [*run(5, 1), 0]) == 5 * BLOCK
    assert (cache.stats().evicted_expired, cache.stats().evicted_pressure) == (5, 0)


def test_what_expires_while_leased_is_unreachable_and_is_freed_at_release(cache: PrefixCache, clock: Clock) -> None:
    lease, blocks = compute(cache, run(3))
    clock.now += 300
    assert hit(cache, [*run(3), 0]) == 0
    cache.expire()
    cache.check()
    assert counts(cache.stats()) == (13, 0, 3)
    cache.release(lease, blocks)
    assert counts(cache.stats()) == (16, 0, 0)


def test_what_expires_while_leased_is_freed_at_release_without_a_sweep(cache: PrefixCache, clock: Clock) -> None:
    lease, blocks = compute(cache, run(3))
    clock.now += 300
    cache.release(lease, blocks)
    assert counts(cache.stats()) == (16, 0, 0)
    cache.check()


def test_tokens_that_expired_can_be_cached_again(cache: PrefixCache, clock: Clock) -> None:
    serve(cache, run(3))
    clock.now += 300
    fresh = serve(cache, run(3))
    assert cache.acquire(DOMAIN, [*run(3), 0]).blocks == fresh
    cache.check()


def test_flush_while_leased_frees_at_release(cache: PrefixCache) -> None:
    lease, blocks = compute(cache, run(3))
    serve(cache, run(2, 1))
    assert cache.flush(DOMAIN) == 5
    cache.check()
    assert hit(cache, [*run(3), 0]) == 0
    assert counts(cache.stats()) == (13, 0, 3)
    cache.release(lease, blocks)
    assert counts(cache.stats()) == (16, 0, 0)
    cache.check()


def test_what_a_flushed_lease_computes_later_never_enters_the_tree(cache: PrefixCache) -> None:
    lease, blocks = compute(cache, run(2))
    unborn = cache.acquire(DOMAIN, run(2, 5))
    cache.flush()
    blocks += cache.allocate(1)
    cache.commit(lease, run(3), blocks)
    others = cache.allocate(2)
    cache.commit(unborn, run(2, 5), others)
    cache.check()
    assert hit(cache, [*run(3), 0]) == hit(cache, [*run(2, 5), 0]) == 0
    cache.release(lease, blocks)
    cache.release(unborn, others)
    assert counts(cache.stats()) == (16, 0, 0)
    assert cache.stats().domains == 0


def test_flush_of_one_domain_leaves_the_others(cache: PrefixCache) -> None:
    serve(cache, run(2), b"one")
    serve(cache, run(2), b"two")
    assert cache.flush(b"one") == 2
    assert (hit(cache, [*run(2), 0], b"one"), hit(cache, [*run(2), 0], b"two")) == (0, 2 * BLOCK)
    assert cache.flush(b"never seen") == 0
    assert cache.stats().evicted_flushed == 2


def test_a_block_is_inserted_once_however_often_it_is_found(cache: PrefixCache) -> None:
    serve(cache, run(3))
    serve(cache, [*run(3), 0])
    assert (cache.stats().inserted_blocks, cache.stats().evicted_blocks) == (3, 0)


def test_a_domain_that_holds_nothing_is_forgotten(cache: PrefixCache) -> None:
    for name in range(100):
        cache.release(cache.acquire(b"%d" % name, run(2)))
    assert cache.stats().domains == 0


def test_a_lease_ends_once(cache: PrefixCache) -> None:
    lease, blocks = compute(cache, run(2))
    cache.release(lease, blocks)
    with pytest.raises(LeaseEnded):
        cache.release(lease, blocks)
    with pytest.raises(LeaseEnded):
        cache.commit(lease, run(2), blocks)
    cache.check()


def test_blocks_that_are_not_the_sequences_own_are_refused(cache: PrefixCache) -> None:
    serve(cache, run(2))
    lease = cache.acquire(DOMAIN, [*run(2), 0])
    own = cache.allocate(1)
    free = next(block for block in range(16) if block not in lease.blocks + own)
    before = cache.stats()
    for blocks in ([own[0], *lease.blocks], [*lease.blocks, free], [*lease.blocks, 99], [*lease.blocks, lease.blocks[0]]):
        with pytest.raises(InvalidCommit):
            cache.commit(lease, run(3), blocks)
    for private in ([free], [-1], [own[0], own[0]]):
        with pytest.raises(InvalidCommit):
            cache.release(lease, private)
    assert cache.stats() == before
    cache.check()
    cache.release(lease, own)


@pytest.mark.parametrize("tokens", [[2**31, 1, 2, 3, 4], [0.5] * 5, ["a"] * 5, [None] * 5])
def test_tokens_that_are_no_token_ids_are_refused(cache: PrefixCache, tokens: list[int]) -> None:
    before = cache.stats()
    with pytest.raises(InvalidTokens):
        cache.acquire(DOMAIN, tokens)
    assert cache.stats() == before


def test_settings_that_make_no_cache_are_refused(clock: Clock) -> None:
    for n_blocks, block_tokens, ttl_s in ((0, 16, 1), (1, 0, 1), (1, 16, -1), (1, 16, float("nan"))):
        with pytest.raises(ValueError, match="give at least"):
            PrefixCache(n_blocks, block_tokens, clock=clock, ttl_s=ttl_s)


def test_ten_thousand_random_operations_return_to_the_baseline(clock: Clock) -> None:
    """10,000 operations of 20 sequences, a third of them abandoned midway; then everything ends."""
    dice = random.Random(7)
    cache = PrefixCache(64, BLOCK, clock=clock, ttl_s=50)
    running: list[tuple[Lease, list[int], list[int]]] = []
    hit_tokens = 0
    for step in range(10_000):
        clock.now += dice.random()
        if running and dice.random() < 0.5:
            lease, tokens, blocks = running.pop(dice.randrange(len(running)))
            if dice.random() < 0.67:
                cache.commit(lease, tokens, blocks, dice.choice([None, 5.0, 500.0]))
            cache.release(lease, blocks[len(lease.blocks) :])
        elif len(running) < 20:
            tokens = [dice.randrange(2) for _ in range(dice.randrange(6) * BLOCK + dice.randrange(3))]
            lease = cache.acquire(dice.choice([b"one", b"two"]), tokens)
            hit_tokens += lease.n_tokens
            try:
                blocks = lease.blocks + cache.allocate(-(-len(tokens) // BLOCK) - len(lease.blocks))
            except PoolExhausted:
                cache.release(lease)
            else:
                running.append((lease, tokens, blocks))
        if dice.random() < 0.01:
            cache.flush(dice.choice([b"one", None]))
        if step % 100 == 0:
            cache.check()
    for lease, _, blocks in running:
        cache.release(lease, blocks)
    stats = cache.stats()
    assert hit_tokens > 0 and stats.evicted_pressure > 0 and stats.evicted_expired > 0
    assert (stats.blocks_used, stats.leases) == (0, 0)
    cache.flush()
    cache.check()
    stats = cache.stats()
    assert (stats.blocks_free, stats.nodes, stats.domains) == (64, 0, 0)
