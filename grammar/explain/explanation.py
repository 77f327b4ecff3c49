"""What the compiler makes of one schema, step by step, for a person to read: parts, shapes, rules, and a place in an answer.

    told = explain_schema(schema)
    told.parts, told.shapes, told.diagram, told.sizes, told.not_enforced
    told.after('{"a": 1')                   # where the machine is then, and what may come

The same passes run as in compiling, without a vocabulary. Nothing here is needed to serve an answer.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from grammar.algebra.enforcement import Enforcement, NotEnforced
from grammar.algebra.normal import NormalForm, normal_form
from grammar.budget import Budget, Limits
from grammar.compile import style_of
from grammar.emission.emit import emit_json
from grammar.explain.diagram import Diagram, diagram
from grammar.schema.document import Key, Part
from kernels.pushdown import ReferenceMachine, Tables
from kernels.trie import TokenTrie, mask_reference

MOST_FORCED = 200           # characters of a text without alternative that are looked for
MOST_LETTERS = 240          # of one part or shape
MOST_TOKENS = 12            # named as examples


@dataclass(frozen=True, slots=True)
class PartLine:
    """A part of the document: its number, where it stands in the schema, what it says."""

    number: int
    pointer: str
    says: str


@dataclass(frozen=True, slots=True)
class ShapeLine:
    """A key that a place in the answer may have, and its shapes, each in words."""

    key: str
    shapes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the machine is after a text.

    Of the text `read` was taken; `refused` is its first byte that was not, b"" where all of it was. frames: the places alive, in
    words. following: the bytes that may come next. forced: the text that has no alternative from here. n_tokens: how many tokens
    of a vocabulary are allowed, -1 without one; tokens: what some of them spell.
    """

    read: bytes
    refused: bytes
    frames: tuple[str, ...]
    following: tuple[int, ...]
    may_end: bool
    forced: str
    n_tokens: int = -1
    tokens: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """One schema as the compiler sees it. `compile_ms` is wall time, without a vocabulary."""

    form: NormalForm = field(repr=False)
    tables: Tables = field(repr=False)
    compile_ms: float

    @property
    def not_enforced(self) -> tuple[NotEnforced, ...]:
        """What restrains nothing: keywords left out on the caller's wish, and names that look like misspelled ones."""
        return self.form.not_enforced

    @property
    def parts(self) -> tuple[PartLine, ...]:
        """The parts that some key of the normal form names."""
        used = sorted({number for key in self.form.shapes for number in key} | set(self.form.nothing))
        parts = self.form.document.parts
        return tuple(PartLine(number, parts[number].pointer, _cut(_part(parts[number]))) for number in used)

    @property
    def shapes(self) -> tuple[ShapeLine, ...]:
        """The keys in the order in which an answer reaches them, the whole schema first."""
        return tuple(ShapeLine(_key(key), tuple(_cut(self._described(shape)) for shape in shapes) if key else ("every value",))
                     for key, shapes in self.form.shapes.items())

    @cached_property
    def diagram(self) -> Diagram:
        return diagram(self.tables)

    @property
    def sizes(self) -> dict[str, int]:
        """How much of everything there is."""
        tables = self.tables
        return {"parts": len(self.form.document.parts), "keys": len(self.form.shapes),
                "shapes": sum(map(len, self.form.shapes.values())), "rules": len(self.diagram.rules),
                "states": len(tables.mode), "edges": len(tables.edge_low), "bytes": tables.nbytes}

    def after(self, text: str | bytes, token_bytes: Sequence[bytes] = ()) -> Place:
        """The place that a text leads to; with what the tokens of a vocabulary spell also those that may follow."""
        machine = ReferenceMachine(self.tables)
        data = text.encode() if isinstance(text, str) else text
        position, n_read = machine.start(), 0
        while n_read < len(data) and (following := machine.step(position, data[n_read])) is not None:
            position, n_read = following, n_read + 1
        allowed = tuple(byte for byte in range(256) if machine.step(position, byte) is not None)
        place = Place(data[:n_read], data[n_read:n_read + 1], tuple(self._frame(frame) for frame in position.frames), allowed,
                      machine.may_end(position), _forced(machine, position))
        return dataclasses.replace(place, **_tokens(machine, position, token_bytes)) if token_bytes else place

    def _described(self, shape: Any) -> str:
        """A shape in words: its name, and what differs from a shape that allows everything of its type."""
        said = []
        for each in dataclasses.fields(shape):
            value = getattr(shape, each.name)
            default = each.default_factory() if each.default_factory is not dataclasses.MISSING else each.default
            if value != default:
                said.append(f"{each.name}: {self._value(value)}")
        return f"{type(shape).__name__}({'; '.join(said)})"

    def _value(self, value: Any) -> str:
        if dataclasses.is_dataclass(value):
            return self._described(value)
        if isinstance(value, tuple) and all(isinstance(item, int) and not isinstance(item, bool) for item in value):
            return "nothing" if value == self.form.nothing else _key(value)
        if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], tuple):
            return f"{value[0]!r} {self._value(value[1])}"
        if isinstance(value, tuple | frozenset):
            items = sorted(value, key=repr) if isinstance(value, frozenset) else value
            return f"[{', '.join(self._value(item) for item in items[:40])}{', …' if len(items) > 40 else ''}]"
        return str(value) if isinstance(value, Fraction) else repr(value)

    def _frame(self, frame: Any) -> str:
        """One place in one rule, and in how many ways it goes on afterwards."""
        used = len(frame.memory.used)
        said = [f"{name}={_register(getattr(frame, name))}" for name in ("partial", "a", "b", "c") if getattr(frame, name)]
        said += [f"{used} different ones came"] if used else []
        registers = f" ({', '.join(said)})" if said else ""
        back = "behind it the answer ends" if frame.link is None else "returns to state " + " or ".join(
            dict.fromkeys(str(each.state) for each in frame.link.frames[:4]))
        return f"state {frame.state} of {self._rule_of(frame.state)}{registers}; {back}"

    def _rule_of(self, state: int) -> str:
        return self._rule_names.get(state, "a rule")

    @cached_property
    def _rule_names(self) -> dict[int, str]:
        return {state: f"rule {rule.number} ({rule.title})" for rule in self.diagram.rules for state in rule.states}


def explain_schema(
    schema: Any, *, property_order: str = "schema", style: str = "free", unsupported: str = "refuse",
    limits: Limits | None = None, clock: Callable[[], float] = time.perf_counter,
) -> Explanation:
    """Compile a schema without a vocabulary, and keep what there was on the way. Options and errors: `compile_json_schema`'s."""
    began_s = clock()
    budget = Budget(limits)
    form = normal_form(schema, budget, Enforcement(best_effort=unsupported == "ignore"))
    tables = emit_json(form, style_of(style, property_order), budget)
    return Explanation(form, tables, 1e3 * (clock() - began_s))


def _part(part: Part) -> str:
    if part.kind == "constant":
        return f"the value {part.value!r}"
    if isinstance(part.value, bool):
        return "everything" if part.value else "nothing"
    if isinstance(part.value, dict):
        return ", ".join(f"{name} {value!r}" if _is_short(value) else name for name, value in part.value.items())
    return f"{part.kind} {part.value}"


def _is_short(value: Any) -> bool:
    """Whether a keyword's value says more than its name and takes no more room."""
    if isinstance(value, list):
        return len(value) <= 4 and all(isinstance(item, str) for item in value)
    return isinstance(value, bool | int | float | str)


def _key(key: Key) -> str:
    return f"({', '.join(map(str, key))})" if key else "anything"


def _cut(text: str) -> str:
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}…"


def _register(value: Any) -> str:
    return "∞" if value == 1 << 62 else str(value)


def _forced(machine: ReferenceMachine, position: Any) -> str:
    """The bytes that have no alternative, as text; a last character that is not whole is left out."""
    data = bytearray()
    while len(data) < MOST_FORCED and not machine.may_end(position):
        open_bytes = _at_most_two(byte for byte in range(256) if machine.step(position, byte) is not None)
        if len(open_bytes) != 1:
            break
        data.append(open_bytes[0])
        position = machine.step(position, open_bytes[0])
    return data.decode("utf-8", "ignore")


def _at_most_two(values: Iterable[int]) -> list[int]:
    return [value for value, _ in zip(values, range(2), strict=False)]


def _tokens(machine: ReferenceMachine, position: Any, token_bytes: Sequence[bytes]) -> dict[str, Any]:
    """How many tokens may follow, and some of them: those of whitespace last, long ones first."""
    trie = TokenTrie.build(token_bytes)
    row = np.zeros(trie.n_words, dtype=np.uint32)
    mask_reference(trie, position, machine.step, row)
    allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
    spelled = {token_bytes[token] for token in allowed.tolist()}
    examples = sorted(spelled, key=lambda data: (data.isspace(), -len(data), data))[:MOST_TOKENS]
    return {"n_tokens": len(allowed), "tokens": tuple(examples)}
