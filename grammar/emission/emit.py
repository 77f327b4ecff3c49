"""From normal form to the machine: one rule for each shape, one call list for each key.

A text is `"`, then the states of its automaton. Without patterns that is one state, and both lengths are registers. Arrays
and objects are in `emit_arrays` and `emit_objects`.
"""

from __future__ import annotations

from grammar.algebra.normal import NormalForm
from grammar.algebra.shapes import Array, Boolean, Null, Number, NumberSet, Object, Shape, String, StringSet
from grammar.budget import Budget
from grammar.emission.arrays import Arrays
from grammar.emission.objects import Objects
from grammar.emission.rules import Emission, Value
from grammar.emission.style import Style
from grammar.emission.tables import Call, OpenCall, TableBuilder
from grammar.emission.word_blocks import word_block
from grammar.errors import GrammarTooLarge
from grammar.number import numbers
from grammar.text.automata import Dfa
from grammar.text.charset import ALL
from kernels.pushdown_tables import ALWAYS, CLOSE, DONE, POP, RAW, TAKE, TEXT, UNBOUNDED, Tables

__all__ = ["Style", "emit_json", "emit_json_into", "emit_text"]


def emit_text(dfa: Dfa, budget: Budget) -> Tables:
    """The machine of plain texts."""
    builder = TableBuilder(budget)
    return builder.build(builder.text(dfa, TEXT))


def emit_json(form: NormalForm, style: Style, budget: Budget) -> Tables:
    """The machine of JSON texts in a normal form."""
    tables = TableBuilder(budget)
    calls = emit_json_into(tables, form, style, budget)
    return tables.build(tables.state(calls=calls, then=tables.state(final=True)))


def emit_json_into(tables: TableBuilder, form: NormalForm, style: Style, budget: Budget) -> int:
    """Write the rules of a normal form into tables that may hold other rules; returns the call list of its root."""
    return _Rules(Emission(tables, form, style, budget)).emit()


class _Rules:
    def __init__(self, emission: Emission) -> None:
        self._emission = emission
        self._tables, self._form, self._style = emission.tables, emission.form, emission.style
        self._arrays, self._objects = Arrays(emission), Objects(emission)

    def emit(self) -> int:
        root = self._emission.calls(Value(self._form.root))
        for number, wanted in self._emission.wanted():
            calls: list[Call | OpenCall] = []
            for key, operation in wanted.values:
                try:
                    rules = [call for shape in self._form.shapes[key] for call in self._rule(shape, wanted.canonical)]
                except GrammarTooLarge as error:
                    raise error.at(self._form.document.pointer(key)) from None
                calls.extend(rules if operation[0] == ALWAYS else [(*rule, *operation) for rule in rules])
            self._tables.fill_list(number, calls)
        return root

    def _rule(self, shape: Shape, canonical: bool) -> list[Call]:
        once = self._emission.once
        match shape:
            case Null():
                return [(self._word("null"), 0, 0)]
            case Boolean(values):
                return [(self._word(word), 0, 0) for word, value in (("true", True), ("false", False)) if value in values]
            case Number() | NumberSet():
                return [(once((shape, canonical), lambda: self._number(shape, canonical)), 0, 0)]
            case StringSet(values):
                return [(once(shape, lambda: self._opened(
                    self._tables.block(word_block(values, self._style.string, quoted=True)))), 0, 0)]
            case String():
                return [self._string(shape)]
            case Array():
                return [self._arrays.call(shape, canonical)]
            case Object():
                return [self._objects.call(shape, canonical)]

    def _word(self, word: str) -> int:
        return self._emission.once(word, lambda: self._tables.literal(word))

    def _number(self, shape: Number | NumberSet, canonical: bool) -> int:
        spelling: numbers.Spell = "canonical" if canonical else (
            "free" if self._style.escapes and self._form.decimal_integers else "plain")
        if isinstance(shape, NumberSet):
            texts = {text for value in shape.values for text in numbers.literal_texts(value, spelling)}
            return self._tables.block(word_block(texts, RAW, quoted=False))
        dfa = numbers.number_automaton(shape, spelling=spelling, budget=self._emission.budget)
        assert dfa is not None, "a number without a text was pruned"
        return self._tables.text(dfa, RAW)

    def _quoted(self, dfa: Dfa, bounded: bool = False) -> int:
        return self._opened(self._tables.text(dfa, self._style.string, bounded=bounded))

    def _opened(self, body: int) -> int:
        """The quote before a string."""
        return self._tables.state(edges=[(0x22, 0x22, body, ALWAYS, 0, 0)])

    def _string(self, shape: String) -> Call:
        most = UNBOUNDED if shape.most is None else shape.most
        if shape.plain:
            return self._emission.once("string", self._plain_string), shape.least, most
        bounded = shape.most is not None
        dfa = self._form.texts.of(shape)
        assert dfa is not None, "a string without a value was pruned"
        return self._emission.once(("text", id(dfa), bounded), lambda: self._quoted(dfa, bounded)), 0, most

    def _plain_string(self) -> int:
        body = self._tables.state(self._style.string, counted=True)
        self._tables.set_edges(body, [*((low, high, body, TAKE, 0, 0) for low, high in ALL), (CLOSE, CLOSE, POP, DONE, 0, 0)])
        return self._tables.state(counted=True, edges=[(0x22, 0x22, body, ALWAYS, 0, 0)])
