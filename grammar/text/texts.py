"""The automata of string shapes: patterns, formats, excluded words and the lower length, each made once in a compilation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from grammar import formats
from grammar.budget import Budget
from grammar.text import automata, regex
from grammar.text.automata import Dfa
from grammar.text.kept import Kept
from grammar.text.regex_tree import Regex

if TYPE_CHECKING:
    from grammar.algebra.shapes import String


_SAME = Dfa([[]], [False])      # stands for the automaton of another reading
_MOST_EDGES = 200_000
_MADE: Kept[tuple[Dfa | None, tuple[tuple[str, int], ...]]] = Kept(_MOST_EDGES)     # automata of regexes, and what they cost


class Texts:
    """Makes and keeps the automata of one compilation. Methods raise PatternError for a regex and GrammarTooLarge."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._inner: dict[str, Dfa | None] = {}
        self._outer: dict[str, Dfa | None] = {}
        self._shapes: dict[String, Dfa | None] = {}

    def search(self, pattern: str) -> Dfa | None:
        """The texts in which every reader finds a regex; None where there are none."""
        if pattern not in self._inner:
            self._inner[pattern] = self._searched(pattern, regex.parse)
        return self._inner[pattern]

    def outer_search(self, pattern: str) -> Dfa | None:
        """The texts in which any reader finds a regex; the object of `search` where readers agree."""
        if pattern not in self._outer:
            outer = self._searched(pattern, regex.parse_outer)
            self._outer[pattern] = self.search(pattern) if outer is _SAME else outer
        return self._outer[pattern]

    def _searched(self, pattern: str, parse: Callable[[str, Budget], Regex | None]) -> Dfa | None:
        """The texts in which a regex is found as `parse` reads it; `_SAME` where that reads nothing of its own.

        What another compilation has made is taken from there, at the price that it had.
        """
        budget, key = self._budget, (pattern, parse, self._budget.limits)
        made = _MADE.get(key)
        if made is not None:
            for limit, amount in made[1]:
                budget.spend(limit, amount)
            return made[0]
        before = budget.used()
        tree = parse(pattern, budget)
        found = _SAME if tree is None else automata.from_regex(regex.searched(tree), budget)
        price = tuple((limit, now - before[limit]) for limit, now in budget.used().items() if now > before[limit])
        _MADE.put(key, (found, price), 1 + sum(map(len, found.edges)) if found is not None else 1)
        return found

    def of(self, shape: String) -> Dfa | None:
        """What satisfies all of a shape but its upper length, for every reader; None where that is nothing.

        An upper bound is not in the automaton: it is a register at run time, and the caller compares it with `shortest()`.
        Formats of `not_formats` must be in `formats.NEGATABLE`.
        """
        key = shape if shape.most is None else replace(shape, most=None)
        if key not in self._shapes:
            self._shapes[key] = self._build(key)
        return self._shapes[key]

    def accepts_inner(self, value: str, shape: String) -> bool:
        """Whether every reader says that a text has a shape. Cheaper than `of` where that is not made yet."""
        if not shape.least <= len(value) or (shape.most is not None and len(value) > shape.most) or value in shape.without:
            return False
        wanted = [self.search(pattern) for pattern in shape.patterns] + [formats.inner(name) for name in shape.formats]
        unwanted = [self.outer_search(pattern) for pattern in shape.not_patterns] + [
            formats.outer(name) for name in shape.not_formats]
        return (all(dfa is not None and dfa.accepts(value) for dfa in wanted)
                and not any(dfa is not None and dfa.accepts(value) for dfa in unwanted))

    def _build(self, shape: String) -> Dfa | None:
        found: Dfa | None = automata.ANY_TEXT
        parts = [self.search(pattern) for pattern in shape.patterns] + [formats.inner(name) for name in shape.formats]
        for part in sorted(parts, key=lambda dfa: 0 if dfa is None else len(dfa.edges)):
            found = None if found is None or part is None else automata.intersection(found, part, self._budget)
        excluded = [self.outer_search(pattern) for pattern in shape.not_patterns] + [
            formats.outer(name) for name in shape.not_formats]
        if shape.without:
            excluded.append(automata.from_words(sorted(shape.without)))
        for part in excluded:
            found = None if found is None else automata.difference(found, part, self._budget)
        if len(parts) + len(excluded) > 1:
            found = automata.minimised(found, self._budget)
        return None if found is None else automata.at_least(found, shape.least, self._budget)
