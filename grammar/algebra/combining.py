"""Schemas as unions of shapes: conjunction, union and negation of parts, one JSON type at a time.

Per type, because most conjunctions are empty in all types but one, and because what is refused is refused only where it can be
met. A part is a conjunction of its own keywords and of *clauses*, each a union of keys; its negation is the union of the
negations of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from grammar.algebra.disjoint import Disjointness
from grammar.algebra.enforcement import Enforcement
from grammar.algebra.evaluated import Evaluated
from grammar.algebra.inclusion import without_included
from grammar.algebra.languages import Languages
from grammar.algebra.meeting import Meeting
from grammar.algebra.merging import merged
from grammar.algebra.negation import negated_shape
from grammar.algebra.objects import Objects
from grammar.algebra.own import Names, OwnKeywords
from grammar.algebra.shapes import ANY_SHAPES, TYPE_OF, NumberSet, Object, Shape, String, StringSet
from grammar.algebra.terms import ANY_OF, NEGATED, ONLY, Terms
from grammar.budget import Budget
from grammar.errors import Circular, GrammarTooLarge, PatternError, SchemaError
from grammar.schema.document import ANYTHING, Document, Key, Part
from grammar.schema.keywords import escaped

Union = tuple[Shape, ...]
Clause = tuple[Key, ...]    # of these keys, one holds


class Combining:
    """The shapes of keys. Raises SchemaError, with the pointer of the part to blame."""

    def __init__(self, document: Document, terms: Terms, languages: Languages, objects: Objects, budget: Budget,
                 enforcement: Enforcement) -> None:
        self._document, self._terms, self._budget = document, terms, budget
        self._meeting = Meeting(terms, languages, objects)
        self._own = OwnKeywords(document, terms, languages, self._meeting, objects, enforcement, self._names_of)
        self._evaluated = Evaluated(document, terms, budget)
        self.disjointness = Disjointness(document, self, self._meeting, objects, terms, budget)
        self._known: dict[tuple[Key, str], Union] = {}
        self._clauses: dict[int, list[Clause]] = {}
        self._implications: dict[Clause, Clause] = {}   # "if" without "else" -> "then", or what fails "if"
        self._acyclic: set[int] = set()
        self._open: list[tuple[int, str]] = []      # parts being worked on, outermost first

    def shapes(self, key: Key) -> Union:
        """All shapes of a key, not settled."""
        if len(key) == 1 and key == self._terms.nothing:
            return ()
        return tuple(shape for type_name in self.types(key) for shape in self.of_type(key, type_name))

    def types(self, key: Key) -> list[str]:
        """The JSON types that a key plainly leaves."""
        types = list(ANY_SHAPES)
        for number in key:
            part = self._document.parts[number]
            if part.kind in ("schema", "constant"):
                named = self._own.types(number)
                types = [name for name in types if name in named]
        return types

    def of_type(self, key: Key, type_name: str) -> Union:
        """The shapes of a key that have one type."""
        if not key:
            return _ANY[type_name]
        found = self._known.get((key, type_name))
        if found is None:
            found = self._part(key[0], type_name) if len(key) == 1 else self._by_prefixes(key, type_name)
            self._known[key, type_name] = found
        return found

    def _by_prefixes(self, key: Key, type_name: str) -> Union:
        """The conjunction of several parts. What begins alike, as conjunctions that grow part by part do, is worked out once."""
        n = next((n for n in range(len(key) - 1, 1, -1) if (key[:n], type_name) in self._known), 1)
        found = self.of_type(key[:n], type_name)
        for m in range(n, len(key)):
            if found:
                found = self._conjunction(found, self.of_type((key[m],), type_name))
            self._known[key[:m + 1], type_name] = found
        return found

    def check_no_cycle(self, key: Key) -> None:
        """Raise Circular where a part leads back to itself with no property or item between, whatever its type."""
        stack = [(number, iter(self._in_place(number))) for number in key if number not in self._acyclic]
        path = {number for number, _ in stack[-1:]}
        while stack:
            number, inside = stack[-1]
            path.add(number)
            child = next((child for child in inside if child not in self._acyclic), None)
            if child is None:
                self._acyclic.add(number)
                path.discard(number)
                stack.pop()
            elif child in path:
                raise Circular(_CIRCULAR, keyword="$ref", pointer=self._document.parts[child].pointer)
            else:
                self._budget.check("nesting_of_combinators", len(path))
                stack.append((child, iter(self._in_place(child))))

    def _in_place(self, number: int) -> Iterable[int]:
        """The parts that a schema object asks the same value to satisfy, or not to satisfy."""
        part = self._document.parts[number]
        if part.kind != "schema" or isinstance(part.value, bool) or _COMBINATORS.isdisjoint(part.value):
            return
        schema, pointer, key = part.value, part.pointer, self._document.key
        if "$ref" in schema:
            yield from key(schema["$ref"].view, pointer)
        for keyword in ("allOf", "anyOf", "oneOf"):
            for branch in self._branches(part, keyword):
                yield from branch
        for keyword in ("not", "if", "then", "else"):
            if keyword in schema:
                yield from key(schema[keyword], f"{pointer}/{keyword}")
        for name, item in schema.get("dependentSchemas", {}).items():
            yield from key(item, f"{pointer}/dependentSchemas/{escaped(name)}")

    def _names_of(self, key: Key) -> Names:
        names = self.of_type(key, "string")
        return tuple(shape for shape in names if isinstance(shape, String | StringSet))

    def _part(self, number: int, type_name: str) -> Union:
        part = self._document.parts[number]
        if (number, type_name) in self._open:
            raise Circular(_CIRCULAR, keyword="$ref", pointer=part.pointer)
        self._open.append((number, type_name))
        try:
            self._budget.check("nesting_of_combinators", len(self._open))
            return self._part_afresh(number, part, type_name)
        except GrammarTooLarge as error:
            raise error.at(part.pointer, _keyword_of_texts(part) if error.limit in _LIMITS_OF_TEXTS else None) from None
        except PatternError as error:
            raise SchemaError(str(error), keyword="pattern", pointer=part.pointer) from None
        finally:
            self._open.pop()

    def _part_afresh(self, number: int, part: Part, type_name: str) -> Union:
        match part.kind:
            case "schema":
                return self._schema(number, part, type_name)
            case "constant":
                return self._own.shapes(number, type_name)
            case kind if kind == ANY_OF:
                return self._union(part.value, type_name)
            case kind if kind == NEGATED:
                return self._negated(part.value, type_name)
            case kind if kind == ONLY:
                return (part.value,) if TYPE_OF[type(part.value)] == type_name else _ANY[type_name]
        raise AssertionError(part.kind)

    # --- schemas and their negations

    def _schema(self, number: int, part: Part, type_name: str) -> Union:
        if isinstance(part.value, bool):
            return _ANY[type_name] if part.value else ()
        shapes = self._own.shapes(number, type_name)
        if shapes and not _COMBINATORS.isdisjoint(part.value):
            for clause in self._clauses_of(number, part, type_name):
                if shapes:
                    shapes = self._conjunction(shapes, self._of_clause(clause, type_name, len(shapes)))
            if shapes and "oneOf" in part.value:
                shapes = self._conjunction(shapes, self._one_of(self._branches(part, "oneOf"), type_name))
        return shapes

    def _of_clause(self, clause: Clause, type_name: str, n_met: int) -> Union:
        """The shapes of a clause; of an implication, where it meets many shapes, the one obligation that it may come to."""
        shapes = self._union(clause, type_name)
        if n_met > 1 and len(shapes) > 1 and n_met * len(shapes) > _FEW_PAIRS:
            implication = self._implication(clause)
            obligation = merged(self._union(implication, type_name), self._terms) if implication else None
            if obligation is not None:
                return (obligation,)
        return shapes

    def _implication(self, clause: Clause) -> Clause | None:
        """The clause as an implication, if it is an `if` with `then` alone, here or in a part that is nothing else."""
        if len(clause) == 1 and len(clause[0]) == 1:
            part = self._document.parts[clause[0][0]]
            if part.kind == "schema" and not isinstance(part.value, bool) and part.value.keys() == {"if", "then"}:
                clause = self._clauses_of(clause[0][0], part, "")[0]
        return self._implications.get(clause)

    def _negated(self, number: int, type_name: str) -> Union:
        """What does not satisfy a part: it fails its own keywords, or one of its clauses."""
        part = self._document.parts[number]
        if part.kind == ONLY:
            return negated_shape(part.value, self._terms) if TYPE_OF[type(part.value)] == type_name else ()
        if isinstance(part.value, bool) and part.kind == "schema":
            return () if part.value else _ANY[type_name]
        shapes = self._own.negated(number, type_name)
        if shapes == _ANY[type_name] or part.kind == "constant" or _COMBINATORS.isdisjoint(part.value):
            return shapes
        alternatives = [shapes]
        for clause in self._clauses_of(number, part, type_name):
            alternatives.append(self.of_type(self._terms.both(*map(self._terms.negated, clause)), type_name))
        if "oneOf" in part.value:
            alternatives.append(self._not_one_of(self._branches(part, "oneOf"), type_name))
        return self._joined(alternatives)

    def _clauses_of(self, number: int, part: Part, type_name: str) -> list[Clause]:
        if number not in self._clauses:
            self._clauses[number] = list(self._general_clauses(part))
        clauses = self._clauses[number]
        keyword = _UNEVALUATED.get(type_name, "")
        if keyword in part.value:
            clauses = [*clauses, self._evaluated.clause(part.value, part.pointer, keyword)]
        return clauses

    def _general_clauses(self, part: Part) -> Iterable[Clause]:
        schema, pointer, key, terms = part.value, part.pointer, self._document.key, self._terms
        if "$ref" in schema:
            yield (key(schema["$ref"].view, pointer),)
        yield from ((branch,) for branch in self._branches(part, "allOf"))
        if "anyOf" in schema:
            yield tuple(self._branches(part, "anyOf"))
        if "not" in schema:
            yield (terms.negated(key(schema["not"], f"{pointer}/not")),)
        if "if" in schema and ("then" in schema or "else" in schema):
            condition = key(schema["if"], f"{pointer}/if")
            then, otherwise = (key(schema.get(word, True), f"{pointer}/{word}") for word in ("then", "else"))
            if then == otherwise:       # then readers need not agree on the condition
                yield (then,)
            else:
                clause = terms.both(condition, then), terms.both(terms.negated(condition), otherwise)
                if not otherwise:
                    self._implications[clause] = then, clause[1]
                yield clause
        for name, wanted in schema.get("dependentRequired", {}).items():
            for other in wanted:
                yield self._absent(name, pointer), terms.only(Object(required=(other,)), pointer)
        for name, item in schema.get("dependentSchemas", {}).items():
            there = terms.only(Object(required=(name,)), pointer)
            yield self._absent(name, pointer), terms.both(there, key(item, f"{pointer}/dependentSchemas/{escaped(name)}"))

    def _absent(self, name: str, pointer: str) -> Key:
        return self._terms.only(Object(properties=((name, self._terms.nothing),)), pointer)

    def _branches(self, part: Part, keyword: str) -> list[Key]:
        return [self._document.key(branch, f"{part.pointer}/{keyword}/{n}")
                for n, branch in enumerate(part.value.get(keyword, ()))]

    # --- oneOf

    def _one_of(self, keys: list[Key], type_name: str) -> Union:
        """Each branch less what it has in common with others; where two are plainly disjoint that is nothing."""
        branches = [self.of_type(key, type_name) for key in keys]
        rivals = self.disjointness.rivals(branches)
        alternatives: list[Union] = []
        for key, shapes, rivals_of in zip(keys, branches, rivals, strict=True):
            for shape, others in zip(shapes, rivals_of, strict=True):
                excluded = [keys[n] for n in others]
                if key not in excluded:
                    less = self._terms.both(ANYTHING, *map(self._terms.negated, excluded))
                    alternatives.append(self._conjunction((shape,), self.of_type(less, type_name)) if excluded else (shape,))
        return self._joined(alternatives)

    def _not_one_of(self, keys: list[Key], type_name: str) -> Union:
        """None of the branches, or two of them."""
        none = self._terms.both(ANYTHING, *map(self._terms.negated, keys))
        alternatives = [self.of_type(none, type_name)]
        for n, key in enumerate(keys):
            for other in keys[:n]:
                there = self.of_type(other, type_name)
                if any(self.disjointness.overlap(shape, there) for shape in self.of_type(key, type_name)):
                    alternatives.append(self.of_type(self._terms.both(other, key), type_name))
        return self._joined(alternatives)

    # --- unions

    def _conjunction(self, left: Union, right: Union) -> Union:
        any_left, any_right = len(left) == 1 and left[0] in _ANY_SHAPES, len(right) == 1 and right[0] in _ANY_SHAPES
        if any_left or any_right:
            return right if any_left else left
        if len(left) > 1 and len(right) > 1 and len(left) * len(right) > _FEW_PAIRS:
            one, other = merged(left, self._terms), merged(right, self._terms)
            left, right = (one,) if one else left, (other,) if other else right
        self._budget.spend("shapes", len(left) * len(right))
        many = len(left) > 1 and len(right) > 1     # then it pays to look closer at what cannot be
        met = [shape for here in left for there in right if (shape := self._meeting.meet(here, there)) is not None
               and not (many and self.disjointness.excludes(here, there))]
        return self._joined([met]) if len(met) > 1 else tuple(met)

    def _union(self, keys: Iterable[Key], type_name: str) -> Union:
        branches = [self.of_type(key, type_name) for key in keys]
        self._budget.spend("shapes", sum(map(len, branches)))
        return branches[0] if len(branches) == 1 else self._joined(branches)

    def _joined(self, branches: Iterable[Iterable[Shape]]) -> Union:
        """All shapes once; sets of strings and of numbers are put together."""
        others: dict[Shape, None] = {}
        strings: dict[str, None] = {}
        values: dict[int | float, None] = {}
        for shape in (shape for shapes in branches for shape in shapes):
            if isinstance(shape, StringSet):
                strings.update(dict.fromkeys(shape.values))
            elif isinstance(shape, NumberSet):
                values.update(dict.fromkeys(shape.values))
            else:
                others[shape] = None
        if strings:
            others[StringSet(tuple(strings))] = None
        if values:
            others[NumberSet(tuple(values))] = None
        return without_included(others, self._terms)


def _keyword_of_texts(part: Part) -> str | None:
    """The keyword of a part for which an automaton has to be made, the most likely one first."""
    if part.kind != "schema" or isinstance(part.value, bool):
        return None
    return next((keyword for keyword in _MADE_OF_TEXTS if keyword in part.value), None)


_MADE_OF_TEXTS = ("pattern", "patternProperties", "format", "propertyNames")
_LIMITS_OF_TEXTS = frozenset({"regex_states", "automaton_states", "automaton_steps"})
_FEW_PAIRS = 8      # of shapes that are combined one by one, though they could be merged
_CIRCULAR = "it leads back to itself with no property or item between"
_ANY: dict[str, Union] = {name: (shape,) for name, shape in ANY_SHAPES.items()}
_ANY_SHAPES: frozenset[Any] = frozenset(ANY_SHAPES.values())
_COMBINATORS = frozenset({"$ref", "allOf", "anyOf", "oneOf", "not", "if", "dependentRequired", "dependentSchemas",
                          "unevaluatedItems", "unevaluatedProperties"})
_UNEVALUATED = {"object": "unevaluatedProperties", "array": "unevaluatedItems"}
