"""A small pushdown machine over bytes: the form in which a grammar reaches the mask walk.

A machine is a set of flat tables (`kernels.pushdown_tables`, where every column and operation is defined). Its position is a
*configuration*: a set of frames, each a place in one rule together with three registers, a decoder state and a link to the
frames it returns to. The link is itself such a set, shared by all frames that were called at the same moment for the same
rule, so an ambiguous grammar costs as much as it has different rules alive, not as it has different histories (a
graph-structured stack, after Tomita).

Four things keep the tables small:

- Text is read in characters. A state in `TEXT` or `JSON_STRING` mode has edges over code points; the decoder of UTF-8
  and of JSON's escapes is part of the machine (`kernels.pushdown_text`), so no automaton spells out bytes or escapes.
- Counts are registers. `TAKE` counts down a lower and an upper bound, so a string of at most 65,536 characters has as many
  states as a string of at most 3.
- Object keys are ordered by registers: `KEY` moves a position forward, so n optional properties need no n * n edges.
- Conditions over all members (how many, some that meet a schema) are registers too, and tables of what may still come
  (`Tally`, run by `kernels.pushdown_tally`).

**Distinctness.** Items of a distinct array must differ, and so must the undeclared names of some objects. A configuration
keeps a *record*: the text (`kernels.pushdown_distinct`) read since the outermost distinct item or name began that is still open;
empty where none is. A frame keeps a `Memory`. In detail, for one step by a byte:

1. A frame that calls from a state with `marks[call_return] & DISTINCT` returns with memory.start = len(record), the record
   being the one before the byte. A called frame is `INSIDE` if a frame that it returns to is recording (`Memory.recording`).
2. The code point that a recording frame takes over an edge goes to the end of the record, unless its mode is RAW and it is
   whitespace. (All recording frames read one JSON text, so they take the same one.) A returning edge returns after that.
3. On return (over an edge to POP, or from a final state) to a state with a DISTINCT mark, the text is record[start:],
   normalised. If it is in `used`, that return is not open. Else it is added, and start is UNBEGUN.
4. `MORE` with x = 1 of an object that remembers sets start to AT_ONCE, which becomes the record's length when the
   step is done. `NAME` sets it to UNBEGUN, `OTHER` checks and adds record[start:], which ends with CLOSE, and sets it to UNBEGUN.
5. If no frame of the new configuration is recording, the record is emptied.
6. No dead ends: the step is refused unless the new configuration is *viable*. It is where one of its frames, or of those
   they may return to, is *at ease*: its state is not AWAITS, or `used` is empty; its state is not TIGHT, or `used` is empty and
   start is UNBEGUN; no text of `used` extends record[start:], where start is set; and, if it is `inside`, some frame of its
   `link` is at ease, taken as it is there. Where none is, a search goes on by single characters until one is: over each open
   edge by each character of the texts in the way (all of `used` for AWAITS and TIGHT, else those that extend) and by the first
   one that is in none of them (the first `FEW` if the machine has TIGHT marks), whitespace and indents left out; depth first,
   closing quotes and brackets before others, new characters before used ones. After `SEARCH_STEPS` configurations it
   counts as viable.

This module is the specification: `ReferenceMachine` is plain Python and the native walk in `native/grammar/` does the
same on the same tables.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple
from weakref import WeakValueDictionary

from kernels.pushdown_distinct import AT_ONCE, INSIDE, NOTHING, UNBEGUN, Memory, Text, extends, normalised
from kernels.pushdown_tables import (
    ALL_REQUIRED,
    ALL_SEEN,
    ALWAYS,
    ANY_UNSEEN,
    AWAITS,
    CLOSE,
    COUNT,
    DEEPER,
    DEPTH_SHIFT,
    DISTINCT,
    DONE,
    FREE,
    FREE_COUNTED,
    INDENT_INNER,
    JSON_PLAIN,
    JSON_STRING,
    KEY,
    KEY_IN,
    MORE,
    NAME,
    NO_CALLS,
    OTHER,
    POP,
    RAW,
    SERVE,
    SPACES,
    TAKE,
    TEXT,
    TIGHT,
    UNBOUNDED,
    UNSEEN,
    WIDE_AT,
    Tables,
    Tally,
)
from kernels.pushdown_tally import Registers, Tallies
from kernels.pushdown_text import decode, may_become, next_space

__all__ = [
    "ALL_REQUIRED", "ALL_SEEN", "ALWAYS", "ANY_UNSEEN", "CLOSE", "COUNT", "DONE", "FREE", "FREE_COUNTED", "JSON_PLAIN",
    "JSON_STRING", "KEY", "KEY_IN", "NO_CALLS", "POP", "RAW", "SERVE", "TAKE", "TEXT", "UNBOUNDED", "UNSEEN", "Frame", "Frames",
    "ReferenceMachine", "Tables", "Tally", "next_space"]

SEARCH_STEPS = 2000   # configurations looked at to see whether something new can still be written
FEW = 32              # characters that are tried where it may matter which one is taken

_WHITESPACE = (0x20, 0x0A, 0x09)
_CLOSING = (CLOSE, ord("]"), ord("}"))
_Call = tuple[int, int, int, int, bool]   # start state, a, b, c, inside


class Frame(NamedTuple):
    """One place in one rule. `link` holds the frames to return to (None behind the root)."""

    state: int
    partial: int
    a: int
    b: int
    c: int
    memory: Memory
    link: Frames | None


class Frames:
    """An interned, non-empty set of frames, with the record where it is a whole configuration: equal ones are one object."""

    __slots__ = ("frames", "record", "__weakref__")

    def __init__(self, frames: tuple[Frame, ...], record: Text) -> None:
        self.frames, self.record = frames, record


class ReferenceMachine:
    """Runs `Tables` in plain Python: the definition of the machine, and what runs where nothing native was built."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._mode, self._space = tables.mode.tolist(), tables.space.tolist()
        self._final, self._counted = tables.final.tolist(), tables.counted.tolist()
        self._free, self._marks = tables.free.tolist(), tables.marks.tolist()
        self._begin = tables.edge_begin.tolist()
        columns = (tables.edge_low, tables.edge_high, tables.edge_target, tables.edge_op, tables.edge_x, tables.edge_y)
        self._edges = list(zip(*(column.tolist() for column in columns), strict=True))
        self._call_list, self._call_return = tables.call_list.tolist(), tables.call_return.tolist()
        self._list_begin = tables.list_begin.tolist()
        columns = (tables.call_start, tables.call_a, tables.call_b, tables.call_op, tables.call_x, tables.call_y)
        self._calls = list(zip(*(column.tolist() for column in columns), strict=True))
        self._keys = tables.keys.tolist()
        self._tallies = Tallies(tables.tally, self._keys)
        self._remembers = tables.tally.object_remembers.tolist()
        self._distinct = bool((tables.marks & DISTINCT).any()) or any(self._remembers)
        self._tight = bool((tables.marks & TIGHT).any())
        self._interned: WeakValueDictionary[tuple[tuple[Frame, ...], Text], Frames] = WeakValueDictionary()

    def start(self) -> Frames:
        return self._intern([Frame(self.tables.root, 0, 0, 0, 0, NOTHING, None)])

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
        after = self._step(position, byte, by_byte=True)
        return after if after is None or not self._distinct or self._viable(after) else None

    def mask_key(self, position: Frames, longest: int, depth: int) -> tuple[tuple[Hashable, ...], ...]:
        """A key under which equal keys have equal masks.

        Counts beyond what a token of `longest` bytes can use up are alike, and so are frames under `depth` links, but for those
        whose item is being read, however deep it is. What is being read as a distinct text is left out where it is too long to be
        repeated within a token, no used one extends it, and it goes through a free state, so that it can't be the last value
        there is.
        """
        most = longest + 1 + self.tables.reach
        free = not self._tight and all(self._is_free(frame) for frame in position.frames)
        numbers: dict[Frames, int] = {position: 0}
        level: list[Frames] = [position]
        rows: list[tuple[Hashable, ...]] = []
        while level:
            depth -= 1
            below: list[Frames] = []
            for frames in level:
                for state, partial, a, b, c, memory, link in frames.frames:
                    follows = link is not None and (depth > 0 or memory.inside)
                    if link is not None and follows and link not in numbers:
                        numbers[link] = len(numbers)
                        below.append(link)
                    if self._counted[state]:
                        a, b = min(a, most), min(b, most)
                    text = self._text_of_key(memory, position.record, longest if free else None)
                    rows.append((state, partial, a, b, c, memory.inside, memory.used, text,
                                 numbers[link] if link is not None and follows else -1))
                rows.append(())
            level = below
        return tuple(rows)

    def _is_free(self, frame: Frame) -> bool:
        free = self._free[frame.state]
        return bool(free == FREE or (free == FREE_COUNTED and frame.b > 0))

    def _text_of_key(self, memory: Memory, record: Text, longest: int | None) -> Text | None:
        """What a frame is reading as a distinct text; () where that does not matter, None where there is none."""
        if memory.start == UNBEGUN:
            return None
        text = record[memory.start:]
        if longest is not None and len(text) > longest and not any(extends(used, text) for used in memory.used):
            return ()
        return text

    def _intern(self, frames: Iterable[Frame], record: Text = ()) -> Frames:
        ordered = sorted(frames, key=lambda f: (*f[:5], f.memory[:2], hash(f.memory.used), id(f.link)))
        key = tuple(ordered), record
        found = self._interned.get(key)
        if found is None:
            found = Frames(*key)
            self._interned[key] = found
        return found

    # --- one step

    def _step(self, position: Frames, symbol: int, by_byte: bool) -> Frames | None:
        """After a byte, or after a character however it is spelled and laid out. Does not look ahead for dead ends."""
        record = position.record
        out: dict[Frame, None] = {}
        recorded: Text = record
        callers: dict[_Call, dict[Frame, None]] = {}
        for frame in self._with_returns(position):
            read = self._read(frame, symbol, by_byte)
            if read is not None:
                recorded = max(recorded, self._go(frame, read, record, out), key=len)
            self._call(frame, record, by_byte, callers)
        while callers:
            deeper: dict[_Call, dict[Frame, None]] = {}
            for (state, a, b, c, inside), back in callers.items():
                frame = Frame(state, 0, a, b, c, INSIDE if inside else NOTHING, None)
                if self._read(frame, symbol, by_byte) is None and self._call_list[state] == NO_CALLS:
                    continue
                frame = frame._replace(link=self._intern(back))
                read = self._read(frame, symbol, by_byte)       # again: halfway through a character it holds the frame itself
                if read is not None:
                    recorded = max(recorded, self._go(frame, read, record, out), key=len)
                self._call(frame, record, by_byte, deeper)
            callers = deeper
        return self._configuration(out, recorded) if out else None

    def _configuration(self, frames: Iterable[Frame], record: Text) -> Frames:
        if not self._distinct:
            return self._intern(frames)
        begun = [f._replace(memory=f.memory._replace(start=len(record))) if f.memory.start == AT_ONCE else f for f in frames]
        return self._intern(begun, record if any(f.memory.recording for f in begun) else ())

    def _with_returns(self, position: Frames) -> Iterator[Frame]:
        """The frames of a configuration and those that they may return to without reading."""
        seen = dict.fromkeys(position.frames)
        queue = list(position.frames)
        for frame in queue:
            yield frame
            if self._final[frame.state] and not frame.partial and frame.link is not None:
                fresh = [f for f in self._returned(frame.link, position.record) if f not in seen]
                seen.update(dict.fromkeys(fresh))
                queue.extend(fresh)

    def _returned(self, link: Frames, record: Text) -> Iterator[Frame]:
        """The frames of a link once what they called has ended; those are left out whose item is not new."""
        for frame in link.frames:
            if not self._marks[frame.state] & DISTINCT:
                yield frame
                continue
            inside, start, used = frame.memory
            text = normalised(record[start:])
            if text not in used:
                yield frame._replace(memory=Memory(inside, UNBEGUN, used | {text}))

    def _call(self, frame: Frame, record: Text, by_byte: bool, callers: dict[_Call, dict[Frame, None]]) -> None:
        """Add the rules that a frame calls, each with the frame it then returns to. One rule has one link for all its callers."""
        which, state = self._call_list[frame.state], frame.state
        if which == NO_CALLS or (by_byte and not self._may_call(frame)):
            return
        back, memory = self._call_return[state], frame.memory
        if self._marks[back] & DISTINCT:
            memory = memory._replace(start=len(record))
        c = (frame.c >> DEPTH_SHIFT) + 1 << DEPTH_SHIFT if self._marks[state] & DEEPER else 0
        for start, a, b, op, x, y in self._calls[self._list_begin[which]:self._list_begin[which + 1]]:
            registers = self._after(frame, op, x, y)
            if registers is not None:
                rule = start, a, b, c, memory.recording
                callers.setdefault(rule, {})[Frame(back, 0, *registers, memory, frame.link)] = None

    def _may_call(self, frame: Frame) -> bool:
        """Whether a frame is at the beginning of a character, and behind its indent."""
        if self._mode[frame.state] != RAW:
            return not frame.partial
        return self._space[frame.state] <= SPACES or frame.partial == self._indent(frame)

    def _read(self, frame: Frame, symbol: int, by_byte: bool) -> _Read | None:
        """What a frame itself makes of a byte or character: another decoder state, or an edge. None where it is refused."""
        mode = self._mode[frame.state]
        point = symbol
        if mode == RAW:
            partial = self._spaced(frame, symbol) if by_byte else None
            if partial is not None:
                return _Read(frame._replace(partial=partial)) if partial >= 0 else None
        elif by_byte:
            done, point = decode(mode, frame.partial, symbol, lambda low, high: self._open(frame, low, high))
            if not done:
                return _Read(frame._replace(partial=point)) if point else None
        elif frame.partial and not any(low <= point <= high for low, high in may_become(mode, frame.partial)):
            return None
        for _, _, target, op, x, y in self._edges_within(frame.state, point, point):
            registers = self._after(frame, op, x, y)
            if registers is not None:
                return _Read(None, point, target, registers, op, x, y)
        return None

    def _spaced(self, frame: Frame, byte: int) -> int | None:
        """The whitespace counter after a byte, -1 where it is refused; None where the edges are to read it."""
        space = self._space[frame.state]
        if space == SPACES and byte in _WHITESPACE:
            return next_space(frame.partial, byte)
        if space > SPACES and frame.partial < self._indent(frame):
            return frame.partial + 1 if byte == 0x20 else -1
        return None

    def _indent(self, frame: Frame) -> int:
        """Spaces due at a frame whose state reads an indent."""
        depth = frame.c >> DEPTH_SHIFT
        return 2 * (depth + 1) if self._space[frame.state] == INDENT_INNER else 2 * depth

    def _go(self, frame: Frame, read: _Read, record: Text, out: dict[Frame, None]) -> Text:
        """Add the frames after what was read; returns the record as this frame sees it."""
        if read.within is not None:
            out[read.within] = None
            return record
        if frame.memory.recording and (self._mode[frame.state] != RAW or read.point not in _WHITESPACE):
            record = (*record, read.point)
        memory = self._remembered(frame, read, record)
        if read.target != POP:
            if memory is not None:
                out[Frame(read.target, 0, *read.registers, memory, frame.link)] = None
        elif frame.link is not None:
            out.update(dict.fromkeys(self._returned(frame.link, record)))
        return record

    def _remembered(self, frame: Frame, read: _Read, record: Text) -> Memory | None:
        """The memory after an edge; None where it would read an undeclared name again."""
        memory, op = frame.memory, read.op
        if op not in (MORE, NAME, OTHER) or not self._remembers[read.y]:
            return memory
        if op != OTHER:
            return memory._replace(start=UNBEGUN if op == NAME else AT_ONCE) if op == NAME or read.x else memory
        name = record[memory.start:]
        return None if name in memory.used else Memory(memory.inside, UNBEGUN, memory.used | {name})

    def _after(self, frame: Frame, op: int, x: int, y: int) -> tuple[int, int, int] | None:
        """The registers after an operation, or None where it is not allowed."""
        a, b, c = frame.a, frame.b, frame.c
        if op >= MORE:
            return self._tallies.after(Registers(a, b, c), op, x, y)
        if op == TAKE:
            return (max(a - 1, 0), b if b == UNBOUNDED else b - 1, c) if b > x else None
        if op == KEY:
            return (x + 1, y, c) if a <= x <= b else None
        if op == UNSEEN:
            return _seen(a, b, c, x)
        return (a, b, c) if op == ALWAYS or self._holds(a, b, op, x, y) else None

    def _holds(self, a: int, b: int, op: int, x: int, y: int) -> bool:
        """Whether an operation that changes nothing is allowed."""
        if op == DONE:
            return a == 0
        if op == KEY_IN:
            return any(a <= j <= b for j in self._keys[x:y])
        if op == ALL_REQUIRED:
            return b == UNBOUNDED
        if op == ANY_UNSEEN:
            return bool(~a & x or ~b & y)
        return a & x == x and b & y == y   # ALL_SEEN

    def _edges_within(self, state: int, low: int, high: int) -> Iterator[tuple[int, int, int, int, int, int]]:
        for n in range(self._begin[state], self._begin[state + 1]):
            edge = self._edges[n]
            if edge[0] > high:
                return
            if edge[1] >= low:
                yield edge

    def _open(self, frame: Frame, low: int, high: int) -> bool:
        """Whether some character of a range can be read here."""
        return any(self._after(frame, e[3], e[4], e[5]) is not None for e in self._edges_within(frame.state, low, high))

    # --- looking ahead for something new

    def _viable(self, position: Frames) -> bool:
        """Whether something new can still be written at every place where it must be."""
        stack, seen = [position], {position}
        while stack:
            here = stack.pop()
            alphabet: set[int] = set()
            if len(seen) > SEARCH_STEPS or self._at_ease(here, alphabet):
                return True
            for point in self._characters(here, alphabet):
                after = self._step(here, point, by_byte=False)
                if after is not None and after not in seen:
                    seen.add(after)
                    stack.append(after)
        return False

    def _at_ease(self, position: Frames, alphabet: set[int]) -> bool:
        """Whether some frame is, so that what is left can be written; else `alphabet` gets the characters of what stands in the
        way."""
        seen: set[Frames] = set()
        stack = list(self._with_returns(position))
        for frame in stack:     # grows meanwhile
            inside, start, used = frame.memory
            marks, begun = self._marks[frame.state], start != UNBEGUN
            if marks & TIGHT and (used or begun) or marks & AWAITS and used:
                alphabet.update(*used)
            elif in_the_way := [other for other in used if begun and extends(other, position.record[start:])]:
                alphabet.update(*in_the_way)
            elif not inside:
                return True
            elif frame.link is not None and frame.link not in seen:
                seen.add(frame.link)
                stack.extend(frame.link.frames)
        return False

    def _characters(self, position: Frames, alphabet: set[int]) -> list[int]:
        """The characters to try, the best ones last."""
        states = dict.fromkeys((frame.state, frame.partial if self._mode[frame.state] != RAW else 0)
                               for frame in self._with_returns(position))
        familiar: list[int] = []
        strange: list[int] = []
        queue = list(states)
        for state, partial in queue:    # grows meanwhile
            which = self._call_list[state]
            if which != NO_CALLS and not partial:
                starts = dict.fromkeys((call[0], 0) for call in self._calls[self._list_begin[which]:self._list_begin[which + 1]])
                queue.extend(start for start in starts if start not in states)
                states.update(starts)
            for first, last in may_become(self._mode[state], partial):
                for edge in self._edges_within(state, first, last):
                    low, high = max(edge[0], first), min(edge[1], last)
                    familiar.extend(point for point in alphabet if low <= point <= high)
                    strange.extend(islice(_outside(alphabet, low, high), FEW if self._tight else 1))
        found = [*sorted(set(familiar), reverse=True), *sorted(set(strange), reverse=True)]
        return sorted(dict.fromkeys(found), key=_CLOSING.__contains__)


class _Read(NamedTuple):
    """What a frame does with a byte: be `within` a character or whitespace still, or take the edge over `point`."""

    within: Frame | None
    point: int = 0
    target: int = 0
    registers: tuple[int, int, int] = (0, 0, 0)
    op: int = ALWAYS
    x: int = 0
    y: int = 0


def _seen(a: int, b: int, c: int, x: int) -> tuple[int, int, int] | None:
    if x < WIDE_AT:
        return None if a >> x & 1 else (a | 1 << x, b, c)
    return None if b >> x - WIDE_AT & 1 else (a, b | 1 << x - WIDE_AT, c)


def _outside(alphabet: set[int], low: int, high: int) -> Iterator[int]:
    """The points of a range that are not in the alphabet."""
    return (point for point in range(low, high + 1) if point not in alphabet)
