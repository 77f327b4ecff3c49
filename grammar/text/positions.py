"""From a regex without look-around to a deterministic automaton, by positions.

Glushkov's construction: every character set of the regex is a *position*, and what can follow a position is a set of positions.
A set is one integer, a bit for each position, so a step of the subset construction is a few operations on integers. Bit 0 stands
for the end of the text.
"""

from __future__ import annotations

from dataclasses import dataclass

from grammar.budget import Budget
from grammar.text import charset
from grammar.text.charset import CharSet
from grammar.text.dfa import DEAD, Alphabet, Dfa, from_table
from grammar.text.regex_tree import Begin, Chars, Either, End, Join, Regex, Repeat

END = 1     # the bit of the text's end


@dataclass(slots=True)
class _Part:
    """What a subtree can begin with, end with, and whether it can be empty.

    Each comes in two forms because of the anchors: `first_at_begin` are positions that can only be first at the text's begin,
    behind a ^; `last_at_end` are those that can only be last at its end, before a $. `empty` is a set of conditions under which
    the part matches no characters: bit 0 always, bit 1 at the begin, bit 2 at the end, bit 3 where begin and end are one place.
    """

    first: int = 0
    first_at_begin: int = 0
    last: int = 0
    last_at_end: int = 0
    empty: int = 0


_ALWAYS, _AT_BEGIN, _AT_END, _AT_BOTH = 1, 2, 4, 8
_CONDITIONS = (_ALWAYS, _AT_BEGIN, _AT_END, _AT_BOTH)


def automaton(tree: Regex, budget: Budget) -> Dfa | None:
    """The texts that match `tree` as a whole; None where no text does."""
    return _Positions(budget).determinised(tree)


class _Positions:
    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._sets: dict[CharSet, int] = {}
        self._set_of = [0]          # of each position; position 0 is the end
        self._follow = [0]

    def determinised(self, tree: Regex) -> Dfa | None:
        """The subset construction. A state is the set of positions that may come next."""
        start = self._start(self._part(tree))
        alphabet = Alphabet(list(self._sets))
        holders = self._holders(alphabet)
        universal = self._universal(alphabet)
        following: dict[int, int] = {}      # a set of positions just read -> number of the state behind it
        numbers, order, table = {start: 0}, [start], []
        for state in order:
            self._budget.spend("automaton_steps", 1 + alphabet.size)
            row = []
            for held in holders:
                read = state & held
                if not read:
                    row.append(DEAD)
                    continue
                number = following.get(read)
                if number is None:
                    behind = self._behind(read)
                    if behind & universal and behind & END:
                        behind = (behind & universal) | END     # whatever else may follow is accepted already
                    number = following[read] = numbers.setdefault(behind, len(order))
                    if number == len(order):
                        order.append(behind)
                        self._budget.check("automaton_states", number + 1)
                row.append(number)
            table.append(row)
        return from_table(alphabet, table, [bool(state & END) for state in order], self._budget)

    def _start(self, part: _Part) -> int:
        self._link(part.last | part.last_at_end, END)
        return part.first | part.first_at_begin | (END if part.empty else 0)

    def _behind(self, read: int) -> int:
        """What may follow the positions of a set."""
        behind, n_read = 0, 0
        while read:
            lowest = read & -read
            behind |= self._follow[lowest.bit_length() - 1]
            read ^= lowest
            n_read += 1
        self._budget.spend("automaton_steps", n_read * (1 + len(self._follow) // 8192))
        return behind

    def _holders(self, alphabet: Alphabet) -> list[int]:
        """For each class of characters the positions whose set holds it."""
        positions = [0] * len(self._sets)
        for position in range(1, len(self._set_of)):
            positions[self._set_of[position]] |= 1 << position
        holders = [0] * alphabet.size
        for number, classes in enumerate(alphabet.members):
            for one in classes:
                holders[one] |= positions[number]
        return holders

    def _universal(self, alphabet: Alphabet) -> int:
        """The positions that take any character, again and again, until the text ends."""
        anything = self._sets.get(charset.ALL)
        return sum(1 << position for position in range(1, len(self._set_of))
                   if self._set_of[position] == anything
                   and self._follow[position] & (1 << position | END) == (1 << position | END))

    # --- the construction

    def _part(self, tree: Regex) -> _Part:
        match tree:
            case Chars(chars):
                return self._chars(chars)
            case Join(parts):
                joined = _Part(empty=_ALWAYS)
                for part in parts:
                    joined = self._joined(joined, self._part(part))
                return joined
            case Either(parts):
                either = _Part()
                for part in parts:
                    one = self._part(part)
                    either = _Part(either.first | one.first, either.first_at_begin | one.first_at_begin, either.last | one.last,
                                   either.last_at_end | one.last_at_end, either.empty | one.empty)
                return either
            case Repeat(part, least, most):
                return self._repeated(part, least, most)
            case Begin():
                return _Part(empty=_AT_BEGIN)
            case End():
                return _Part(empty=_AT_END)
        raise AssertionError("look-around has another construction")

    def _chars(self, chars: CharSet) -> _Part:
        if not chars:
            return _Part()
        position = len(self._set_of)
        self._budget.check("regex_states", position)
        self._budget.spend("automaton_steps", 1 + position // 8192)
        self._set_of.append(self._sets.setdefault(chars, len(self._sets)))
        self._follow.append(0)
        bit = 1 << position
        return _Part(bit, 0, bit, 0, 0)

    def _link(self, lasts: int, follow: int) -> None:
        """Let `follow` come behind every position of `lasts`."""
        if not follow:
            return
        n_links = 0
        while lasts:
            lowest = lasts & -lasts
            self._follow[lowest.bit_length() - 1] |= follow
            lasts ^= lowest
            n_links += 1
        self._budget.spend("automaton_steps", n_links * (1 + len(self._follow) // 8192))

    def _joined(self, left: _Part, right: _Part) -> _Part:
        self._link(left.last, right.first)
        joined = _Part(left.first, left.first_at_begin, right.last, right.last_at_end, _BOTH[left.empty][right.empty])
        if left.empty & _ALWAYS:
            joined.first |= right.first
            joined.first_at_begin |= right.first_at_begin
        elif left.empty & _AT_BEGIN:
            joined.first_at_begin |= right.first | right.first_at_begin
        if right.empty & _ALWAYS:
            joined.last |= left.last
            joined.last_at_end |= left.last_at_end
        elif right.empty & _AT_END:
            joined.last_at_end |= left.last | left.last_at_end
        return joined

    def _repeated(self, tree: Regex, least: int, most: int | None) -> _Part:
        joined = _Part(empty=_ALWAYS)
        for _ in range(least if most is not None else max(least - 1, 0)):
            joined = self._joined(joined, self._copy(tree))
        if most is None:
            loop = self._copy(tree)
            self._link(loop.last, loop.first)
            if least == 0:
                loop.empty |= _ALWAYS
            return self._joined(joined, loop)
        optional = _Part(empty=_ALWAYS)
        for _ in range(most - least):      # from the inside out: (x(x(x)?)?)?
            optional = self._joined(self._copy(tree), optional)
            optional.empty |= _ALWAYS
        return self._joined(joined, optional)

    def _copy(self, tree: Regex) -> _Part:
        """A repetition of what takes no characters costs a step too."""
        self._budget.spend("automaton_steps", 1)
        return self._part(tree)


def _both(left: int, right: int) -> int:
    """The conditions under which two parts are empty at one place."""
    found = 0
    for i, one in enumerate(_CONDITIONS):
        for j, other in enumerate(_CONDITIONS):
            if left & one and right & other:
                found |= 1 << (i | j)
    return found


_BOTH = [[_both(left, right) for right in range(16)] for left in range(16)]
