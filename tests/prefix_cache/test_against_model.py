"""Any sequence of operations does what a plain dictionary of prefixes, searched by brute force, would do."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from prefix_cache import Lease, PoolExhausted, PrefixCache

BLOCK_TOKENS = 2
N_BLOCKS = 12
TTL_S = 50.0

Key = tuple[bytes, tuple[int, ...]]    # domain and the tokens from position 0 to the end of the block


@dataclass(eq=False)
class Entry:
    """One cached block of the model."""

    block: int
    ttl_s: float
    expires: float = 0.0
    last_use: int = 0


@dataclass(eq=False)
class ModelLease:
    domain: bytes
    epoch: int
    path: list[tuple[Key, Entry]] = field(default_factory=list)


class Model:
    """What the cache must hold, block by block."""

    def __init__(self) -> None:
        self.entries: dict[Key, Entry] = {}
        self.leases: set[ModelLease] = set()
        self.epochs: dict[bytes, int] = {}
        self.now = 0.0
        self.tick = 0
        self.n_private = 0

    def held(self) -> set[Entry]:
        return {entry for lease in self.leases for _, entry in lease.path}

    def n_free(self) -> int:
        """Blocks that are neither private, nor reachable, nor held; expired ones that nobody holds count as free."""
        alive = {entry for entry in self.entries.values() if entry.expires > self.now}
        return N_BLOCKS - self.n_private - len(alive | self.held())

    def available(self) -> int:
        return N_BLOCKS - self.n_private - len(self.held())

    def keys(self, domain: bytes, tokens: list[int], n_blocks: int) -> list[Key]:
        return [(domain, tuple(tokens[: (i + 1) * BLOCK_TOKENS])) for i in range(n_blocks)]

    def acquire(self, domain: bytes, tokens: list[int]) -> ModelLease:
        lease = ModelLease(domain, self.epochs.get(domain, 0))
        for key in self.keys(domain, tokens, max(len(tokens) - 1, 0) // BLOCK_TOKENS):
            entry = self.entries.get(key)
            if entry is None or entry.expires <= self.now:
                break
            lease.path.append((key, entry))
        self.touch(lease)
        self.leases.add(lease)
        return lease

    def touch(self, lease: ModelLease) -> None:
        self.tick += 1
        reach = 0.0
        for _, entry in reversed(lease.path):
            reach = max(reach, self.now + entry.ttl_s, entry.expires)
            entry.expires, entry.last_use = reach, self.tick

    def remove(self, top: Key) -> None:
        for key in [key for key in self.entries if key[0] == top[0] and key[1][: len(top[1])] == top[1]]:
            del self.entries[key]

    def is_reachable(self, lease: ModelLease) -> bool:
        if lease.epoch != self.epochs.get(lease.domain, 0):
            return False
        return all(self.entries.get(key) is entry and entry.expires > self.now for key, entry in lease.path)

    def commit(self, lease: ModelLease, tokens: list[int], blocks: list[int], ttl_s: float) -> list[int]:
        """Returns the blocks that became the tree's."""
        adopted: list[int] = []
        if not self.is_reachable(lease):
            return adopted
        keys = self.keys(lease.domain, tokens, min(len(tokens) // BLOCK_TOKENS, len(blocks)))
        for at, key in enumerate(keys) if ttl_s > 0 else ():
            if at < len(lease.path):
                continue
            entry = self.entries.get(key)
            if entry is not None and entry.expires <= self.now:
                self.remove(key)
                entry = None
            if entry is None:
                entry = self.entries[key] = Entry(blocks[at], ttl_s)
                adopted.append(blocks[at])
            lease.path.append((key, entry))
        self.touch(lease)
        self.n_private -= len(adopted)
        return adopted

    def allocate(self, n: int) -> bool:
        if n > self.available():
            return False
        while self.n_free() < n:
            self.evict_one()
        self.n_private += n
        return True

    def evict_one(self) -> None:
        """The least recently used block that nobody holds and that has no child. What has expired is gone already."""
        self.expire()
        held = self.held()
        parents = {(domain, tokens[:-BLOCK_TOKENS]) for domain, tokens in self.entries}
        leaves = [key for key, entry in self.entries.items() if key not in parents and entry not in held]
        del self.entries[min(leaves, key=lambda key: self.entries[key].last_use)]

    def release(self, lease: ModelLease, n_private: int) -> None:
        if self.is_reachable(lease):
            self.touch(lease)
        self.leases.remove(lease)
        self.n_private -= n_private

    def expire(self) -> None:
        self.entries = {key: entry for key, entry in self.entries.items() if entry.expires > self.now}

    def flush(self, domains: list[bytes]) -> None:
        for domain in domains:
            self.epochs[domain] = self.epochs.get(domain, 0) + 1
            self.remove((domain, ()))


@dataclass(eq=False)
class Sequence:
    tokens: list[int]
    blocks: list[int]
    lease: Lease
    twin: ModelLease
    private: list[int] = field(default_factory=list)


TTLS = st.sampled_from([None, None, 10.0, 200.0, 0.0])
DOMAINS = [b"one", b"two"]


@st.composite
def token_runs(draw: st.DrawFn) -> list[int]:
    """Up to six blocks of few kinds, so that sequences often begin alike, and sometimes a part of one more."""
    blocks = draw(st.lists(st.sampled_from([[0, 0], [0, 0], [0, 1], [1, 0]]), max_size=6))
    return [token for block in blocks for token in block] + draw(st.sampled_from([[], [0], [1]]))


TOKENS = token_runs()


class CacheMachine(RuleBasedStateMachine):
    """Sequences that come, grow, commit and go, on a pool that is too small for them."""

    sequences = Bundle("sequences")

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.cache = PrefixCache(N_BLOCKS, BLOCK_TOKENS, clock=lambda: self.model.now, ttl_s=TTL_S)

    def allocate(self, sequence: Sequence, n: int) -> None:
        if self.model.allocate(n):
            got = self.cache.allocate(n)
            sequence.blocks += got
            sequence.private += got
            return
        before = self.cache.stats()
        with pytest.raises(PoolExhausted) as refusal:
            self.cache.allocate(n)
        assert (refusal.value.needed, refusal.value.available) == (n, self.model.available())
        assert self.cache.stats() == before

    @rule(domain=st.sampled_from(DOMAINS), tokens=TOKENS, ttl_s=TTLS)
    def serve(self, domain: bytes, tokens: list[int], ttl_s: float | None) -> None:
        """A whole life without a pause."""
        sequence = self.start(domain, tokens)
        self.commit(sequence, ttl_s)
        self.release(sequence, name_all=True)

    @rule(target=sequences, sequence=sequences, more=TOKENS)
    def begin_alike(self, sequence: Sequence, more: list[int]) -> Sequence:
        """Another turn of a conversation, after the first one was committed."""
        self.commit(sequence, None)
        return self.start(sequence.lease.domain, sequence.tokens + more)

    @rule(domain=st.sampled_from(DOMAINS), tokens=TOKENS)
    def serve_twice(self, domain: bytes, tokens: list[int]) -> None:
        self.serve(domain, tokens, None)
        self.serve(domain, tokens, None)

    @rule(target=sequences, domain=st.sampled_from(DOMAINS), tokens=TOKENS)
    def start(self, domain: bytes, tokens: list[int]) -> Sequence:
        found = self.cache.peek(domain, tokens)
        lease = self.cache.acquire(domain, tokens)
        twin = self.model.acquire(domain, tokens)
        assert lease.blocks == [entry.block for _, entry in twin.path]
        assert found == lease.n_tokens == len(lease.blocks) * BLOCK_TOKENS
        sequence = Sequence(list(tokens), list(lease.blocks), lease, twin)
        self.allocate(sequence, -(-len(tokens) // BLOCK_TOKENS) - len(lease.blocks))
        return sequence

    @rule(sequence=sequences, more=st.lists(st.integers(0, 1), min_size=1, max_size=5))
    def decode(self, sequence: Sequence, more: list[int]) -> None:
        sequence.tokens += more
        self.allocate(sequence, max(-(-len(sequence.tokens) // BLOCK_TOKENS) - len(sequence.blocks), 0))

    @rule(sequence=sequences, ttl_s=TTLS)
    def commit(self, sequence: Sequence, ttl_s: float | None) -> None:
        self.cache.commit(sequence.lease, sequence.tokens, sequence.blocks, ttl_s)
        adopted = self.model.commit(sequence.twin, sequence.tokens, sequence.blocks, TTL_S if ttl_s is None else ttl_s)
        sequence.private = [block for block in sequence.private if block not in adopted]

    @rule(sequence=consumes(sequences), name_all=st.booleans())
    def release(self, sequence: Sequence, name_all: bool) -> None:
        named = sequence.blocks[len(sequence.lease.blocks) :] if name_all else sequence.private
        self.cache.release(sequence.lease, named)
        self.model.release(sequence.twin, len(sequence.private))

    @rule(seconds=st.sampled_from([1.0, 1.0, 9.0, 10.0, 41.0, 200.0]))
    def advance(self, seconds: float) -> None:
        self.model.now += seconds

    @rule()
    def expire(self) -> None:
        self.cache.expire()
        self.model.expire()
        assert self.cache.stats().blocks_free == self.model.n_free()

    @rule(domain=st.sampled_from([*DOMAINS, None]))
    def flush(self, domain: bytes | None) -> None:
        self.cache.flush(domain)
        self.model.flush(DOMAINS if domain is None else [domain])

    @rule(n=st.integers(1, N_BLOCKS))
    def press(self, n: int) -> None:
        """Somebody wants blocks for something that is never committed."""
        sequence = self.start(b"one", [])
        self.allocate(sequence, n)
        self.release(sequence, name_all=True)

    @invariant()
    def everything_holds(self) -> None:
        self.cache.check()
        assert self.cache.available == self.model.available()
        stats = self.cache.stats()
        assert stats.blocks_used == self.model.n_private + len(self.model.held())
        assert stats.blocks_free <= self.model.n_free()
        assert stats.leases == len(self.model.leases)


CacheMachine.TestCase.settings = settings(
    max_examples=150, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
)
test_the_cache_does_what_a_dictionary_would = CacheMachine.TestCase
