"""What a sequence holds of the tree."""

from __future__ import annotations

from dataclasses import dataclass

from prefix_cache.tree import Node


@dataclass(slots=True, eq=False)
class Lease:
    """A locked path of the tree: what a sequence found there, and what it added since.

    `blocks` and `n_tokens` are the hit and never change. The blocks on the path can't be evicted or written
    to until the lease is released, even where they have expired or were flushed meanwhile.

    `tail` is the node at which the path ends and `n_blocks` the path's length. The first blocks of the
    sequence have the same content as the path's, though not always the same ids: where another sequence was
    first to commit the same tokens, the path runs over the twin's blocks and the sequence keeps its own.
    """

    domain: bytes
    blocks: list[int]
    n_tokens: int
    tail: Node
    n_blocks: int
    ended: bool = False
