"""Why a block is still held: the order in which nodes leave the tree, and when each becomes unreachable.

The policy is two sort keys. A node past its deadline goes first, in the order of deadlines; after those the
least recently used one. Both look at leaves only, so that a sequence loses its tail before its beginning.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from math import inf

from prefix_cache.tree import Node


def deadline(node: Node) -> float:
    """Sort key of expiry: the second at which the node becomes unreachable."""
    return node.expires


def recency(node: Node) -> float:
    """Sort key of eviction under pressure: the number of the last operation that used the node."""
    return node.last_use


def touch(tail: Node, tick: int, now: float) -> None:
    """Note a use of the path from the root to `tail`, which starts the time to live of each of its nodes anew.

    A node lives at least as long as what hangs below it: a child out of reach would be held for nothing. So
    the longest time to live on the way up is carried along.
    """
    reach = -inf
    node = tail
    while node.parent is not None:
        reach = max(reach, now + node.ttl_s)
        node.last_use = tick
        node.expires = max(reach, node.expires)
        node = node.parent


class LazyQueue:
    """Nodes by a key that never falls, smallest first; a change of the key costs nothing.

    A node stands in the heap at most once, at the key it had when it was put there. Since keys only grow, an
    outdated entry stands too far in front, never too far behind: it is found on the way and put where it
    belongs. A node that isn't `wanted` when its entry comes up is dropped, and whoever makes it wanted again
    puts it back. So `put` and `pop` cost the logarithm of the entries, spread over the changes of the keys.
    """

    _SLACK = 64    # dead entries that aren't worth a rebuild

    def __init__(self, key: Callable[[Node], float], wanted: Callable[[Node], bool]) -> None:
        self._key = key
        self._wanted = wanted
        self._heap: list[tuple[float, int, Node]] = []
        self._queued: set[Node] = set()
        self._order = count()    # decides between equal keys: first come, first served

    def __contains__(self, node: Node) -> bool:
        return node in self._queued

    def __len__(self) -> int:
        """Entries in the heap, dead ones included."""
        return len(self._heap)

    def put(self, node: Node) -> None:
        """Queue `node`, if it isn't queued."""
        if node not in self._queued:
            self._queued.add(node)
            heapq.heappush(self._heap, (self._key(node), next(self._order), node))

    def pop(self, limit: float = inf) -> Node | None:
        """Take out the wanted node with the smallest key, if that key is at most `limit`."""
        while self._heap and self._heap[0][0] <= limit:
            key, _, node = heapq.heappop(self._heap)
            if node not in self._queued:
                continue
            self._queued.remove(node)
            if not self._wanted(node):
                continue
            if self._key(node) == key:
                return node
            self.put(node)
        return None

    def forget(self, node: Node) -> None:
        """The node has left the tree for good: its entry may stay, but must not keep its memory for long."""
        self._queued.discard(node)
        if len(self._heap) > 2 * len(self._queued) + self._SLACK:
            self._heap = [entry for entry in self._heap if entry[2] in self._queued]
            heapq.heapify(self._heap)
