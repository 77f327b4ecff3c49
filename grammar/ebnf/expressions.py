"""What rules are made of: a tree of texts, tokens, JSON values, and calls of other rules.

Texts are automata, so everything regular is decided before a rule is ever called. Trees may share parts; they are compared by
identity. The functions here look at one tree at a time and know no rule's body.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from grammar.algebra.normal import NormalForm
from grammar.emission.style import Style
from grammar.text.automata import Dfa


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """The texts of an automaton over characters."""

    dfa: Dfa


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """One of some special tokens of the vocabulary, by id."""

    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Spelling:
    """A fixed text of which some parts may be written as special tokens: from place `begin` to place `end` stands token `id`."""

    text: str
    tokens: tuple[tuple[int, int, int], ...]    # (begin, end, id), places in characters


@dataclass(frozen=True, slots=True, eq=False)
class Json:
    """The JSON texts of a schema in normal form."""

    form: NormalForm
    style: Style


@dataclass(frozen=True, slots=True)
class Exit:
    """What ends a stretch of free text: `cues`, then `then`. With `leaves` the free text is over, else it goes on behind."""

    cue: str
    then: Expression
    leaves: bool


@dataclass(frozen=True, slots=True, eq=False)
class FreeText:
    """Any text in which no cue of an exit ever stands without the exit being taken, and no text of `without` at all.

    A cue may be written as text, or with the special tokens of `specials` (text, id) that it contains. The cues of `jumps` are
    special tokens, and only those lead there. With `may_end` the text may stop anywhere outside an exit.
    """

    exits: tuple[Exit, ...]
    without: tuple[str, ...]
    may_end: bool
    specials: tuple[tuple[str, int], ...] = ()
    jumps: tuple[Exit, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """What the rule of this name says."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Sequence:
    """One after another. With `some` the empty text is left out, even where every part has it."""

    parts: tuple[Expression, ...]
    some: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One of the parts; without parts nothing at all, not even the empty text."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """A part `least` to `most` times (None: no bound)."""

    part: Expression
    least: int
    most: int | None


Expression = Text | Tokens | Spelling | Json | FreeText | Rule | Sequence | Choice | Repeat
Rules = dict[str, Expression]

EMPTY = Sequence(())
NOTHING = Choice(())


def sequence(parts: Iterable[Expression]) -> Expression:
    """One after another; nested sequences are joined, and nothing anywhere is nothing."""
    flat: list[Expression] = []
    for part in parts:
        if is_nothing(part):
            return NOTHING
        flat.extend(part.parts if isinstance(part, Sequence) and not part.some else (part,))
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat)) if flat else EMPTY


def choice(parts: Iterable[Expression]) -> Expression:
    """One of some; nested choices are joined, and what stands twice is kept once."""
    flat: dict[str | int, Expression] = {}
    for part in parts:
        for option in part.parts if isinstance(part, Choice) else (part,):
            flat.setdefault(option.name if isinstance(option, Rule) else id(option), option)
    options = tuple(flat.values())
    return options[0] if len(options) == 1 else Choice(options) if options else NOTHING


def repeat(part: Expression, least: int, most: int | None) -> Expression:
    if most == 0 or part is EMPTY:
        return EMPTY
    if (least, most) == (1, 1):
        return part
    if is_nothing(part):
        return EMPTY if least == 0 else NOTHING
    return Repeat(part, least, most)


def optional(part: Expression) -> Expression:
    return part if is_nullable(part) else repeat(part, 0, 1)


def is_nothing(expression: Expression) -> bool:
    return isinstance(expression, Choice) and not expression.parts


def is_nullable(expression: Expression) -> bool:
    """Whether the empty text is one of its texts, taken that no rule has it."""
    match expression:
        case Text(dfa):
            return dfa.accepting[0]
        case FreeText():
            return expression.may_end
        case Spelling():
            return not expression.text
        case Sequence(parts, some):
            return not some and all(map(is_nullable, parts))
        case Choice(parts):
            return any(map(is_nullable, parts))
        case Repeat(part, least, _):
            return least == 0 or is_nullable(part)
    return False


def called(expression: Expression) -> Iterator[str]:
    """The names of the rules in it, each time that one stands there."""
    stack = [expression]
    while stack:
        match stack.pop():
            case Rule(name):
                yield name
            case Sequence(parts) | Choice(parts):
                stack.extend(parts)
            case Repeat(part, _, _):
                stack.append(part)
            case FreeText(exits, jumps=jumps):
                stack.extend(exit_.then for exit_ in (*exits, *jumps))


def without_empty(expression: Expression) -> Expression:
    """The same texts less the empty one, taken that no rule has it."""
    if not is_nullable(expression):
        return expression
    match expression:
        case Text(dfa):
            return _text_without_empty(dfa)
        case Choice(parts):
            return choice(map(without_empty, parts))
        case Repeat(part, least, most):
            inner = without_empty(part)
            return repeat(inner, 1 if inner is not part else max(least, 1), most)
        case Sequence(parts) if parts:
            return Sequence(parts, some=True)
        case FreeText():
            return expression    # the machine leaves its start before it may end
    return NOTHING


def _text_without_empty(dfa: Dfa) -> Expression:
    """A start of its own, since the old one may come again."""
    if not dfa.edges[0]:
        return NOTHING
    if not any(target == 0 for out in dfa.edges for _, _, target in out):
        return Text(Dfa(dfa.edges, [False, *dfa.accepting[1:]]))
    shifted = [[(low, high, target + 1) for low, high, target in out] for out in [dfa.edges[0], *dfa.edges]]
    return Text(Dfa(shifted, [False, *dfa.accepting]))
