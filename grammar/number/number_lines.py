"""The pieces of the number line for each form of number: what `grammar.number.decimals` builds automata from."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Literal

from grammar.number.bounds import LARGEST, SMALLEST, Side
from grammar.number.decimals import DEAD, Ending, Fractions, Grid, Piece
from grammar.number.exponents import Ranges
from grammar.number.multiples import Row

FRACTION_DIGITS = 30
MOST_GAPS_WITH_EXPONENTS = 50       # between the numbers allowed: with more, none is written with an exponent

_EXACT = Context(prec=2000, Emin=-10**6, Emax=10**6)
_ANY_DIGITS: Ranges = ((-99, 99),)  # exponents behind any digits, where none can cross a bound
_EXACT_DIGITS = 15                  # decimal digits that a double always tells apart


@dataclass(frozen=True, slots=True)
class Form:
    """What may stand behind an integer's digits: which fractions, exponents within which range, and behind `free` forms the
    exponents that cannot cross a bound."""

    fraction: Literal["none", "zero", "any", "proper", "zero or proper", "shortest"]
    exponents: tuple[int, int] | None = None
    free: bool = False
    most_fraction: int = FRACTION_DIGITS


class Line:
    """The numbers of one sign and their form, as pieces."""

    def __init__(self, side: Side, form: Form, most_digits: int) -> None:
        if len(side.doubles) > MOST_GAPS_WITH_EXPONENTS:
            form = replace(form, exponents=None, free=False)
        self._side, self._form, self._most_digits = side, form, most_digits
        self._plain = Side(side.integers, tuple(
            (a, b) for a, b in ((_rounded(low, ROUND_CEILING), None if high is None else _rounded(high, ROUND_FLOOR))
                                for low, high in side.doubles) if b is None or a <= b))
        self._mantissas = sorted(set(self._breaks()))

    def pieces(self) -> list[Piece]:
        starts = {0, *self._starts()}
        return [Piece(n, Ending(self.has_integer(n), self._exponents(n, Decimal(n), False)), self._fractions(n))
                for n in sorted(starts) if n < 10**self._most_digits]

    def has_integer(self, n: int) -> bool:
        return self._side.has_integer(n)

    def _starts(self) -> Iterable[int]:
        for low, high in self._side.integers:
            yield from (low, high + 1)
        for least, most in self._plain.doubles:
            yield from (int(least), int(least) + 1)
            if most is not None:
                yield from (int(most), int(most) + 1)
        for mantissa, _ in self._mantissas:
            yield from (int(mantissa), int(mantissa) + 1)
        if self._form.exponents or self._form.free:
            yield from (1, 10)
        if self._form.fraction in ("proper", "zero or proper", "shortest"):
            yield 1
            yield from (10**n for n in range(1, 17))

    def _breaks(self) -> Iterable[tuple[Decimal, bool]]:
        """Where the exponents allowed behind one digit and its fraction change."""
        if self._form.exponents is None:
            return
        lowest, highest = self._form.exponents
        for low, high in self._side.doubles:
            least, most = max(low, SMALLEST), LARGEST if high is None else min(high, LARGEST)
            if least <= most and most.adjusted() >= lowest and least.adjusted() <= highest:
                if least.adjusted() >= lowest - 1:
                    yield _mantissa(least), False
                if most.adjusted() <= highest + 1:
                    yield _mantissa(most), True

    def _exponents(self, n: int, x: Decimal, behind: bool) -> Ranges:
        """What may follow the digits of x, of which n stands before the point."""
        free = self._form.free
        if n == 0 and x == 0 and not behind:
            return _ANY_DIGITS if free and self._side.has_zero else ()
        if n == 0 or n >= 10:
            return _ANY_DIGITS if free and self._side.unbounded else ()
        if self._form.exponents is None:
            return ()
        found: list[tuple[int, int]] = []
        for low, high in self._side.doubles:
            least, most = max(low, SMALLEST), LARGEST if high is None else min(high, LARGEST)
            if most <= 0:
                continue
            first = max(least.adjusted() + (x < _mantissa(least)), self._form.exponents[0])
            top = _mantissa(most)
            last = min(most.adjusted() - (x > top or (x == top and behind)), self._form.exponents[1])
            if first <= last:
                found.append((first, last))
        return tuple(found)

    def _fractions(self, n: int) -> Fractions | Grid | None:
        """What may stand behind the point of `n`."""
        form = self._form
        if form.fraction == "none":
            return None
        places = sorted({(x, behind) for x, behind in self._places(n) if n <= x < n + 1})
        first = last = self._ending(n, Decimal(n), False)
        cuts = []
        for x, behind in places:
            ending = self._ending(n, x, behind)
            if ending != last:
                cuts.append((_digits_behind(x), behind, ending))
            last = ending
        most = most_plain = form.most_fraction
        if form.fraction == "zero":
            most, most_plain = 16 if form.exponents and 1 <= n <= 9 else 1, 1
        elif form.fraction == "shortest":
            most = most_plain = min(_EXACT_DIGITS - (len(str(n)) if n else 0), form.most_fraction)
        found = Fractions(first, tuple(cuts), most, most_plain)
        return found if found.alive else None

    def _places(self, n: int) -> Iterable[tuple[Decimal, bool]]:
        """Where something may change; numbers that are not between n and n + 1 are ignored."""
        for low, high in self._plain.between(n):
            yield low, False
            if high is not None:
                yield high, True
        if n < 10:
            yield from self._mantissas
        yield Decimal(n), True
        if self._form.fraction in ("proper", "zero or proper"):
            margin = _margin(n)
            yield from ((n + margin, False), (_EXACT.subtract(Decimal(n + 1), margin), True))
        elif self._form.fraction == "shortest" and n == 0:
            yield Decimal("0.0001"), False

    def _ending(self, n: int, x: Decimal, behind: bool) -> Ending:
        return Ending(self._plain.holds(x, behind) and self._fits(n, x, behind), self._exponents(n, x, behind))

    def _fits(self, n: int, x: Decimal, behind: bool) -> bool:
        """Whether a fraction is of the right form."""
        match self._form.fraction:
            case "zero":
                return x == n and not behind
            case "any":
                return True
            case "shortest":
                return n > 0 or x >= Decimal("0.0001")
        if x == n and not behind:
            return self._form.fraction == "zero or proper"
        margin = _margin(n)
        highest = _EXACT.subtract(Decimal(n + 1), margin)
        return (x >= _EXACT.add(Decimal(n), margin) or n == 0) and (x < highest or (x == highest and not behind))


class RowLine(Line):
    """Those of the numbers that stand in rows of multiples."""

    def __init__(self, side: Side, form: Form, most_digits: int, rows: Sequence[Row]) -> None:
        super().__init__(side, form, most_digits)
        highest = side.highest
        self._rows = [row for row in rows if highest is None or row.start <= highest]
        self._row_starts = [row.start for row in self._rows]

    def _row(self, n: int) -> Row:
        return self._rows[bisect_right(self._row_starts, n) - 1]

    def has_integer(self, n: int) -> bool:
        return bool(self._row(n).holds[0]) and super().has_integer(n)

    def _starts(self) -> Iterable[int]:
        yield from super()._starts()
        yield from self._row_starts

    def _fractions(self, n: int) -> Fractions | Grid | None:
        row, form = self._row(n), self._form.fraction
        if form == "none":
            return None
        found: Fractions | Grid = self._grid(n, row.holds)
        if form == "zero":
            fits = bool(row.holds[0]) and self._plain.holds(Decimal(n), False)
            found = Fractions(Ending(fits), (("", True, DEAD),), 1, 1)
        return found if found.alive else None

    def _grid(self, n: int, holds: bytes) -> Grid:
        """Those of a row that are within bounds."""
        places = len(holds).bit_length() * 3 // 10      # of a power of ten
        kept = bytearray(len(holds))
        for low, high in self._plain.between(n):
            first = max(math.ceil(_EXACT.scaleb(_EXACT.subtract(low, Decimal(n)), places)), 0)
            last = len(holds) - 1 if high is None else math.floor(_EXACT.scaleb(_EXACT.subtract(high, Decimal(n)), places))
            if first <= last:
                kept[first:last + 1] = holds[first:last + 1]
        if self._form.fraction == "proper":
            kept[0] = 0
        return Grid(places, bytes(kept), FRACTION_DIGITS)


def _margin(n: int) -> Decimal:
    """How far a number between n and n + 1 must be off either: then it is no integer as a double, nor its quotient by one."""
    binary = math.ceil(math.log2(10) * len(str(n))) if n else 0
    return Decimal(1).scaleb(-max(math.floor((54 - binary) * math.log10(2)) - 1, 0))


def _mantissa(x: Decimal) -> Decimal:
    return x.scaleb(-x.adjusted())


def _rounded(x: Decimal, direction: str) -> Decimal:
    """To the digits that can be written behind a point."""
    return x.quantize(Decimal(1).scaleb(-FRACTION_DIGITS), direction, context=_EXACT)


def _digits_behind(x: Decimal) -> str:
    return format(x, "f").partition(".")[2].rstrip("0")
