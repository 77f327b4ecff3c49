"""Multiples of a number, as every reader tells them.

One reader divides the decimal numbers that stand in the text and in the schema, exactly. The other, Python's `jsonschema` among
them, has both as doubles, and takes the quotient for an integer where the *rounded* quotient is one: 19.99 is no multiple of 0.01
there. An answer must be a multiple for both.

Division of doubles is exact for integers and powers of two as divisors. For other fractions (0.01) what fails depends on the
fraction's digits and, within stretches of the number line, not on the integer before them: the rounding error of c / 10**s is
a function of c modulo 5**s and of the binary exponent, and the tolerance grows linearly between two exponents. So a table of
all multiples up to a size falls into few runs of equal rows, which are found by looking.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from grammar.text.automata import Dfa, Edges

TABLED = 500_000                # multiples of a fraction up to this many units of the last digit are tried one by one
MOST_TABLED_DIGITS = 4          # of a fraction
MOST_RESTS = 20_000             # a larger divisor's rests are not counted,
MOST_KINDS_OF_RESTS = 1000      # nor more of them that cannot be told apart by their last digits
EXACT_INTEGERS = 2**53          # up to here a double is an integer exactly

_ZERO, _NINE, _POINT, _MINUS = ord("0"), ord("9"), ord("."), ord("-")


def written(value: int | float | Fraction) -> Fraction:
    """The decimal number that a schema wrote: 1/100 for the double that reads 0.01, whatever its binary digits say."""
    if isinstance(value, int):
        return Fraction(value)
    try:
        nearest = float(value)
    except OverflowError:
        return Fraction(value)
    return Fraction(Decimal(repr(nearest))) if nearest == value and abs(nearest) < EXACT_INTEGERS else Fraction(value)


def is_dyadic(divisor: Fraction) -> bool:
    """Whether a double holds the divisor exactly, so that dividing a multiple by it is exact too."""
    return divisor.denominator & (divisor.denominator - 1) == 0


def passes_as_double(value: int | float, divisor: Fraction) -> bool:
    """Whether readers that divide doubles take a value, as it was parsed, for a multiple."""
    by = float(divisor)
    try:
        quotient = value / by
        return quotient == int(quotient)
    except OverflowError:
        return (Fraction(value) / Fraction(by)).denominator == 1


def doubtful_integers(divisors: Iterable[Fraction]) -> tuple[int, int]:
    """The integers between these two may be no multiples as doubles: large enough to be rounded, while their quotients are small
    enough to have a fraction. Where a schema says 7.0 instead of 7, Python reads them as doubles.
    """
    largest = max((math.ceil(divisor) for divisor in divisors if not _is_power_of_two(divisor)), default=1)
    return EXACT_INTEGERS, max(largest, 1) * EXACT_INTEGERS


def _is_power_of_two(number: Fraction) -> bool:
    return is_dyadic(number) and number.numerator & (number.numerator - 1) == 0


def integers_pass(divisor: Fraction) -> bool:
    """Whether every integer that is a multiple passes as a double.

    The rounded quotient is right as long as the divisor's own relative error is at most half a unit of the last place.
    """
    by = Fraction(float(divisor))
    return is_dyadic(divisor) or abs(1 - divisor / by) <= Fraction(1, 2**54)


def common_multiple(divisors: Iterable[Fraction]) -> Fraction:
    """The least number of which all multiples are multiples of each divisor."""
    found = Fraction(1)
    for n, divisor in enumerate(divisors):
        if n == 0:
            found = divisor
        else:
            found = Fraction(math.lcm(found.numerator * divisor.denominator, divisor.numerator * found.denominator),
                             found.denominator * divisor.denominator)
    return found


def decimals(number: Fraction) -> int:
    """The digits that a number has behind the point; it has finitely many."""
    digits, rest = 0, number
    while rest.denominator != 1:
        rest, digits = rest * 10, digits + 1
    return digits


@dataclass(frozen=True, slots=True)
class Row:
    """For the integers from `start` on to the next row, the fractions that make multiples of them: a byte for each number of so
    many places, 1 where it is one."""

    start: int
    holds: bytes


@functools.lru_cache(maxsize=64)
def rows_of_fraction(divisors: tuple[Fraction, ...], unit: Fraction, most: int) -> tuple[Row, ...]:
    """The multiples of all `divisors` up to about `most`; `unit`, their common multiple, divides a power of one tenth.

    Of a unit with many digits only the multiples with `MOST_TABLED_DIGITS` are found. Behind the table the integers follow, with
    the fractions that doubles hold exactly, where they are sure to pass.
    """
    if decimals(unit) > MOST_TABLED_DIGITS:
        unit = common_multiple((unit, Fraction(1, 10**MOST_TABLED_DIGITS)))
    digits = decimals(unit)
    scale = 10**digits
    tabled = TABLED if all(map(integers_pass, divisors)) else TABLED // 1000     # else rows differ all the time
    n_rows = max(1, min(tabled // scale, most + 1))
    numerators = np.arange(0, n_rows * scale, int(unit * scale))
    values = numerators / scale
    good = np.ones(len(values), dtype=np.bool_)
    for divisor in divisors:
        with np.errstate(over="ignore"):
            quotients = values / float(divisor)
        good &= quotients == np.rint(quotients)
    table = np.zeros((n_rows, scale), dtype=np.bool_)
    table.reshape(-1)[numerators[good]] = True
    first = np.flatnonzero(np.concatenate([[True], (table[1:] != table[:-1]).any(axis=1)]))
    rows = [Row(int(n), holds=table[n].tobytes()) for n in first]
    if n_rows <= most:
        rows += _behind(divisors, unit, n_rows)
    return tuple(rows)


def _behind(divisors: Sequence[Fraction], unit: Fraction, start: int) -> Iterable[Row]:
    """The rows from `start` on, where no table reaches."""
    if not all(map(integers_pass, divisors)):
        yield Row(start, b"\0")
        return
    digits = decimals(unit)
    scale, last = 10**digits, EXACT_INTEGERS >> digits
    if start < last:
        yield Row(start, holds=bytes(f * 2**digits % scale == 0 and f % int(unit * scale) == 0 for f in range(scale)))
    yield Row(max(start, last), b"\1")


def passes(value: Fraction, divisors: Iterable[Fraction]) -> bool:
    """Whether an exact multiple is one as a double too, of each divisor."""
    parsed = int(value) if value.denominator == 1 else float(value)
    return all(passes_as_double(one, divisor) for divisor in divisors for one in {parsed, float(parsed)})


def decimal_text(number: Fraction) -> str:
    """A positive number with all its digits and no more."""
    digits = decimals(number)
    text = str(int(number * 10**digits)).rjust(digits + 1, "0")
    return f"{text[:-digits]}.{text[-digits:]}" if digits else text


# --- by the rest of a division

def _refined(divisor: int, marks: np.ndarray) -> np.ndarray:
    """The coarsest classes of rests that agree in `marks` and, digit by digit, in what follows: partition refinement."""
    following = (10 * np.arange(divisor)[:, None] + np.arange(10)) % divisor     # [divisor, 10]
    classes = np.unique(marks, return_inverse=True)[1].reshape(-1)
    while True:
        rows = np.concatenate([classes[:, None], classes[following]], axis=1)
        finer = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
        if finer.max() == classes.max():
            return finer
        classes = finer


@dataclass(frozen=True, slots=True)
class Rests:
    """Division by an integer, digit by digit: the classes of rests that must be kept apart."""

    start: int                              # the class of rest 0 before any digit
    follows: tuple[tuple[int, ...], ...]    # [class][digit] -> class
    divides: tuple[bool, ...]               # the rest is 0

    def after_zeros(self, state: int, count: int) -> int:
        for _ in range(count):
            state = self.follows[state][0]
        return state


@functools.lru_cache(maxsize=64)
def rests(divisor: int) -> Rests:
    """The automaton of division by `divisor`, with as few classes as there can be."""
    classes = _refined(divisor, np.arange(divisor) == 0)
    first = np.unique(classes, return_index=True)[1]
    follows = tuple(tuple(int(classes[(10 * int(r) + d) % divisor]) for d in range(10)) for r in first)
    return Rests(int(classes[0]), follows, tuple(int(r) == 0 for r in first))


def has_few_rests(unit: Fraction) -> bool:
    """Whether division by `unit` can be done digit by digit."""
    divisor = int(unit * 10**decimals(unit))
    return divisor <= MOST_RESTS and len(rests(divisor).follows) <= MOST_KINDS_OF_RESTS


_EXPONENT = (ord("E"), ord("E")), (ord("e"), ord("e"))


@functools.lru_cache(maxsize=64)
def multiples_only(unit: Fraction) -> Dfa:
    """Texts without exponents of the multiples of `unit`; texts that are no number may be among them."""
    digits = decimals(unit)
    grid = rests(int(unit * 10**digits))
    n = len(grid.follows)
    edges: list[Edges] = []
    accepting = []
    for place in range(-1, digits + 1):         # -1: before the point; then so many digits behind it
        for state, follows in enumerate(grid.follows):
            left = digits - max(place, 0)
            accepting.append(grid.divides[grid.after_zeros(state, left)])
            block = n * (place + 1) if place < 0 else n * (place + 2)
            out = [(_ZERO + d, _ZERO + d, block + following) for d, following in enumerate(follows)]
            if place < 0:
                out.insert(0, (_POINT, _POINT, n + state))
            elif place == digits:
                out = [(_ZERO, _ZERO, n * (place + 1) + state)] if grid.divides[state] else []
            edges.append(out)
    return _signed(edges, accepting, grid.start)


WINDOW = 4      # digits behind the last one of a divisor that must show that a number is off every multiple


def highest_off_grid(digits: int) -> int:
    """Up to here doubles are a hundred times finer than the window of a divisor with so many digits behind the point."""
    left = max(13 - WINDOW - digits, 0)
    return int(10**left)


def highest_exponent(divisor: Fraction) -> int:
    """Numbers with this exponent are off every multiple but zero."""
    return -1 - WINDOW - decimals(divisor)


@functools.lru_cache(maxsize=64)
def no_multiples(unit: Fraction) -> Dfa:
    """Texts of numbers that no reader takes for multiples of `unit`; texts that are no number may be among them.

    Behind the last digit of `unit` a text either goes on with zeros only, or it is well off every multiple, by one of the
    `WINDOW` digits that follow. That is far more than doubles lose, up to `highest_off_grid`; an exponent makes a number so small
    that it is none, up to `highest_exponent`. The caller sees to both.
    """
    digits = decimals(unit)
    grid = rests(int(unit * 10**digits))
    n = len(grid.follows)
    last = digits + WINDOW                      # places: -1 before the point, then so many digits behind it
    free = n * (last + 2)
    edges: list[Edges] = []
    accepting = []
    for place in range(-1, last + 1):
        block = 0 if place < 0 else n * (min(place, last - 1) + 2)
        for state, follows in enumerate(grid.follows):
            accepting.append(not grid.divides[grid.after_zeros(state, max(digits - max(place, 0), 0))])
            if place < digits:
                out = [(_ZERO + d, _ZERO + d, block + target) for d, target in enumerate(follows)]
                out = [(_POINT, _POINT, n + state), *out] if place < 0 else out
            elif place == digits:
                out = [(_ZERO, _ZERO, block + state), (_ZERO + 1, _NINE - 1, free), (_NINE, _NINE, free + 1)]
            else:
                out = [(_ZERO, _ZERO, block + state), *([(_ZERO + 1, _NINE, free)] if place < last else [])]
            edges.append(out + [(*char, free) for char in _EXPONENT])
    edges.append([(ord("+"), _NINE, free), *((*char, free) for char in _EXPONENT)])
    for n_nines in range(1, WINDOW + 1):        # so many nines behind the last digit
        here = free + n_nines
        out = [(_ZERO, _NINE - 1, free), (_NINE, _NINE, here + 1)] if n_nines < WINDOW else [(_ZERO, _ZERO, here)]
        edges.append(out + [(*char, free) for char in _EXPONENT])
    return _signed(edges, [*accepting, *[True] * (WINDOW + 1)], grid.start)


def _signed(edges: list[Edges], accepting: list[bool], start: int) -> Dfa:
    """With a start of its own before everything, where a minus may stand."""
    moved = [[(low, high, target + 1) for low, high, target in out] for out in edges]
    return Dfa([[(_MINUS, _MINUS, start + 1), *(edge for edge in moved[start] if edge[0] >= _ZERO and edge[0] <= _NINE)], *moved],
               [False, *accepting])
