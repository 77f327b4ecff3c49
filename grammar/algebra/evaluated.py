"""`unevaluatedProperties` and `unevaluatedItems`: what the subschemas in the same place have looked at, case by case.

Which members count as evaluated depends on which branches of `anyOf`, `oneOf`, `if` and the like hold. Every *case* says: if
these keys hold too, then at least these members are evaluated. What a case evaluates only grows with what holds, so a value is
valid exactly if in some case that holds the members outside have the schema of `unevaluated...`. A case that names fewer
members is never wrong, only weaker; so branches that evaluate nothing need no case.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from grammar.algebra.shapes import Array, Object, Rest
from grammar.algebra.terms import Terms
from grammar.budget import Budget
from grammar.schema.document import ANYTHING, Document, Key


@dataclass(frozen=True, slots=True)
class Case:
    """Where `key` holds, these are evaluated: members of some names, or with a name in which a pattern is found; the first
    `prefix` items; items that satisfy one of `contained`; or with `all` whatever there is."""

    key: Key = ANYTHING
    names: frozenset[str] = frozenset()
    patterns: frozenset[str] = frozenset()
    prefix: int = 0
    contained: frozenset[Key] = frozenset()
    all: bool = False

    def evaluates_as_much(self, other: Case) -> bool:
        """Whether all that the other case names is evaluated here too."""
        return self.all or (not other.all and self.names >= other.names and self.patterns >= other.patterns
                            and self.prefix >= other.prefix and self.contained >= other.contained)


_NO_CASE = Case()


class Evaluated:
    """The cases of schemas, for objects or for arrays."""

    def __init__(self, document: Document, terms: Terms, budget: Budget) -> None:
        self._document, self._terms, self._budget = document, terms, budget
        self._open: list[tuple[int, bool]] = []
        self._known: dict[tuple[int, bool], tuple[Case, ...]] = {}

    def clause(self, schema: dict[str, Any], pointer: str, keyword: str) -> tuple[Key, ...]:
        """What `keyword` asks for in a schema: one of these keys."""
        rest = {name: value for name, value in schema.items() if name != keyword}
        inside = self._document.key(schema[keyword], f"{pointer}/{keyword}")
        if not inside:
            return (ANYTHING,)
        of_objects = keyword == "unevaluatedProperties"
        cases = self._of_schema(rest, pointer, of_objects)
        return tuple(self._terms.both(case.key, self._outside(case, inside, of_objects)) for case in cases)

    def _outside(self, case: Case, inside: Key, of_objects: bool) -> Key:
        """The key of the values whose members outside a case satisfy `inside`."""
        if case.all:
            return ANYTHING
        if of_objects:
            names = tuple((name, ANYTHING) for name in sorted(case.names))
            patterns = tuple((pattern, ANYTHING) for pattern in sorted(case.patterns))
            return self._terms.only(Object(names, rests=(Rest(patterns, inside),)))
        items = self._terms.any_of((inside, *sorted(case.contained)))
        return self._terms.only(Array((ANYTHING,) * case.prefix, items)) if items else ANYTHING

    def _of_key(self, key: Key, of_objects: bool) -> tuple[Case, ...]:
        cases: tuple[Case, ...] = (_NO_CASE,)
        for number in key:
            cases = self._product(cases, self._of_part(number, of_objects))
        return cases

    def _of_part(self, number: int, of_objects: bool) -> tuple[Case, ...]:
        part = self._document.parts[number]
        if part.kind != "schema" or isinstance(part.value, bool) or (number, of_objects) in self._open:
            return (_NO_CASE,)
        if (number, of_objects) not in self._known:
            self._open.append((number, of_objects))
            self._budget.check("nesting_of_combinators", len(self._open))
            self._known[number, of_objects] = self._of_schema(part.value, part.pointer, of_objects)
            self._open.pop()
        return self._known[number, of_objects]

    def _of_schema(self, schema: dict[str, Any], pointer: str, of_objects: bool) -> tuple[Case, ...]:
        cases: tuple[Case, ...] = (self._own_case(schema, pointer, of_objects),)
        for options in self._applicators(schema, pointer, of_objects):
            cases = self._product(cases, options)
        return cases

    def _own_case(self, schema: dict[str, Any], pointer: str, of_objects: bool) -> Case:
        if of_objects:
            others = [schema[word] for word in ("additionalProperties", "unevaluatedProperties") if word in schema]
            return Case(names=frozenset(schema.get("properties", ())), patterns=frozenset(schema.get("patternProperties", ())),
                        all=any(self._document.schemas_evaluate or isinstance(value, bool) for value in others))
        contained: frozenset[Key] = frozenset()
        if "contains" in schema:
            contained = frozenset((self._document.key(schema["contains"], f"{pointer}/contains"),))
        return Case(prefix=len(schema.get("prefixItems", ())), contained=contained,
                    all="items" in schema or "unevaluatedItems" in schema)

    def _applicators(self, schema: dict[str, Any], pointer: str, of_objects: bool) -> Iterable[tuple[Case, ...]]:
        """For each applicator its cases; where it has several, one of them holds."""
        key, both = self._document.key, self._terms.both
        if "$ref" in schema:
            yield self._of_key(key(schema["$ref"].view, pointer), of_objects)
        for n, branch in enumerate(schema.get("allOf", ())):
            yield self._of_key(key(branch, f"{pointer}/allOf/{n}"), of_objects)
        for n, branch in enumerate(schema.get("anyOf", ())):
            yield (_NO_CASE, *self._if_holds(key(branch, f"{pointer}/anyOf/{n}"), of_objects))
        if "oneOf" in schema:
            branches = [key(branch, f"{pointer}/oneOf/{n}") for n, branch in enumerate(schema["oneOf"])]
            yield (_NO_CASE, *(case for branch in branches for case in self._if_holds(branch, of_objects)))
        if "if" in schema:
            condition = key(schema["if"], f"{pointer}/if")
            then, otherwise = (key(schema.get(word, True), f"{pointer}/{word}") for word in ("then", "else"))
            without = self._terms.negated(condition)
            yield (_NO_CASE, *self._if_holds(both(condition, then), of_objects),
                   *(Case(both(without, case.key), case.names, case.patterns, case.prefix, case.contained, case.all)
                     for case in self._if_holds(otherwise, of_objects)))
        if of_objects:
            for name, item in schema.get("dependentSchemas", {}).items():
                there = self._terms.only(Object(required=(name,)))
                yield (_NO_CASE, *self._if_holds(both(there, key(item, f"{pointer}/dependentSchemas/{name}")), of_objects))

    def _if_holds(self, key: Key, of_objects: bool) -> Iterable[Case]:
        """The cases of a branch that may hold or not: where it evaluates nothing, there is none."""
        for case in self._of_key(key, of_objects):
            if not _NO_CASE.evaluates_as_much(case):
                yield Case(self._terms.both(key, case.key), case.names, case.patterns, case.prefix, case.contained, case.all)

    def _product(self, left: tuple[Case, ...], right: tuple[Case, ...]) -> tuple[Case, ...]:
        """Every pair of cases together, less those that another one covers."""
        if right == (_NO_CASE,):
            return left
        self._budget.spend("shapes", len(left) * len(right))
        found = dict.fromkeys(self._joined(here, there) for here in left for there in right)
        cases = [case for case in found if case.key != self._terms.nothing]
        kept: list[Case] = []
        for case in cases:
            self._budget.spend("shapes", 1 + len(kept) // 8)
            if not any(self._covers(other, case) for other in kept):
                kept = [other for other in kept if not self._covers(case, other)]
                kept.append(case)
        return tuple(kept)

    def _covers(self, wider: Case, case: Case) -> bool:
        return self._terms.implies(case.key, wider.key) and wider.evaluates_as_much(case)

    def _joined(self, left: Case, right: Case) -> Case:
        if left.all or right.all:
            return Case(self._terms.both(left.key, right.key), all=True)
        return Case(self._terms.both(left.key, right.key), left.names | right.names, left.patterns | right.patterns,
                    max(left.prefix, right.prefix), left.contained | right.contained)
