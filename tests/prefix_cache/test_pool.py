from __future__ import annotations

import pytest

from prefix_cache import InvalidCommit
from prefix_cache.pool import BlockPool, Owner


def test_a_block_is_free_then_private_then_the_trees_then_free() -> None:
    pool = BlockPool(2)
    (block,) = pool.take(1)
    assert (pool.owner(block), pool.n_free) == (Owner.PRIVATE, 1)
    pool.adopt([block])
    assert pool.owner(block) == Owner.TREE
    pool.free([block])
    assert (pool.owner(block), pool.n_free) == (Owner.FREE, 2)


def test_blocks_are_given_in_order_and_the_last_one_freed_first() -> None:
    pool = BlockPool(4)
    assert pool.take(3) == [0, 1, 2]
    pool.free([0])
    pool.free([2])
    assert pool.take(3) == [3, 0, 2][::-1]


def test_taking_nothing_gives_nothing() -> None:
    pool = BlockPool(1)
    assert pool.take(0) == []
    assert pool.n_free == 1


def test_only_private_blocks_can_be_given_back_and_each_once() -> None:
    pool = BlockPool(3)
    pool.take(2)
    pool.adopt([1])
    assert pool.private_of([1, 0]) == [0]
    for blocks in ([2], [0, 0], [3], [-1]):
        with pytest.raises(InvalidCommit):
            pool.private_of(blocks)
