"""A machine's tables as rules with labelled steps: what a drawing of it shows.

    rules = diagram(tables)

Nothing here compiles or runs anything: it reads `kernels.pushdown_tables.Tables` and nothing else. Edges between the same two
states that ask the same become one step; a run of states that spell a fixed text becomes one step with that text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from kernels import pushdown_tables as ops
from kernels.pushdown_tables import CLOSE, NO_CALLS, POP, RAW, UNBOUNDED, Tables

MOST_RULES = 14         # drawn; the others are counted
MOST_STATES = 48        # of a rule that is drawn
JOINED = 6              # times as many may become few enough where texts are joined
_LAST = 0x10FFFF
MOST_RANGES = 4         # of characters, spelled out in a label
_GUARDS = frozenset({ops.KEY_IN, ops.NAME_IN, ops.ANY_UNSEEN, ops.MORE})     # what they ask, the step behind them asks anew


@dataclass(frozen=True, slots=True)
class Step:
    """From a state to a state (POP: the rule ends).

    `label` is what is read or called, `asks` what is asked of the registers; `fixed`: one fixed text is read; `guard`: what it
    asks is asked again by a step behind it.
    """

    source: int
    target: int
    label: str
    asks: str = ""
    call: bool = False
    fixed: bool = False
    guard: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of the machine: `states[0]` is its start. `drawn` are the states that are left once texts are joined, and `steps`
    lead between them; both are empty where the rule is too large."""

    number: int
    title: str
    states: tuple[int, ...]
    drawn: tuple[int, ...] = ()
    finals: frozenset[int] = frozenset()
    spaced: frozenset[int] = frozenset()
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Diagram:
    """The rules of a machine in the order in which they are called. Only the first ones are drawn, the others listed."""

    rules: tuple[Rule, ...]


def diagram(tables: Tables, most_rules: int = MOST_RULES, most_states: int = MOST_STATES) -> Diagram:
    reader = _Reader(tables)
    starts: dict[int, int] = {tables.root: 0}
    rules: list[Rule] = []
    queue = [tables.root]
    for start in queue:
        states = reader.states_of(start)
        for called in reader.called_by(states):
            if called not in starts:
                starts[called] = len(starts)
                queue.append(called)
        rules.append(reader.rule(start, states, starts, most_states if len(rules) < most_rules else 0))
    return Diagram(tuple(rules))


class _Reader:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._begin, self._lists = tables.edge_begin.tolist(), tables.list_begin.tolist()
        self._return, self._call_list = tables.call_return.tolist(), tables.call_list.tolist()
        self._target = tables.edge_target.tolist()

    def states_of(self, start: int) -> list[int]:
        """The states of the rule that starts there, nearest first."""
        seen = {start: None}
        queue = [start]
        for state in queue:
            following = self._target[self._begin[state]:self._begin[state + 1]]
            if self._call_list[state] != NO_CALLS:
                following = [*following, self._return[state]]
            for target in following:
                if target != POP and target not in seen:
                    seen[target] = None
                    queue.append(target)
        return queue

    def called_by(self, states: Iterable[int]) -> list[int]:
        """The starts of the rules that these states call, in order."""
        called: dict[int, None] = {}
        for state in states:
            for n in self._calls_of(state):
                called[int(self._tables.call_start[n])] = None
        return list(called)

    def rule(self, start: int, states: list[int], starts: dict[int, int], most_states: int) -> Rule:
        whole = Rule(starts[start], self._kind(start) if start != self._tables.root else "the answer", tuple(states))
        if len(states) > most_states * JOINED:
            return whole
        finals = frozenset(state for state in states if self._tables.final[state])
        steps = [step for state in states for step in (*self._reads(state), *self._calls(state, starts))]
        steps = _with_texts_joined(steps, keep={start, *finals})
        kept = tuple(state for state in states if state == start or any(state in (s.source, s.target) for s in steps))
        if len(kept) > most_states:
            return whole
        spaced = frozenset(state for state in kept if self._tables.space[state])
        return replace(whole, drawn=kept, finals=finals, spaced=spaced, steps=tuple(steps))

    def _calls_of(self, state: int) -> range:
        which = self._call_list[state]
        return range(0) if which == NO_CALLS else range(self._lists[which], self._lists[which + 1])

    def _kind(self, start: int) -> str:
        """What a rule reads, by its first characters."""
        first = self._tables.edge_low[self._begin[start]:self._begin[start + 1]].tolist()
        if self._tables.mode[start] != RAW or not first:
            return "text" if first else "calls"
        names = {"{": "object", "[": "array", '"': "string", "n": "null", "t": "true", "f": "false"}
        return names.get(chr(first[0]), "number" if all(chr(c) in "-0123456789" for c in first) else "text")

    def _reads(self, state: int) -> list[Step]:
        """The edges of a state; those to one target that ask the same are one step."""
        tables, raw = self._tables, self._tables.mode[state] == RAW
        joined: dict[tuple[int, int, int, int], list[tuple[int, int]]] = {}
        for n in range(self._begin[state], self._begin[state + 1]):
            low, high = int(tables.edge_low[n]), int(tables.edge_high[n])
            asked = int(tables.edge_op[n]), int(tables.edge_x[n]), int(tables.edge_y[n])
            joined.setdefault((self._target[n], *asked), []).append((low, high))
        return [Step(state, target, characters(ranges, raw), self._asks(op, x, y), fixed=_is_one(ranges), guard=op in _GUARDS)
                for (target, op, x, y), ranges in joined.items()]

    def _calls(self, state: int, starts: dict[int, int]) -> list[Step]:
        """The calls of a state, one step for each way to call."""
        tables, back = self._tables, self._return[state]
        made: dict[str, list[str]] = {}
        for n in self._calls_of(state):
            start, a, b = int(tables.call_start[n]), int(tables.call_a[n]), int(tables.call_b[n])
            registers = f"(a={_number(a)}, b={_number(b)})" if a or b else ""
            asks = self._asks(int(tables.call_op[n]), int(tables.call_x[n]), int(tables.call_y[n]))
            made.setdefault(asks, []).append(f"{self._kind(start)} {starts[start]}{registers}")
        return [Step(state, back, " | ".join(calls[:3]) + (f" | {len(calls) - 3} more" if len(calls) > 3 else ""), asks, True)
                for asks, calls in made.items()]

    def _asks(self, op: int, x: int, y: int) -> str:
        if op in (ops.KEY_IN, ops.NAME_IN):
            low, high = (x, y) if op == ops.KEY_IN else (x >> 32, x & 0xFFFFFFFF)
            return f"if one of {_listed(self._tables.keys[low:high].tolist())} may come"
        return _ASKED[op](x, y) if op in _ASKED else f"operation {op}"


_ASKED: dict[int, Callable[[int, int], str]] = {
    ops.ALWAYS: lambda x, y: "",
    ops.TAKE: lambda x, y: f"one more, {x} to spare" if x else "one more",
    ops.DONE: lambda x, y: "if enough",
    ops.KEY: lambda x, y: f"takes {x}; required next: {_number(y, 'none')}",
    ops.ALL_REQUIRED: lambda x, y: "if nothing required is left",
    ops.UNSEEN: lambda x, y: f"takes {x}",
    ops.ANY_UNSEEN: lambda x, y: f"if one of {_listed(_members(x, y))} is left",
    ops.ALL_SEEN: lambda x, y: f"if {_listed(_members(x, y))} came" if x or y else "",
    ops.MORE: lambda x, y: "if a member may follow",
    ops.NAME: lambda x, y: f"takes {x}, counted",
    ops.OTHER: lambda x, y: "takes a new name, counted",
    ops.CLOSE_OBJECT: lambda x, y: "if it may end",
    ops.SERVE: lambda x, y: f"closes {_listed(_members(x, 0))}" if x else "closes nothing",
    ops.NEXT_ITEM: lambda x, y: "if an item may follow",
    ops.CLOSE_ARRAY: lambda x, y: "if it may end",
    ops.COUNT: lambda x, y: f"counts for {_listed(_members(x, 0))}" if x else "counts for nothing",
}


def _with_texts_joined(steps: Sequence[Step], keep: set[int]) -> list[Step]:
    """Fixed texts that follow each other, with no other way into or out of the state between, become one step."""
    into, out_of = Counter(step.target for step in steps), Counter(step.source for step in steps)
    before, behind = {step.target: step for step in steps}, {step.source: step for step in steps}
    inner = {state for state in before.keys() & behind.keys() - keep
             if into[state] == out_of[state] == 1 and _is_one_text(before[state], behind[state])}
    joined = []
    for step in steps:
        if step.source in inner:
            continue
        while step.target in inner:
            after = behind[step.target]
            step = replace(after, source=step.source, label=step.label + after.label, asks=after.asks or step.asks)
        joined.append(step)
    return joined


def _is_one_text(first: Step, second: Step) -> bool:
    return first.fixed and second.fixed and (first.guard or not first.asks)


def characters(ranges: Sequence[tuple[int, int]], raw: bool = False, most: int = MOST_RANGES) -> str:
    """A set of characters (of bytes with `raw`), given as sorted ranges, in few words."""
    names = [(low, high) for low, high in _touching_joined(ranges) if low != CLOSE]
    quote = ['"'] if any(low <= CLOSE <= high for low, high in ranges) else []
    if not raw and sum(high - low + 1 for low, high in names) > _LAST // 2:
        left_out = [pair for pair in _gaps(names) if pair != _SURROGATES]
        if len(left_out) > most:
            return " ".join([*quote, "most characters"])
        return " ".join([*quote, "any" + (" but " if left_out else "") + " ".join(map(_range, left_out))])
    shown = quote + [_range(pair, raw) for pair in names[:most]]
    return " ".join(shown) + (" …" if len(names) > most else "")


_SURROGATES = 0xD800, 0xDFFF


def _is_one(ranges: Sequence[tuple[int, int]]) -> bool:
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]


def _touching_joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for low, high in ranges:
        if joined and joined[-1][1] + 1 == low and low != CLOSE:
            joined[-1] = joined[-1][0], high
        else:
            joined.append((low, high))
    return joined


def _gaps(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """What sorted ranges of characters leave out."""
    left_out, expected = [], 0
    for low, high in [*ranges, (_LAST + 1, _LAST + 1)]:
        if low > expected:
            left_out.append((expected, low - 1))
        expected = high + 1
    return left_out


def _range(pair: tuple[int, int], raw: bool = False) -> str:
    low, high = (_character(point, raw) for point in pair)
    return low if low == high else f"{low}–{high}"


def _character(point: int, raw: bool) -> str:
    if point == 0x20:
        return "␣"
    if point in (0x22, 0x5C) and not raw:       # a bare quote would be the end of the string
        return f"\\{chr(point)}"
    if raw and point > 0x7F:
        return f"byte {point:02X}"
    char = chr(point)
    return char if char.isprintable() else f"U+{point:04X}"


def _members(x: int, y: int) -> list[int]:
    """The numbers in a set that is the bits of two registers."""
    return [bit for bit in range(62) if x >> bit & 1] + [62 + bit for bit in range(62) if y >> bit & 1]


def _listed(numbers: Sequence[int]) -> str:
    if len(numbers) > 3 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]}–{numbers[-1]}"
    return ", ".join(map(str, numbers[:4])) + (", …" if len(numbers) > 4 else "")


def _number(value: int, without: str = "∞") -> str:
    return without if value == UNBOUNDED else str(value)
