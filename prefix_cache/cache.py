"""The prefix cache: acquire, allocate, commit, release.

Not safe for several threads at once: one engine loop owns it. It has no clock of its own and does no input
or output; each call is a change of bookkeeping that either happens as a whole or raises and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Literal

from prefix_cache.errors import InvalidCommit, LeaseEnded, PoolExhausted
from prefix_cache.integrity import check_integrity
from prefix_cache.lease import Lease
from prefix_cache.pool import BlockPool
from prefix_cache.retention import LazyQueue, deadline, recency, touch
from prefix_cache.stats import CacheStats, Counters
from prefix_cache.tree import Node, Reach, Root, Tree, pack_tokens

Cause = Literal["pressure", "expired", "flushed"]


class PrefixCache:
    """Blocks of keys and values, found again by the tokens that they were computed from.

    `clock` gives seconds that never run backwards. `ttl_s` is how long a block stays reachable after its last
    use; `commit` can say otherwise for its own blocks; 0 keeps nothing.
    """

    def __init__(self, n_blocks: int, block_tokens: int = 16, *, clock: Callable[[], float], ttl_s: float) -> None:
        if n_blocks < 1 or block_tokens < 1 or not ttl_s >= 0:
            raise ValueError(f"n_blocks={n_blocks}, block_tokens={block_tokens}, ttl_s={ttl_s}: give at least 1, 1 and 0")
        self.block_tokens = block_tokens
        self.pool = BlockPool(n_blocks)
        self.tree = Tree(block_tokens)
        self.leases: set[Lease] = set()
        self.detached: set[Node] = set()    # out of the tree, and held by leases that began before
        self.n_cached = 0                   # blocks of attached nodes that nobody holds
        self.counters = Counters()
        self._clock = clock
        self._ttl_s = ttl_s
        self._tick = 0
        self.by_recency = LazyQueue(recency, lambda node: node.is_evictable)
        self.by_deadline = LazyQueue(deadline, lambda node: node.attached and node.is_leaf)

    @property
    def available(self) -> int:
        """How many blocks `allocate` could give now. Costs nothing.

        All cached ones count: what lies below a node that nobody holds is held by nobody either, so the whole
        of it can be evicted, tails first.
        """
        return self.pool.n_free + self.n_cached

    def acquire(self, domain: bytes, tokens: Sequence[int]) -> Lease:
        """Find and lock the longest cached prefix of `tokens`; the caller must release the lease.

        The prefix has whole blocks, and at most len(tokens) - 1 tokens: the last one must be computed, since
        its logits are wanted. A hit starts the prefix's time to live anew.

        Costs one pass over the matched tokens' memory, whatever the size of the tree.
        """
        packed = self._whole_blocks_to_find(tokens)
        root = self.tree.root_of(domain)
        now = self._next_tick()
        reach = self.tree.follow(root, packed, now)
        tail = self._end_of(reach)
        touch(tail, self._tick, now)
        self._hold(tail)
        blocks = [block for node in reversed(list(tail.path())) for block in node.blocks]
        lease = Lease(domain, blocks, reach.n_blocks * self.block_tokens, tail, reach.n_blocks)
        self.leases.add(lease)
        return lease

    def peek(self, domain: bytes, tokens: Sequence[int]) -> int:
        """How many tokens `acquire` would find now. Locks, refreshes and counts nothing."""
        root = self.tree.roots.get(domain)
        if root is None:
            return 0
        return self.tree.follow(root, self._whole_blocks_to_find(tokens), self._clock()).n_blocks * self.block_tokens

    def allocate(self, n: int) -> list[int]:
        """`n` private blocks, whose content is whatever was there before.

        What is free is taken first; then what has expired; then the least recently used, each sequence's tail
        first; never what a lease holds. Raises PoolExhausted, with nothing evicted, if that isn't enough.
        """
        if n < 0:
            raise ValueError(f"{n} blocks can't be allocated: give 0 or more")
        if n > self.available:
            raise PoolExhausted(n, self.available)
        if n > self.pool.n_free:
            self._make_room(n)
        return self.pool.take(n)

    def commit(self, lease: Lease, tokens: Sequence[int], blocks: Sequence[int], ttl_s: float | None = None) -> None:
        """Let others find what the lease's sequence has computed so far.

        `tokens` and `blocks` are the sequence's own, from position 0; `blocks` begins with lease.blocks. Only
        whole blocks that both cover are looked at. Those new to the tree become the tree's, locked by the
        lease. A block whose tokens the tree has already, in the block of a twin, stays the caller's; what
        comes after it hangs below the twin's, whose content is the same, and the lease locks those.

        Committing again what was committed before only starts the path's time to live anew. If the path was
        flushed or has expired meanwhile, the sequence's blocks stay private: the cache has promised to forget
        what they were computed from. Raises InvalidCommit, having changed nothing, for blocks that aren't the
        caller's.
        """
        self._check_live(lease)
        ttl_s = self._ttl_s if ttl_s is None else ttl_s
        if not ttl_s >= 0:
            raise ValueError(f"ttl_s={ttl_s}: a time to live is 0 or more seconds")
        n_whole = min(len(tokens) // self.block_tokens, len(blocks))
        n_leased = min(n_whole, len(lease.blocks))
        if list(blocks[:n_leased]) != lease.blocks[:n_leased]:
            raise InvalidCommit("the sequence's blocks don't begin with its lease's: give all its blocks, from position 0")
        packed = pack_tokens(tokens[lease.n_blocks * self.block_tokens : n_whole * self.block_tokens])
        now = self._next_tick()
        if not self._is_reachable(lease, now):
            return
        if packed and ttl_s > 0:
            self._insert(lease, packed, blocks[lease.n_blocks : n_whole], ttl_s, now)
        touch(lease.tail, self._tick, now)
        if lease.tail.is_leaf and lease.tail.parent is not None:
            self.by_deadline.put(lease.tail)

    def release(self, lease: Lease, private: Sequence[int] = ()) -> None:
        """End a lease: unlock its path, whose time to live starts anew, and free the sequence's private blocks.

        `private` may name any blocks that the sequence got from `allocate`: those that the tree has taken over
        stay the tree's. Raises LeaseEnded if the lease was released before, and InvalidCommit for a block that
        nobody holds; nothing is changed then.
        """
        self._check_live(lease)
        mine = self.pool.private_of(private)
        now = self._next_tick()
        if self._is_reachable(lease, now):
            touch(lease.tail, self._tick, now)
        lease.ended = True
        self.leases.remove(lease)
        self._unhold(lease.tail)
        self.pool.free(reversed(mine))

    def expire(self) -> int:
        """Take everything past its deadline out of the tree; return the number of blocks.

        Expired blocks are unreachable without it. It frees their memory before somebody asks for it.
        """
        now = self._clock()
        n_blocks = 0
        while (node := self.by_deadline.pop(now)) is not None:
            n_blocks += self._remove(node, "expired")
        return n_blocks

    def flush(self, domain: bytes | None = None) -> int:
        """Forget a domain, or all of them; return the number of blocks taken out of the tree.

        Never refused while sequences run: what a lease holds is unreachable from now on and is freed when the
        lease ends, and nothing that such a sequence computes later enters the tree.
        """
        roots = list(self.tree.roots.values()) if domain is None else [self.tree.roots.get(domain)]
        return sum(self._remove(root, "flushed") for root in roots if root is not None)

    def stats(self) -> CacheStats:
        """Counters and block counts. Costs the same whatever the cache holds."""
        return CacheStats(
            blocks_total=self.pool.n_blocks,
            blocks_free=self.pool.n_free,
            blocks_cached=self.n_cached,
            blocks_used=self.pool.n_blocks - self.available,
            block_tokens=self.block_tokens,
            nodes=self.tree.n_nodes,
            domains=len(self.tree.roots),
            leases=len(self.leases),
            **asdict(self.counters),
        )

    def check(self) -> None:
        """Raise AssertionError if an invariant is broken. Looks at everything."""
        check_integrity(self)

    def _next_tick(self) -> float:
        self._tick += 1
        return self._clock()

    def _check_live(self, lease: Lease) -> None:
        if lease not in self.leases:
            raise LeaseEnded("the lease was released, or is another cache's: acquire a new one")

    def _whole_blocks_to_find(self, tokens: Sequence[int]) -> bytes:
        n_blocks = max(len(tokens) - 1, 0) // self.block_tokens
        return pack_tokens(tokens[: n_blocks * self.block_tokens])

    def _is_reachable(self, lease: Lease, now: float) -> bool:
        """Whether others can find the lease's path. If it expired just now, take it out of the tree."""
        if lease.tail.attached and lease.tail.expires <= now:
            *_, highest = (node for node in lease.tail.path() if node.expires <= now)
            self._remove(highest, "expired")
        return lease.tail.attached

    def _end_of(self, reach: Reach) -> Node:
        """The node that ends where the match ends, split off if there is none."""
        return reach.node if reach.partial is None else self.tree.split(reach.partial, reach.n_partial)

    def _insert(self, lease: Lease, packed: bytes, blocks: Sequence[int], ttl_s: float, now: float) -> None:
        """Move the lease's path on to the end of `packed`, over what the tree has and by what it hasn't."""
        reach = self.tree.follow(lease.tail, packed, now)
        new = list(blocks[reach.n_blocks :])
        if len(self.pool.private_of(new)) != len(new):
            raise InvalidCommit("a block to commit is the tree's already, at another place: give the sequence's own blocks")
        if reach.expired is not None:
            self._remove(reach.expired, "expired")
        tail = self._end_of(reach)
        if new:
            tail = self._grow(lease, tail, packed[reach.n_blocks * self.tree.block_bytes :], new, ttl_s)
        if tail is not lease.tail:
            self._hold(tail)
            self._unhold(lease.tail)
            lease.tail = tail
        lease.n_blocks += reach.n_blocks + len(new)

    def _grow(self, lease: Lease, tail: Node, packed: bytes, blocks: list[int], ttl_s: float) -> Node:
        """Add a run of private blocks below `tail`; return the node in which it ends.

        A leaf that only this lease holds grows at its end: an answer committed block by block is one node.
        """
        self.pool.adopt(blocks)
        self.counters.inserted_blocks += len(blocks)
        only_mine = tail is lease.tail and tail.holders == 1 and tail.is_leaf and tail.parent is not None
        if only_mine and tail.ttl_s == ttl_s:
            self.tree.extend(tail, packed, blocks)
            return tail
        self.n_cached += len(blocks)    # until the lease holds it, a moment later
        return self.tree.add(tail, packed, blocks, ttl_s)

    def _hold(self, node: Node) -> None:
        """One more holder. The first one of a node makes it a held child of its parent."""
        node.holders += 1
        while node.holders == 1 and node.parent is not None:
            self.n_cached -= len(node.blocks)
            node = node.parent
            node.holders += 1

    def _unhold(self, tail: Node) -> None:
        """One holder less. The last one leaves an attached node to the next eviction and frees a detached one."""
        node: Node | None = tail
        while node is not None:
            node.holders -= 1
            if node.holders > 0:
                return
            if node.attached:
                self.n_cached += len(node.blocks)
                self._offer(node)
            else:
                self.detached.remove(node)
                self.pool.free(reversed(node.blocks))
            node = node.parent

    def _offer(self, node: Node) -> None:
        """Queue a node that may just have become a leaf, or lost its last holder."""
        if isinstance(node, Root):
            self.tree.drop_if_bare(node)
        elif node.is_leaf:
            self.by_deadline.put(node)
            if node.is_evictable:
                self.by_recency.put(node)

    def _make_room(self, n_free: int) -> None:
        """Evict until `n_free` blocks are free. The caller has checked that it can be done."""
        now = self._clock()
        while self.pool.n_free < n_free and (expired := self.by_deadline.pop(now)) is not None:
            self._remove(expired, "expired")
        while self.pool.n_free < n_free:
            node = self.by_recency.pop()
            assert node is not None, "available counts more than can be evicted"
            self._trim(node, min(n_free - self.pool.n_free, len(node.blocks)))

    def _trim(self, leaf: Node, n_blocks: int) -> None:
        """Evict the last blocks of a leaf that nobody holds."""
        cut = self.tree.trim(leaf, n_blocks)
        self.n_cached -= n_blocks
        self.counters.evicted_pressure += n_blocks
        self.pool.free(cut)
        if leaf.attached:
            self._offer(leaf)
        else:
            self._forget(leaf)
            assert leaf.parent is not None
            self._offer(leaf.parent)

    def _remove(self, top: Node, cause: Cause) -> int:
        """Take a node and all below it out of the tree; return the number of blocks that nobody finds any more.

        What nobody holds is free at once, the rest when its leases end.
        """
        n_blocks = 0
        for node in self.tree.unlink(top):
            self._forget(node)
            n_blocks += len(node.blocks)
            if node.holders > 0:
                self.detached.add(node)
                continue
            self.n_cached -= len(node.blocks)
            self.pool.free(reversed(node.blocks))
        if cause == "expired":
            self.counters.evicted_expired += n_blocks
        else:
            self.counters.evicted_flushed += n_blocks
        if top.parent is not None:
            self._offer(top.parent)
        return n_blocks

    def _forget(self, node: Node) -> None:
        self.by_recency.forget(node)
        self.by_deadline.forget(node)
