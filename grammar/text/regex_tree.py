"""The tree of a regex in one of its two readings.

What the dialects of regexes (ECMA-262, the one of JSON Schema, and Python's `re`) read differently, the parser reads in one of
two ways. The *inner* reading is never wider than any dialect's: a text that it matches is matched by all of them. The *outer*
reading is never narrower: a text that it does not match is matched by none. Inside a negative look-around the two change places.
"""

from __future__ import annotations

from dataclasses import dataclass

from grammar.text import charset
from grammar.text.charset import CharSet


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set."""

    chars: CharSet


@dataclass(frozen=True, slots=True)
class Join:
    """The parts one after another."""

    parts: tuple[Regex, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """One of the parts."""

    parts: tuple[Regex, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part `least` to `most` times (None: no bound)."""

    part: Regex
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Begin:
    """Only at the start of the text."""


@dataclass(frozen=True, slots=True)
class End:
    """Only at the very end of the text."""


@dataclass(frozen=True, slots=True)
class Look:
    """`part` begins here (`ahead`), or ends here; with `negative` it does not. Takes no characters."""

    part: Regex
    ahead: bool
    negative: bool


Regex = Chars | Join | Either | Repeat | Begin | End | Look

ANY_TEXT = Repeat(Chars(charset.ALL), 0, None)
EMPTY_TEXT = Join(())


def searched(tree: Regex) -> Regex:
    """The texts in which `tree` is found somewhere, as JSON Schema's `pattern` asks."""
    return Join((ANY_TEXT, tree, ANY_TEXT))


def before(chars: CharSet, negative: bool = False) -> Look:
    """The character before this place is one of `chars` (with `negative`: is none of them, or there is none)."""
    return Look(Chars(chars), False, negative)


def behind(chars: CharSet, negative: bool = False) -> Look:
    """The character behind this place is one of `chars` (with `negative`: is none of them, or there is none)."""
    return Look(Chars(chars), True, negative)


def takes_nothing(tree: Regex) -> bool:
    """Whether a tree takes no characters, whatever it asks for."""
    match tree:
        case Join(parts) | Either(parts):
            return all(takes_nothing(part) for part in parts)
        case Repeat(part, _, _):
            return takes_nothing(part)
    return not isinstance(tree, Chars)


def has_look(tree: Regex) -> bool:
    """Whether a tree looks around."""
    match tree:
        case Join(parts) | Either(parts):
            return any(has_look(part) for part in parts)
        case Repeat(part, _, _):
            return has_look(part)
    return isinstance(tree, Look)
