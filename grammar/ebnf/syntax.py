"""A grammar as it was written: the tree that the reader makes, each leaf with its place in the text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from grammar.text.charset import CharSet


@dataclass(frozen=True, slots=True)
class Literal:
    """"text", in either case with `folded`."""

    text: str
    folded: bool
    place: int


@dataclass(frozen=True, slots=True)
class Pattern:
    """/regex/flags"""

    pattern: str
    flags: str
    place: int


@dataclass(frozen=True, slots=True)
class Class:
    """One character of a set: [a-z], "a".."z", or any."""

    chars: CharSet
    place: int


@dataclass(frozen=True, slots=True)
class Name:
    name: str
    place: int


@dataclass(frozen=True, slots=True)
class Special:
    """<text> or <[ids]>: a special token of the vocabulary."""

    text: str
    place: int


@dataclass(frozen=True, slots=True)
class Schema:
    """%json {...}: a JSON text that satisfies a schema."""

    schema: Any
    place: int


@dataclass(frozen=True, slots=True)
class Series:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Options:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Times:
    part: Node
    least: int
    most: int | None


Node = Literal | Pattern | Class | Name | Special | Schema | Series | Options | Times


@dataclass(frozen=True, slots=True)
class Definition:
    """`lazy` texts end as soon as they can; a `suffix` must follow them, and then they are lazy too."""

    name: str
    body: Node
    place: int
    lazy: bool = False
    suffix: str | None = None


@dataclass(slots=True)
class Source:
    """A grammar read. `imports` maps names to those of the common terminals that they stand for."""

    text: str
    gbnf: bool
    definitions: dict[str, Definition] = field(default_factory=dict)
    ignored: list[Node] = field(default_factory=list)
    imports: dict[str, str] = field(default_factory=dict)

    def is_terminal(self, name: str) -> bool:
        """Whether a name stands for a lexeme; in GBNF none does, in Lark's form those do that begin with a capital."""
        return name in self.imports or (not self.gbnf and name.lstrip("_")[:1].isupper())


def position(text: str, place: int) -> tuple[int, int]:
    """(line, column) of a place, both from 1."""
    return text.count("\n", 0, place) + 1, place - text.rfind("\n", 0, place)
