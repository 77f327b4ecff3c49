"""What must hold in the cache between any two calls."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from prefix_cache.pool import Owner
from prefix_cache.tree import Node, Root

if TYPE_CHECKING:
    from prefix_cache.cache import PrefixCache


def check_integrity(cache: PrefixCache) -> None:
    """Raise AssertionError if an invariant of the tree, the locks, the queues or the blocks is broken."""
    nodes = list(cache.tree.walk())
    for node in nodes:
        _check_structure(cache, node)
    for node in cache.detached:
        assert not node.attached and not node.children and node.holders > 0, "a detached node that nobody holds"
    below_roots = [node for node in nodes if node.parent is not None]
    assert cache.tree.n_nodes == len(below_roots), f"{len(below_roots)} nodes, counted {cache.tree.n_nodes}"
    _check_holders(cache, nodes)
    _check_leases(cache)
    _check_queues(cache, below_roots)
    _check_blocks(cache, below_roots)


def _check_structure(cache: PrefixCache, node: Node) -> None:
    assert node.attached, "a node in the tree says that it has left"
    assert len(node.tokens) == len(node.blocks) * cache.tree.block_bytes, "tokens and blocks of a node differ in length"
    if isinstance(node, Root):
        assert node.parent is None and not node.blocks and cache.tree.roots[node.domain] is node
        assert node.children or node.holders, "a bare root"
    else:
        assert node.blocks, "an empty node below a root"
    for key, child in node.children.items():
        assert child.parent is node, "a child has another parent"
        assert key == bytes(child.tokens[: cache.tree.block_bytes]), "a child is filed under another block"
        assert child.expires <= node.expires, "a child outlives its parent"
        assert child.last_use <= node.last_use or node.parent is None, "a child was used after its parent"
        assert not child.holders or node.holders, "a held node below one that nobody holds"


def _check_holders(cache: PrefixCache, nodes: list[Node]) -> None:
    """Each node's count is that of the leases that end there and of its held children, detached ones included."""
    expected: Counter[Node] = Counter(lease.tail for lease in cache.leases)
    for node in [*nodes, *cache.detached]:
        if node.holders and node.parent is not None:
            expected[node.parent] += 1
    for node in [*nodes, *cache.detached]:
        assert node.holders == expected[node], f"a node has {node.holders} holders, and should have {expected[node]}"
    known = {*nodes, *cache.detached}
    assert all(node in known for node in expected), "a lease holds a node that the cache doesn't know"


def _check_leases(cache: PrefixCache) -> None:
    for lease in cache.leases:
        assert not lease.ended
        path = [block for node in reversed(list(lease.tail.path())) for block in node.blocks]
        assert len(path) == lease.n_blocks, f"a lease of {lease.n_blocks} blocks holds {len(path)}"
        assert path[: len(lease.blocks)] == lease.blocks, "a lease's hit isn't the beginning of its path"
        assert lease.n_tokens == len(lease.blocks) * cache.block_tokens


def _check_queues(cache: PrefixCache, nodes: list[Node]) -> None:
    for node in nodes:
        assert not node.is_leaf or node in cache.by_deadline, "a leaf whose deadline nobody watches"
        assert not node.is_evictable or node in cache.by_recency, "an evictable node that eviction can't find"


def _check_blocks(cache: PrefixCache, nodes: list[Node]) -> None:
    """Each block is in one place, and the counts are those of the places."""
    pool, stats = cache.pool, cache.stats()
    of_tree = [block for node in [*nodes, *cache.detached] for block in node.blocks]
    free = pool.free_list()
    assert len(set(of_tree)) == len(of_tree), "a block is in two places of the tree"
    assert len(set(free)) == len(free), "a block is free twice"
    assert all(pool.owner(block) == Owner.TREE for block in of_tree), "a node has a block that isn't the tree's"
    assert all(pool.owner(block) == Owner.FREE for block in free), "a block in the free list is somebody's"
    assert pool.count(Owner.TREE) == len(of_tree), "the tree owns a block that is in no node"
    assert pool.count(Owner.FREE) == len(free), "a free block isn't in the free list"
    cached = sum(len(node.blocks) for node in nodes if node.holders == 0)
    held = len(of_tree) - cached
    assert stats.blocks_cached == cached, f"{cached} blocks are cached, counted {stats.blocks_cached}"
    assert stats.blocks_used == held + pool.count(Owner.PRIVATE)
    assert stats.blocks_total == stats.blocks_free + stats.blocks_cached + stats.blocks_used
