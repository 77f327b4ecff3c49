"""Machines of schemas in plain Python, and all that one accepts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grammar.algebra.normal import normal_form
from grammar.budget import Budget
from grammar.emission.emit import Style, emit_json
from kernels.pushdown import ReferenceMachine

_BYTES = [*range(0x20, 0x7F), 0x0A]


def machine_of(schema: Any, **style: bool) -> ReferenceMachine:
    budget = Budget()
    return ReferenceMachine(emit_json(normal_form(schema, budget), Style(**style), budget))


def admits(machine: ReferenceMachine, text: str) -> bool:
    position = machine.advance(machine.start(), text.encode())
    return position is not None and machine.may_end(position)


def all_texts(machine: ReferenceMachine) -> Iterator[bytes]:
    """Every text that a machine accepts; fails at a text with which no accepted one begins."""
    stack = [(machine.start(), b"")]
    while stack:
        position, text = stack.pop()
        following = [(after, text + bytes((byte,))) for byte in _BYTES if (after := machine.step(position, byte)) is not None]
        if machine.may_end(position):
            yield text
        else:
            assert following, f"dead end after {text!r}"
        stack.extend(following)
