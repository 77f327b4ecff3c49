"""The rules of objects.

All names are one automaton, read character by character. Register a is the first property that may still come, b the next
required one; KEY at a name's closing quote moves both. Undeclared names leave the trie of the declared ones. In any order, a
and b are sets of the names that were read. Objects whose members are counted, or have to satisfy more together, are *tallied*
(`kernels.pushdown_tables.Tally`): their operations ask whether the object can still be finished.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property, reduce
from operator import or_

import numpy as np

from grammar.algebra.choices import Extra
from grammar.algebra.shapes import ANY_TEXT, Object, String, StringSet
from grammar.emission.name_blocks import NameBlock, closed_block, open_block
from grammar.emission.names import by_bits, undeclared_names
from grammar.emission.names_beside import Undeclared, block_beside
from grammar.emission.rules import NEWLINE, NO_OPERATION, Emission, Operation, Value
from grammar.emission.tables import Block, Call, Edge, TableBuilder, outside
from grammar.emission.tallies import Member
from grammar.errors import GrammarTooLarge
from grammar.schema.document import Key
from grammar.text import automata
from grammar.text.automata import Dfa
from kernels.pushdown_tables import (
    ALL_REQUIRED,
    ALL_SEEN,
    ANY_UNSEEN,
    AWAITS,
    CLOSE_OBJECT,
    KEY,
    KEY_IN,
    MORE,
    NAME,
    NAME_IN,
    OTHER,
    POP,
    SERVE,
    UNBOUNDED,
    UNSEEN,
    WIDE_AT,
)

MOST_UNORDERED = 2 * WIDE_AT        # properties of an object whose keys may come in any order: bits of two registers
MOST_UNORDERED_TALLIED = WIDE_AT    # ... and of one that is tallied

_OPEN, _CLOSE, _COMMA, _COLON, _QUOTE, _SPACE = ord("{"), ord("}"), ord(","), ord(":"), 0x22, 0x20


class Objects:
    """Emits the objects of one machine."""

    def __init__(self, emission: Emission) -> None:
        self._emission = emission
        self._calls: dict[tuple[Object, bool], Call] = {}

    def call(self, shape: Object, canonical: bool) -> Call:
        """The rule of an object; with `canonical`, of one whose text is compared."""
        call = self._calls.get((shape, canonical))
        if call is None:
            keys = self._keys(_Members(shape, self._emission), canonical)
            call = self._calls[shape, canonical] = _Rule(self._emission, keys, canonical).start(), *keys.registers
        return call

    def _keys(self, members: _Members, canonical: bool) -> _Keys:
        shape, ordered = members.shape, self._emission.style.ordered and not members.loose
        if shape.some or shape.most is not None or shape.least > sum(members.required) or (canonical and members.others):
            return _TalliedKeys(members, self._emission, ordered, canonical)
        return _OrderedKeys(members, self._emission.tables) if ordered else _UnorderedKeys(members)


class _Members:
    """What an object's members may be: declared names that have a value, and undeclared names with their values."""

    def __init__(self, shape: Object, emission: Emission) -> None:
        self.shape, self._emission = shape, emission
        self.keys = {name: key for name, key in shape.properties if emission.alive(key)}
        needed = set(shape.required)
        self.names = list(self.keys)
        self.required = [name in needed for name in self.names]
        self.others = emission.form.extra_choices(shape)
        self.forbidden = [name for name, _ in shape.properties if name not in self.keys] if self.others else []
        self.takes_any_name = len(self.others) == 1 and self.others[0].names == ANY_TEXT

    @property
    def loose(self) -> bool:
        """Whether the schema gives no two of the names an order, and all orders can be kept track of."""
        unordered = set(self.shape.loose).intersection(self.names)
        return len(self.names) - len(unordered) < 2 and 1 < len(self.names) <= MOST_UNORDERED_TALLIED and bool(unordered)

    @cached_property
    def undeclared(self) -> Undeclared | None:
        """The automaton of the undeclared names, if there are any."""
        if not self.others:
            return None
        kinds = tuple(extra.names for extra in self.others)
        found = self._emission.undeclared.get(kinds)
        if found is None:
            names = undeclared_names([self._dfa(names) for names in kinds], self._emission.budget)
            found = self._emission.undeclared[kinds] = Undeclared(names)
        return found

    def block(self, conditional: bool) -> NameBlock:
        """The states of the names; `conditional` if undeclared names may be refused because of others."""
        kinds = () if self.takes_any_name else tuple(extra.names for extra in self.others)
        identity = tuple(self.names), tuple(self.forbidden), self.takes_any_name, kinds, conditional and bool(self.others)
        blocks, mode = self._emission.name_blocks, self._emission.style.string
        found = blocks.get(identity)
        if found is None:
            self._emission.budget.check("table_states", sum(map(len, (*self.names, *self.forbidden))))
            if self.takes_any_name and not conditional:
                found = open_block(self.names, self.forbidden, mode)
            elif self.undeclared is None:
                found = closed_block(self.names, mode)
            else:
                found = block_beside(self.names, self.forbidden, self.undeclared, mode, conditional=conditional)
            blocks[identity] = found
        return found

    @property
    def n_classes(self) -> int:
        """How many classes of undeclared names there are."""
        return 0 if self.undeclared is None else len(self.undeclared.names.classes)

    def _dfa(self, names: String | StringSet) -> Dfa:
        if isinstance(names, StringSet):
            return automata.from_words(names.values)
        found = automata.ANY_TEXT if names == ANY_TEXT else self._emission.form.texts.of(names)
        if found is not None and names.most is not None:
            found = automata.at_most(found, names.most, self._emission.budget)
        assert found is not None, "names that there are none of were pruned"
        return found

    def extras(self, number: int) -> list[Extra]:
        """What may come under a name of the class that has this number."""
        if len(self.others) == 1 or self.undeclared is None:
            return list(self.others)
        return [self.others[n] for n in sorted(self.undeclared.names.classes[number - len(self.names)])]


class _Rule:
    """Emits one object."""

    def __init__(self, emission: Emission, keys: _Keys, canonical: bool) -> None:
        self._emission, self._keys, self._canonical = emission, keys, canonical
        self._tables, self._style, self._space = emission.tables, emission.style, emission.style.space
        self._after = self._tables.state(space=self._space)    # a member has been read
        self._values: dict[tuple[Value, ...], int] = {}

    def start(self) -> int:
        """The states of the object; returns the first."""
        tables, style, keys = self._tables, self._style, self._keys
        end: Edge = (_CLOSE, _CLOSE, POP, *keys.may_end)
        first, after = [end], [end]
        if keys.may_go_on is not None:
            opening: Edge = (_QUOTE, _QUOTE, self._names(), *keys.opening)
            member = tables.state(space=style.inner, marks=keys.marks, edges=[opening])
            behind_comma = member
            if style.pretty:
                behind_comma = tables.state(marks=keys.marks, edges=[(NEWLINE, NEWLINE, member, *NO_OPERATION)])
                first.append((NEWLINE, NEWLINE, member, *keys.may_go_on))
                last = tables.state(space=style.outer, edges=[end])
                after = [(NEWLINE, NEWLINE, last, *keys.may_end)]
            else:
                first.append(opening)
            after.append((_COMMA, _COMMA, behind_comma, *keys.may_go_on))
        tables.set_edges(self._after, after)
        return tables.state(edges=[(_OPEN, _OPEN, tables.state(space=style.space, edges=sorted(first)), *NO_OPERATION)])

    def _names(self) -> int:
        """The automaton of the names; returns its start."""
        keys = self._keys
        block = keys.members.block(conditional=keys.tallied)
        edges = block.edges.copy()
        if block.members:
            behind = np.empty((max(block.members) + 1, 4), dtype=np.int64)
            behind[block.members] = [(outside(self._value(number)), *keys.take(number)) for number in block.members]
            edges[block.ends, 2:] = behind[block.numbers]
        if block.possible:
            edges[block.guarded, 3:] = np.array([keys.guard(members) for members in block.possible], dtype=np.int64)[block.guards]
        return self._tables.block(Block(block.states, block.n_edges, edges))

    def _value(self, number: int) -> int:
        """A colon and a value of the member."""
        values = self._keys.values(number)
        if values not in self._values:
            tables, style = self._tables, self._style
            calls = self._emission.calls(*values, canonical=self._canonical)
            value = tables.state(space=self._space, marks=style.calling, calls=calls, then=self._after)
            if style.pretty:
                value = tables.state(edges=[(_SPACE, _SPACE, value, *NO_OPERATION)])
            self._values[values] = tables.state(space=self._space, edges=[(_COLON, _COLON, value, *NO_OPERATION)])
        return self._values[values]


class _Keys(ABC):
    """The names of an object, and how the registers keep track of them: operations with their constants, for edges.

    Names that are read are called by number: the declared ones in order, then the classes of undeclared ones.
    """

    registers: tuple[int, int]        # at the opening brace
    may_end: Operation                # at the closing brace
    may_go_on: Operation | None       # before a name; None where there never is one
    opening: Operation = NO_OPERATION # at the quote that begins a name; where that is `may_go_on`, it is asked again
    marks = 0                         # of the states between a comma and a name
    tallied = False

    def __init__(self, members: _Members) -> None:
        self.members = members
        self._undeclared = -1 << len(members.names)
        self._guards: dict[int, Operation] = {}
        if members.others:
            self.may_go_on = NO_OPERATION
        else:
            self.may_go_on = self.guard((1 << len(members.names)) - 1) if members.names else None
        self.opening = self.may_go_on or NO_OPERATION

    def guard(self, numbers: int) -> Operation:
        """One of a set of names may still come; undeclared ones always may."""
        if numbers & self._undeclared:
            return NO_OPERATION
        if numbers not in self._guards:
            self._guards[numbers] = self._some_may_come(numbers)
        return self._guards[numbers]

    def take(self, number: int) -> Operation:
        """This name may still come, and has."""
        return self._taken(number) if number < len(self.members.names) else NO_OPERATION

    def values(self, number: int) -> tuple[Value, ...]:
        """What may follow the name."""
        members = self.members
        if number < len(members.names):
            return (Value(members.keys[members.names[number]]),)
        return tuple(Value(key) for key in dict.fromkeys(extra.key for extra in members.extras(number)))

    @abstractmethod
    def _some_may_come(self, numbers: int) -> Operation:
        """One of a set of declared names may still come."""

    @abstractmethod
    def _taken(self, name: int) -> Operation:
        """The declared name may still come, and has."""


class _OrderedKeys(_Keys):
    """Properties in the order of the schema."""

    def __init__(self, members: _Members, tables: TableBuilder) -> None:
        self._tables = tables
        self._next_required = _next_required(members.required)
        super().__init__(members)
        self.registers = 0, self._next_required[0]
        self.may_end = ALL_REQUIRED, 0, 0

    def _some_may_come(self, numbers: int) -> Operation:
        return KEY_IN, *self._tables.key_range(by_bits(numbers))

    def _taken(self, name: int) -> Operation:
        return KEY, name, self._next_required[name + 1]


class _UnorderedKeys(_Keys):
    """Properties in any order, each at most once."""

    def __init__(self, members: _Members) -> None:
        _refuse_more_than(MOST_UNORDERED, members)
        super().__init__(members)
        self.registers = 0, 0
        self.may_end = ALL_SEEN, *_halves(_joined(1 << n for n, needed in enumerate(members.required) if needed))

    def _some_may_come(self, numbers: int) -> Operation:
        return ANY_UNSEEN, *_halves(numbers)

    def _taken(self, name: int) -> Operation:
        return UNSEEN, name, 0


class _TalliedKeys(_Keys):
    """Members that are counted, or have obligations; with `distinct`, undeclared names that come only once."""

    tallied = True

    def __init__(self, members: _Members, emission: Emission, ordered: bool, distinct: bool) -> None:
        if not ordered:
            _refuse_more_than(MOST_UNORDERED_TALLIED, members)
        self.members, self._emission = members, emission
        shape = members.shape
        # An absent name that can't come anyway has closed its obligations from the beginning.
        self._obligations = [n for n, some in enumerate(shape.some) if all(name in members.keys for name in some.absent)]
        remembers = bool(members.others) and (distinct or shape.least > 1 or bool(self._obligations))
        n = len(members.names)
        names = [Member(self._choices(number), needed, self._closed_without(name))
                 for number, (name, needed) in enumerate(zip(members.names, members.required, strict=True))]
        possible = members.block(conditional=True).reachable if members.others else 0      # all names of a class may be declared
        others = [Member(self._choices(number) if possible >> number & 1 else ()) for number in range(n, n + members.n_classes)]
        self._number = emission.tables.tally.add_object(
            names, others, ordered=ordered, remembers=remembers, least=shape.least, most=shape.most,
            obligations=len(self._obligations))
        self.registers = 0, _next_required(members.required)[0] if ordered else 0
        self.may_end = CLOSE_OBJECT, 0, self._number
        self.may_go_on = (MORE, 0, self._number) if names or possible else None
        self.opening = MORE, 1, self._number
        self.marks = AWAITS if remembers else 0
        self._guards = {}

    def guard(self, numbers: int) -> Operation:
        if numbers not in self._guards:
            self._guards[numbers] = self._some_may_come(numbers)
        return self._guards[numbers]

    def take(self, number: int) -> Operation:
        return NAME if number < len(self.members.names) else OTHER, number, self._number

    def values(self, number: int) -> tuple[Value, ...]:
        if not self._obligations:
            return super().values(number)
        return tuple(Value(key, (SERVE, self._renumbered(serves), self._number)) for serves, key in self._served(number))

    def _some_may_come(self, numbers: int) -> Operation:
        begin, end = self._emission.tables.key_range(by_bits(numbers))
        return NAME_IN, begin << 32 | end, self._number

    def _taken(self, name: int) -> Operation:
        return NAME, name, self._number

    def _served(self, number: int) -> list[tuple[int, Key]]:
        """The choices of a member: the obligations that a value closes, by their numbers in the shape, and its key."""
        members = self.members
        if number < len(members.names):
            name = members.names[number]
            choices = self._emission.form.member_choices(members.shape, name, members.keys[name])
            return [(choice.serves, choice.key) for choice in choices]
        return [(extra.serves, extra.key) for extra in members.extras(number)]

    def _choices(self, number: int) -> tuple[int, ...]:
        return tuple(dict.fromkeys(self._renumbered(serves) for serves, _ in self._served(number)))

    def _renumbered(self, serves: int) -> int:
        return _joined(1 << n for n, old in enumerate(self._obligations) if serves >> old & 1)

    def _closed_without(self, name: str) -> int:
        some = self.members.shape.some
        return _joined(1 << n for n, old in enumerate(self._obligations) if name in some[old].absent)


def _next_required(required: Sequence[bool]) -> list[int]:
    """For each name, and behind the last, the first required one from there on."""
    following = [UNBOUNDED] * (len(required) + 1)
    for n in range(len(required) - 1, -1, -1):
        following[n] = n if required[n] else following[n + 1]
    return following


def _joined(sets: Iterable[int]) -> int:
    """The union of sets of bits."""
    return reduce(or_, sets, 0)


def _halves(names: int) -> tuple[int, int]:
    """A set of names as bits of registers a and b."""
    return names & (1 << WIDE_AT) - 1, names >> WIDE_AT


def _refuse_more_than(most: int, members: _Members) -> None:
    if len(members.names) > most:
        raise GrammarTooLarge("properties of an object in any order", most, len(members.names), keyword="properties")
