"""Bounds of numbers, and the numbers that they leave on either side of zero as their readers have them.

A text is read in two ways at once. An integer's digits are compared exactly. What has a fraction or an exponent is parsed into a
double, so the numbers allowed are first moved to the outermost doubles that satisfy them, in their shortest spelling: rounding is
monotone, so no text inside can land outside. What is excluded is excluded with everything that rounds to it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

INTEGER_DIGITS = 30             # before the point
MOST_DIGITS = 100               # of an integer, even where the schema names a longer one

LARGEST = Decimal(repr(math.nextafter(math.inf, 0)))    # double
SMALLEST = Decimal(repr(math.nextafter(0, 1)))          # positive double


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


def integer_bounds(bounds: Range) -> tuple[int, int]:
    """The least and the greatest integer in bounds that can be written."""
    most = 10**digits_before(bounds) - 1
    low, high = -most, most
    if bounds.low is not None:
        low = max(low, math.floor(bounds.low) + 1 if bounds.low_open else math.ceil(bounds.low))
    if bounds.high is not None:
        high = min(high, math.ceil(bounds.high) - 1 if bounds.high_open else math.floor(bounds.high))
    return low, high


def digits_before(bounds: Range) -> int:
    """The digits an integer may have: those of the bounds too, as long as these are not of an absurd size."""
    named = [len(str(abs(math.trunc(bound)))) for bound in (bounds.low, bounds.high) if bound is not None]
    fitting = [n for n in named if n <= MOST_DIGITS]
    beyond = bounds.low is not None and bounds.low > 0 or bounds.high is not None and bounds.high < 0
    return max([INTEGER_DIGITS, *(min(n + beyond, MOST_DIGITS) for n in fitting)])


@dataclass(frozen=True, slots=True)
class Side:
    """The numbers of one sign, mirrored to be positive: integers by digits, and what is read as a double. Both sorted, closed."""

    integers: tuple[tuple[int, int], ...]
    doubles: tuple[tuple[Decimal, Decimal | None], ...]

    def holds(self, x: Decimal, behind: bool) -> bool:
        """Whether a double at `x` (or right behind it) is among them."""
        at = bisect_right(self.doubles, x, key=lambda interval: interval[0]) - 1
        if at < 0:
            return False
        high = self.doubles[at][1]
        return high is None or x < high or (x == high and not behind)

    def between(self, n: int) -> tuple[tuple[Decimal, Decimal | None], ...]:
        """The intervals that have a number from `n` up to, and without, n + 1."""
        first = max(bisect_right(self.doubles, Decimal(n), key=lambda interval: interval[0]) - 1, 0)
        last = bisect_right(self.doubles, Decimal(n + 1), key=lambda interval: interval[0])
        return self.doubles[first:last]

    def has_integer(self, n: int) -> bool:
        at = bisect_right(self.integers, n, key=lambda interval: interval[0]) - 1
        return at >= 0 and n <= self.integers[at][1]

    @property
    def lowest(self) -> int:
        """No number among them is smaller."""
        return min([low for low, _ in self.integers] + [int(low) for low, _ in self.doubles], default=0)

    @property
    def highest(self) -> int | None:
        """No number among them is greater; None where they are not bounded."""
        if any(high is None for _, high in self.doubles):
            return None
        return max([high for _, high in self.integers] + [math.ceil(high) for _, high in self.doubles if high is not None],
                   default=0)

    @property
    def unbounded(self) -> bool:
        return len(self.doubles) == 1 and self.doubles[0][0] <= SMALLEST and self.doubles[0][1] is None

    @property
    def has_zero(self) -> bool:
        return bool(self.doubles) and self.doubles[0][0] == 0


@dataclass(frozen=True, slots=True)
class Caps:
    """The most that may be written on either side of zero: digits of integers, integers, and what is read as a double."""

    digits: int = INTEGER_DIGITS
    integers: int | None = None
    doubles: int | None = None


def one_side(bounds: Range, without: Iterable[Fraction], sign: int, caps: Caps) -> Side:
    """What bounds and exclusions leave on one side of zero."""
    if sign < 0:
        bounds = Range(_negated(bounds.high), _negated(bounds.low), bounds.high_open, bounds.low_open)
    low, high = integer_bounds(bounds)
    highest = 10**caps.digits - 1 if caps.integers is None else caps.integers
    integers = [(max(low, 0 if sign > 0 else 1), min(high, highest))]
    least = Decimal(0) if bounds.low is None else max(Decimal(0), _double_above(bounds.low, bounds.low_open))
    most = None if bounds.high is None else -_double_above(-bounds.high, bounds.high_open)
    if caps.doubles is not None:
        most = Decimal(caps.doubles) if most is None else min(most, Decimal(caps.doubles))
    doubles: list[tuple[Decimal, Decimal | None]] = [(least, most)]
    for value in sorted(sign * excluded for excluded in without):
        below, above = _neighbours(value)
        if value.denominator == 1:
            last, first = min(int(value) - 1, math.floor(below)), max(int(value) + 1, math.ceil(above))
            integers[-1:] = cut_out(integers[-1:], last, first)     # what is cut out comes in order
        if above > 0:
            doubles[-1:] = cut_out(doubles[-1:], below, above)
    return Side(tuple((a, b) for a, b in integers if a <= b),
                tuple((a, b) for a, b in doubles if a.is_finite() and (b is None or a <= b)))


def cut_out(intervals: Iterable[tuple[Any, Any]], last: Any, first: Any) -> list[Any]:
    """Closed intervals, less what lies between `last` and `first`, which stay."""
    found = []
    for low, high in intervals:
        found += [(low, last if high is None else min(high, last)), (max(low, first), high)]
    return [(low, high) for low, high in found if high is None or low <= high]


def _neighbours(value: Fraction) -> tuple[Decimal, Decimal]:
    """The doubles below and above the one that is nearest to a number; what rounds to that one lies between."""
    try:
        nearest = float(value)
    except OverflowError:
        nearest = math.inf if value > 0 else -math.inf
    return Decimal(repr(math.nextafter(nearest, -math.inf))), Decimal(repr(math.nextafter(nearest, math.inf)))


def _double_above(bound: Fraction, is_open: bool) -> Decimal:
    """The least double that is at least (more than, if open) the bound, in its shortest spelling."""
    try:
        nearest = bound.numerator / bound.denominator
    except OverflowError:
        return Decimal("inf") if bound > 0 else -LARGEST
    while Fraction(nearest) < bound or (is_open and Fraction(nearest) == bound):
        nearest = math.nextafter(nearest, math.inf)
        if math.isinf(nearest):
            return Decimal("inf")
    return Decimal(repr(nearest))   # what is at least that parses to at least this double


def _negated(x: Fraction | None) -> Fraction | None:
    return None if x is None else -x
