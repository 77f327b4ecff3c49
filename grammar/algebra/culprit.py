"""Why no value satisfies a schema: the innermost place that has none, and the keywords there that exclude one another.

What is to blame is a set of keywords that leave no value together, but would if any one of them were not there. It is found by
leaving keywords out of the schema and asking again, half of them at a time: the method of U. Junker, "QuickXplain: preferred
explanations and relaxations for over-constrained problems" (2004). Then the subschemas in what is to blame are looked at in the
same way. The number of trials is bounded, and what is not known then is not said.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from grammar.errors import GrammarTooLarge, SchemaError
from grammar.schema import keywords
from grammar.schema.keywords import escaped

Path = tuple[str | int, ...]
HasNone = Callable[[Any, Sequence[Any]], bool]      # (a whole document, schemas in it) -> whether no value satisfies them all

MOST_TRIALS = 120       # documents that are looked at
_MOST_NAMED = 6         # keywords that an error names
_LONGEST_SHOWN = 48     # characters of a keyword's value
_DEEPEST = 8            # subschemas inside one another that are looked at

# A subschema under one of these can be made weaker, and more values satisfy the whole.
_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas"})
_OPENED = _MAPS | {"allOf", "anyOf", "then", "else", "prefixItems", "items", "additionalItems", "contains",
                   "additionalProperties"}
_LOOKED_AT = frozenset({"properties", "patternProperties", "prefixItems", "items"})     # by a keyword for all others beside them
_NAMES = frozenset({"$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$schema", "$defs", "definitions"})


@dataclass(frozen=True, slots=True)
class _Piece:
    """A keyword of a schema, or one of the schemas that a keyword holds: what may be left out. `holder` leads to the schema."""

    path: Path
    holder: Path
    is_keyword: bool = True


class _GaveUp(Exception):
    """The trials, or their budget, are used up."""


def no_value(document: Any, pointers: Iterable[str], has_none: HasNone) -> SchemaError:
    """The error that says where and why: `pointers` lead to schemas in `document` that no value satisfies together.

    `has_none` may raise SchemaError, and does so for the last time where it raises GrammarTooLarge.
    """
    reason = "no value satisfies the schema"
    try:
        paths = [_path(document, pointer) for pointer in dict.fromkeys(pointers)]
    except (KeyError, IndexError, ValueError):
        return SchemaError(reason)
    search = _Search(document, paths, has_none)
    blamed = search.blamed()
    if not 0 < len(blamed) <= _MOST_NAMED:
        return SchemaError(reason, pointer=_pointer(paths[0]))
    place = search.schema_around([piece.holder for piece in blamed])
    words = [_words(_at(document, piece.path), piece, place) for piece in blamed]
    if len(words) == 1:
        return SchemaError(f"{reason}: {words[0]} leaves none", pointer=_pointer(place))
    return SchemaError(f"{reason}: {', '.join(words[:-1])} and {words[-1]} leave none", pointer=_pointer(place))


class _Search:
    """The search in one document for what is to blame, in the schemas at some paths."""

    def __init__(self, document: Any, paths: Sequence[Path], has_none: HasNone) -> None:
        self._document, self._paths, self._has_none = document, paths, has_none
        self._schemas = set(paths)
        self._trials = 0

    def blamed(self) -> list[_Piece]:
        """A least set of pieces that leaves no value, as far inside as is known; empty where there is none."""
        level = [piece for path in self._paths for piece in self._keywords(path)]
        found: list[_Piece] = []
        for _ in range(_DEEPEST):
            try:
                if not self._leave_none(level):
                    break
                found = self._least([], False, level)
            except _GaveUp:
                break
            level = [inner for piece in found for inner in self._opened(piece)]
            if level == found:
                break
        return found

    def schema_around(self, holders: Sequence[Path]) -> Path:
        """The innermost schema that has all these schemas in it."""
        first = holders[0]
        n = next(n for n in range(len(first), -1, -1) if all(path[:n] == first[:n] for path in holders)
                 and (first[:n] in self._schemas or n == 0))
        return first[:n]

    def _least(self, certain: list[_Piece], grown: bool, doubtful: list[_Piece]) -> list[_Piece]:
        """A least part of `doubtful` that leaves no value together with `certain`, which is tried alone if it has `grown`."""
        if grown and self._leave_none(certain):
            return []
        if len(doubtful) <= 1:
            return doubtful
        half = len(doubtful) // 2
        first, second = doubtful[:half], doubtful[half:]
        of_second = self._least([*certain, *first], True, second)
        of_first = self._least([*certain, *of_second], bool(of_second), first)
        return [*of_first, *of_second]

    def _leave_none(self, kept: Iterable[_Piece]) -> bool:
        """Whether these pieces of the schemas leave no value."""
        self._trials += 1
        if self._trials > MOST_TRIALS:
            raise _GaveUp
        tree = _tree(piece.path for piece in kept)
        document = self._document
        try:
            for path in self._paths:
                document = _replaced(document, path, _weakened(_at(self._document, path), _kept(tree, path)))
            return self._has_none(document, [_at(document, path) for path in self._paths])
        except GrammarTooLarge:
            raise _GaveUp from None
        except (SchemaError, LookupError):
            return False    # no schema any more without what was left out

    def _keywords(self, path: Path) -> list[_Piece]:
        schema = _at(self._document, path)
        if not isinstance(schema, dict):
            return []
        self._schemas.add(path)
        return [_Piece((*path, name), path) for name in schema if name not in _NAMES and not keywords.is_annotation(name)]

    def _opened(self, piece: _Piece) -> list[_Piece]:
        """The pieces in a piece; itself, if there are none."""
        value = _at(self._document, piece.path)
        if not piece.is_keyword:
            return self._keywords(piece.path) or [piece]
        if piece.path[-1] not in _OPENED:
            return [piece]
        if piece.path[-1] in _MAPS or isinstance(value, list):
            names: Iterable[Any] = value if isinstance(value, dict) else range(len(value))
            return [_Piece((*piece.path, name), piece.holder, is_keyword=False) for name in names] or [piece]
        return self._keywords(piece.path) or [piece]


# --- schemas with less in them

def _tree(paths: Iterable[Path]) -> dict[Any, Any]:
    """The steps of paths as nested dictionaries; the last step of each has None, whatever other paths go on behind it."""
    tree: dict[Any, Any] = {}
    for path in paths:
        node: Any = tree
        for step in path[:-1]:
            node = node.setdefault(step, {})
            if node is None:
                break
        else:
            node[path[-1]] = None
    return tree


def _kept(tree: dict[Any, Any], path: Path) -> dict[Any, Any] | None:
    """What is kept at the end of a path; None where that is everything."""
    node = tree
    for step in path:
        found = node.get(step, {})
        if found is None:
            return None
        node = found
    return node


def _weakened(schema: Any, kept: dict[Any, Any] | None) -> Any:
    """A schema with no more than what is kept of its keywords; with all of them for None."""
    if kept is None or not isinstance(schema, dict):
        return schema
    left: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in _NAMES:
            left[keyword] = value
        elif keyword in kept:
            left[keyword] = _weakened_keyword(keyword, value, kept[keyword])
        elif keyword in _LOOKED_AT and isinstance(value, dict if keyword in _MAPS else list):
            left[keyword] = _weakened_keyword(keyword, value, {})
    return left


def _weakened_keyword(keyword: str, value: Any, kept: dict[Any, Any] | None) -> Any:
    if kept is None:
        return value
    if isinstance(value, list):
        return [_weakened(item, kept[n]) if n in kept else True for n, item in enumerate(value)]
    if keyword in _MAPS:
        return {name: _weakened(item, kept[name]) if name in kept else True for name, item in value.items()}
    return _weakened(value, kept)


def _replaced(document: Any, path: Path, value: Any) -> Any:
    """The document with something else at the end of a path, copied along the path."""
    if not path:
        return value
    if not isinstance(document, dict | list):
        raise LookupError(path)     # it led through a schema of which less is left
    copy: Any = document.copy()
    copy[path[0]] = _replaced(copy[path[0]], path[1:], value)
    return copy


# --- paths and words

def _at(document: Any, path: Path) -> Any:
    for step in path:
        document = document[step]
    return document


def _path(document: Any, pointer: str) -> Path:
    """The steps of a JSON pointer. Raises KeyError, IndexError or ValueError where it leads nowhere."""
    steps: list[str | int] = []
    for word in pointer.split("/")[1:]:
        step = int(word) if isinstance(document, list) else word.replace("~1", "/").replace("~0", "~")
        document = document[step]
        steps.append(step)
    return tuple(steps)


def _pointer(path: Path) -> str:
    return "".join(f"/{escaped(str(step))}" for step in path)


def _words(value: Any, piece: _Piece, place: Path) -> str:
    """A piece as an error names it, seen from the schema at `place`."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    shown = text if len(text) <= _LONGEST_SHOWN else ""
    if not piece.is_keyword:
        return f"{_pointer(piece.path)}{f' ({shown})' if shown else ''}"
    words = f"{piece.path[-1]} {shown}".rstrip()
    return words if piece.holder == place else f"{words} at {_pointer(piece.holder)}"
