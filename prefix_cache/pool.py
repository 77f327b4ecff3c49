"""The blocks of one tier: which are free, and whose the others are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum

from prefix_cache.errors import InvalidCommit


class Owner(IntEnum):
    """Where a block is. Each block is in exactly one of these places."""

    FREE = 0
    PRIVATE = 1    # one sequence writes to it; nobody else may read it
    TREE = 2       # its content is final; the tree hands it out


class BlockPool:
    """Block ids 0 .. n_blocks-1 with their owners and a free list.

    The list is a stack: the block that was freed last is given first, since its memory is the warmest.
    """

    def __init__(self, n_blocks: int) -> None:
        self.n_blocks = n_blocks
        self._owners = bytearray(n_blocks)    # Owner of each block
        self._free = list(range(n_blocks - 1, -1, -1))

    @property
    def n_free(self) -> int:
        return len(self._free)

    def owner(self, block: int) -> Owner:
        return Owner(self._owners[block])

    def take(self, n: int) -> list[int]:
        """Make `n` free blocks private. The caller has checked that there are so many."""
        assert 0 <= n <= len(self._free)
        cut = len(self._free) - n
        taken = self._free[cut:][::-1]
        del self._free[cut:]
        for block in taken:
            self._owners[block] = Owner.PRIVATE
        return taken

    def adopt(self, blocks: Iterable[int]) -> None:
        """Private blocks become the tree's."""
        for block in blocks:
            self._owners[block] = Owner.TREE

    def free(self, blocks: Iterable[int]) -> None:
        """Blocks go back to the free list. The last one given is the first one to be taken again."""
        for block in blocks:
            assert self._owners[block] != Owner.FREE, f"block {block} is freed twice"
            self._owners[block] = Owner.FREE
            self._free.append(block)

    def private_of(self, blocks: Sequence[int]) -> list[int]:
        """Those of `blocks` that the tree doesn't own. InvalidCommit if one is free, unknown or named twice."""
        if len(set(blocks)) != len(blocks):
            raise InvalidCommit("a block is named twice: give each block of the sequence once")
        for block in blocks:
            if not 0 <= block < self.n_blocks or self._owners[block] == Owner.FREE:
                raise InvalidCommit(f"block {block} isn't held by any sequence: give blocks that allocate() returned")
        return [block for block in blocks if self._owners[block] == Owner.PRIVATE]

    def count(self, owner: Owner) -> int:
        """How many blocks `owner` has, counted one by one."""
        return self._owners.count(owner)

    def free_list(self) -> list[int]:
        """A copy, for checks."""
        return list(self._free)
