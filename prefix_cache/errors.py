"""What a caller of the prefix cache can get wrong or run into.

    CacheError
      PoolExhausted    more blocks are wanted than are free or evictable; wait, preempt or refuse
      InvalidTokens    something other than token ids that fit 32 bits
      InvalidCommit    the blocks and tokens of a commit don't describe the lease's sequence
      LeaseEnded       a lease was used after its release
"""

from __future__ import annotations


class CacheError(Exception):
    """Every error of this package. The call that raised it changed nothing."""


class PoolExhausted(CacheError):
    """More blocks are wanted than can be had while the present leases live."""

    def __init__(self, needed: int, available: int) -> None:
        super().__init__(
            f"{needed} blocks are needed and {available} are free or evictable: wait for a lease to end, or preempt a sequence"
        )
        self.needed = needed
        self.available = available


class InvalidTokens(CacheError, ValueError):
    """The tokens aren't integers that fit 32 bits."""


class InvalidCommit(CacheError, ValueError):
    """A commit or a release names blocks that the sequence doesn't own."""


class LeaseEnded(CacheError, ValueError):
    """A lease is good for one release, and for nothing after it."""
