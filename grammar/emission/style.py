"""How answers are written."""

from __future__ import annotations

from dataclasses import dataclass

from kernels.pushdown_tables import DEEPER, INDENT_INNER, INDENT_OUTER, JSON_PLAIN, JSON_STRING, SPACES


@dataclass(frozen=True, slots=True)
class Style:
    """`spaces` allows the bounded whitespace, `escapes` every spelling of a string that JSON has and `.0` behind integers (else
    each value has one spelling), `ordered` fixes the order of properties. `pretty` asks for exactly the whitespace of
    `json.dumps(indent=2)`, and goes with neither `spaces` nor `escapes`."""

    spaces: bool = True
    escapes: bool = True
    ordered: bool = True
    pretty: bool = False

    @property
    def string(self) -> int:
        """How the states of a string read."""
        return JSON_STRING if self.escapes else JSON_PLAIN

    @property
    def space(self) -> int:
        """What whitespace a state between two tokens of JSON reads by itself."""
        return SPACES if self.spaces else 0

    @property
    def inner(self) -> int:
        """... before a member of a container."""
        return INDENT_INNER if self.pretty else self.space

    @property
    def outer(self) -> int:
        """... before a container's closing bracket."""
        return INDENT_OUTER if self.pretty else self.space

    @property
    def calling(self) -> int:
        """The marks of a state from which a member's value is called."""
        return DEEPER if self.pretty else 0
