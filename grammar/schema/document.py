"""A schema document as the compiler sees it: parts, and keys made of parts.

A *part* is a view of a schema object (see `grammar.schema.views`), or a constant that stands for the schema of just that value,
or something made of other keys. A *key* is a tuple of parts, and means that all of them hold at once: () allows every value.
Keys are what the rest of the compiler calls schemas by.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

from grammar.budget import Budget
from grammar.errors import SchemaError
from grammar.schema.constants import Constants
from grammar.schema.views import Notice, View, Views

Key = tuple[int, ...]
ANYTHING: Key = ()


class Part(NamedTuple):
    """`value` is a view; with kind "constant" the one value allowed; with another kind what `Document.synthetic` was given.

    `pointer` is where it was first seen in the schema as sent.
    """

    value: Any
    pointer: str
    kind: str = "schema"

    @property
    def constant(self) -> bool:
        return self.kind == "constant"


class Document:
    """One schema as the caller sent it. It must not change while it is compiled. Raises SchemaError.

    root, nothing: the keys of the whole and of `false`. notices, decimal_integers, schemas_evaluate: see `Views`.
    """

    def __init__(self, root: Any, budget: Budget) -> None:
        if not isinstance(root, dict | bool):
            raise SchemaError(f"a schema must be an object, true or false, not {type(root).__name__}")
        self.parts: list[Part] = []
        self._part_of: dict[Hashable, int] = {}
        self._keys: dict[int, Key] = {}     # of views, by their id
        self.nothing: Key = (self._part("nothing", Part(False, "")),)
        self._constants = Constants(budget)
        self._views = Views(root, budget, self._constants)
        self.root = self.key(self._views.root, "")
        self.notices: tuple[Notice, ...] = tuple(self._views.notices)
        self.decimal_integers = self._views.decimal_integers
        self.schemas_evaluate = self._views.schemas_evaluate

    def key(self, schema: View | bool, pointer: str) -> Key:
        """The key of a view. One that is nothing but a `$ref` has the key of its target."""
        if isinstance(schema, bool):
            return ANYTHING if schema else self.nothing
        found = self._keys.get(id(schema))
        if found is None:
            target = self._followed(schema, pointer)
            found = ANYTHING if target is True else self.nothing if target is False else (self._part(
                ("schema", self._views.number(target)), Part(target, self._views.pointer(target))),)
            self._keys[id(schema)] = found
        return found

    def key_of_source(self, source: Any) -> Key:
        """The key of a schema of the document, itself and not one that is equal. Raises LookupError if it isn't reached."""
        return self.key(self._views.of_source(source), "")

    def constant(self, value: Any, pointer: str) -> Key:
        """The key that allows one value of this document only."""
        return (self._part(("constant", self._constants.number(value, pointer)), Part(value, pointer, "constant")),)

    def pointer(self, key: Key) -> str:
        """Where the first part of a key stands in the schema as sent."""
        return self.parts[key[0]].pointer if key else ""

    def synthetic(self, kind: str, payload: Hashable, pointer: str = "") -> Key:
        """The key of something made of other keys, one for each `kind` and `payload`. What it means is the caller's."""
        return (self._part(("synthetic", kind, payload), Part(payload, pointer, kind)),)

    def _followed(self, schema: View, pointer: str) -> View | bool:
        """What a view says; where that is one `$ref` and nothing else, what its target says."""
        passed: set[int] = set()
        view: View | bool = schema
        while not isinstance(view, bool) and len(view) == 1 and "$ref" in view:
            if id(view) in passed:
                raise SchemaError("it leads back to itself with no property or item between", keyword="$ref", pointer=pointer)
            passed.add(id(view))
            view = view["$ref"].view
        return view

    def _part(self, identity: Hashable, part: Part) -> int:
        number = self._part_of.setdefault(identity, len(self.parts))
        if number == len(self.parts):
            self.parts.append(part)
        return number
