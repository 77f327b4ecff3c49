"""What the cache counts, and what it holds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """Sums since the start. A block counts as evicted when it leaves the tree, even if a lease still holds it."""

    inserted_blocks: int = 0
    evicted_pressure: int = 0    # made room for others
    evicted_expired: int = 0     # past their deadline
    evicted_flushed: int = 0     # on request


@dataclass(frozen=True, slots=True)
class CacheStats:
    """One moment of the cache: blocks_total == blocks_free + blocks_cached + blocks_used.

    Cached: in the tree and held by nobody, so that the next `allocate` may take it. Used: private to a
    sequence, or on the path of a lease.
    """

    blocks_total: int
    blocks_free: int
    blocks_cached: int
    blocks_used: int
    block_tokens: int
    nodes: int
    domains: int
    leases: int
    inserted_blocks: int
    evicted_pressure: int
    evicted_expired: int
    evicted_flushed: int

    @property
    def evicted_blocks(self) -> int:
        return self.evicted_pressure + self.evicted_expired + self.evicted_flushed
