"""From normal form to the machine: one rule for each shape, one call list for each key.

What a rule looks like, in the operations of `kernels.pushdown`:

- text: `"` then the states of its automaton. Without patterns that is one state, and both lengths are registers.
- array: `[`, an item, then TAKE at every comma, and DONE at the bracket. The registers count what comes after the first item.
- object: all names are one trie, read character by character. Register a is the first property that may still come, b the next
  required one; KEY at a name's closing quote moves both. Names of no property leave the trie for the state `other`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from grammar import automata, numbers
from grammar.automata import Dfa
from grammar.budget import Budget
from grammar.charset import ALL, complement
from grammar.document import Key
from grammar.errors import GrammarTooLarge
from grammar.normal import NormalForm
from grammar.shapes import Array, Boolean, Null, Number, NumberSet, Object, Shape, String, StringSet
from grammar.tables import Call, Edge, TableBuilder
from kernels.pushdown import (
    ALL_REQUIRED,
    ALL_SEEN,
    ALWAYS,
    ANY_UNSEEN,
    CLOSE,
    DONE,
    JSON_PLAIN,
    JSON_STRING,
    KEY,
    KEY_IN,
    POP,
    RAW,
    TAKE,
    TEXT,
    UNBOUNDED,
    UNSEEN,
    Tables,
)

Operation = tuple[int, int, int]   # what an edge asks of the registers and does to them: op, x, y

MOST_UNORDERED = 62   # properties of an object whose keys may come in any order: bits of a register


@dataclass(frozen=True, slots=True)
class Style:
    """How answers are written: `spaces` allows the bounded whitespace, `escapes` every spelling of a string that JSON has
    (else each character has one), `ordered` fixes the order of properties."""

    spaces: bool = True
    escapes: bool = True
    ordered: bool = True

    @property
    def string(self) -> int:
        """How the states of a string read."""
        return JSON_STRING if self.escapes else JSON_PLAIN


def emit_text(dfa: Dfa, budget: Budget) -> Tables:
    """The machine of plain texts."""
    builder = TableBuilder(budget)
    return builder.build(builder.text(dfa, TEXT))


def emit_json(form: NormalForm, style: Style, budget: Budget) -> Tables:
    """The machine of JSON texts in a normal form."""
    return _Emitter(form, style, budget).emit()


class _Emitter:
    def __init__(self, form: NormalForm, style: Style, budget: Budget) -> None:
        self._form, self._style, self._budget = form, style, budget
        self._tables = TableBuilder(budget)
        self._lists: dict[Key, int] = {}
        self._queue: list[Key] = []
        self._rules: dict[object, int] = {}

    def emit(self) -> Tables:
        root = self._tables.state(calls=self._calls(self._form.root), then=self._tables.state(final=True))
        for key in self._queue:     # grows meanwhile
            self._tables.fill_list(self._lists[key], [call for shape in self._form.shapes[key] for call in self._rule(shape)])
        return self._tables.build(root)

    def _calls(self, key: Key) -> int:
        """The call list of a key; it is filled when its turn comes."""
        if key not in self._lists:
            self._lists[key] = self._tables.reserve_list()
            self._queue.append(key)
        return self._lists[key]

    def _rule(self, shape: Shape) -> list[Call]:
        match shape:
            case Null():
                return [(self._word("null"), 0, 0)]
            case Boolean(values):
                return [(self._word(word), 0, 0) for word, value in (("true", True), ("false", False)) if value in values]
            case Number() | NumberSet():
                return [(self._once(shape, lambda: self._number(shape)), 0, 0)]
            case StringSet(values):
                return [(self._once(shape, lambda: self._quoted(automata.from_words(values))), 0, 0)]
            case String():
                return [self._string(shape)]
            case Array(prefix, items, least, most):
                start = self._once((prefix, items, least == 0, most == 0), lambda: self._array(shape))
                return [(start, max(least - 1, 0), UNBOUNDED if most is None else most - 1)]
            case Object():
                return [self._object(shape)]

    def _once(self, identity: object, build: Callable[[], int]) -> int:
        if identity not in self._rules:
            self._rules[identity] = build()
        return self._rules[identity]

    # --- scalars

    def _word(self, word: str) -> int:
        return self._once(word, lambda: self._tables.literal(word))

    def _number(self, shape: Number | NumberSet) -> int:
        dfa: Dfa | None
        if isinstance(shape, NumberSet):
            dfa = automata.from_words(sorted(text for value in shape.values for text in numbers.literal_texts(value)))
        elif shape.multiple is not None:
            dfa = numbers.multiples_automaton(shape.bounds, shape.multiple, self._budget)
        else:
            dfa = numbers.number_automaton(shape.bounds, shape.integer)
        assert dfa is not None, "a number without a text was pruned"
        return self._tables.text(dfa, RAW)

    def _quoted(self, dfa: Dfa, bounded: bool = False) -> int:
        body = self._tables.text(dfa, self._style.string, bounded=bounded)
        return self._tables.state(edges=[(0x22, 0x22, body, ALWAYS, 0, 0)])

    def _string(self, shape: String) -> Call:
        most = UNBOUNDED if shape.most is None else shape.most
        if not shape.patterns and not shape.formats:
            return self._once("string", self._plain_string), shape.least, most
        bounded = shape.most is not None
        dfa = self._form.texts.of(shape)
        assert dfa is not None, "a string without a value was pruned"
        return self._once(("text", id(dfa), bounded), lambda: self._quoted(dfa, bounded)), 0, most

    def _plain_string(self) -> int:
        body = self._tables.state(self._style.string, counted=True)
        self._tables.set_edges(body, [*((low, high, body, TAKE, 0, 0) for low, high in ALL), (CLOSE, CLOSE, POP, DONE, 0, 0)])
        return self._tables.state(counted=True, edges=[(0x22, 0x22, body, ALWAYS, 0, 0)])

    # --- arrays

    def _array(self, shape: Array) -> int:
        tables, spaces = self._tables, self._style.spaces
        keys = list(shape.prefix)
        repeats = shape.items != self._form.nothing
        if repeats:    # the first item, before which the array may end, is a place of its own
            keys += [shape.items] if keys else [shape.items, shape.items]
        closing: Edge = (ord("]"), ord("]"), POP, ALWAYS, 0, 0)
        first = tables.state(space=spaces, counted=True, edges=[closing] if shape.least == 0 else ())
        if keys and shape.most != 0:
            before = [first, *(tables.state(space=spaces, counted=True) for _ in keys[1:])]
            after = [tables.state(space=spaces, counted=True) for _ in keys]
            following = [*before[1:], *(before[-1:] if repeats else [])]
            for n, key in enumerate(keys):
                tables.set_calls(before[n], self._calls(key), after[n])
                edges: list[Edge] = [(ord("]"), ord("]"), POP, DONE, 0, 0)]
                if n < len(following):
                    edges.append((ord(","), ord(","), following[n], TAKE, 0, 0))
                tables.set_edges(after[n], edges)
        return tables.state(counted=True, edges=[(ord("["), ord("["), first, ALWAYS, 0, 0)])

    # --- objects

    def _object(self, shape: Object) -> Call:
        if self._style.ordered:
            keys: _Keys = _OrderedKeys(shape, self._form, self._tables)
        else:
            keys = _UnorderedKeys(shape, self._form)
        start = self._once(shape, lambda: self._members(keys))
        return start, *keys.registers

    def _members(self, keys: _Keys) -> int:
        tables, spaces = self._tables, self._style.spaces
        brace, comma, quote = ord("}"), ord(","), 0x22
        first, after, behind_comma = (tables.state(space=spaces) for _ in range(3))
        names = self._names(keys, after)
        end: Edge = (brace, brace, POP, *keys.may_end)
        more = keys.may_go_on
        opening = [(quote, quote, names, *more)] if more is not None else []
        tables.set_edges(first, [end, *opening])
        tables.set_edges(behind_comma, opening)
        tables.set_edges(after, [end, *([(comma, comma, behind_comma, *more)] if more is not None else [])])
        return tables.state(edges=[(ord("{"), ord("{"), first, ALWAYS, 0, 0)])

    def _names(self, keys: _Keys, after: int) -> int:
        """The trie of the property names, and with additional properties all other names; returns its root."""
        trie = automata.from_words([*keys.names, *keys.forbidden])
        below, ends = _paths(trie, keys.names)
        states = [self._tables.state(self._style.string) for _ in trie.edges]
        other = other_value = None
        if keys.additional is not None:
            other_value = self._value(keys.additional, after)
            other = self._tables.state(self._style.string)
            self._tables.set_edges(other, [*((low, high, other, ALWAYS, 0, 0) for low, high in ALL),
                                           (CLOSE, CLOSE, other_value, ALWAYS, 0, 0)])
        for state, out in enumerate(trie.edges):
            edges: list[Edge] = []
            for low, high, target in out:
                guarded = other is None and below[target] != below[state]
                edges.append((low, high, states[target], *(keys.guard(below[target]) if guarded else (ALWAYS, 0, 0))))
            if other is not None:
                gaps = complement(tuple((low, high) for low, high, _ in out))
                edges += [(low, high, other, ALWAYS, 0, 0) for low, high in gaps]
            if state in ends:
                name = ends[state]
                edges.append((CLOSE, CLOSE, self._value(keys.schemas[name], after), *keys.take(name)))
            elif other_value is not None and not trie.accepting[state]:
                edges.append((CLOSE, CLOSE, other_value, ALWAYS, 0, 0))
            self._tables.set_edges(states[state], edges)
        return states[0]

    def _value(self, key: Key, after: int) -> int:
        """A colon and a value of `key`."""
        spaces = self._style.spaces
        value = self._tables.state(space=spaces, calls=self._calls(key), then=after)
        return self._tables.state(space=spaces, edges=[(ord(":"), ord(":"), value, ALWAYS, 0, 0)])


def _paths(trie: Dfa, names: tuple[str, ...]) -> tuple[list[list[int]], dict[int, int]]:
    """For each state of the trie the names (by number, in order) whose path goes through it; and which name ends in a state."""
    through: list[list[int]] = [[] for _ in trie.edges]
    ends = {}
    for number, name in enumerate(names):
        state = 0
        through[state].append(number)
        for char in name:
            state = next(target for low, _, target in trie.edges[state] if low == ord(char))
            through[state].append(number)
        ends[state] = number
    return through, ends


class _Keys(ABC):
    """The names of an object, and how the registers keep track of them: operations with their constants, for edges."""

    registers: tuple[int, int]               # at the opening brace
    may_end: Operation                       # at the closing brace
    may_go_on: Operation | None              # before a name; None where there never is one

    def __init__(self, shape: Object, form: NormalForm) -> None:
        own = dict(shape.properties)
        own.update((name, shape.additional) for name in shape.required if name not in own)
        possible = {name: key for name, key in own.items() if key != form.nothing}
        self.names, self.schemas = tuple(possible), tuple(possible.values())
        self.additional = None if shape.additional == form.nothing else shape.additional
        self.forbidden = tuple(own.keys() - possible.keys()) if self.additional is not None else ()
        needed = set(shape.required)
        self.required = {n for n, name in enumerate(self.names) if name in needed}

    @abstractmethod
    def guard(self, names: Sequence[int]) -> Operation:
        """One of `names` may still come."""

    @abstractmethod
    def take(self, name: int) -> Operation:
        """This name may still come, and has."""

    def _going_on(self) -> Operation | None:
        if self.additional is not None:
            return ALWAYS, 0, 0
        return self.guard(range(len(self.names))) if self.names else None


class _OrderedKeys(_Keys):
    """Properties in the order of the schema."""

    def __init__(self, shape: Object, form: NormalForm, tables: TableBuilder) -> None:
        super().__init__(shape, form)
        self._tables = tables
        self._next_required = [UNBOUNDED] * (len(self.names) + 1)
        for n in range(len(self.names) - 1, -1, -1):
            self._next_required[n] = n if n in self.required else self._next_required[n + 1]
        self.registers = 0, self._next_required[0]
        self.may_end = ALL_REQUIRED, 0, 0
        self.may_go_on = self._going_on()

    def guard(self, names: Sequence[int]) -> Operation:
        return KEY_IN, *self._tables.key_range(names)

    def take(self, name: int) -> Operation:
        return KEY, name, self._next_required[name + 1]


class _UnorderedKeys(_Keys):
    """Properties in any order, each at most once."""

    def __init__(self, shape: Object, form: NormalForm) -> None:
        super().__init__(shape, form)
        if len(self.names) > MOST_UNORDERED:
            raise GrammarTooLarge("properties of an object in any order", MOST_UNORDERED, len(self.names), keyword="properties")
        self.registers = 0, 0
        self.may_end = ALL_SEEN, _bits(self.required), 0
        self.may_go_on = self._going_on()

    def guard(self, names: Sequence[int]) -> Operation:
        return ANY_UNSEEN, _bits(names), 0

    def take(self, name: int) -> Operation:
        return UNSEEN, name, 0


def _bits(names: Iterable[int]) -> int:
    return sum(1 << name for name in names)
