"""What a place in a container may do for the container's obligations.

A place (a declared name, an undeclared one, a position of an array) may serve some of the obligations, by a value that
satisfies more than the place itself asks for. Each set of obligations that it can serve is one *choice*, with its own key. The
analysis of emptiness and the machine look at the same choices.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from itertools import combinations

from grammar.algebra.languages import MOST_WORDS, Languages
from grammar.algebra.shapes import ANY_TEXT, Array, Object, Rest, SomeItem, SomeMember, String, StringSet
from grammar.algebra.terms import Terms
from grammar.budget import Budget
from grammar.schema.document import ANYTHING, Key


@dataclass(frozen=True, slots=True)
class Choice:
    """A value in `key` serves the obligations whose bits are in `serves`: bit n for number n of the container's `some`."""

    serves: int
    key: Key


@dataclass(frozen=True, slots=True)
class Extra:
    """An undeclared name with a shape of `names` (declared names that have it are none) may have a value in `key`, and then
    serves some obligations. Several extras may have names in common."""

    names: String | StringSet
    serves: int
    key: Key


class Choices:
    """The choices of settled containers. Raises GrammarTooLarge where a place has too many."""

    def __init__(self, terms: Terms, languages: Languages, budget: Budget) -> None:
        self._terms, self._languages, self._budget = terms, languages, budget
        self._extras: dict[Object, tuple[Extra, ...]] = {}

    def member(self, shape: Object, name: str, base: Key) -> tuple[Choice, ...]:
        """The choices of a declared name, whose own key is `base`."""
        if not shape.some:
            return () if base == self._terms.nothing else (Choice(0, base),)
        serving = [(1 << n, key) for n, some in enumerate(shape.some) for other, key in some.named if other == name]
        return self._choices(base, serving, ())

    def item(self, shape: Array, place: int) -> tuple[Choice, ...]:
        """The choices of position `place`; the one behind the prefix stands for all that follow."""
        base = shape.prefix[place] if place < len(shape.prefix) else shape.items
        if not shape.some:
            return () if base == self._terms.nothing else (Choice(0, base),)
        serving, bounded = [], []
        for n, some in enumerate(shape.some):
            key = some.prefix[place] if place < len(some.prefix) else some.items
            if key is not None:
                serving.append((1 << n, key))
                if some.most is not None:
                    bounded.append((1 << n, self._terms.negated(key)))
        return self._choices(base, serving, bounded)

    def extras(self, shape: Object) -> tuple[Extra, ...]:
        """The choices of undeclared names; none where there can be no such name."""
        if not shape.some and not any(rest.patterns for rest in shape.rests) and shape.names == (ANY_TEXT,):
            return () if shape.additional == self._terms.nothing else (Extra(ANY_TEXT, 0, shape.additional),)
        found = self._extras.get(shape)
        if found is None:
            declared = {name for name, _ in shape.properties}
            extras = self._serving(self._classes(shape), shape.some)
            found = tuple(extra for extra in extras if not self._used_up(extra, declared))
            self._extras[shape] = found
        return found

    def served_by_extras(self, some: SomeMember, shape: Object) -> set[tuple[String, Key]]:
        """Which entries of an obligation's `others` some undeclared name can serve."""
        if not some.others:
            return set()
        bare = replace(shape, some=())
        classes = [(extra.names, extra.key) for extra in self.extras(bare)]
        return {(test, key) for test, key in some.others if any(
            self._terms.both(base, key) != self._terms.nothing and self._narrowed(names, test) is not None
            for names, base in classes)}

    def few_words(self, shape: Object) -> list[str]:
        """The undeclared names of those choices that have few."""
        declared = {name for name, _ in shape.properties}
        found: dict[str, None] = {}
        for extra in self.extras(shape):
            for word in self._languages.words(extra.names, MOST_WORDS + len(declared)) or ():
                if word not in declared:
                    found[word] = None
        return list(found) if len(found) <= MOST_WORDS else []

    def meet_names(self, left: String | StringSet, right: String | StringSet) -> String | StringSet | None:
        """The names with both shapes, or None."""
        if isinstance(left, StringSet):
            words = tuple(word for word in left.values if self._languages.matches(word, right))
            return StringSet(words) if words else None
        return self.meet_names(right, left) if isinstance(right, StringSet) else self._narrowed(left, right)

    # --- choices of one place

    def _choices(self, base: Key, serving: list[tuple[int, Key]], bounded: Iterable[tuple[int, Key]]) -> tuple[Choice, ...]:
        """All sets of obligations: those whose keys say nothing new are always served, and equal keys are served together."""
        always, groups = 0, dict[Key, int]()
        for bit, key in serving:
            if self._terms.implies(base, key):
                always |= bit
            elif self._terms.both(base, key) != self._terms.nothing:
                groups[key] = groups.get(key, 0) | bit
        self._budget.check("obligations_of_a_place", len(groups))
        avoided = dict(bounded)
        choices = []
        for n in range(len(groups) + 1):
            for chosen in combinations(groups, n):
                serves = always
                for key in chosen:
                    serves |= groups[key]
                key = self._terms.both(base, *chosen, *(other for bit, other in avoided.items() if not bit & serves))
                if key != self._terms.nothing:
                    choices.append(Choice(serves, key))
        return tuple(choices)

    # --- undeclared names

    def _classes(self, shape: Object) -> list[tuple[String | StringSet, Key]]:
        """The undeclared names, cut into classes of one key each."""
        classes: list[tuple[String | StringSet, Key]] = [(names, ANYTHING) for names in shape.names]
        for rest in shape.rests:
            classes = [part for names, key in classes for part in self._split(names, key, rest)]
        return classes

    def _split(self, names: String | StringSet, key: Key, rest: Rest) -> list[tuple[String | StringSet, Key]]:
        """One class cut by which patterns of `rest` are found. Names on which readers differ are in none of them."""
        nothing, both = self._terms.nothing, self._terms.both
        parts: list[tuple[String | StringSet, Key, bool]] = [(names, key, False)]
        for pattern, extra in rest.patterns:
            self._budget.spend("shapes", 2 * len(parts))
            cut: list[tuple[String | StringSet, Key, bool]] = []
            for some, base, found in parts:
                joined = both(base, extra)
                inside = None if joined == nothing else self._narrowed(some, String(patterns=(pattern,)), sure=not found)
                if inside is not None:
                    cut.append((inside, joined, True))
                outside = self._narrowed(some, String(not_patterns=(pattern,)), sure=True)
                if outside is not None:
                    cut.append((outside, base, found))
            parts = cut
        whole = ((some, base if found else both(base, rest.additional)) for some, base, found in parts)
        return [(some, base) for some, base in whole if base != nothing and self._has_words(some)]

    def _narrowed(self, names: String | StringSet, test: String, sure: bool = False) -> String | StringSet | None:
        """The names that pass a test too; with `sure`, whether there are any is not looked at."""
        if isinstance(names, StringSet):
            words = tuple(word for word in names.values if self._languages.matches(word, test))
            return StringSet(words) if words else None
        if test == ANY_TEXT:
            return names
        met = names.meet(test)
        return met if sure or self._has_words(met) else None

    def _has_words(self, names: String | StringSet) -> bool:
        return isinstance(names, StringSet) or self._languages.shortest(names) is not None

    def _serving(self, classes: list[tuple[String | StringSet, Key]], some: tuple[SomeMember, ...]) -> list[Extra]:
        """Each class with each set of obligations that its names can serve."""
        found = {(names, key): 0 for names, key in classes}
        for n, one in enumerate(some):
            for (names, key), serves in list(found.items()):
                for test, more in one.others:
                    joined = self._terms.both(key, more)
                    narrower = None if joined == self._terms.nothing else self._narrowed(names, test)
                    if narrower is not None:
                        self._budget.spend("shapes")
                        found[narrower, joined] = found.get((narrower, joined), 0) | serves | 1 << n
        self._budget.check("choices_of_undeclared_names", len(found))
        return [Extra(names, serves, key) for (names, key), serves in found.items()]

    def _used_up(self, extra: Extra, declared: Collection[str]) -> bool:
        words = self._languages.words(extra.names, MOST_WORDS + len(declared))
        return words is not None and all(word in declared for word in words)


def item_key(some: SomeItem, place: int) -> Key | None:
    """What an item at `place` must satisfy to serve an obligation; None where it cannot."""
    return some.prefix[place] if place < len(some.prefix) else some.items
