"""A schema document: its form checked, its references resolved, and equal subschemas known as one.

A *part* is a subschema, or a constant that stands for the schema of just that value. A *key* is a tuple of parts, and
means that all of them hold at once: () allows every value. Keys are what the rest of the compiler calls schemas by.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from grammar import keywords
from grammar.budget import Budget
from grammar.errors import SchemaError

Key = tuple[int, ...]
ANYTHING: Key = ()


@dataclass(frozen=True, slots=True)
class Part:
    """`value` is a schema, or with `constant` the one value allowed; `pointer` is where it was first seen."""

    value: Any
    pointer: str
    constant: bool = False


class Document:
    """One schema as the caller sent it. It must not change while it is compiled. Raises SchemaError."""

    def __init__(self, root: Any, budget: Budget) -> None:
        if not isinstance(root, dict | bool):
            raise SchemaError(f"a schema must be an object, true or false, not {type(root).__name__}")
        self.root = root
        self.parts: list[Part] = []
        self._numbers: dict[Any, int] = {}          # structure -> number; equal JSON has equal numbers
        self._of_container: dict[int, int] = {}     # id of a list or dict of the document -> number
        self._part_of: dict[Any, int] = {}
        self._checked: set[int] = set()
        self._anchors: dict[str, tuple[Any, str]] = {}
        self._number_all(root, budget)
        self._check(root, "")
        self.nothing = self.key(False, "")

    def key(self, schema: Any, pointer: str) -> Key:
        """The key of one subschema of this document."""
        if schema is True or schema == {}:
            return ANYTHING
        return (self._part(("schema", self._number(schema)), Part(schema, pointer)),)

    def constant(self, value: Any, pointer: str) -> Key:
        """The key that allows one value of this document only."""
        return (self._part(("constant", self._number(value)), Part(value, pointer, constant=True)),)

    def without(self, schema: dict[str, Any], keyword: str, pointer: str) -> Key:
        """The key of a subschema less one keyword."""
        rest = {name: value for name, value in schema.items() if name != keyword}
        return (self._part(("without", keyword, self._number(schema)), Part(rest, pointer)),)

    def both(self, left: Key, right: Key) -> Key:
        """The key that asks for both. Its parts keep their order, which is the order of properties."""
        if not left or not right or left == right:
            return left or right
        joined = tuple(dict.fromkeys(left + right))
        return self.nothing if self.nothing[0] in joined else joined

    def target(self, reference: str, pointer: str) -> tuple[Any, str]:
        """(schema, pointer) that a `$ref` at `pointer` leads to. Only this document is looked at; nothing is fetched."""
        here = self.root.get("$id", "") if isinstance(self.root, dict) else ""
        base, _, fragment = reference.partition("#")
        if base and base != here.rstrip("#"):
            raise SchemaError(f"{reference!r} leads out of the schema, and remote schemas are never fetched",
                              keyword="$ref", pointer=pointer)
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            if fragment not in self._anchors:
                raise SchemaError(f"there is no $anchor {fragment!r}", keyword="$ref", pointer=pointer)
            return self._anchors[fragment]
        value = self.root
        for step in fragment.split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict) and step in value:
                value = value[step]
            elif isinstance(value, list) and step.isascii() and step.isdecimal() and int(step) < len(value):
                value = value[int(step)]
            else:
                raise SchemaError(f"{reference!r} leads nowhere", keyword="$ref", pointer=pointer)
        if not isinstance(value, dict | bool):
            raise SchemaError(f"{reference!r} leads to no schema", keyword="$ref", pointer=pointer)
        return value, fragment

    def _part(self, identity: Any, part: Part) -> int:
        number = self._part_of.setdefault(identity, len(self.parts))
        if number == len(self.parts):
            self.parts.append(part)
        return number

    def _number(self, value: Any) -> int:
        if isinstance(value, dict | list):
            return self._of_container[id(value)]
        return self._numbers.setdefault((type(value), value), len(self._numbers))

    def _number_all(self, root: Any, budget: Budget) -> None:
        """Number every container by its structure, children first, without recursion."""
        stack: list[tuple[Any, Any]] = [(root, None)]
        while stack:
            value, children = stack[-1]
            if children is None:
                budget.spend("schema_values")
                budget.check("schema_depth", len(stack))
                _check_is_json(value)
                children = iter(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
                stack[-1] = value, children
            child = next(children, _END)
            if child is not _END:
                if not (isinstance(child, dict | list) and id(child) in self._of_container):
                    stack.append((child, None))
                continue
            stack.pop()
            if isinstance(value, dict):
                structure: Any = ("object", tuple((name, self._number(item)) for name, item in value.items()))
            elif isinstance(value, list):
                structure = ("array", tuple(self._number(item) for item in value))
            else:
                continue
            self._of_container[id(value)] = self._numbers.setdefault(structure, len(self._numbers))

    def _check(self, schema: Any, pointer: str) -> None:
        """Check the form of a schema and of all that it leads to, wanted or not."""
        queue, references = [(schema, pointer, False)], []
        while queue:
            for value, place, foreign in queue:
                if not isinstance(value, dict | bool):
                    raise SchemaError(f"must be a schema (an object, true or false), not {type(value).__name__}", pointer=place)
                if isinstance(value, bool) or id(value) in self._checked:
                    continue
                self._checked.add(id(value))
                foreign = foreign or (place != "" and "$id" in value)   # names in there are another resource's
                _check_keywords(value, place)
                if "$anchor" in value and not foreign:
                    self._anchors[value["$anchor"]] = value, place
                if "$ref" in value:
                    if foreign:
                        raise SchemaError("a nested $id changes what $ref means, which is not supported", keyword="$id",
                                          pointer=place)
                    references.append((value["$ref"], place))
                queue.extend((item, place + step, foreign) for step, item in keywords.subschemas(value))
            queue = [(*self.target(reference, place), False) for reference, place in references]
            references.clear()


def _check_keywords(schema: dict[str, Any], pointer: str) -> None:
    for keyword, content in schema.items():
        reason = keywords.malformed(keyword, content)
        if reason:
            raise SchemaError(reason, keyword=keyword, pointer=pointer)


_END = object()


def _check_is_json(value: Any) -> None:
    if isinstance(value, dict):
        strings: Iterable[Any] = value
    elif isinstance(value, str):
        strings = (value,)
    elif value is None or isinstance(value, bool | int | list) or (isinstance(value, float) and math.isfinite(value)):
        return
    else:
        raise SchemaError(f"the schema is no JSON: it holds {value!r:.80}")
    for string in strings:
        if not isinstance(string, str):
            raise SchemaError(f"the schema is no JSON: the key {string!r:.80} is no string")
        if not string.isascii() and any(0xD800 <= ord(c) <= 0xDFFF for c in string):
            raise SchemaError(f"the string {string!r:.80} holds a lone surrogate, which is no character")
