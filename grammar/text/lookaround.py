r"""From a regex with look-around to a deterministic automaton: exactly, wherever the look-arounds stand.

An automaton of free moves (Thompson's construction) is run as a set of *threads*, as in the subset construction, with two
additions:

- Looking behind asks about the text read so far. For each look-behind, all places of the text are tried as its start, in one set
  of states beside the threads; whether its end is among them now decides which moves are open.
- Looking ahead asks about the text to come. A thread that passes a look-ahead takes an *obligation* along: the threads of the
  look-ahead's own regex, started here. A positive one is met as soon as one of them arrives, and its thread dies when none is
  left; a negative one is the reverse. Only threads that have met their obligations count at the text's end.

So a state is a set of threads, each with a set of obligations, each with a set of threads: all finite, all under the budget.
Conjunction, complement and nesting need no construction of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from grammar.budget import Budget
from grammar.errors import PatternError
from grammar.text.charset import CharSet
from grammar.text.dfa import DEAD, Alphabet, Dfa, from_table
from grammar.text.regex_tree import ANY_TEXT, Begin, Chars, Either, End, Join, Look, Regex, Repeat

_ALWAYS, _AT_BEGIN, _AT_END, _BEHIND, _AHEAD = range(5)


class _Move(NamedTuple):
    """A move without a character. `number` says which look-ahead or look-behind it asks."""

    target: int
    asks: int = _ALWAYS
    number: int = 0
    negative: bool = False


class _Obligation(NamedTuple):
    """What the text to come must do (`negative`: must not): bring one of `threads` to the end of look-ahead `number`."""

    number: int
    negative: bool
    threads: frozenset[_Thread]


class _Thread(NamedTuple):
    state: int
    obligations: frozenset[_Obligation]


Threads = frozenset[_Thread]
_FREE: frozenset[_Obligation] = frozenset()


@dataclass(frozen=True, slots=True)
class _Place:
    """What is known at a place of the text: whether it is the begin or the end, and which look-behinds end here."""

    begin: bool
    end: bool
    behind: tuple[bool, ...]


def automaton(tree: Regex, budget: Budget) -> Dfa | None:
    """The texts that match `tree` as a whole; None where no text does. Raises PatternError for look-ahead within look-behind."""
    moves = _Moves(budget)
    start = moves.state()
    final = moves.add(tree, start)
    return _Runner(moves, start, final, _tail(moves, tree, final), budget).determinised()


def _tail(moves: _Moves, tree: Regex, final: int) -> int | None:
    """The state in which the whole rest of the text is accepted, where `tree` ends in any text."""
    ends_open = isinstance(tree, Join) and bool(tree.parts) and tree.parts[-1] == ANY_TEXT
    return moves.loop_before(final) if ends_open else None


class _Moves:
    """States with moves by character sets and free moves; the regexes of look-arounds have states of their own."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.by_set: list[list[tuple[int, int]]] = []       # (number of a set, target)
        self.free: list[list[_Move]] = []
        self.sets: dict[CharSet, int] = {}
        self.ahead: list[tuple[int, int]] = []              # start and end of each look-ahead
        self.behind: list[tuple[int, int]] = []
        self._loops: dict[int, int] = {}

    def state(self) -> int:
        self._budget.check("regex_states", len(self.free) + 1)
        self.by_set.append([])
        self.free.append([])
        return len(self.free) - 1

    def loop_before(self, end: int) -> int | None:
        return self._loops.get(end)

    def add(self, tree: Regex, start: int) -> int:
        """Append `tree` behind `start`; returns the state behind it."""
        self._budget.spend("automaton_steps", 1)
        match tree:
            case Chars(chars):
                end = self.state()
                if chars:
                    self.by_set[start].append((self.sets.setdefault(chars, len(self.sets)), end))
                return end
            case Join(parts):
                for part in parts:
                    start = self.add(part, start)
                return start
            case Either(parts):
                end = self.state()
                for part in parts:
                    self.free[self.add(part, self._behind(start))].append(_Move(end))
                return end
            case Begin() | End():
                end = self.state()
                self.free[start].append(_Move(end, _AT_BEGIN if isinstance(tree, Begin) else _AT_END))
                return end
            case Repeat(part, least, most):
                return self._repeat(part, least, most, start)
        return self._look(tree, start)

    def _behind(self, start: int) -> int:
        fresh = self.state()
        self.free[start].append(_Move(fresh))
        return fresh

    def _repeat(self, part: Regex, least: int, most: int | None, start: int) -> int:
        for _ in range(least):
            start = self.add(part, start)
        if most is None:
            loop, end = self._behind(start), self.state()
            self.free[self.add(part, loop)].append(_Move(loop))
            self.free[loop].append(_Move(end))
            self._loops[end] = loop
            return end
        end = self.state()
        for _ in range(most - least):
            self.free[start].append(_Move(end))
            start = self.add(part, self._behind(start))
        self.free[start].append(_Move(end))
        return end

    def _look(self, tree: Look, start: int) -> int:
        inner, looks = self.state(), self.ahead if tree.ahead else self.behind
        if not tree.ahead and _asks_about_the_rest(tree.part):
            raise PatternError("a look-ahead, a word boundary or an end within a look-behind is not supported")
        # Behind what is looked for ahead, any text may follow: there a thread waits for obligations of its own.
        inner_end = self.add(Join((tree.part, ANY_TEXT) if tree.ahead else (ANY_TEXT, tree.part)), inner)
        looks.append((inner, inner_end))    # behind those that it holds: a look-behind may ask only earlier ones
        end = self.state()
        self.free[start].append(_Move(end, _AHEAD if tree.ahead else _BEHIND, len(looks) - 1, tree.negative))
        return end


def _asks_about_the_rest(tree: Regex) -> bool:
    match tree:
        case Join(parts) | Either(parts):
            return any(_asks_about_the_rest(part) for part in parts)
        case Repeat(part, _, _):
            return _asks_about_the_rest(part)
        case Look(part, ahead, _):
            return ahead or _asks_about_the_rest(part)
    return isinstance(tree, End)


class _Runner:
    """Runs the threads over classes of characters and numbers the states that come up."""

    def __init__(self, moves: _Moves, start: int, final: int, tail: int | None, budget: Budget) -> None:
        self._moves, self._start, self._final, self._tail, self._budget = moves, start, final, tail, budget
        self._alphabet = Alphabet(list(moves.sets))
        self._classes = [frozenset(classes) for classes in self._alphabet.members]

    def determinised(self) -> Dfa | None:
        """A state is the threads alive and, for each look-behind, its own threads."""
        begin = self._place_after(tuple(frozenset([start]) for start, _ in self._moves.behind), begin=True)
        threads = self._reduced(self._closure([_Thread(self._start, _FREE)], begin[1]))
        first = threads, begin[0]
        numbers, order, accepting, table = {first: 0}, [(*first, True)], [], []
        for threads, behind, is_begin in order:
            accepting.append(self._accepts(threads, self._truths(behind, is_begin, end=True)))
            row = []
            for number in range(self._alphabet.size):
                following, place = self._place_after(self._behind_step(behind, number), begin=False)
                stepped = self._reduced(self._closure(self._step(threads, number, place), place))
                if not stepped:
                    row.append(DEAD)
                    continue
                target = numbers.setdefault((stepped, following), len(order))
                if target == len(order):
                    order.append((stepped, following, False))
                    self._budget.check("automaton_states", target + 1)
                row.append(target)
            table.append(row)
        return from_table(self._alphabet, table, accepting, self._budget)

    # --- looking behind

    def _place_after(self, seeds: tuple[frozenset[int], ...], *, begin: bool) -> tuple[tuple[frozenset[int], ...], _Place]:
        """The look-behinds' threads at a place, from the states they were brought to, and what is known there."""
        closed: list[frozenset[int]] = []
        truths: list[bool] = []
        for (_, end), states in zip(self._moves.behind, seeds, strict=True):
            threads = self._closure([_Thread(s, _FREE) for s in states], _Place(begin, False, tuple(truths)))
            closed.append(frozenset(thread.state for thread in threads))
            truths.append(end in closed[-1])
        return tuple(closed), _Place(begin, False, tuple(truths))

    def _truths(self, behind: tuple[frozenset[int], ...], begin: bool, *, end: bool) -> _Place:
        return _Place(begin, end, tuple(last in states for (_, last), states in zip(self._moves.behind, behind, strict=True)))

    def _behind_step(self, behind: tuple[frozenset[int], ...], number: int) -> tuple[frozenset[int], ...]:
        return tuple(frozenset(target for state in states for target in self._targets(state, number)) for states in behind)

    # --- threads

    def _targets(self, state: int, number: int) -> Iterable[int]:
        self._budget.spend("automaton_steps")
        return (target for chars, target in self._moves.by_set[state] if number in self._classes[chars])

    def _step(self, threads: Threads, number: int, place: _Place) -> list[_Thread]:
        """The threads after a character of class `number`; `place` is the one behind it."""
        stepped: list[_Thread] = []
        kept: dict[frozenset[_Obligation], frozenset[_Obligation] | None] = {}
        for state, obligations in threads:
            targets = list(self._targets(state, number))
            if not targets:
                continue
            if obligations not in kept:
                kept[obligations] = self._carried(obligations, number, place)
            rest = kept[obligations]
            if rest is not None:
                stepped.extend(_Thread(target, rest) for target in targets)
        return stepped

    def _carried(self, obligations: frozenset[_Obligation], number: int, place: _Place) -> frozenset[_Obligation] | None:
        """What is left of obligations after a character; None where one can no longer be met."""
        left: set[_Obligation] = set()
        for one in obligations:
            threads = self._reduced(self._closure(self._step(one.threads, number, place), place))
            settled = self._settled(one.number, threads)
            if settled is None:
                left.add(_Obligation(one.number, one.negative, threads))
            elif settled == one.negative:
                return None
        return frozenset(left)

    def _settled(self, number: int, threads: Threads) -> bool | None:
        """Whether a look-ahead has found its end, or never will; None while that is open."""
        if not threads:
            return False
        return True if _Thread(self._moves.ahead[number][1], _FREE) in threads else None

    def _closure(self, threads: Iterable[_Thread], place: _Place) -> Threads:
        """The threads together with all that free moves lead to."""
        seen = dict.fromkeys(threads)
        queue = list(seen)
        for thread in queue:
            self._budget.spend("automaton_steps")
            for move in self._moves.free[thread.state]:
                following = self._moved(thread, move, place)
                if following is not None and following not in seen:
                    seen[following] = None
                    queue.append(following)
        return frozenset(seen)

    def _moved(self, thread: _Thread, move: _Move, place: _Place) -> _Thread | None:
        if move.asks == _AHEAD:
            return self._promised(thread, move, place)
        is_open = (move.asks == _ALWAYS or (move.asks == _AT_BEGIN and place.begin) or (move.asks == _AT_END and place.end)
                   or (move.asks == _BEHIND and place.behind[move.number] != move.negative))
        return _Thread(move.target, thread.obligations) if is_open else None

    def _promised(self, thread: _Thread, move: _Move, place: _Place) -> _Thread | None:
        """The thread behind a look-ahead, with its obligation unless that is settled at once."""
        start = [_Thread(self._moves.ahead[move.number][0], _FREE)]
        threads = self._reduced(self._closure(start, place))
        if place.end:
            settled: bool | None = self._arrived(self._moves.ahead[move.number][1], threads, place)
        else:
            settled = self._settled(move.number, threads)
        if settled is None:
            return _Thread(move.target, thread.obligations | {_Obligation(move.number, move.negative, threads)})
        return _Thread(move.target, thread.obligations) if settled != move.negative else None

    def _reduced(self, threads: Threads) -> Threads:
        """Without the threads that must do more than another one in the same state."""
        if self._tail is not None and _Thread(self._tail, _FREE) in threads:
            return frozenset([_Thread(self._tail, _FREE)])
        if not any(thread.obligations for thread in threads):
            return threads
        by_state: dict[int, list[frozenset[_Obligation]]] = {}
        for state, obligations in threads:
            by_state.setdefault(state, []).append(obligations)
        self._budget.spend("automaton_steps", sum(len(listed) ** 2 for listed in by_state.values()))
        return frozenset(_Thread(state, one) for state, listed in by_state.items() for one in listed
                         if not any(other < one for other in listed))

    def _accepts(self, threads: Threads, place: _Place) -> bool:
        return self._arrived(self._final, threads, place)

    def _arrived(self, final: int, threads: Threads, place: _Place) -> bool:
        """Whether, the text ending here, a thread stands at `final` with all its obligations met."""
        return any(state == final and all(self._arrived(self._moves.ahead[one.number][1], one.threads, place) != one.negative
                                          for one in obligations)
                   for state, obligations in self._closure(threads, place))
