"""The JSON values that stand in a schema, as in `const` and `enum`: checked to be JSON, and equal ones known as one."""

from __future__ import annotations

import math
from typing import Any

from grammar.budget import Budget
from grammar.errors import SchemaError
from grammar.schema.keywords import are_texts, is_text, shown

_NO_MORE = object()


class Constants:
    """Numbers of JSON values by their structure: the same members in another order, and 1 and 1.0, are different.

    The values must not change as long as the numbers are used.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._numbers: dict[Any, int] = {}
        self._of_container: dict[int, int] = {}     # by their id, which is theirs as long as they live:
        self._kept: list[Any] = []

    def number(self, value: Any, pointer: str) -> int:
        """The number of a value. Raises SchemaError for what no JSON text can say."""
        if not isinstance(value, dict | list):
            return self._scalar(value, pointer)
        stack: list[tuple[Any, Any]] = [(value, None)]
        while stack:
            container, members = stack[-1]
            if members is None:
                members = iter(self._opened(container, len(stack), pointer))
                stack[-1] = container, members
            member = next(members, _NO_MORE)
            if member is _NO_MORE:
                stack.pop()
                self._close(container, pointer)
            elif isinstance(member, dict | list) and id(member) not in self._of_container:
                stack.append((member, None))
        return self._of_container[id(value)]

    def _opened(self, container: Any, depth: int, pointer: str) -> Any:
        self._budget.spend("schema_values", 1 + len(container))
        self._budget.check("schema_depth", depth)
        if isinstance(container, list):
            return container
        if not are_texts(container):
            raise SchemaError("the schema is no JSON: a name in it is no string of characters", pointer=pointer)
        return container.values()

    def _close(self, container: Any, pointer: str) -> None:
        self._kept.append(container)
        if isinstance(container, list) and are_texts(container):
            self._of_container[id(container)] = self._numbers.setdefault(tuple(container), len(self._numbers))
            return
        members = container.values() if isinstance(container, dict) else container
        numbers = tuple([self._of_container[id(member)] if isinstance(member, dict | list) else self._scalar(member, pointer)
                         for member in members])
        structure = (tuple(container), numbers) if isinstance(container, dict) else (None, numbers)
        self._of_container[id(container)] = self._numbers.setdefault(structure, len(self._numbers))

    def _scalar(self, value: Any, pointer: str) -> int:
        if not (value is None or isinstance(value, bool | int) or is_text(value)
                or (isinstance(value, float) and math.isfinite(value))):
            raise SchemaError(f"the schema is no JSON: it holds {shown(value)}", pointer=pointer)
        return self._numbers.setdefault((type(value), value), len(self._numbers))
