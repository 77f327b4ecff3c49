"""Objects: their conjunction, and what a name of one must satisfy, declared or not."""

from __future__ import annotations

from dataclasses import replace

from grammar.algebra.choices import Choices
from grammar.algebra.languages import Languages
from grammar.algebra.shapes import ANY_TEXT, Object, Rest, String, StringSet, joined, least_bound
from grammar.algebra.terms import Terms
from grammar.budget import Budget
from grammar.schema.document import ANYTHING, Key


class Objects:
    """Conjunction of objects within one document."""

    def __init__(self, terms: Terms, languages: Languages, choices: Choices, budget: Budget) -> None:
        self._terms, self._languages, self._choices, self._budget = terms, languages, choices, budget
        self._closed = Rest((), terms.nothing)
        self._found: dict[tuple[Rest, str], list[Key]] = {}

    def meet(self, left: Object, right: Object) -> Object:
        """The conjunction of two objects, not settled. """
        both = self._terms.both
        here, there = dict(left.properties), dict(right.properties)
        self._budget.spend("members_met", len(here) + len(there) + 1)
        properties = [(name, both(key, there[name] if name in there else self.undeclared(right, name)))
                      for name, key in left.properties]
        properties += [(name, both(self.undeclared(left, name), key)) for name, key in right.properties if name not in here]
        required = joined(left.required, right.required)
        names = left.names
        if right.names != names:
            names = self._meet_names(left.names, right.names)
        return Object(tuple(properties), required, self._meet_rests(left.rests, right.rests), max(left.least, right.least),
                      least_bound(left.most, right.most), joined(left.some, right.some), names)

    def key_of(self, shape: Object, name: str) -> Key:
        """What a member of this name must satisfy, declared or not."""
        for declared, key in shape.properties:
            if declared == name:
                return key
        return self.undeclared(shape, name)

    def with_rests_on_declared(self, shape: Object) -> Object:
        """The object that keywords make: what patterns and the shapes of names ask for holds for declared names too."""
        patterns = tuple(Rest(((pattern, key),)) for rest in shape.rests for pattern, key in rest.patterns)
        properties = []
        for name, key in shape.properties:
            keys = [found for rest in patterns for found in self._in_rest(rest, name)]
            allowed = shape.names == _ANY_NAME or any(self._languages.matches(name, test) for test in shape.names)
            properties.append((name, self._terms.both(key, *keys) if allowed else self._terms.nothing))
        return replace(shape, properties=tuple(properties))

    # --- names

    def undeclared(self, shape: Object, name: str) -> Key:
        """What a member must satisfy whose name is not declared."""
        if shape.names != _ANY_NAME and not any(self._languages.matches(name, test) for test in shape.names):
            return self._terms.nothing
        keys = [key for rest in shape.rests for key in self._in_rest(rest, name)]
        return self._terms.both(*keys) if keys else ANYTHING

    def _in_rest(self, rest: Rest, name: str) -> list[Key]:
        """The keys of a name; where readers differ on whether a pattern is found, those of both readings."""
        if not rest.patterns:
            return [rest.additional]
        if (rest, name) in self._found:
            return self._found[rest, name]
        found = [(self._languages.found(pattern, name), key) for pattern, key in rest.patterns]
        keys = [key for (_, maybe), key in found if maybe]
        if not any(sure for (sure, _), _ in found):
            keys.append(rest.additional)
        self._found[rest, name] = keys
        return keys

    def _meet_names(self, left: tuple[String | StringSet, ...],
                    right: tuple[String | StringSet, ...]) -> tuple[String | StringSet, ...]:
        if right == _ANY_NAME or left == _ANY_NAME:
            return left if right == _ANY_NAME else right
        self._budget.spend("shapes", len(left) * len(right))
        met = (self._choices.meet_names(here, there) for here in left for there in right)
        return tuple(dict.fromkeys(test for test in met if test is not None))

    def _meet_rests(self, left: tuple[Rest, ...], right: tuple[Rest, ...]) -> tuple[Rest, ...]:
        if not left or not right:
            return left or right
        rests = dict.fromkeys(left + right)
        plain = [rest.additional for rest in rests if not rest.patterns]
        joined = self._terms.both(*plain) if plain else ANYTHING
        if joined == self._terms.nothing:
            return (self._closed,)
        return (*([Rest((), joined)] if joined else []), *(rest for rest in rests if rest.patterns))


_ANY_NAME = (ANY_TEXT,)
