"""A small pushdown machine over bytes: the form in which a grammar reaches the mask walk.

A machine is a set of flat tables (`Tables`). Its position is a *configuration*: a set of frames, each a place in
one rule together with two registers, a decoder state and a link to the frames it returns to. The link is itself such
a set, shared by all frames that were called at the same moment for the same rule, so an ambiguous grammar costs as
much as it has different rules alive, not as it has different histories (a graph-structured stack, after Tomita).

Three things keep the tables small:

- Text is read in characters. A state in `TEXT` or `JSON_STRING` mode has edges over code points; the decoder of UTF-8
  and of JSON's escapes is part of the machine (`Frame.partial`), so no automaton spells out bytes or escapes.
- Counts are registers. `TAKE` counts down a lower and an upper bound, so a string of at most 65,536 characters has as many
  states as a string of at most 3.
- Object keys are ordered by registers: `KEY` moves a position forward, so n optional properties need no n * n edges.

This module is the specification: `ReferenceMachine` is plain Python and the native walk in `native/trie.cpp` does the
same on the same tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakValueDictionary

import numpy as np

# How a state reads its input.
RAW = 0            # edges are over bytes
TEXT = 1           # edges are over code points, UTF-8 encoded
JSON_STRING = 2    # as TEXT inside a JSON string: escapes are decoded, a bare quote is CLOSE, bare control characters are refused
JSON_PLAIN = 3     # as JSON_STRING, but a character has one spelling: itself, or json.dumps' escape where it can't stand bare

# What an edge asks of the registers a and b, and what it does to them; x and y are its constants.
ALWAYS = 0         # nothing
TAKE = 1           # b > x; then a = max(a - 1, 0), b = b - 1 (one more of at least a and at most b)
DONE = 2           # a == 0
KEY_IN = 3         # some key j of keys[x:y] has a <= j <= b
KEY = 4            # a <= x <= b; then a = x + 1, b = y (property x read; the next required one is y)
ALL_REQUIRED = 5   # b == UNBOUNDED (no required property is left)
UNSEEN = 6         # bit x of a is 0; then it is 1
ANY_UNSEEN = 7     # some bit of x is 0 in a
ALL_SEEN = 8       # every bit of x is 1 in a

# Whether a text state takes whatever characters come, for as long as they come.
FREE = 1           # it does
FREE_COUNTED = 2   # it does while b > 0, and comes back to itself

POP = -1           # edge target: the rule is finished
NO_CALLS = -1
CLOSE = 0x110000   # the "code point" of the quote that ends a JSON string
UNBOUNDED = 1 << 62

MAX_NEWLINES = 2   # of one run of whitespace
MAX_INDENT = 64    # spaces or tabs after its newlines

# Decoder states: kind << 28 | count << 24 | value.
UTF8_2, UTF8_3, UTF8_4 = 1, 2, 3   # inside a character of that many bytes; count = bytes to come, value = bits so far
ESCAPE = 4                         # after a backslash
HEX = 5                            # after \u; count = digits so far, value = their number
HIGH = 6                           # after a high surrogate; value = its low ten bits
HIGH_ESCAPE = 7                    # ... and a backslash
HIGH_HEX = 8                       # ... and \u; count = digits so far, value = ten bits << 12 | digits (without the leading D)

_SHORT_ESCAPES = {0x22: 0x22, 0x5C: 0x5C, 0x2F: 0x2F, 0x62: 8, 0x66: 12, 0x6E: 10, 0x72: 13, 0x74: 9}
_ONLY_HEX = ((0x00, 0x07), (0x0B, 0x0B), (0x0E, 0x1F))          # control characters without a short escape
_NEVER_BARE = ((0x00, 0x1F), (0x22, 0x22), (0x5C, 0x5C))
_ANY = ((0x00, CLOSE - 1),)
_FIRST_OF_LENGTH = {UTF8_2: 0x80, UTF8_3: 0x800, UTF8_4: 0x10000}


@dataclass(frozen=True, slots=True)
class Tables:
    """The machine. States are rows of the first group; edges of one state are sorted by `edge_low` and do not overlap.

    A state may read (edges), call (one of the rules in its call list, then go on in `call_return`) and end its rule (`final`).
    The start state of a called rule reads at once: it neither calls nor ends.
    """

    mode: np.ndarray          # [states] uint8: RAW, TEXT, JSON_STRING or JSON_PLAIN
    space: np.ndarray         # [states] uint8: 1 where bounded whitespace may come (RAW only)
    final: np.ndarray         # [states] uint8: 1 where the rule may end
    counted: np.ndarray       # [states] uint8: 1 where a and b are counts (TAKE, DONE), so large ones are alike
    free: np.ndarray          # [states] uint8: FREE or FREE_COUNTED where no character is refused, now and after any others
    edge_begin: np.ndarray    # [states + 1] int32
    call_list: np.ndarray     # [states] int32, NO_CALLS where nothing is called
    call_return: np.ndarray   # [states] int32
    edge_low: np.ndarray      # [edges] int32
    edge_high: np.ndarray     # [edges] int32, inclusive
    edge_target: np.ndarray   # [edges] int32, POP at the end of a rule
    edge_op: np.ndarray       # [edges] uint8
    edge_x: np.ndarray        # [edges] int64
    edge_y: np.ndarray        # [edges] int64
    list_begin: np.ndarray    # [lists + 1] int32
    call_start: np.ndarray    # [calls] int32: start state of the rule
    call_a: np.ndarray        # [calls] int64: its first registers
    call_b: np.ndarray        # [calls] int64
    keys: np.ndarray          # [...] int32: sorted key numbers, cut into ranges by KEY_IN
    root: int                 # state of the first frame, which returns to nothing: where it is final, the answer may end
    reach: int                # the largest x of a TAKE edge: how far ahead an upper bound is looked at

    @property
    def nbytes(self) -> int:
        return sum(getattr(self, name).nbytes for name in self.__slots__ if name not in ("root", "reach"))


class Frame(NamedTuple):
    """One place in one rule. `link` holds the frames to return to (None behind the root)."""

    state: int
    partial: int
    a: int
    b: int
    link: Frames | None


class Frames:
    """An interned, non-empty set of frames: equal sets are one object, so they compare and hash by identity."""

    __slots__ = ("frames", "__weakref__")

    def __init__(self, frames: tuple[Frame, ...]) -> None:
        self.frames = frames


def next_space(partial: int, byte: int) -> int:
    """The whitespace counter after one more whitespace byte, or -1: at most one space, or newlines and an indent."""
    newlines, indent = partial >> 8, partial & 255
    if byte == 0x0A:
        return (newlines + 1) << 8 if indent == 0 and newlines < MAX_NEWLINES else -1
    if byte == 0x20 or (byte == 0x09 and newlines):
        return partial + 1 if indent < (MAX_INDENT if newlines else 1) else -1
    return -1


class ReferenceMachine:
    """Runs `Tables` in plain Python: the definition of the machine, and what runs where nothing native was built."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._mode, self._space = tables.mode.tolist(), tables.space.tolist()
        self._final, self._counted = tables.final.tolist(), tables.counted.tolist()
        self._begin = tables.edge_begin.tolist()
        columns = (tables.edge_low, tables.edge_high, tables.edge_target, tables.edge_op, tables.edge_x, tables.edge_y)
        self._edges = list(zip(*(column.tolist() for column in columns), strict=True))
        self._call_list, self._call_return = tables.call_list.tolist(), tables.call_return.tolist()
        self._list_begin = tables.list_begin.tolist()
        self._calls = list(zip(tables.call_start.tolist(), tables.call_a.tolist(), tables.call_b.tolist(), strict=True))
        self._keys = tables.keys.tolist()
        self._interned: WeakValueDictionary[tuple[Frame, ...], Frames] = WeakValueDictionary()

    def start(self) -> Frames:
        return self._intern([Frame(self.tables.root, 0, 0, 0, None)])

    def advance(self, position: Frames, data: bytes) -> Frames | None:
        """The configuration after `data`, or None where some byte of it is refused."""
        for byte in data:
            following = self.step(position, byte)
            if following is None:
                return None
            position = following
        return position

    def may_end(self, position: Frames) -> bool:
        """Whether the answer may end here."""
        return any(self._final[f.state] and not f.partial and f.link is None for f in self._with_returns(position))

    def step(self, position: Frames, byte: int) -> Frames | None:
        """The configuration after one byte, or None."""
        out: dict[Frame, None] = {}
        callers: dict[tuple[int, int, int], dict[Frame, None]] = {}
        for frame in self._with_returns(position):
            out.update(dict.fromkeys(self._read(frame, byte)))
            which = self._call_list[frame.state]
            if which != NO_CALLS:
                back = frame._replace(state=self._call_return[frame.state], partial=0)
                for call in self._calls[self._list_begin[which]:self._list_begin[which + 1]]:
                    callers.setdefault(call, {})[back] = None
        for (state, a, b), back_frames in callers.items():
            if any(True for _ in self._read(Frame(state, 0, a, b, None), byte, popping=False)):
                out.update(dict.fromkeys(self._read(Frame(state, 0, a, b, self._intern(back_frames)), byte)))
        return self._intern(out) if out else None

    def mask_key(self, position: Frames, longest: int, depth: int) -> tuple[tuple[int, ...], ...]:
        """A key under which equal keys have equal masks.

        Counts beyond what a token of `longest` bytes can use up are alike, and so are frames under `depth` links.
        """
        most = longest + 1 + self.tables.reach
        numbers: dict[Frames, int] = {position: 0}
        level: list[Frames] = [position]
        rows: list[tuple[int, ...]] = []
        for n in range(depth):
            below: list[Frames] = []
            for frames in level:
                for state, partial, a, b, link in frames.frames:
                    if link is not None and link not in numbers:
                        numbers[link] = len(numbers)
                        below.append(link)
                    if self._counted[state]:
                        a, b = min(a, most), min(b, most)
                    rows.append((state, partial, a, b, -1 if link is None or n + 1 == depth else numbers[link]))
                rows.append(())
            level = below
        return tuple(rows)

    def _intern(self, frames: Iterable[Frame]) -> Frames:
        key = tuple(sorted(frames, key=lambda f: (f.state, f.partial, f.a, f.b, id(f.link))))
        found = self._interned.get(key)
        if found is None:
            found = Frames(key)
            self._interned[key] = found
        return found

    def _with_returns(self, position: Frames) -> Iterator[Frame]:
        """The frames of a configuration and those that they may return to without reading."""
        seen = dict.fromkeys(position.frames)
        queue = list(position.frames)
        for frame in queue:
            yield frame
            if self._final[frame.state] and not frame.partial and frame.link is not None:
                fresh = [f for f in frame.link.frames if f not in seen]
                seen.update(dict.fromkeys(fresh))
                queue.extend(fresh)

    def _read(self, frame: Frame, byte: int, popping: bool = True) -> Iterator[Frame]:
        """The frames after `frame` itself reads a byte (without its calls and returns)."""
        mode = self._mode[frame.state]
        if mode == RAW:
            if self._space[frame.state] and byte in (0x20, 0x0A, 0x09):
                partial = next_space(frame.partial, byte)
                if partial >= 0:
                    yield frame._replace(partial=partial)
                return
            yield from self._take(frame, byte, popping)
            return
        done, value = self._decode(frame, mode, byte)
        if done:
            yield from self._take(frame, value, popping)
        elif value:
            yield frame._replace(partial=value)

    def _take(self, frame: Frame, point: int, popping: bool) -> Iterator[Frame]:
        for low, high, target, op, x, y in self._edges_within(frame.state, point, point):
            if low <= point <= high and self._allows(frame, op, x, y):
                if target != POP:
                    a, b = _registers_after(frame.a, frame.b, op, x, y)
                    yield Frame(target, 0, a, b, frame.link)
                elif popping and frame.link is not None:
                    yield from frame.link.frames
                elif not popping:
                    yield frame

    def _allows(self, frame: Frame, op: int, x: int, y: int) -> bool:
        a, b = frame.a, frame.b
        if op == ALWAYS:
            return True
        if op == TAKE:
            return b > x
        if op == DONE:
            return a == 0
        if op == KEY_IN:
            return any(a <= j <= b for j in self._keys[x:y])
        if op == KEY:
            return a <= x <= b
        if op == ALL_REQUIRED:
            return b == UNBOUNDED
        if op == UNSEEN:
            return not a >> x & 1
        if op == ANY_UNSEEN:
            return bool(~a & x)
        return a & x == x   # ALL_SEEN

    def _edges_within(self, state: int, low: int, high: int) -> Iterator[tuple[int, int, int, int, int, int]]:
        for n in range(self._begin[state], self._begin[state + 1]):
            edge = self._edges[n]
            if edge[0] > high:
                return
            if edge[1] >= low:
                yield edge

    def _open(self, frame: Frame, low: int, high: int) -> bool:
        """Whether some character of a range can be read here."""
        return low <= high and any(self._allows(frame, e[3], e[4], e[5]) for e in self._edges_within(frame.state, low, high))

    def _any_open(self, frame: Frame, ranges: Iterable[tuple[int, int]]) -> bool:
        return any(self._open(frame, low, high) for low, high in ranges)

    def _decode(self, frame: Frame, mode: int, byte: int) -> tuple[bool, int]:
        """(True, code point) when the byte ends a character, else (False, next decoder state); 0 when refused."""
        kind, count, value = frame.partial >> 28, frame.partial >> 24 & 15, frame.partial & 0xFFFFFF
        if kind == 0:
            return self._first_byte(frame, mode, byte)
        if kind <= UTF8_4:
            if not 0x80 <= byte <= 0xBF:
                return False, 0
            value, count = value << 6 | byte & 0x3F, count - 1
            if count == 0:
                return True, value   # overlong forms were refused with the byte before
            return False, self._partial_utf8(frame, kind, count, value)
        if kind == ESCAPE:
            return self._escaped(frame, mode, byte)
        if kind == HIGH:
            return False, HIGH_ESCAPE << 28 | value if byte == 0x5C else 0
        if kind == HIGH_ESCAPE:
            return False, HIGH_HEX << 28 | value << 12 if byte == 0x75 else 0
        digit = int(chr(byte), 16) if chr(byte) in "0123456789abcdefABCDEF" else -1
        if digit < 0:
            return False, 0
        if mode == JSON_PLAIN:
            return self._plain_hex_digit(frame, count + 1, value << 4 | digit) if not chr(byte).isupper() else (False, 0)
        return self._hex_digit(frame, count, value, digit) if kind == HEX else self._low_digit(frame, count, value, digit)

    def _first_byte(self, frame: Frame, mode: int, byte: int) -> tuple[bool, int]:
        if mode != TEXT:
            if byte == 0x22:
                return True, CLOSE
            if byte == 0x5C:
                return False, ESCAPE << 28 if self._any_open(frame, _ANY if mode == JSON_STRING else _NEVER_BARE) else 0
            if byte < 0x20:
                return False, 0
        if byte < 0x80:
            return True, byte
        if 0xC2 <= byte <= 0xDF:
            return False, self._partial_utf8(frame, UTF8_2, 1, byte & 0x1F)
        if 0xE0 <= byte <= 0xEF:
            return False, self._partial_utf8(frame, UTF8_3, 2, byte & 0x0F)
        if 0xF0 <= byte <= 0xF4:
            return False, self._partial_utf8(frame, UTF8_4, 3, byte & 0x07)
        return False, 0

    def _escaped(self, frame: Frame, mode: int, byte: int) -> tuple[bool, int]:
        """After a backslash."""
        if byte in _SHORT_ESCAPES:
            return (False, 0) if mode == JSON_PLAIN and byte == 0x2F else (True, _SHORT_ESCAPES[byte])
        return False, HEX << 28 if byte == 0x75 and (mode == JSON_STRING or self._any_open(frame, _ONLY_HEX)) else 0

    def _plain_hex_digit(self, frame: Frame, count: int, value: int) -> tuple[bool, int]:
        """After `count` digits of an escape that only a control character without a short one may have."""
        shift = 4 * (4 - count)
        low, high = value << shift, ((value + 1) << shift) - 1
        if not self._any_open(frame, [(max(low, first), min(high, last)) for first, last in _ONLY_HEX]):
            return False, 0
        return (True, value) if count == 4 else (False, HEX << 28 | count << 24 | value)

    def _partial_utf8(self, frame: Frame, kind: int, count: int, value: int) -> int:
        low, high = value << 6 * count, ((value + 1) << 6 * count) - 1
        if not self._open(frame, max(low, _FIRST_OF_LENGTH[kind]), min(high, CLOSE - 1)):
            return 0
        return kind << 28 | count << 24 | value

    def _hex_digit(self, frame: Frame, count: int, value: int, digit: int) -> tuple[bool, int]:
        value, count = value << 4 | digit, count + 1
        if count == 4 and not 0xD800 <= value <= 0xDFFF:
            return True, value
        shift = 4 * (4 - count)
        low, high = value << shift, ((value + 1) << shift) - 1
        first, last = max(low, 0xD800) - 0xD800, min(high, 0xDBFF) - 0xD800
        pair = first <= last and self._open(frame, 0x10000 + (first << 10), 0x10000 + (last << 10) + 0x3FF)
        if count == 4:
            return False, HIGH << 28 | first if pair else 0
        return False, HEX << 28 | count << 24 | value if pair or self._open(frame, low, high) else 0

    def _low_digit(self, frame: Frame, count: int, value: int, digit: int) -> tuple[bool, int]:
        if count == 0:
            return False, HIGH_HEX << 28 | 1 << 24 | value if digit == 0xD else 0
        if count == 1 and digit < 0xC:
            return False, 0
        high, low = value >> 12, value & 0xFFF
        low, count = low << 4 | (digit & 3 if count == 1 else digit), count + 1
        point = 0x10000 + (high << 10)
        if count == 4:
            return True, point | low
        shift = 4 * (4 - count)
        if not self._open(frame, point | low << shift, point | ((low + 1) << shift) - 1):
            return False, 0
        return False, HIGH_HEX << 28 | count << 24 | high << 12 | low


def _registers_after(a: int, b: int, op: int, x: int, y: int) -> tuple[int, int]:
    if op == TAKE:
        return max(a - 1, 0), b if b == UNBOUNDED else b - 1
    if op == KEY:
        return x + 1, y
    if op == UNSEEN:
        return a | 1 << x, b
    return a, b
