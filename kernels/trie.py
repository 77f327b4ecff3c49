"""The vocabulary as a byte trie, and the walk that turns a machine's position into a mask of tokens.

`mask_reference` defines the walk; `native/grammar` does the same with the machine's step inlined.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.pushdown import CLOSE, NO_CALLS, POP, Frames, ReferenceMachine, Tables

_REFERENCE_STEP_LIMIT = 1 << 19


class MaskTooCostly(RuntimeError):
    """A mask needed more than `allowed` steps: the grammar is too ambiguous at this point."""

    def __init__(self, allowed: int) -> None:
        self.allowed = allowed
        super().__init__(f"the grammar is too ambiguous here: a mask needed more than {allowed} steps")


@dataclass(frozen=True, slots=True, eq=False)
class TokenTrie:
    """All tokens as one trie in depth-first order: node i's subtree is i .. end[i] - 1. The root has no row.

    Tokens with equal bytes share a node; empty tokens are nowhere.
    """

    byte: np.ndarray          # [nodes] uint8
    depth: np.ndarray         # [nodes] int32, 1 for the first byte of a token
    end: np.ndarray           # [nodes] int32
    token_begin: np.ndarray   # [nodes + 1] int32, cuts `tokens`
    tokens: np.ndarray        # [tokens] int32, token ids in node order
    n_words: int              # uint32 words of a mask row
    longest: int              # bytes of the longest token
    closers: int              # most bytes of one token that can end a rule: how deep a token can climb out

    @classmethod
    def build(cls, token_bytes: Sequence[bytes]) -> TokenTrie:
        order = sorted((data, token) for token, data in enumerate(token_bytes) if data)
        byte = bytearray()
        depth: list[int] = []
        counts: list[int] = []     # tokens that end at each node
        last = b""
        for data, _ in order:
            if data != last:
                shared = _common_prefix(last, data)
                byte += data[shared:]
                depth.extend(range(shared + 1, len(data) + 1))
                counts.extend([0] * (len(data) - shared))
                last = data
            counts[-1] += 1
        depths = np.array(depth, dtype=np.int32)
        return cls(
            byte=np.frombuffer(bytes(byte), dtype=np.uint8), depth=depths, end=_ends(depths),
            token_begin=np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int32),
            tokens=np.array([token for _, token in order], dtype=np.int32), n_words=(len(token_bytes) + 31) // 32,
            longest=max((len(data) for data, _ in order), default=0),
            closers=max((sum(data.count(c) for c in b'"]}') for data, _ in order), default=0))


def _set_bits(row: np.ndarray, tokens: np.ndarray) -> None:
    np.bitwise_or.at(row, tokens >> 5, np.uint32(1) << (tokens & 31).astype(np.uint32))


def _common_prefix(left: bytes, right: bytes) -> int:
    n = 0
    for x, y in zip(left, right, strict=False):
        if x != y:
            break
        n += 1
    return n


def _ends(depths: np.ndarray) -> np.ndarray:
    """Where each node's subtree ends, from the depths in depth-first order."""
    ends = np.full(len(depths), len(depths), dtype=np.int32)
    open_nodes: list[int] = []
    for node, depth in enumerate(depths.tolist()):
        if len(open_nodes) >= depth:
            ends[open_nodes[depth - 1:]] = node
            del open_nodes[depth - 1:]
        open_nodes.append(node)
    return ends


def mask_reference(trie: TokenTrie, position: Hashable, step: Callable[[Any, int], Any | None], row: np.ndarray) -> None:
    """Set the bit of every token whose bytes `step` takes all, clear the others.

    Goes down the trie level by level; the nodes of a level that share a position are one group, so a step is asked once for
    each position and byte, however many tokens stand there. Raises MaskTooCostly.
    """
    steps = 0
    allowed = np.zeros(len(trie.byte), dtype=bool)
    groups: dict[Hashable, np.ndarray] = {position: np.flatnonzero(trie.depth == 1)}
    while groups:
        following: dict[Hashable, list[np.ndarray]] = {}
        for here, nodes in groups.items():
            node_bytes = trie.byte[nodes]
            for byte in np.unique(node_bytes).tolist():
                steps += 1
                if steps > _REFERENCE_STEP_LIMIT:
                    raise MaskTooCostly(_REFERENCE_STEP_LIMIT)
                after = step(here, byte)
                if after is not None:
                    following.setdefault(after, []).append(nodes[node_bytes == byte])
        groups = {}
        for after, parts in following.items():
            nodes = np.concatenate(parts)
            allowed[nodes] = True
            below = _children(trie, nodes)
            if len(below):
                groups[after] = below
    row[:] = 0
    tokens = trie.tokens[np.repeat(allowed, np.diff(trie.token_begin))]
    _set_bits(row, tokens)


def _children(trie: TokenTrie, nodes: np.ndarray) -> np.ndarray:
    """Children of many nodes: a first child follows its parent, the next one follows the end of the one before."""
    found = []
    child = nodes[trie.end[nodes] > nodes + 1] + 1
    limit = trie.end[child - 1]
    while len(child):
        found.append(child)
        after = trie.end[child]
        more = after < limit
        child, limit = after[more], limit[more]
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)


class PlainMachine:
    """`ReferenceMachine` and `mask_reference` over one vocabulary. Positions are immutable and hashable."""

    def __init__(self, tables: Tables, trie: TokenTrie) -> None:
        self._machine, self._trie, self._climbs = ReferenceMachine(tables), trie, how_far_tokens_climb(tables, trie)
        self.start, self.advance, self.may_end = self._machine.start, self._machine.advance, self._machine.may_end
        self.step = self._machine.step

    def mask_key(self, position: Frames) -> Hashable:
        return self._machine.mask_key(position, self._trie.longest, self._climbs)

    def fill(self, position: Frames, row: np.ndarray) -> None:
        """Raises MaskTooCostly."""
        mask_reference(self._trie, position, self._machine.step, row)


def how_far_tokens_climb(tables: Tables, trie: TokenTrie) -> int:
    """How many links a token can climb.

    In JSON a frame that others return to ends with a quote, a bracket or a brace: a token climbs one link for each, and a
    literal or number may end before them. Where a rule can end otherwise there is no limit.
    """
    calling = np.flatnonzero(tables.call_list != NO_CALLS)
    reached = set(tables.call_return[calling[calling != tables.root]].tolist())
    queue = list(reached)
    for state in queue:    # grows meanwhile
        edges = range(tables.edge_begin[state], tables.edge_begin[state + 1])
        targets = {int(tables.edge_target[e]) for e in edges}
        ends = [e for e in edges if tables.edge_target[e] == POP]
        if tables.final[state] or any(not (tables.edge_low[e] == tables.edge_high[e] in _CLOSERS) for e in ends):
            return _WITHOUT_LIMIT
        if tables.call_list[state] != NO_CALLS:
            targets.add(int(tables.call_return[state]))
        queue.extend(targets - reached - {POP})
        reached |= targets
    return trie.closers + 3


_CLOSERS = {*b'"]}', CLOSE}
_WITHOUT_LIMIT = 1 << 12
