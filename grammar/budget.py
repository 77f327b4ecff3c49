"""Limits on the work of one compilation.

All count steps or sizes, never seconds: the same schema fails the same way everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from grammar.errors import GrammarTooLarge


@dataclass(frozen=True, slots=True)
class Limits:
    """What one schema may need. The defaults keep a compilation under about two seconds on one slow core."""

    schema_values: int = 100_000        # objects, arrays and scalars in the schema document
    schema_depth: int = 700             # nested brackets of the schema document
    nesting_of_combinators: int = 64    # $ref, allOf, anyOf, oneOf inside one another without a property or item between
    shapes: int = 10_000                # alternatives looked at while schemas are combined
    members_met: int = 200_000          # properties of objects that are combined
    obligations_of_an_object: int = 6   # "some member is so" that one object has to meet: from not, oneOf and the like
    obligations_of_an_array: int = 4    # the same of items: contains, and what is negated
    obligations_of_a_place: int = 3     # different ones that one name or position can meet
    choices_of_undeclared_names: int = 64   # kinds of undeclared names of one object
    obligation_steps: int = 500_000     # in finding out whether obligations can be met
    pairs_of_one_of: int = 100_000      # branches of oneOf, two by two
    nodes: int = 20_000                 # different schemas that a place in the answer may have
    regex_states: int = 20_000          # of one regex as written, counted repetitions unrolled
    automaton_states: int = 30_000      # of one text automaton
    automaton_steps: int = 500_000      # in building all text automata
    grammar_symbols: int = 200_000      # names, strings and signs of a context-free grammar, and parts of its rules looked at
    calls_before_a_byte: int = 5_000    # rules that one place of a grammar may call before it reads, times their levels
    table_states: int = 250_000         # of the finished machine
    tally_rows: int = 200_000           # of it: members still to come, by position and by obligations or counts so far


_DEFAULT = Limits()
_ALLOWED = asdict(_DEFAULT)


class Budget:
    """Counts what one compilation has used. Not thread-safe: one for each compilation."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or _DEFAULT
        self._allowed: Mapping[str, int] = _ALLOWED if self.limits is _DEFAULT else asdict(self.limits)
        self._used = dict.fromkeys(self._allowed, 0)

    def spend(self, limit: str, amount: int = 1) -> None:
        """Add to what was used of `limit`; raises GrammarTooLarge beyond it."""
        used = self._used[limit] = self._used[limit] + amount
        if used > self._allowed[limit]:
            raise GrammarTooLarge(limit, self._allowed[limit], used)

    def used(self) -> dict[str, int]:
        """What was spent so far, by limit."""
        return self._used.copy()

    def check(self, limit: str, needed: int) -> None:
        """Hold one quantity against `limit`, without adding it up."""
        if needed > self._allowed[limit]:
            raise GrammarTooLarge(limit, self._allowed[limit], needed)
