"""Automata of JSON numbers within bounds.

Numbers are compared as the decimal text that they are. What reads the answer parses a number with a fraction or an exponent
into a double, so a bound for such texts is first moved to the nearest double that satisfies it: rounding is monotone, so no
text inside can land outside. Numbers written as integers are compared exactly.

Written forms: at most `INTEGER_DIGITS` before and `FRACTION_DIGITS` after the point, an exponent between -99 and 99. Exponents
are allowed where they cannot cross a bound: on a side without a bound, on a side bounded by zero, and for values that are too
small or too large for `json.dumps` to write them otherwise.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from grammar import automata, regex
from grammar.automata import Dfa, Edges
from grammar.budget import Budget

INTEGER_DIGITS = 30
FRACTION_DIGITS = 30
MOST_LISTED = 1000   # multiples that are listed one by one

_ZERO, _NINE, _POINT = ord("0"), ord("9"), ord(".")


@dataclass(frozen=True, slots=True)
class Range:
    """low <= x <= high, without the bound itself where `..._open`; None is no bound. Bounds are exact."""

    low: Fraction | None = None
    high: Fraction | None = None
    low_open: bool = False
    high_open: bool = False

    def meet(self, other: Range) -> Range:
        low, low_open = _tighter((self.low, self.low_open), (other.low, other.low_open), 1)
        high, high_open = _tighter((self.high, self.high_open), (other.high, other.high_open), -1)
        return Range(low, high, low_open, high_open)

    def holds(self, x: Fraction) -> bool:
        return not (self.low is not None and (x < self.low or (x == self.low and self.low_open))
                    or self.high is not None and (x > self.high or (x == self.high and self.high_open)))


def _tighter(left: tuple[Fraction | None, bool], right: tuple[Fraction | None, bool], sign: int) -> tuple[Fraction | None, bool]:
    if left[0] is None or right[0] is None:
        return right if left[0] is None else left
    if left[0] == right[0]:
        return left[0], left[1] or right[1]
    return left if (left[0] - right[0]) * sign > 0 else right


@functools.lru_cache(maxsize=256)
def number_automaton(bounds: Range, integer: bool) -> Dfa | None:
    """Texts of the numbers in `bounds`, without fraction or exponent where `integer`; None if there are none."""
    budget = Budget()
    low, high = integer_bounds(bounds)
    parts = list(_signed(_form(rf"(0|[1-9]\d{{0,{INTEGER_DIGITS - 1}}})"), Decimal(low), Decimal(high), budget))
    if not integer:
        form = _form(rf"(0|[1-9]\d{{0,{INTEGER_DIGITS - 1}}})\.\d{{1,{FRACTION_DIGITS}}}")
        parts += _signed(form, *_double_bounds(bounds), budget)
        parts += [_form(text) for text in _exponent_forms(bounds)]
    return automata.union(parts, budget) if parts else None


def multiples_automaton(bounds: Range, multiple: int, budget: Budget) -> Dfa | None:
    """Integers in `bounds` that `multiple` divides; None if there are none."""
    low, high = integer_bounds(bounds)
    first = -(-low // multiple) * multiple
    if (high - first) // multiple < MOST_LISTED:
        words = [str(n) for n in range(first, high + 1, multiple)]
        return automata.from_words(words) if words else None
    budget.check("multiple_of", multiple)
    digits: list[Edges] = [[(_ZERO + d, _ZERO + d,
                             (10 * rest + d) % multiple + 1) for d in range(10)] for rest in range(multiple)]
    start = [(ord("-"), ord("-"), 0), *digits[0]]
    divisible = Dfa([start, *digits], [False, True, *[False] * (multiple - 1)])
    plain = number_automaton(bounds, True)
    return automata.intersection(plain, divisible, budget) if plain else None


def integer_bounds(bounds: Range) -> tuple[int, int]:
    """The least and the greatest integer in bounds that can be written."""
    most = 10**INTEGER_DIGITS - 1
    low, high = -most, most
    if bounds.low is not None:
        low = max(low, math.floor(bounds.low) + 1 if bounds.low_open else math.ceil(bounds.low))
    if bounds.high is not None:
        high = min(high, math.ceil(bounds.high) - 1 if bounds.high_open else math.floor(bounds.high))
    return low, high


def literal_texts(value: int | float) -> set[str]:
    """The ways to write one number: as json.dumps does, without an exponent, and an integral one as an integer."""
    texts = {json.dumps(value)}
    if isinstance(value, float):
        plain = format(Decimal(repr(value)), "f")
        if len(plain) <= INTEGER_DIGITS + FRACTION_DIGITS:
            texts.add(plain)
        if value.is_integer() and abs(value) < 2**53:
            texts.add(str(int(value)))
    return texts



# --- decimal texts

@functools.cache
def _form(pattern: str) -> Dfa:
    form = automata.from_regex(regex.parse(pattern), Budget())
    assert form is not None
    return form


def _signed(form: Dfa, low: Decimal, high: Decimal, budget: Budget) -> Iterable[Dfa]:
    """The texts of one form between two bounds: what is not negative, and the mirrored rest behind a minus sign."""
    for sign, least, most in (("", low, high), ("-", -high, -low)):
        if most < 0 or least > most:
            continue
        part: Dfa | None = automata.intersection(form, _at_most(most), budget)
        if part is not None and least > 0:
            part = automata.intersection(part, _at_least(least), budget)
        if part is not None and sign:
            part = automata.intersection(part, _NOT_BARE_ZERO, budget)
        if part is not None:
            yield automata.prefixed(sign, part) if sign else part


# "-0" is no integer's spelling; "-0.0" is a double's.
_NOT_BARE_ZERO = Dfa([[(_ZERO, _ZERO, 1), (_ZERO + 1, _NINE, 2)], [(_POINT, _POINT, 2)], [(_POINT, _NINE, 2)]],
                     [False, False, True])


def _halves(x: Decimal) -> tuple[str, str]:
    whole, _, rest = format(x, "f").partition(".")
    return whole, rest.rstrip("0")


def _at_least(bound: Decimal) -> Dfa:
    """Decimal texts without sign and leading zeros that are at least `bound` > 0 (a digit more before the point is larger)."""
    whole, rest = _halves(bound)
    n = len(whole)
    less, equal, more = 0, n + 1, 2 * (n + 1)     # blocks of states: so many digits read, and how they compare
    fraction, free = 3 * (n + 1), 3 * (n + 1) + len(rest)
    edges: list[Edges] = [[] for _ in range(free + 1)]
    for i in range(n):
        edges[less + i] = [(_ZERO, _NINE, less + i + 1)]
        edges[more + i] = [(_ZERO, _NINE, more + i + 1)]
        edges[equal + i] = _around(ord(whole[i]), less + i + 1, equal + i + 1, more + i + 1)
    for block in (less, equal, more):
        edges[block + n] = [(_ZERO, _NINE, free)]
    edges[equal + n].insert(0, (_POINT, _POINT, fraction))
    edges[more + n].insert(0, (_POINT, _POINT, free))
    for i, digit in enumerate(rest):
        edges[fraction + i] = _around(ord(digit), None, fraction + i + 1, free)
    edges[free] = [(_POINT, _POINT, free), (_ZERO, _NINE, free)]
    accepting = [state == more + n or state == free or (state == equal + n and not rest) for state in range(len(edges))]
    return _starting_at(equal, edges, accepting)


def _at_most(bound: Decimal) -> Dfa:
    """Decimal texts without sign and leading zeros that are at most `bound` >= 0."""
    whole, rest = _halves(bound)
    n = len(whole)
    less, equal, more = 0, n + 1, 2 * (n + 1)
    fraction, free = 3 * (n + 1), 3 * (n + 1) + len(rest) + 1
    edges: list[Edges] = [[] for _ in range(free + 1)]
    for i in range(n):
        for block in (less, more):
            edges[block + i] = [(_POINT, _POINT, free), (_ZERO, _NINE, block + i + 1)]
        edges[equal + i] = [(_POINT, _POINT, free), *_around(ord(whole[i]), less + i + 1, equal + i + 1, more + i + 1)]
    edges[less + n] = [(_POINT, _POINT, free)]
    edges[equal + n] = [(_POINT, _POINT, fraction)]
    for i, digit in enumerate(rest):
        edges[fraction + i] = _around(ord(digit), free, fraction + i + 1, None)
    edges[free - 1] = [(_ZERO, _ZERO, free - 1)]
    edges[free] = [(_ZERO, _NINE, free)]
    accepting = [state != more + n for state in range(len(edges))]
    return _starting_at(equal, edges, accepting)


def _around(digit: int, below: int | None, at: int, above: int | None) -> Edges:
    edges = [(_ZERO, digit - 1, below), (digit, digit, at), (digit + 1, _NINE, above)]
    return [(low, high, target) for low, high, target in edges if low <= high and target is not None]


def _starting_at(start: int, edges: list[Edges], accepting: list[bool]) -> Dfa:
    """The same automaton, numbered so that `start` is state 0."""
    def number(state: int) -> int:
        return 0 if state == start else start if state == 0 else state
    order = [number(state) for state in range(len(edges))]
    return Dfa([[(low, high, number(t)) for low, high, t in edges[s]] for s in order], [accepting[s] for s in order])


# --- bounds for what is parsed into a double

def _double_bounds(bounds: Range) -> tuple[Decimal, Decimal]:
    """Bounds for texts with a fraction: the outermost doubles that satisfy the bounds, cut to what can be written."""
    most = Decimal(10) ** INTEGER_DIGITS - Decimal(10) ** -FRACTION_DIGITS
    low = -most if bounds.low is None else _double_above(bounds.low, bounds.low_open)
    high = most if bounds.high is None else -_double_above(-bounds.high, bounds.high_open)
    return max(low, -most), min(high, most)


def _double_above(bound: Fraction, is_open: bool) -> Decimal:
    """The least double that is at least (more than, if open) the bound."""
    try:
        nearest = bound.numerator / bound.denominator
    except OverflowError:
        return Decimal("inf") if bound > 0 else Decimal("-inf")
    while Fraction(nearest) < bound or (is_open and Fraction(nearest) == bound):
        nearest = math.nextafter(nearest, math.inf)
        if math.isinf(nearest):
            return Decimal("inf")
    return Decimal(repr(nearest))   # its shortest spelling: what is at least that parses to at least this double


def _exponent_forms(bounds: Range) -> Iterable[str]:
    """Regexes of the texts with an exponent that are in bounds whatever their digits are."""
    digits, any_exponent = rf"(\.\d{{1,{FRACTION_DIGITS}}})?", r"[eE][+-]?\d{1,2}"
    mantissa = rf"([1-9]\d{{0,{INTEGER_DIGITS - 1}}}{digits}|0\.\d{{0,{FRACTION_DIGITS - 1}}}[1-9])"
    for sign, low, high in (("", bounds.low, bounds.high), ("-", _negated(bounds.high), _negated(bounds.low))):
        if high is None and (low is None or low <= 0):
            yield sign + mantissa + any_exponent
            continue
        if (low is None or low <= 0) and high is not None and high >= Fraction(1, 10_000):
            yield rf"{sign}[1-9]{digits}[eE]-(0?[5-9]|[1-9]\d)"
        if high is None and low is not None and low <= 10**16:
            yield rf"{sign}[1-9]{digits}[eE]\+?(1[6-9]|[2-9]\d)"
    if bounds.holds(Fraction(0)):
        yield rf"-?0(\.0{{1,{FRACTION_DIGITS}}})?{any_exponent}"


def _negated(x: Fraction | None) -> Fraction | None:
    return None if x is None else -x
