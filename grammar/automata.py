"""Deterministic automata over characters: from regexes, words and each other.

Every automaton that leaves this module is trimmed: from each of its states some accepting state can be reached. That is
what keeps masks free of dead ends.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from grammar import regex
from grammar.budget import Budget
from grammar.charset import CharSet

T = TypeVar("T", bound=Hashable)
Edges = list[tuple[int, int, int]]   # (first, last, target), sorted, disjoint


@dataclass(frozen=True, slots=True, eq=False)
class Dfa:
    """State 0 is the start; `edges[s]` lead out of s; a text is accepted when it ends in a state of `accepting`."""

    edges: list[Edges]
    accepting: list[bool]
    blocks: dict[Any, Any] = field(default_factory=dict)   # what the machine's tables make of it, once made

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
        """For each state the least number of characters to an accepting one."""
        back: list[list[int]] = [[] for _ in self.edges]
        for state, edges in enumerate(self.edges):
            for _, _, target in edges:
                back[target].append(state)
        distance = [0 if final else -1 for final in self.accepting]
        queue = [state for state, final in enumerate(self.accepting) if final]
        for state in queue:
            for before in back[state]:
                if distance[before] < 0:
                    distance[before] = distance[state] + 1
                    queue.append(before)
        return distance


def trimmed(edges: list[Edges], accepting: list[bool]) -> Dfa | None:
    """The automaton without the states from which nothing is accepted; None where that is all of them. State 0 is the start."""
    alive = [distance >= 0 for distance in Dfa(edges, accepting).shortest()]
    if not alive[0]:
        return None
    if all(alive):
        return Dfa(edges, accepting)
    kept = [state for state, lives in enumerate(alive) if lives]
    number = {state: n for n, state in enumerate(kept)}
    return Dfa([[(first, last, number[t]) for first, last, t in edges[s] if alive[t]] for s in kept],
               [accepting[s] for s in kept])


class _Nfa:
    """Thompson's construction. Free moves carry no character; some are open only at the text's begin or end."""

    def __init__(self, budget: Budget) -> None:
        self.moves: list[list[tuple[CharSet, int]]] = []
        self.free: list[list[int]] = []
        self.at_begin: list[list[int]] = []
        self.at_end: list[list[int]] = []
        self._budget = budget

    def state(self) -> int:
        self._budget.check("regex_states", len(self.moves) + 1)
        for column in (self.moves, self.free, self.at_begin, self.at_end):
            column.append([])
        return len(self.moves) - 1

    def add(self, tree: regex.Regex, start: int) -> int:
        """Append `tree` behind `start`; returns the state behind it."""
        match tree:
            case regex.Chars(chars):
                end = self.state()
                self.moves[start].append((chars, end))
            case regex.Join(parts):
                end = start
                for part in parts:
                    end = self.add(part, end)
            case regex.Either(parts):
                end = self.state()
                for part in parts:
                    self.free[self.add(part, self._behind(start))].append(end)
            case regex.Begin() | regex.End():
                end = self.state()
                (self.at_begin if isinstance(tree, regex.Begin) else self.at_end)[start].append(end)
            case regex.Repeat(part, least, most):
                end = self._repeat(part, least, most, start)
        return end

    def _behind(self, start: int) -> int:
        fresh = self.state()
        self.free[start].append(fresh)
        return fresh

    def _repeat(self, part: regex.Regex, least: int, most: int | None, start: int) -> int:
        for _ in range(least):
            start = self.add(part, start)
        if most is None:
            loop, end = self._behind(start), self.state()
            self.free[self.add(part, loop)].append(loop)
            self.free[loop].append(end)
            return end
        end = self.state()
        for _ in range(most - least):
            self.free[start].append(end)
            start = self.add(part, self._behind(start))
        self.free[start].append(end)
        return end

    def closure(self, states: Iterable[int], *, begin: bool = False, end: bool = False) -> list[int]:
        seen = dict.fromkeys(states)
        queue = list(seen)
        for state in queue:
            following = self.free[state]
            if begin and self.at_begin[state]:
                following = following + self.at_begin[state]
            if end and self.at_end[state]:
                following = following + self.at_end[state]
            for target in following:
                if target not in seen:
                    seen[target] = None
                    queue.append(target)
        return queue


def from_regex(tree: regex.Regex, budget: Budget) -> Dfa | None:
    """The automaton of the texts that match `tree` as a whole; None where no text does."""
    nfa = _Nfa(budget)
    start = nfa.state()
    final = nfa.add(tree, start)
    first = nfa.closure([start], begin=True)
    subsets: dict[frozenset[int], int] = {frozenset(first): 0}
    order, edges, accepting = [first], [], []
    for number, subset in enumerate(order):
        moves = [move for state in subset for move in nfa.moves[state]]
        budget.spend("automaton_steps", 1 + len(subset) + sum(len(chars) for chars, _ in moves))
        accepting.append(final in nfa.closure(subset, begin=number == 0, end=True))
        out: Edges = []
        for low, high, targets in _split(moves):
            following = nfa.closure(targets)
            key = frozenset(following)
            if key not in subsets:
                subsets[key] = len(order)
                order.append(following)
                budget.check("automaton_states", len(order))
            budget.spend("automaton_steps", len(following))
            _append(out, low, high, subsets[key])
        edges.append(out)
    return trimmed(edges, accepting)


def _split(moves: Sequence[tuple[CharSet, T]]) -> Iterable[tuple[int, int, frozenset[T]]]:
    """Cut overlapping moves into disjoint ranges, each with all its targets, in order."""
    if len(moves) == 1:
        chars, target = moves[0]
        only = frozenset((target,))
        yield from ((low, high, only) for low, high in chars)
        return
    events: dict[int, list[tuple[T, int]]] = {}
    for chars, target in moves:
        for low, high in chars:
            events.setdefault(low, []).append((target, 1))
            events.setdefault(high + 1, []).append((target, -1))
    active: dict[T, int] = {}
    last = 0
    for point in sorted(events):
        if active:
            yield last, point - 1, frozenset(active)
        for target, change in events[point]:
            active[target] = active.get(target, 0) + change
            if not active[target]:
                del active[target]
        last = point


def _append(edges: Edges, low: int, high: int, target: int) -> None:
    if edges and edges[-1][2] == target and edges[-1][1] + 1 == low:
        edges[-1] = edges[-1][0], high, target
    else:
        edges.append((low, high, target))


def intersection(left: Dfa, right: Dfa, budget: Budget) -> Dfa | None:
    """What both accept, or None."""
    pairs = {(0, 0): 0}
    order, edges = [(0, 0)], []
    for s, t in order:
        out: Edges = []
        i, j, here, there = 0, 0, left.edges[s], right.edges[t]
        budget.spend("automaton_steps", 1 + len(here) + len(there))
        while i < len(here) and j < len(there):
            low, high = max(here[i][0], there[j][0]), min(here[i][1], there[j][1])
            if low <= high:
                pair = here[i][2], there[j][2]
                if pair not in pairs:
                    pairs[pair] = len(order)
                    order.append(pair)
                    budget.check("automaton_states", len(order))
                out.append((low, high, pairs[pair]))
            if here[i][1] < there[j][1]:
                i += 1
            else:
                j += 1
        edges.append(out)
    return trimmed(edges, [left.accepting[s] and right.accepting[t] for s, t in order])


def at_least(dfa: Dfa, n: int, budget: Budget) -> Dfa | None:
    """What `dfa` accepts with n characters or more, or None."""
    if n == 0:
        return dfa
    budget.check("automaton_states", n)
    counter = Dfa([[(0, 0x10FFFF, min(k + 1, n))] for k in range(n + 1)], [k == n for k in range(n + 1)])
    return intersection(dfa, counter, budget)


def from_words(words: Iterable[str]) -> Dfa:
    """The automaton (a trie) of one or more words."""
    children: list[dict[int, int]] = [{}]
    accepting = [False]
    for word in words:
        state = 0
        for char in word:
            following = children[state].get(ord(char))
            if following is None:
                following = children[state][ord(char)] = len(children)
                children.append({})
                accepting.append(False)
            state = following
        accepting[state] = True
    return Dfa([sorted((point, point, target) for point, target in out.items()) for out in children], accepting)


def union(parts: Sequence[Dfa], budget: Budget) -> Dfa:
    """What one of `parts` accepts."""
    if len(parts) == 1:
        return parts[0]
    start = frozenset((n, 0) for n in range(len(parts)))
    numbers, order, edges, accepting = {start: 0}, [start], [], []
    for members in order:
        budget.spend("automaton_steps", 1 + len(members))
        accepting.append(any(parts[n].accepting[state] for n, state in members))
        moves = [(((low, high),), (n, target)) for n, state in members for low, high, target in parts[n].edges[state]]
        out: Edges = []
        for low, high, targets in _split(moves):
            if targets not in numbers:
                numbers[targets] = len(order)
                order.append(targets)
            _append(out, low, high, numbers[targets])
        edges.append(out)
    return Dfa(edges, accepting)


def prefixed(char: str, dfa: Dfa) -> Dfa:
    """`char`, then what `dfa` accepts."""
    shifted = [[(low, high, target + 1) for low, high, target in out] for out in dfa.edges]
    return Dfa([[(ord(char), ord(char), 1)], *shifted], [False, *dfa.accepting])
