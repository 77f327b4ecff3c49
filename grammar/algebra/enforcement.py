"""What is done about a keyword that cannot be enforced exactly: the one place where that is decided."""

from __future__ import annotations

from dataclasses import dataclass

from grammar.errors import SchemaError


@dataclass(frozen=True, slots=True)
class NotEnforced:
    """A keyword that a grammar leaves out, where it stands in the schema, and why."""

    keyword: str
    pointer: str
    reason: str


class Enforcement:
    """Refuses what is not exact or, on the caller's wish, leaves it out and keeps a list of it."""

    def __init__(self, best_effort: bool = False) -> None:
        self._best_effort = best_effort
        self._left_out: dict[NotEnforced, None] = {}
        self.n_refused = 0      # calls that went on without a keyword

    @property
    def left_out(self) -> tuple[NotEnforced, ...]:
        """What was left out so far, each once."""
        return tuple(self._left_out)

    def refuse(self, keyword: str, pointer: str, reason: str) -> None:
        """Raise SchemaError; with best effort note the keyword and return: the caller goes on without it."""
        if not self._best_effort:
            raise SchemaError(reason, keyword=keyword, pointer=pointer)
        self.n_refused += 1
        self._left_out[NotEnforced(keyword, pointer, reason)] = None
