"""Numbers: what a shape of them holds, and the automata of their texts.

Written forms, by `spelling`:

- `"free"`: integers of up to `INTEGER_DIGITS` digits (more where the schema names longer ones); a fraction of up to
  `FRACTION_DIGITS` behind them; one digit, a fraction, and an exponent, wherever the value lies within the bounds; any digits
  with an exponent from -99 to 99 on a side of zero without a bound. Integers by type are written plainly, or with `.0` behind
  them, or from 1e16 on with an exponent, as Python writes doubles.
- `"plain"`: the same, but an integer by type has its digits only.
- `"canonical"`: one spelling for each value, the one of Python: integers as their digits, others with 15 significant digits at
  the most (then no two of them are the same double), without trailing zeros, with an exponent below 0.0001.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from grammar.budget import Budget
from grammar.number import multiples
from grammar.number.bounds import INTEGER_DIGITS, Caps, Range, Side, cut_out, digits_before, integer_bounds, one_side
from grammar.number.decimals import Spelling, decimal_automaton
from grammar.number.number_lines import FRACTION_DIGITS, Form, Line, RowLine
from grammar.text import automata
from grammar.text.automata import Dfa

if TYPE_CHECKING:
    from grammar.algebra.shapes import Number

__all__ = ["Range", "Spell", "holds", "integer_bounds", "is_empty", "literal_texts", "number_automaton"]

MOST_LISTED = 1000              # multiples that are listed one by one
MOST_STATES_OF_RESTS = 8000     # a large divisor leaves room for fewer digits

_WHOLE_EXPONENTS = (16, 308)        # where Python writes an integral double with one; its digits are integers there
_PROPER_EXPONENTS = (-300, -2)      # of numbers that are certainly no integers
_TINY_EXPONENT = -200               # numbers below it, divided by a larger divisor than this, are zero as doubles:
_LARGE_DIVISOR = 10**100
_SHORT_EXPONENTS = (-300, -5)       # where Python writes one for a number below 1

Spell = Literal["free", "plain", "canonical"]


# --- what a shape holds

def holds(value: int | float, shape: Number) -> bool:
    """Whether a value, parsed by Python, is in a shape for every reader: the value as it is and as it is written."""
    exact = Fraction(value)
    if not shape.bounds.holds(exact):
        return False
    if shape.whole is not None and shape.whole != (exact.denominator == 1):
        return False
    if not all(_is_multiple(value, divisor, all) for divisor in shape.multiples):
        return False
    if any(_is_multiple(value, divisor, any) for divisor in shape.not_multiples):
        return False
    return not any(_same(value, excluded) for excluded in shape.without)


def _is_multiple(value: int | float, divisor: Fraction, readers: Callable[[Iterable[bool]], bool]) -> bool:
    """Whether all readers (or any) take a value for a multiple: by its digits, and as a double if it may be read as one."""
    unit = multiples.written(divisor)
    spelled = [value, float(value)] if abs(value) < multiples.EXACT_INTEGERS else [value]
    return readers([multiples.written(value) % unit == 0, *(multiples.passes_as_double(one, unit) for one in spelled)])


def _same(value: int | float, excluded: Fraction) -> bool:
    if Fraction(value) == excluded or multiples.written(value) == excluded:
        return True
    try:
        return float(value) == float(excluded)
    except OverflowError:
        return False


def is_empty(shape: Number, spelling: Spell = "free") -> bool:
    """Whether no number of a shape can be written. Raises GrammarTooLarge like `number_automaton`."""
    return number_automaton(shape, spelling=spelling) is None


def literal_texts(value: int | float, spelling: Spell = "plain") -> set[str]:
    """The ways to write one listed number.

    Plainly: as `json.dumps` does, without an exponent, and an integral one as an integer. Freely: an integer as a double too.
    Canonically: one spelling, that of the same value in an automaton of that spelling.
    """
    integral = isinstance(value, int) or (value.is_integer() and abs(value) < multiples.EXACT_INTEGERS)
    if spelling == "canonical":
        return {str(int(value)) if integral or abs(value) < 10**INTEGER_DIGITS and value == int(value) else json.dumps(value)}
    texts = {json.dumps(value)}
    if isinstance(value, float):
        plain = format(Decimal(repr(value)), "f")
        if len(plain) <= INTEGER_DIGITS + FRACTION_DIGITS and ("." in plain or int(plain) == value):
            texts.add(plain)
    if integral:
        texts.add(str(int(value)))
        if spelling == "free" and _is_double(value):
            texts |= {f"{int(value)}.0", json.dumps(float(value))}
    return texts


def _is_double(value: int | float) -> bool:
    try:
        return float(value) == value
    except OverflowError:
        return False


# --- automata

def number_automaton(shape: Number, *, spelling: Spell = "free", budget: Budget | None = None) -> Dfa | None:
    """The texts of the numbers of a shape; None if there are none. Raises GrammarTooLarge.

    An integer by type is written `1.0` too in "free": not to be asked for where a reader's draft has no such integers (draft 4).
    Of numbers under `multiples` of a fraction some are out of reach: see `grammar.number.multiples`. Multiples of a number too
    large to count with are listed, the `MOST_LISTED` that are nearest to zero.
    What was built is kept and shared; `budget` is charged with the size of the result.
    """
    found = _automaton(shape, spelling) or _in_other_spelling(shape, spelling)
    if budget is not None and found is not None:
        budget.spend("automaton_steps", len(found.edges))
    return found


def _in_other_spelling(shape: Number, spelling: Spell) -> Dfa | None:
    """Where only another style has a text: that style's for "plain", and a single one of its texts for "canonical"."""
    free = _automaton(shape, "free")
    if free is None or spelling != "canonical":
        return free
    text = _shortest_text(free)
    as_python = json.dumps(float(text))
    return automata.from_words([as_python if free.accepts(as_python) else text])


def _shortest_text(dfa: Dfa) -> str:
    left, state, text = dfa.shortest(), 0, ""
    while left[state]:
        low, _, state = min(dfa.edges[state], key=lambda edge: left[edge[2]])
        text += chr(low)
    return text


@functools.lru_cache(maxsize=512)
def _automaton(shape: Number, spelling: Spell) -> Dfa | None:
    return _Language(shape, spelling, Budget()).automaton()


class _Language:
    """The texts of one shape."""

    def __init__(self, shape: Number, spelling: Spell, budget: Budget) -> None:
        self._shape, self._budget = shape, budget
        self._spelling = spelling
        divisors = tuple(dict.fromkeys(map(multiples.written, shape.multiples)))
        if shape.whole is True and divisors:
            divisors = (*divisors, Fraction(1))
        self._divisors = divisors
        self._excluded = tuple(dict.fromkeys(map(multiples.written, shape.not_multiples)))
        self._unit = multiples.common_multiple(divisors) if divisors else None
        self._whole = shape.whole is True or self._unit is not None and self._unit.denominator == 1
        if self._whole and self._unit == 1 and all(map(multiples.integers_pass, divisors)):
            self._unit = None       # every integer is a multiple
        self._most_digits = digits_before(shape.bounds)

    def automaton(self) -> Dfa | None:
        if self._whole and self._shape.whole is False:
            return None
        found = self._of_pieces(*self._sides()) if self._unit is None else self._of_multiples(self._unit)
        for divisor in self._excluded:
            if found is not None and multiples.has_few_rests(divisor):
                found = automata.intersection(found, multiples.no_multiples(divisor), self._budget)
        return found

    def _form(self) -> Form:
        """What may stand behind an integer's digits."""
        free, whole, excluded = self._spelling == "free", self._whole, self._excluded
        if self._spelling == "canonical":
            if whole:
                return Form("none")
            highest = min([_SHORT_EXPONENTS[1], *(multiples.highest_exponent(divisor) for divisor in excluded)])
            return Form("shortest", (_TINY_EXPONENT if excluded else _SHORT_EXPONENTS[0], highest))
        if whole:
            return Form("zero" if free else "none", _WHOLE_EXPONENTS if free and not excluded else None)
        if self._shape.whole is None and not excluded:
            return Form("any", (-400, 400), free=True)
        highest = min([_PROPER_EXPONENTS[1], *(multiples.highest_exponent(divisor) for divisor in excluded)])
        return Form("proper" if self._shape.whole is False else "zero or proper",
                    (_TINY_EXPONENT if excluded else _PROPER_EXPONENTS[0], highest))

    def _sides(self) -> tuple[Side, Side]:
        integer_cap = double_cap = None
        if self._unit is not None:
            double_cap = multiples.EXACT_INTEGERS >> multiples.decimals(self._unit)
        without = self._shape.without
        if self._excluded:
            digits = max(map(multiples.decimals, self._excluded))
            integer_cap, double_cap = 10**max(15 - digits, 0), multiples.highest_off_grid(digits)
            large = [divisor for divisor in self._excluded if not multiples.has_few_rests(divisor)]
            if large:       # what is smaller than a divisor, zero aside, is no multiple of it
                below = math.floor(min(large) * Fraction(999, 1000))
                integer_cap, double_cap, without = min(integer_cap, below), min(double_cap, below), without | {Fraction(0)}
            if max(self._excluded) > _LARGE_DIVISOR:
                double_cap = 0
        caps = Caps(self._most_digits, integer_cap, double_cap)
        doubtful = multiples.doubtful_integers(self._divisors)
        plus, minus = (self._side(one_side(self._shape.bounds, without, sign, caps), doubtful) for sign in (1, -1))
        return plus, minus

    def _side(self, side: Side, doubtful: tuple[int, int]) -> Side:
        if self._shape.whole is False:
            return Side((), side.doubles)
        return Side(tuple(cut_out(side.integers, *doubtful)), side.doubles) if self._divisors else side

    def _of_pieces(self, plus: Side, minus: Side, most_digits: int | None = None, form: Form | None = None) -> Dfa | None:
        form = form or self._form()
        most = self._most_digits if most_digits is None else min(most_digits, self._most_digits)
        spelling = Spelling(shortest=self._spelling == "canonical")
        return decimal_automaton(Line(plus, form, most).pieces(), Line(minus, form, most).pieces(), most, self._budget, spelling)

    # --- multiples

    def _of_multiples(self, unit: Fraction) -> Dfa | None:
        sides = self._sides()
        digits = multiples.decimals(unit)
        grid, scale = int(unit * 10**digits), 10**digits
        inexact = not all(map(multiples.is_dyadic, self._divisors))
        if self._whole and self._few(unit, sides):
            return self._listed(unit, sides)
        if inexact and scale % grid == 0:
            return self._tabled(unit, sides)
        if not inexact or self._whole and all(map(multiples.integers_pass, self._divisors)):
            found = self._by_rests(unit, sides)
            if found is not None:
                return found[0]
        return self._listed(unit, sides)

    def _form_of_multiples(self, most_fraction: int) -> Form:
        if self._whole:
            return Form("zero" if self._spelling == "free" else "none")
        if self._spelling == "canonical":
            return Form("shortest", most_fraction=most_fraction)
        return Form("any" if self._shape.whole is None else "proper", most_fraction=most_fraction)

    def _few(self, unit: Fraction, sides: tuple[Side, Side]) -> bool:
        """Whether the bounds leave so few multiples that all can be listed."""
        return all(side.highest is not None and (side.highest - side.lowest + 2) / unit <= MOST_LISTED for side in sides)

    def _listed(self, unit: Fraction, sides: tuple[Side, Side]) -> Dfa | None:
        """One by one, those nearest to zero; with no more digits than they need."""
        texts: list[str] = []
        for sign, side in zip(("", "-"), sides, strict=True):
            first = math.floor(side.lowest / unit)
            last = first + MOST_LISTED
            if side.highest is not None:
                last = min(last, math.ceil(side.highest / unit))
            for value in (unit * n for n in range(first, last + 1)):
                if multiples.passes(value, self._divisors):
                    texts += [sign + text for text in self._texts_of_multiple(value, side)]
        return automata.from_words(texts) if texts else None

    def _texts_of_multiple(self, value: Fraction, side: Side) -> Iterable[str]:
        if value.denominator != 1:
            text = multiples.decimal_text(value)
            if side.holds(Decimal(text), False):
                yield text
        elif self._shape.whole is not False:
            if side.has_integer(int(value)):
                yield str(int(value))
            plainly = self._spelling == "canonical" or self._whole and self._spelling == "plain"
            if not plainly and side.holds(Decimal(int(value)), False):
                yield f"{int(value)}.0"

    def _tabled(self, unit: Fraction, sides: tuple[Side, Side]) -> Dfa | None:
        highest = [side.highest for side in sides]
        most = next((n for n in (100, 1000) if all(high is not None and high < n for high in highest)), 10**self._most_digits)
        rows = multiples.rows_of_fraction(self._divisors, unit, most)
        return self._of_rows([rows, rows], sides)

    def _of_rows(self, rows: Sequence[Sequence[multiples.Row]], sides: tuple[Side, Side]) -> Dfa | None:
        form = self._form_of_multiples(FRACTION_DIGITS)
        plus, minus = (RowLine(side, form, self._most_digits, row).pieces() for side, row in zip(sides, rows, strict=True))
        return decimal_automaton(plus, minus, self._most_digits, self._budget, Spelling(shortest=self._spelling == "canonical"))

    def _by_rests(self, unit: Fraction, sides: tuple[Side, Side]) -> tuple[Dfa | None] | None:
        """By counting rests of a division; None where the divisor has too many."""
        digits = multiples.decimals(unit)
        divisor = int(unit * 10**digits)
        if not multiples.has_few_rests(unit):
            return None
        n_rests = len(multiples.rests(divisor).follows)
        most_digits = max(MOST_STATES_OF_RESTS // n_rests, len(str(divisor)) + 1)
        form = self._form_of_multiples(digits + 6 if digits else 1)
        plain = self._of_pieces(*sides, most_digits, form)
        return (None,) if plain is None else (automata.intersection(plain, multiples.multiples_only(unit), self._budget),)
