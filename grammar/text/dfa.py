"""A deterministic automaton over characters, and how one is made of a table over classes of characters.

Every automaton that leaves this package is trimmed: from each of its states some accepting state can be reached. That is what
keeps masks free of dead ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from grammar.budget import Budget
from grammar.text.charset import CharSet

Edges = list[tuple[int, int, int]]   # (first, last, target), sorted, disjoint

DEAD = -1               # the target of a class that no text goes on with


@dataclass(frozen=True, slots=True, eq=False)
class Dfa:
    """State 0 is the start; `edges[s]` lead out of s; a text is accepted when it ends in a state of `accepting`."""

    edges: list[Edges]
    accepting: list[bool]
    blocks: dict[Any, Any] = field(default_factory=dict)   # what is derived from it, once made: the machine's tables, distances

    def accepts(self, text: str) -> bool:
        state = 0
        for char in text:
            point = ord(char)
            for first, last, target in self.edges[state]:
                if first <= point <= last:
                    state = target
                    break
            else:
                return False
        return self.accepting[state]

    def shortest(self) -> list[int]:
        """For each state the least number of characters to an accepting one. Not to be changed."""
        if "shortest" not in self.blocks:
            self.blocks["shortest"] = distances([[target for _, _, target in out] for out in self.edges], self.accepting)
        found: list[int] = self.blocks["shortest"]
        return found


def distances(targets: Sequence[Iterable[int]], accepting: Sequence[bool]) -> list[int]:
    """For each state the least number of moves to an accepting one; -1 where there is no way. DEAD is no state."""
    back: list[list[int]] = [[] for _ in accepting]
    for state, out in enumerate(targets):
        for target in out:
            if target != DEAD:
                back[target].append(state)
    distance = [0 if final else -1 for final in accepting]
    queue = [state for state, final in enumerate(accepting) if final]
    for state in queue:
        for before in back[state]:
            if distance[before] < 0:
                distance[before] = distance[state] + 1
                queue.append(before)
    return distance


def trimmed(edges: list[Edges], accepting: list[bool]) -> Dfa | None:
    """The automaton without the states from which nothing is accepted; None where that is all of them. State 0 is the start."""
    alive = list(accepting)
    for state in range(len(edges) - 1, -1, -1):     # nearly always finds all
        alive[state] = alive[state] or any([alive[target] for _, _, target in edges[state]])
    if all(alive):
        return Dfa(edges, accepting)
    alive = [distance >= 0 for distance in distances([[target for _, _, target in out] for out in edges], accepting)]
    if not alive[0]:
        return None
    if all(alive):
        return Dfa(edges, accepting)
    kept = [state for state, lives in enumerate(alive) if lives]
    number = {state: n for n, state in enumerate(kept)}
    return Dfa([[(first, last, number[t]) for first, last, t in edges[s] if alive[t]] for s in kept],
               [accepting[s] for s in kept])


class Alphabet:
    """A partition of the characters into the fewest classes that no set of a collection cuts in two.

    `segments` are (first, last, class), sorted and disjoint; characters of no set are in no class. `members[n]` are the
    classes of the n-th set.
    """

    def __init__(self, sets: Sequence[CharSet]) -> None:
        toggles: dict[int, int] = {}
        for n, chars in enumerate(sets):
            for first, last in chars:
                toggles[first] = toggles.get(first, 0) ^ (1 << n)
                toggles[last + 1] = toggles.get(last + 1, 0) ^ (1 << n)
        numbers: dict[int, int] = {}
        self.segments: list[tuple[int, int, int]] = []
        inside, begin = 0, 0
        for point in sorted(toggles):
            if inside:
                self.segments.append((begin, point - 1, numbers.setdefault(inside, len(numbers))))
            inside ^= toggles[point]
            begin = point
        self.size = len(numbers)
        self.members: list[list[int]] = [[] for _ in sets]
        for signature, number in numbers.items():
            while signature:
                low = signature & -signature
                self.members[low.bit_length() - 1].append(number)
                signature ^= low

    def edges(self, row: Sequence[int]) -> Edges:
        """The edges of a table's row: one target for each class."""
        out: Edges = []
        first, last, target = 0, -2, DEAD
        for low, high, number in self.segments:
            following = row[number]
            if following == target and low == last + 1:
                last = high
                continue
            if target != DEAD:
                out.append((first, last, target))
            first, last, target = low, high, following
        if target != DEAD:
            out.append((first, last, target))
        return out


def from_table(alphabet: Alphabet, table: list[list[int]], accepting: list[bool], budget: Budget) -> Dfa | None:
    """The trimmed automaton of a table, with the fewest states: `table[state][class]` is a state or DEAD."""
    distance = distances(table, accepting)
    if distance[0] < 0:
        return None
    block = _equal_states(table, distance)
    first_of: dict[int, int] = {}
    for state, number in enumerate(block):
        if distance[state] >= 0:
            first_of.setdefault(number, state)
    place = {number: n for n, number in enumerate(first_of)}
    renamed = [place.get(number, DEAD) for number in block]
    renamed.append(DEAD)    # what DEAD, which is -1, becomes
    budget.spend("automaton_steps", len(first_of) * (1 + len(alphabet.segments) // 8))
    return Dfa([alphabet.edges([renamed[target] for target in table[state]]) for state in first_of.values()],
               [accepting[state] for state in first_of.values()])


def _equal_states(table: list[list[int]], distance: list[int]) -> list[int]:
    """A number for each state, the same for states that accept the same texts.

    Refines a partition as Hopcroft does: of a block that falls apart the largest piece keeps its number, so a state is looked at
    again only when one of its targets went to a smaller piece. It starts from `distance`: equal states are equally far from
    acceptance.
    """
    block = [*distance, DEAD]
    members: dict[int, set[int]] = {}
    sources: list[list[int]] = [[] for _ in table]
    for state, row in enumerate(table):
        members.setdefault(distance[state], set()).add(state)
        for target in set(row):
            if target != DEAD:
                sources[target].append(state)
    members.pop(DEAD, None)
    changed = set().union(*members.values())
    n_blocks = max(distance) + 1
    while changed:
        by_block: dict[int, set[int]] = {}
        for state in changed:
            by_block.setdefault(block[state], set()).add(state)
        changed = set()
        for number, ours in by_block.items():
            members[number], *others = _pieces(members[number], ours, table, block)
            for piece in others:
                members[n_blocks] = piece
                for state in piece:
                    block[state] = n_blocks
                    changed.update(sources[state])
                n_blocks += 1
    return block[:-1]


def _pieces(members: set[int], changed: set[int], table: list[list[int]], block: list[int]) -> list[set[int]]:
    """A block cut by where its states lead, the largest piece first. Those that are not `changed` still lead alike."""
    if len(members) == 1:
        return [members]
    cut: dict[tuple[int, ...], set[int]] = {}
    for state in changed:
        cut.setdefault(tuple([block[target] for target in table[state]]), set()).add(state)
    if len(changed) < len(members):
        other = next(state for state in members if state not in changed)
        signature = tuple([block[target] for target in table[other]])
        if len(cut) == 1 and signature in cut:
            return [members]
        apart = changed - cut.get(signature, set())
        if 2 * len(apart) <= len(members):
            cut.pop(signature, None)
            members -= apart
            return [members, *cut.values()]
        cut[signature] = members - apart
    return sorted(cut.values(), key=len, reverse=True)
