"""What the rules of a machine are emitted with: the tables that grow, and call lists that are filled when their turn comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from grammar.algebra.normal import NormalForm
from grammar.algebra.shapes import String, StringSet
from grammar.budget import Budget
from grammar.emission.name_blocks import NameBlock
from grammar.emission.names_beside import Undeclared
from grammar.emission.style import Style
from grammar.emission.tables import Edge, TableBuilder
from grammar.schema.document import Key
from kernels.pushdown_tables import ALWAYS

Operation = tuple[int, int, int]   # what an edge or call asks of the registers and does to them: op, x, y

NO_OPERATION: Operation = (ALWAYS, 0, 0)
NEWLINE = 0x0A


class Value(NamedTuple):
    """One way to read the value at a place: in a key, if the caller's registers allow the operation."""

    key: Key
    operation: Operation = NO_OPERATION


class Wanted(NamedTuple):
    """The values that a call list is for. `canonical`: texts are compared there, so each value has one spelling."""

    values: tuple[Value, ...]
    canonical: bool


class Emission:
    """One machine in the making."""

    def __init__(self, tables: TableBuilder, form: NormalForm, style: Style, budget: Budget) -> None:
        self.tables, self.form, self.style, self.budget = tables, form, style, budget
        self.undeclared: dict[tuple[String | StringSet, ...], Undeclared] = {}    # automata of undeclared names, by their shapes
        self.name_blocks: dict[object, NameBlock] = {}
        self._lists: dict[Wanted, int] = {}
        self._queue: list[Wanted] = []
        self._rules: dict[object, int] = {}

    def calls(self, *values: Value, canonical: bool = False) -> int:
        """The call list of a place."""
        wanted = Wanted(values, canonical)
        number = self._lists.get(wanted)
        if number is None:
            number = self._lists[wanted] = self.tables.reserve_list()
            self._queue.append(wanted)
        return number

    def wanted(self) -> Iterator[tuple[int, Wanted]]:
        """All call lists with their numbers, those too that come up meanwhile."""
        for wanted in self._queue:
            yield self._lists[wanted], wanted

    def once(self, identity: object, build: Callable[[], int]) -> int:
        """What `build` returned when it was first asked for under this name."""
        number = self._rules.get(identity)
        if number is None:
            number = self._rules[identity] = build()
        return number

    def alive(self, key: Key) -> bool:
        """Whether a key has a value."""
        return key in self.form.shapes

    def line(self, target: int, byte: int, operation: Operation, at_line_end: Operation, *, outer: bool = False) -> Edge:
        """The edge to `target` over `byte`, before which the pretty style has a new line and an indent: that of a container's
        member, or with `outer` that of its closing bracket."""
        if not self.style.pretty:
            return byte, byte, target, *operation
        line = self.tables.state(space=self.style.outer if outer else self.style.inner, edges=[(byte, byte, target, *operation)])
        return NEWLINE, NEWLINE, line, *at_line_end
