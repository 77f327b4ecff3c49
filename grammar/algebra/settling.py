"""The form in which objects are settled before anything is made of them.

A settled object declares every name that it mentions, and every undeclared name that is one of a few; its obligations are those
that are really open; and its counts say no more than its members do. Where the presence of one member decides about several
obligations, as a discriminator does, there are two objects: one with the member, and one without it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from grammar.algebra.choices import Choices
from grammar.algebra.disjoint import Disjointness
from grammar.algebra.languages import MOST_WORDS, Languages
from grammar.algebra.objects import Objects
from grammar.algebra.shapes import ANY_TEXT, Object, Rest, SomeMember, StringSet
from grammar.algebra.terms import Terms
from grammar.budget import Budget
from grammar.schema.document import ANYTHING, Key

_SATISFIED = SomeMember()    # an obligation that every value of the object meets
_DEEPEST_SPLIT = 3
_DEEPEST_CHOICE = 8
_FEW = 3                     # obligations that one place can have as they are


class Settling:
    """Settles the objects of one document."""

    def __init__(self, terms: Terms, languages: Languages, choices: Choices, objects: Objects, disjointness: Disjointness,
                 budget: Budget) -> None:
        self._terms, self._languages, self._choices, self._budget = terms, languages, choices, budget
        self._objects, self._disjointness = objects, disjointness
        self._closed = Rest((), terms.nothing)

    def settled(self, shape: Object, depth: int = 0) -> tuple[Object, ...]:
        """The settled objects that have the values of `shape` together; none where it plainly has no value.

        Raises GrammarTooLarge for more than six obligations.
        """
        shape = self._with_all_names(shape)
        if shape.plain:
            return (shape,)
        while True:
            reduced = self._reduced(shape)
            if reduced is None:
                return ()
            if reduced == shape:
                break
            shape = reduced
        cases = self._cases(shape) if depth < _DEEPEST_SPLIT and len(shape.some) > 1 else []
        if not cases and depth < _DEEPEST_CHOICE and self._is_crowded(shape):
            cases = self._served_cases(shape)
        if cases:
            self._budget.spend("shapes", len(cases))
            return tuple(settled for case in cases for settled in self.settled(case, depth + 1))
        self._budget.check("obligations_of_an_object", len(shape.some))
        return (shape,)

    # --- one member that decides

    def _cases(self, shape: Object) -> list[Object]:
        """The shape as several ones, where a member decides about obligations: by being there, or by one of a few values."""
        own, required = dict(shape.properties), set(shape.required)
        served: dict[str, list[Key]] = {}
        for some in shape.some:
            for name, key in some.named:
                served.setdefault(name, []).append(key)
        best, deciding, most = "", [], 1
        for name, keys in served.items():
            met = sum(1 for key in keys if name not in required and self._implies(own[name], key))
            if met > most:
                best, deciding, most = name, [own[name]], met
            elif len(keys) > max(most, _FEW) and (values := self._apart_values(own[name], keys)):
                best, deciding, most = name, values, len(keys)
        cases = [self._with_member(shape, best, key) for key in deciding]
        return cases if not cases or best in required else [*cases, self._without_member(shape, best)]

    def _is_crowded(self, shape: Object) -> bool:
        """Whether there are more obligations than the object, or one of its members, can have."""
        limits, own = self._budget.limits, dict(shape.properties)
        asked: dict[str, set[Key]] = {}
        for some in shape.some:
            for name, key in some.named:
                if not self._terms.implies(own[name], key):
                    asked.setdefault(name, set()).add(key)
        return (len(shape.some) > limits.obligations_of_an_object
                or any(len(keys) > limits.obligations_of_a_place for keys in asked.values()))

    def _served_cases(self, shape: Object) -> list[Object]:
        """The shape as one for each way to meet the obligation that has the fewest; none if all have countless ones."""
        few = [some for some in shape.some if not some.others]
        if not few:
            return []
        own = dict(shape.properties)
        some = min(few, key=lambda some: len(some.named) + len(some.absent))
        cases = [self._with_member(shape, name, self._terms.both(own[name], key)) for name, key in some.named]
        cases += [self._without_member(shape, name) for name in some.absent]
        less = tuple(other for other in shape.some if other is not some)
        return [replace(case, some=less) for case in cases]

    def _apart_values(self, base: Key, keys: list[Key]) -> list[Key]:
        """Keys that cut `base` in pieces, for each of which it is plain which of `keys` hold; none if that is not so plain.

        That is where each of them is the negation of something, and these are apart: at most one of those can hold.
        """
        excluded = [self._terms.negated(key) for key in dict.fromkeys(keys)]
        if any(len(key) != 1 or not self._disjointness.implies(key, self._terms.negated(other))
               for n, key in enumerate(excluded) for other in excluded[:n]):
            return []
        pieces = [self._terms.both(base, key) for key in excluded]
        return [self._terms.both(base, *dict.fromkeys(keys)), *(key for key in pieces if key != self._terms.nothing)]

    def _with_member(self, shape: Object, name: str, key: Key) -> Object:
        properties = tuple((other, key if other == name else base) for other, base in shape.properties)
        return replace(shape, properties=properties, required=tuple(dict.fromkeys((*shape.required, name))))

    def _without_member(self, shape: Object, name: str) -> Object:
        nothing = self._terms.nothing
        return replace(shape, properties=tuple((other, nothing if other == name else key) for other, key in shape.properties))

    def _implies(self, base: Key, key: Key) -> bool:
        """Whether each value of one key satisfies another one, as far as that is plain."""
        return self._terms.implies(base, key) or self._disjointness.implies(base, key)

    # --- names

    def _with_all_names(self, shape: Object) -> Object:
        """Declare the names that are mentioned, and undeclared ones that are few; tell the obligations of them."""
        mentioned = [*shape.required, *(name for some in shape.some for name, _ in some.named),
                     *(name for some in shape.some for name in some.absent)]
        if mentioned:
            shape = self._declaring(shape, mentioned)
        listed = [word for test in shape.names if isinstance(test, StringSet) and len(test.values) <= MOST_WORDS
                  for word in test.values]
        if listed:
            shape = self._declaring(shape, listed, loose=True)
        if any(rest.patterns for rest in shape.rests) or shape.names != _ANY_NAME or any(some.others for some in shape.some):
            while words := self._choices.few_words(shape):
                shape = self._declaring(shape, words, loose=True)
        if not shape.some:
            return shape
        return replace(shape, some=tuple(self._knowing(some, shape) for some in shape.some))

    def _declaring(self, shape: Object, names: list[str], loose: bool = False) -> Object:
        declared = {name for name, _ in shape.properties}
        fresh = [name for name in dict.fromkeys(names) if name not in declared]
        if not fresh:
            return shape
        properties = *shape.properties, *((name, self._objects.undeclared(shape, name)) for name in fresh)
        return replace(shape, properties=properties, loose=(*shape.loose, *fresh) if loose else shape.loose)

    def _knowing(self, some: SomeMember, shape: Object) -> SomeMember:
        """The obligation with a key for each declared name that its tests apply to."""
        if not some.others:
            return some
        named = dict(some.named)
        for name, _ in shape.properties:
            if name not in named:
                named[name] = self._terms.any_of(key for test, key in some.others if self._languages.matches(name, test))
        return replace(some, named=tuple(named.items()))

    # --- obligations and counts

    def _reduced(self, shape: Object) -> Object | None:
        """One round of simplification; the same shape where there is none left, None where there is no value."""
        properties, required = dict(shape.properties), dict.fromkeys(shape.required)
        least = shape.least
        some: dict[SomeMember, None] = {}
        for one in shape.some:
            one = self._open(one, properties, required, shape)
            servers = len(one.named) + len(one.others) + len(one.absent)
            if one is _SATISFIED:
                continue
            if servers == 0:
                return None
            if self._asks_for_any(one, properties, shape):
                least = max(least, 1)
            elif not one.others and len(one.named) == 1 and one.absent == (one.named[0][0],):
                properties[one.absent[0]] = self._terms.both(properties[one.absent[0]], one.named[0][1])
            elif servers > 1 or one.others:
                some[one] = None
            elif one.named:
                (name, key), = one.named
                properties[name] = self._terms.both(properties[name], key)
                required[name] = None
            else:
                properties[one.absent[0]] = self._terms.nothing
        kept = tuple(one for one in some if not any(other != one and self._asks_more(other, one) for other in some))
        changed = replace(shape, properties=tuple(properties.items()), required=tuple(required), some=kept, least=least)
        return self._counted(changed)

    def _open(self, some: SomeMember, properties: dict[str, Key], required: Collection[str], shape: Object) -> SomeMember:
        """The obligation with the servers that it may still have; `_SATISFIED` where it is met in any case."""
        nothing, both = self._terms.nothing, self._terms.both
        named = []
        for name, key in some.named:
            base = properties[name]
            if both(base, key) == nothing:
                continue
            if (name in required or name in some.absent) and self._implies(base, key):
                return _SATISFIED
            named.append((name, key))
        if any(properties[name] == nothing for name in some.absent):
            return _SATISFIED
        absent = tuple(name for name in some.absent if name not in required)
        served = self._choices.served_by_extras(some, shape)
        others = tuple(other for other in some.others if other in served)
        return SomeMember(tuple(named), others, absent)

    def _asks_for_any(self, some: SomeMember, properties: dict[str, Key], shape: Object) -> bool:
        """Whether an obligation is met by any member whatever."""
        named = dict(some.named)
        return (not some.absent
                and all(key == self._terms.nothing or (name in named and self._terms.implies(key, named[name]))
                        for name, key in properties.items())
                and ((ANY_TEXT, ANYTHING) in some.others or not self._choices.extras(shape)))

    def _asks_more(self, stronger: SomeMember, weaker: SomeMember) -> bool:
        """Whether each server of one obligation serves the other."""
        named = dict(weaker.named)
        return (set(stronger.absent) <= set(weaker.absent) and set(stronger.others) <= set(weaker.others)
                and all(name in named and self._terms.implies(key, named[name]) for name, key in stronger.named))

    def _counted(self, shape: Object) -> Object | None:
        """The object with its counts made as plain as its members allow."""
        nothing = self._terms.nothing
        possible = [name for name, key in shape.properties if key != nothing]
        if len(set(possible).intersection(shape.required)) < len(shape.required):
            return None
        least, most, required = shape.least, shape.most, shape.required
        if (least > len(required) or most is not None) and not self._choices.extras(shape):
            if least > len(possible):
                return None
            if least == len(possible):
                required = tuple(dict.fromkeys((*required, *possible)))
            most = None if most is None or most >= len(possible) else most
        if most is not None:
            if most < max(least, len(required)):
                return None
            if most == len(required):
                needed = set(required)
                properties = tuple((name, key if name in needed else nothing) for name, key in shape.properties)
                return replace(shape, properties=properties, rests=(self._closed,), least=0, most=None, names=_ANY_NAME)
        least = 0 if least <= len(required) else least
        if (least, most, required) == (shape.least, shape.most, shape.required):
            return shape
        return replace(shape, required=required, least=least, most=most)


_ANY_NAME = (ANY_TEXT,)
