"""Automata of decimal texts, built straight from what may be done at each place of the number line.

The line from 0 on is cut in pieces. Within a piece every text is treated alike: it may end there or not, and go on with an
exponent or not. Reading a digit narrows the numbers that a text can still become from an interval to a tenth of it; as long
as a cut lies inside, the text needs a state of its own, and otherwise all texts of the piece share their states. So an
automaton has a few states for each digit of each cut, and one for each digit that may follow freely.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from grammar.budget import Budget
from grammar.number.exponents import Ranges, exponent_states, runs
from grammar.text.automata import Dfa, Edges, trimmed

_ZERO, _NINE, _POINT, _MINUS = ord("0"), ord("9"), ord("."), ord("-")


@dataclass(frozen=True, slots=True)
class Ending:
    """What a text may do at a number: be finished, or go on with an exponent out of some ranges."""

    accepts: bool = False
    exponents: Ranges = ()

    @property
    def alive(self) -> bool:
        return self.accepts or bool(self.exponents)


DEAD = Ending()


@dataclass(frozen=True, slots=True)
class Fractions:
    """What may stand behind a point: `first` from .0 on, and from each cut on its own ending.

    A cut is (digits without trailing zeros, whether it begins just behind that number, ending). `most` digits may follow;
    where only an exponent follows, and the texts that end without one have at most `most_plain`.
    """

    first: Ending
    cuts: tuple[tuple[str, bool, Ending], ...] = ()
    most: int = 30
    most_plain: int = 30

    @property
    def alive(self) -> bool:
        return self.most > 0 and (self.first.alive or any(ending.alive for _, _, ending in self.cuts))


@dataclass(frozen=True, slots=True)
class Grid:
    """What may stand behind a point, listed: `holds` has a byte for each number of `places` digits, 1 where a text may be that
    fraction. Zeros may follow, and no exponent; at most `most` digits in all."""

    places: int
    holds: bytes
    most: int = 30

    @property
    def alive(self) -> bool:
        return self.most > 0 and 1 in self.holds


@dataclass(frozen=True, slots=True)
class Piece:
    """The integers from `start` on to the next piece: how a text may end at them, and what may follow their point."""

    start: int
    ending: Ending = DEAD
    fractions: Fractions | Grid | None = None

    @property
    def alive(self) -> bool:
        return self.ending.alive or self.fractions is not None


@dataclass(frozen=True, slots=True)
class Spelling:
    """`shortest`: no fraction ends in a zero, and exponents are written as Python writes them (e-05)."""

    shortest: bool = False


@dataclass(slots=True)
class _Line:
    """The pieces of one sign, in a form to search in."""

    name: str
    pieces: list[Piece]
    known: dict[tuple[Ending, Fractions | Grid | None], int]   # number of each kind of piece, shared by both signs
    kinds: list[int] = field(init=False)
    starts: list[int] = field(init=False)
    width: int = field(init=False)      # digits of the last cut: every longer number is in the last piece
    _before_cuts: set[int] = field(init=False)      # the numbers that some cut begins with

    def __post_init__(self) -> None:
        merged: list[Piece] = []
        for piece in self.pieces:
            if not merged or (merged[-1].ending, merged[-1].fractions) != (piece.ending, piece.fractions):
                merged.append(piece)
        self.pieces, self.starts = merged, [piece.start for piece in merged]
        self.kinds = [self.known.setdefault((piece.ending, piece.fractions), len(self.known)) for piece in merged]
        self.width = len(str(self.starts[-1]))
        texts = map(str, self.starts[1:])
        self._before_cuts = {int(text[:n]) for text in texts for n in range(1, len(text) + 1)}

    def special(self, number: int) -> bool:
        """Whether a cut may lie among the numbers that begin with these digits, or at the first of them."""
        return number in self._before_cuts

    def reachable(self, number: int, n_digits: int) -> tuple[int, ...] | None:
        """For 0, 1, ... more digits behind `number` the piece of all results; None where they are not in one piece.

        The last entry stands for every greater count of digits.
        """
        found = []
        starts = self.starts
        for more in range(max(self.width - n_digits, 0) + 1):
            low = number * 10**more
            piece = bisect_right(starts, low) - 1
            if piece + 1 < len(starts) and starts[piece + 1] < low + 10**more:
                return None
            found.append(piece)
        if n_digits + len(found) - 1 >= self.width and found[-1] != len(starts) - 1:
            found.append(len(starts) - 1)
        return tuple(found)


def decimal_automaton(plus: Sequence[Piece], minus: Sequence[Piece], most_digits: int, budget: Budget,
                      spelling: Spelling | None = None) -> Dfa | None:
    """The texts of the numbers described by the pieces of either sign (each from 0 on, or empty); None if there are none.

    `most_digits` before the point, no fewer than any cut has.
    """
    work = _Builder(most_digits, spelling or Spelling(), budget)
    kinds: dict[tuple[Ending, Fractions | Grid | None], int] = {}
    root = work.state(DEAD)
    out = work.integer_part(_Line("+", list(plus), kinds)) if plus else []
    if minus:
        behind = work.state(DEAD)
        work.edges[behind] = work.integer_part(_Line("-", list(minus), kinds))
        out = [(_MINUS, _MINUS, behind), *out]
    work.edges[root] = out
    work.finish()
    return trimmed(work.edges, work.accepting)


class _Builder:
    """States are found by what may follow them; each is given its edges when its turn comes."""

    def __init__(self, most_digits: int, spelling: Spelling, budget: Budget) -> None:
        self.edges: list[Edges] = []
        self.accepting: list[bool] = []
        self._most, self._shortest, self._budget = most_digits, spelling.shortest, budget
        self._known: dict[Hashable, int] = {}
        self._waiting: list[Callable[[], None]] = []

    def state(self, ending: Ending) -> int:
        """A new state; the edges of its exponents are there already."""
        self._budget.spend("automaton_steps", 2)
        self._budget.check("automaton_states", len(self.edges) + 1)
        number = len(self.edges)
        self.edges.append([])
        self.accepting.append(ending.accepts)
        if ending.exponents:
            target = self._exponent(ending.exponents)
            self.edges[number] = [(char, char, target) for char in ((ord("e"),) if self._shortest else (ord("E"), ord("e")))]
        return number

    def finish(self) -> None:
        for build in self._waiting:     # grows meanwhile
            build()

    # --- before the point

    def integer_part(self, line: _Line) -> Edges:
        """The edges of the first digits."""
        edges: Edges = []
        if line.pieces[0].alive:
            edges.append((_ZERO, _ZERO, self._ended(line.pieces[0])))
        return edges + self._digits(line, 0, 0, first=1)

    def _digits(self, line: _Line, number: int, n_digits: int, first: int = 0) -> Edges:
        edges: Edges = []
        target, known = None, False     # neighbours that no cut begins with go the same way
        for digit in range(first, 10):
            following = number * 10 + digit
            special = line.special(following)
            if special or not known:
                target = self._integer(line, following, n_digits + 1)
            known = not special
            if target is not None:
                edges.append((_ZERO + digit, _ZERO + digit, target))
        return runs(edges)

    def _integer(self, line: _Line, number: int, n_digits: int) -> int | None:
        """The state behind the digits of `number`; None where no text goes on from there."""
        if n_digits > self._most:
            return None
        pieces = line.reachable(number, n_digits)
        key: Hashable
        if pieces is not None:
            if not any(line.pieces[piece].alive for piece in pieces):
                return None
            key = n_digits, tuple(line.kinds[piece] for piece in pieces)
        else:
            key = line.name, n_digits, number
        if key not in self._known:
            piece = line.pieces[bisect_right(line.starts, number) - 1]
            self._known[key] = state = self._ended(piece)
            self._waiting.append(lambda: self._grow(state, line, number, n_digits, pieces))
        return self._known[key]

    def _grow(self, state: int, line: _Line, number: int, n_digits: int, pieces: tuple[int, ...] | None) -> None:
        if pieces is None:
            digits = self._digits(line, number, n_digits)
        else:
            target = self._integer(line, number * 10, n_digits + 1)
            digits = [] if target is None else [(_ZERO, _NINE, target)]
        self.edges[state] = sorted(self.edges[state] + digits)

    def _ended(self, piece: Piece) -> int:
        """A new state at the end of an integer part."""
        state = self.state(piece.ending)
        if piece.fractions is not None:
            point = self._point(piece.fractions)
            if point is not None:
                self.edges[state].insert(0, (_POINT, _POINT, point))
        return state

    # --- behind the point

    def _point(self, fractions: Fractions | Grid) -> int | None:
        if not fractions.alive:
            return None
        key = "point", fractions
        if key not in self._known:
            self._known[key] = state = self.state(DEAD)
            if isinstance(fractions, Grid):
                self._open_grid(state, fractions)
            else:
                self._waiting.append(lambda: self._open(state, fractions))
        return self._known[key]

    def _open_grid(self, state: int, grid: Grid) -> None:
        """The digits that may follow, and all behind them: no deeper than a grid has places."""
        if grid.places == 0:
            if grid.holds[0] and not self._shortest:
                self.edges[state] = [(_ZERO, _ZERO, self._zeros(Ending(True), DEAD, grid.most - 1, grid.most - 1))]
            return
        width = len(grid.holds) // 10
        edges: Edges = []
        for digit in range(10):
            rest = Grid(grid.places - 1, grid.holds[digit * width:(digit + 1) * width], grid.most - 1)
            if 1 not in rest.holds:
                continue
            key = rest, digit == 0 and self._shortest
            if key not in self._known:
                self._known[key] = behind = self.state(Ending(bool(rest.holds[0]) and not key[1]))
                if rest.most > 0:
                    self._open_grid(behind, rest)
            edges.append((_ZERO + digit, _ZERO + digit, self._known[key]))
        self.edges[state] = runs(edges)

    def _fraction(self, rest: Fractions, zero: bool) -> int | None:
        """The state behind a digit (`zero`: it was one) from which `rest` is left."""
        zero = zero and self._shortest
        ending = rest.first
        if zero:
            ending = DEAD
        elif rest.most_plain < 0:
            ending = Ending(False, ending.exponents)
        if not ending.alive and not rest.alive:
            return None
        if not rest.cuts and not self._shortest:
            return self._tail(ending, rest.most, rest.most_plain)
        if len(rest.cuts) == 1 and not rest.cuts[0][0] and not self._shortest:
            return self._zeros(ending, rest.cuts[0][2], rest.most, rest.most_plain)
        key = rest, zero
        if key not in self._known:
            self._known[key] = state = self.state(ending)
            if rest.most > 0:
                self._waiting.append(lambda: self._open(state, rest))
        return self._known[key]

    def _tail(self, ending: Ending, most: int, most_plain: int) -> int:
        """The state from which up to `most` more digits change nothing."""
        key = ending, most, most_plain
        if key in self._known:
            return self._known[key]
        self._known[key] = state = first = self.state(ending)
        while most > 0:
            most, most_plain = most - 1, most_plain - 1
            following = Ending(ending.accepts and most_plain >= 0, ending.exponents)
            if not following.alive:
                break
            key = following, most, most_plain
            known = self._known.get(key)
            target = self.state(following) if known is None else known
            self.edges[state] = [(_ZERO, _NINE, target), *self.edges[state]]
            if known is not None:
                break
            self._known[key] = state = target
        return first

    def _zeros(self, ending: Ending, others: Ending, most: int, most_plain: int) -> int:
        """The state at a number of its own: behind it zeros stay there, and other digits lead to the `others`."""
        key = ending, others, most, most_plain
        first = self._known.get(key)
        if first is not None:
            return first
        self._known[key] = state = first = self.state(ending)
        while most > 0:
            most, most_plain = most - 1, most_plain - 1
            after = Ending(others.accepts and most_plain >= 0, others.exponents)
            out = [(_ZERO + 1, _NINE, self._tail(after, most, most_plain))] if after.alive else []
            following = Ending(ending.accepts and most_plain >= 0, ending.exponents)
            if following.alive or after.alive:
                target = self.state(following)
                self._known[following, others, most, most_plain] = target
                out.insert(0, (_ZERO, _ZERO, target))
            self.edges[state] = out + self.edges[state]
            if not (following.alive or after.alive):
                break
            state = target
        return first

    def _open(self, state: int, fractions: Fractions) -> None:
        """The digits that may follow."""
        most, most_plain = fractions.most - 1, fractions.most_plain - 1
        edges: Edges = []
        ending, cuts, at, digit = fractions.first, fractions.cuts, 0, 0
        while digit < 10:
            inner, last = [], digit
            if digit and at < len(cuts) and cuts[at][0] == str(digit) and not cuts[at][1]:
                ending, at = cuts[at][2], at + 1
            first = ending
            while at < len(cuts) and (cuts[at][0][:1] == str(digit) or not digit and not cuts[at][0]):
                digits, behind, ending = cuts[at]
                inner.append((digits[1:], behind, ending))
                at += 1
            if not inner and (digit or not self._shortest):     # all digits up to the next cut go the same way
                last = int(cuts[at][0][0]) - 1 if at < len(cuts) else 9
            target = self._fraction(Fractions(first, tuple(inner), most, most_plain), digit == 0)
            if target is not None:
                edges.append((_ZERO + digit, _ZERO + max(last, digit), target))
            digit = max(last, digit) + 1
        self.edges[state] = sorted(runs(edges) + self.edges[state])

    # --- exponents

    def _exponent(self, ranges: Ranges) -> int:
        """The state behind an e."""
        key = "exponent", ranges
        if key not in self._known:
            edges, accepting = exponent_states(ranges, self._shortest)
            first = self._known[key] = len(self.edges)
            self._budget.spend("automaton_steps", len(edges))
            self.edges += [[(low, high, first + target) for low, high, target in out] for out in edges]
            self.accepting += accepting
        return self._known[key]
