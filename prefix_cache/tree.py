"""The radix tree: runs of whole blocks, found by their exact tokens.

Tokens are kept as 32-bit integers in bytes, so that comparing, cutting and looking up a run are single calls
into C, whatever its length, and a cached token costs 4 bytes.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf

from prefix_cache.errors import InvalidTokens

TOKEN_BYTES = array("i").itemsize


def pack_tokens(tokens: Sequence[int]) -> bytes:
    """Token ids as the tree compares them. An `array("i")` is copied as it is; anything else is read id by id."""
    if isinstance(tokens, array) and tokens.typecode == "i":
        return tokens.tobytes()
    try:
        return array("i", tokens).tobytes()
    except (TypeError, OverflowError) as error:
        raise InvalidTokens(f"token ids must be integers below 2**31: {error}") from error


@dataclass(slots=True, eq=False)
class Node:
    """A run of whole blocks that always occur together.

    Invariants: `tokens` holds as many whole blocks as `blocks` has entries, and at least one, but for a root;
    siblings differ in their first block; a held node's ancestors are held; a parent expires no earlier than
    its children.

    `holders` counts the leases that end at this node and the children that are held. So a lease is noted
    where its path ends, and upwards only as far as nobody else held the path already.
    """

    tokens: bytearray
    blocks: list[int]
    parent: Node | None
    ttl_s: float = inf
    expires: float = inf       # seconds on the cache's clock; from then on nobody finds the node
    last_use: int = 0          # number of the operation, so that uses in the same instant have an order
    holders: int = 0
    attached: bool = True      # False: out of the tree for good; its blocks are freed when nobody holds it
    children: dict[bytes, Node] = field(default_factory=dict)

    @property
    def is_leaf(self) -> bool:
        return not self.children

    @property
    def is_evictable(self) -> bool:
        """Whether its blocks can be taken: they are the tail of a sequence, and nobody holds them."""
        return self.attached and self.parent is not None and not self.children and self.holders == 0

    def path(self) -> Iterator[Node]:
        """This node and its ancestors below the root, upwards."""
        node = self
        while node.parent is not None:
            yield node
            node = node.parent


@dataclass(slots=True, eq=False)
class Root(Node):
    """The empty run at which all sequences of one cache domain begin."""

    domain: bytes = b""


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a sequence of tokens can be followed in the tree.

    `node` is the last one that matches as a whole. Where the sequence goes on into a child and leaves it on
    the way, `partial` is that child and `n_partial` the number of its blocks that match, at least one.
    `expired` is the child that would have matched, had its time not passed.
    """

    node: Node
    n_blocks: int                   # all that match, those of `partial` included
    partial: Node | None = None
    n_partial: int = 0
    expired: Node | None = None


class Tree:
    """Nodes under one root for each cache domain. Knows tokens and structure; not locks, time or memory."""

    def __init__(self, block_tokens: int) -> None:
        self.block_tokens = block_tokens
        self.block_bytes = block_tokens * TOKEN_BYTES
        self.roots: dict[bytes, Root] = {}
        self.n_nodes = 0                # attached ones, without roots

    def root_of(self, domain: bytes) -> Root:
        """The domain's root; made on first use."""
        root = self.roots.get(domain)
        if root is None:
            root = self.roots[domain] = Root(bytearray(), [], None, domain=domain)
        return root

    def drop_if_bare(self, root: Root) -> None:
        """A root that holds nothing and that nobody holds isn't kept: domains come and go."""
        if root.attached and not root.children and root.holders == 0:
            del self.roots[root.domain]
            root.attached = False

    def follow(self, start: Node, packed: bytes, now: float) -> Reach:
        """Follow `packed`, a number of whole blocks, downwards from `start`. Changes nothing.

        Costs one comparison of memory for each node on the way, and at the last one as many as halving takes.
        """
        node, at = start, 0
        while at < len(packed):
            child = node.children.get(packed[at : at + self.block_bytes])
            if child is None:
                break
            if child.expires <= now:
                return Reach(node, at // self.block_bytes, expired=child)
            if not packed.startswith(child.tokens, at):
                n_partial = self._common_blocks(child.tokens, packed, at)
                return Reach(node, at // self.block_bytes + n_partial, child, n_partial)
            node, at = child, at + len(child.tokens)
        return Reach(node, at // self.block_bytes)

    def _common_blocks(self, run: bytearray, packed: bytes, at: int) -> int:
        """How many whole blocks `run` and `packed[at:]` share, by halving. The first one is known to be equal."""
        size = self.block_bytes
        low, high = 1, min(len(run), len(packed) - at) // size
        while low < high:
            middle = (low + high + 1) // 2
            if run[low * size : middle * size] == packed[at + low * size : at + middle * size]:
                low = middle
            else:
                high = middle - 1
        return low

    def split(self, node: Node, n_blocks: int) -> Node:
        """Cut a node after `n_blocks`; return the new upper half. `node` stays the lower one: who holds it holds both."""
        assert node.parent is not None and 0 < n_blocks < len(node.blocks)
        cut = n_blocks * self.block_bytes
        upper = Node(
            node.tokens[:cut], node.blocks[:n_blocks], node.parent, node.ttl_s, node.expires, node.last_use,
            holders=1 if node.holders else 0,
        )
        node.parent.children[self._key(upper.tokens)] = upper
        node.tokens, node.blocks, node.parent = node.tokens[cut:], node.blocks[n_blocks:], upper
        upper.children[self._key(node.tokens)] = node
        self.n_nodes += 1
        return upper

    def add(self, parent: Node, packed: bytes, blocks: list[int], ttl_s: float) -> Node:
        """Hang a new run below `parent`, which has no child that begins with the same block."""
        key = self._key(packed)
        assert key not in parent.children and len(packed) == len(blocks) * self.block_bytes
        child = parent.children[key] = Node(bytearray(packed), blocks, parent, ttl_s, expires=-inf)
        self.n_nodes += 1
        return child

    def extend(self, node: Node, packed: bytes, blocks: list[int]) -> None:
        """Let a leaf's run grow at its end."""
        assert node.is_leaf and node.parent is not None and len(packed) == len(blocks) * self.block_bytes
        node.tokens += packed
        node.blocks += blocks

    def trim(self, node: Node, n_blocks: int) -> list[int]:
        """Cut the last `n_blocks` off a leaf and return them, the very last first; a leaf left empty goes."""
        assert node.is_leaf and 0 < n_blocks <= len(node.blocks)
        keep = len(node.blocks) - n_blocks
        cut = node.blocks[keep:][::-1]
        if keep == 0:
            self.unlink(node)
        del node.blocks[keep:]
        del node.tokens[keep * self.block_bytes :]
        return cut

    def unlink(self, node: Node) -> list[Node]:
        """Take `node` and all below it out of the tree; return them, parents before children.

        They know their parents still, and have no children any more: all that can happen to them is that
        their leases end.
        """
        if isinstance(node, Root):
            del self.roots[node.domain]
        else:
            assert node.parent is not None
            del node.parent.children[self._key(node.tokens)]
        gone = [node]
        for each in gone:
            gone.extend(each.children.values())
            each.children = {}
            each.attached = False
        self.n_nodes -= sum(each.parent is not None for each in gone)
        return gone

    def walk(self) -> Iterator[Node]:
        """All attached nodes, roots included, in no particular order."""
        stack: list[Node] = list(self.roots.values())
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.children.values())

    def _key(self, tokens: bytes | bytearray) -> bytes:
        return bytes(tokens[: self.block_bytes])
