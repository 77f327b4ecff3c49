"""The vocabulary as a byte trie, and the walk that turns a machine's position into a mask of tokens.

`mask_reference` defines the walk; `native/trie.cpp` does the same with the machine's step inlined. `load_machine`
chooses: the native one where the library was built, else the reference.
"""

from __future__ import annotations

import codecs
import ctypes
import re
import struct
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from kernels import library
from kernels.pushdown import ReferenceMachine, Tables

_STEP_LIMIT = 1 << 27   # frame steps of one mask: about a second natively
_ADVANCE_STEP_LIMIT = 1 << 21   # of one token: some hundredths of a second
_REFERENCE_STEP_LIMIT = 1 << 19
_FILL_TOO_COSTLY, _ADVANCE_TOO_COSTLY = -2, -(1 << 31)   # what trie.cpp returns


class MaskTooCostly(RuntimeError):
    """A mask, or a move by one token, needed more than `allowed` steps: the grammar is too ambiguous at this point."""

    def __init__(self, allowed: int) -> None:
        self.allowed = allowed
        super().__init__(f"the grammar is too ambiguous here: one token needed more than {allowed} steps")


@dataclass(frozen=True, slots=True)
class TokenTrie:
    """All tokens as one trie in depth-first order: node i's subtree is i .. end[i] - 1. The root has no row.

    Tokens with equal bytes share a node; empty tokens are nowhere.
    """

    byte: np.ndarray          # [nodes] uint8
    depth: np.ndarray         # [nodes] int32, 1 for the first byte of a token
    end: np.ndarray           # [nodes] int32
    height: np.ndarray        # [nodes] int32: bytes from here to the end of the longest token below, 1 at a leaf
    plain: np.ndarray         # [nodes] uint8: 1 where a character starts and the subtree may stand in a JSON string as it is
    token_begin: np.ndarray   # [nodes + 1] int32, cuts `tokens`
    tokens: np.ndarray        # [tokens] int32, token ids in node order
    n_words: int              # uint32 words of a mask row
    longest: int              # bytes of the longest token
    plain_row: np.ndarray     # [n_words] uint32: the mask of the tokens that may stand in a JSON string as they are
    special: TokenTrie | None # the trie of all other tokens; None in that trie itself
    closers: int              # most bytes of one token that can end a rule: how deep a token can climb out

    @classmethod
    def build(cls, token_bytes: Sequence[bytes]) -> TokenTrie:
        plain = [data if data and _goes_on_plainly(data) else b"" for data in token_bytes]
        special = cls._build([b"" if itself else data for itself, data in zip(plain, token_bytes, strict=True)], None, None)
        row = np.zeros(special.n_words, dtype=np.uint32)
        _set_bits(row, np.array([token for token, data in enumerate(plain) if data], dtype=np.int64))
        return cls._build(token_bytes, row, special)

    @classmethod
    def _build(cls, token_bytes: Sequence[bytes], plain_row: np.ndarray | None, special: TokenTrie | None) -> TokenTrie:
        n_words = (len(token_bytes) + 31) // 32
        order = sorted((data, token) for token, data in enumerate(token_bytes) if data)
        byte = bytearray()
        depth: list[int] = []
        counts: list[int] = []     # tokens that end at each node
        tokens: list[int] = []
        last = b""
        for data, token in order:
            if data != last:
                shared = _common_prefix(last, data)
                byte += data[shared:]
                depth.extend(range(shared + 1, len(data) + 1))
                counts.extend([0] * (len(data) - shared))
                last = data
            counts[-1] += 1
            tokens.append(token)
        depths = np.array(depth, dtype=np.int32)
        ends, heights = _subtrees(depths)
        return cls(
            byte=np.frombuffer(bytes(byte), dtype=np.uint8), depth=depths, end=ends, height=heights,
            plain=_plain_subtrees(byte, depth, ends),
            token_begin=np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int32),
            tokens=np.array(tokens, dtype=np.int32), n_words=n_words, special=special,
            plain_row=np.zeros(n_words, dtype=np.uint32) if plain_row is None else plain_row,
            longest=max((len(data) for data, _ in order), default=0),
            closers=max((sum(data.count(c) for c in b'"]}') for data, _ in order), default=0),
        )


def _goes_on_plainly(data: bytes) -> bool:
    """Whether a text is, or can go on as, well-formed UTF-8 without quote, backslash or control character."""
    try:
        text = codecs.utf_8_decode(data, "strict", False)[0]    # False: it may end within a character
    except UnicodeDecodeError:
        return False
    return not _SPECIAL.search(text)


_SPECIAL = re.compile(r'[\x00-\x1f"\\]')


def _set_bits(row: np.ndarray, tokens: np.ndarray) -> None:
    np.bitwise_or.at(row, tokens >> 5, np.uint32(1) << (tokens & 31).astype(np.uint32))


def _common_prefix(left: bytes, right: bytes) -> int:
    n = 0
    for x, y in zip(left, right, strict=False):
        if x != y:
            break
        n += 1
    return n


def _subtrees(depths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(end, height) of each node, from the depths in depth-first order."""
    levels = [*depths.tolist(), 0]
    ends, deepest = [0] * len(depths), list(levels)
    open_nodes: list[int] = []
    for node, depth in enumerate(levels):
        while open_nodes and levels[open_nodes[-1]] >= depth:
            done = open_nodes.pop()
            ends[done] = node
            if open_nodes:
                deepest[open_nodes[-1]] = max(deepest[open_nodes[-1]], deepest[done])
        open_nodes.append(node)
    return np.array(ends, dtype=np.int32), np.array(deepest[:-1], dtype=np.int32) - depths + 1


def _plain_subtrees(byte: bytes | bytearray, depth: Sequence[int], ends: np.ndarray) -> np.ndarray:
    """Where a character starts and all texts below are well-formed UTF-8 without quote, backslash or control character."""
    starts, bad = np.zeros(len(byte), dtype=bool), np.zeros(len(byte) + 1, dtype=np.int64)
    expected: list[tuple[tuple[int, int], ...] | None] = [()]   # by depth: the byte ranges still due, None in malformed text
    for node, (value, level) in enumerate(zip(byte, depth, strict=True)):
        due = expected[level - 1]
        starts[node] = due == ()
        if due == ():
            due = _CONTINUATIONS.get(value)
        elif due is not None:
            due = due[1:] if due[0][0] <= value <= due[0][1] else None
        bad[node + 1] = due is None or value < 0x20 or value in b'"\\'
        del expected[level:]
        expected.append(due)
    before = np.cumsum(bad)
    plain: np.ndarray = starts & (before[ends] == before[:-1])
    return plain.astype(np.uint8)


def _continuations() -> dict[int, tuple[tuple[int, int], ...]]:
    """First byte of a character -> ranges of the bytes that must follow it (Unicode's table of well-formed UTF-8)."""
    rest = (0x80, 0xBF)
    due: dict[int, tuple[tuple[int, int], ...]] = {b: () for b in range(0x80)}
    due |= {b: (rest,) for b in range(0xC2, 0xE0)} | {b: (rest, rest) for b in range(0xE1, 0xF0)}
    due |= {b: (rest, rest, rest) for b in range(0xF1, 0xF4)}
    due |= {0xE0: ((0xA0, 0xBF), rest), 0xED: ((0x80, 0x9F), rest)}
    return due | {0xF0: ((0x90, 0xBF), rest, rest), 0xF4: ((0x80, 0x8F), rest, rest)}


_CONTINUATIONS = _continuations()


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


class Machine(Protocol):
    """A grammar's machine over one vocabulary. Positions are immutable and hashable; any thread may use them."""

    def start(self) -> Hashable: ...
    def advance(self, position: Any, data: bytes) -> Any | None: ...    # raises MaskTooCostly
    def may_end(self, position: Any) -> bool: ...
    def mask_key(self, position: Any) -> Hashable: ...
    def fill(self, position: Any, row: np.ndarray) -> None: ...


class PlainMachine:
    """`ReferenceMachine` and `mask_reference` behind the protocol."""

    def __init__(self, tables: Tables, trie: TokenTrie) -> None:
        self._machine, self._trie = ReferenceMachine(tables), trie
        self.start, self.advance, self.may_end = self._machine.start, self._machine.advance, self._machine.may_end

    def mask_key(self, position: Any) -> Hashable:
        return self._machine.mask_key(position, self._trie.longest, key_depth(self._trie))

    def fill(self, position: Any, row: np.ndarray) -> None:
        mask_reference(self._trie, position, self._machine.step, row)


def key_depth(trie: TokenTrie) -> int:
    """Links that a token can climb: one for each closing byte, and a literal or number that ends before them."""
    return trie.closers + 3


class _NativeTables(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in (
        "mode", "space", "final", "counted", "free", "edge_begin", "call_list", "call_return", "edge_low", "edge_high",
        "edge_target", "edge_op", "edge_x", "edge_y", "list_begin", "call_start", "call_a", "call_b", "keys")]
    _fields_ += [("root", ctypes.c_int32), ("reach", ctypes.c_int64)]


class _NativeTrie(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in (
        "byte", "plain", "depth", "end", "height", "token_begin", "tokens", "plain_row")]
    _fields_ += [("n_nodes", ctypes.c_int32), ("n_words", ctypes.c_int32), ("longest", ctypes.c_int32)]


class NativePosition(NamedTuple):
    """A configuration as bytes, so it needs no arena and no owner; its mask key; and whether the answer may end."""

    configuration: bytes
    mask_key: bytes
    may_end: bool


class NativeMachine:
    """The same machine in C++."""

    def __init__(self, native: ctypes.CDLL, tables: Tables, trie: TokenTrie) -> None:
        self._tables, self._trie = tables, trie   # keep the arrays alive
        self._c_tables = _NativeTables(*_addresses(tables, _NativeTables), tables.root, tables.reach)
        self._c_tries = [_NativeTrie(*_addresses(part, _NativeTrie), len(part.byte), part.n_words, trie.longest)
                         for part in (trie, trie.special) if part is not None]
        self._tables_at = ctypes.addressof(self._c_tables)
        self._trie_at, self._special_at = (ctypes.addressof(part) for part in self._c_tries)
        self._longest, self._depth = trie.longest, key_depth(trie)
        self._advance = library.bind(
            native, "ts_advance", [_POINTER, _POINTER, _POINTER, _INT, _INT, _INT, _LONG, _POINTER, _INT], _INT)
        self._fill = library.bind(native, "ts_fill", [_POINTER, _POINTER, _POINTER, _POINTER, _POINTER, _LONG], _INT)
        start = library.bind(native, "ts_start", [_POINTER, _INT, _INT, _POINTER, _INT], _INT)
        self._buffers = threading.local()
        at, room, _ = self._buffer()
        length = start(self._tables_at, self._longest, self._depth, at, room)
        assert 0 < length <= room, "the first position is one frame"
        self._start = self._reported()

    def start(self) -> NativePosition:
        return self._start

    def advance(self, position: NativePosition, data: bytes) -> NativePosition | None:
        at, room, _ = self._buffer()
        length = self._advance(
            self._tables_at, position.configuration, data, len(data), self._longest, self._depth, _ADVANCE_STEP_LIMIT, at, room)
        if length >= 0:
            return self._reported() if length else None
        if length == _ADVANCE_TOO_COSTLY:
            raise MaskTooCostly(_ADVANCE_STEP_LIMIT)
        self._new_buffer(-2 * length)
        return self.advance(position, data)

    def may_end(self, position: NativePosition) -> bool:
        return position.may_end

    def mask_key(self, position: NativePosition) -> bytes:
        return position.mask_key

    def fill(self, position: NativePosition, row: np.ndarray) -> None:
        assert row.dtype == np.uint32 and row.flags.c_contiguous and len(row) == self._trie.n_words
        done = self._fill(self._tables_at, self._trie_at, self._special_at, position.configuration, row.ctypes.data, _STEP_LIMIT)
        if done == _FILL_TOO_COSTLY:
            raise MaskTooCostly(_STEP_LIMIT)

    def _reported(self) -> NativePosition:
        """The position that was written to this thread's buffer."""
        _, _, view = self._buffer()
        n_position, n_key, may_end = _HEAD.unpack_from(view)
        end = _HEAD.size + n_position
        return NativePosition(bytes(view[_HEAD.size:end]), bytes(view[end:end + n_key]), may_end != 0)

    def _buffer(self) -> tuple[int, int, memoryview]:
        """(address, bytes, view) of this thread's buffer."""
        try:
            current: tuple[int, int, memoryview] = self._buffers.current
        except AttributeError:
            current = self._new_buffer(4096)
        return current

    def _new_buffer(self, room: int) -> tuple[int, int, memoryview]:
        buffer = (ctypes.c_char * room)()
        self._buffers.current = ctypes.addressof(buffer), room, memoryview(buffer).cast("B")   # the view keeps the buffer alive
        return self._buffer()


_POINTER, _INT, _LONG = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64
_HEAD = struct.Struct("3i")


def _addresses(arrays: Tables | TokenTrie, layout: type[ctypes.Structure]) -> list[int]:
    return [getattr(arrays, name).ctypes.data for name, kind, *_ in layout._fields_ if kind is ctypes.c_void_p]


def load_machine(tables: Tables, trie: TokenTrie, wanted: str = "auto") -> Machine:
    """The fastest machine there is; wanted = "reference" or "native" insists (native: ImportError where it is missing)."""
    native = None if wanted == "reference" else library.load()
    if native is not None:
        return NativeMachine(native, tables, trie)
    if wanted == "native":
        raise ImportError(f"no native library: {library.why_missing()}")
    return PlainMachine(tables, trie)
