"""Limits on the work of one compilation.

All count steps or sizes, never seconds: the same schema fails the same way everywhere.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from grammar.errors import GrammarTooLarge


@dataclass(frozen=True, slots=True)
class Limits:
    """What one schema may need. The defaults keep a compilation under about two seconds on one slow core."""

    schema_values: int = 100_000        # objects, arrays and scalars in the schema document
    schema_depth: int = 700             # nested brackets of the schema document
    nesting_of_combinators: int = 64    # $ref, allOf, anyOf, oneOf inside one another without a property or item between
    shapes: int = 10_000                # alternatives looked at while schemas are combined
    pairs_of_one_of: int = 40_000       # branches of oneOf, two by two
    nodes: int = 20_000                 # different schemas that a place in the answer may have
    regex_states: int = 20_000          # of one regex as written, counted repetitions unrolled
    automaton_states: int = 30_000      # of one text automaton
    automaton_steps: int = 500_000      # in building all text automata
    multiple_of: int = 128              # a multipleOf over a range too wide to list its multiples
    table_states: int = 250_000         # of the finished machine


class Budget:
    """Counts what one compilation has used. Not thread-safe: one for each compilation."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._used: Counter[str] = Counter()

    def spend(self, limit: str, amount: int = 1) -> None:
        """Add to what was used of `limit`; raises GrammarTooLarge beyond it."""
        self._used[limit] += amount
        self.check(limit, self._used[limit])

    def check(self, limit: str, needed: int) -> None:
        """Hold one quantity against `limit`, without adding it up."""
        allowed = getattr(self.limits, limit)
        if needed > allowed:
            raise GrammarTooLarge(limit, allowed, needed)
