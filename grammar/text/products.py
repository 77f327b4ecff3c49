"""Products of deterministic automata: intersection, difference, complement and union, and the smallest automaton of a language.

Where a result accepts nothing it is None.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

from grammar.budget import Budget
from grammar.text import charset
from grammar.text.charset import CharSet
from grammar.text.dfa import DEAD, Alphabet, Dfa, Edges, from_table, trimmed

T = TypeVar("T", bound=Hashable)

ANY_TEXT = Dfa([[(first, last, 0) for first, last in charset.ALL]], [True])


def intersection(left: Dfa, right: Dfa, budget: Budget) -> Dfa | None:
    """What both accept, or None."""
    if left is ANY_TEXT or left is right:
        return right
    if right is ANY_TEXT:
        return left
    pairs = {(0, 0): 0}
    order, edges = [(0, 0)], []
    for s, t in order:
        out: Edges = []
        i, j, here, there = 0, 0, left.edges[s], right.edges[t]
        budget.spend("automaton_steps", 1 + len(here) + len(there))
        while i < len(here) and j < len(there):
            a, b = here[i], there[j]
            low, high = max(a[0], b[0]), min(a[1], b[1])
            if low <= high:
                pair = a[2], b[2]
                number = pairs.get(pair)
                if number is None:
                    number = pairs[pair] = len(order)
                    order.append(pair)
                    budget.check("automaton_states", number + 1)
                add_edge(out, low, high, number)
            if a[1] < b[1]:
                i += 1
            else:
                j += 1
        edges.append(out)
    return trimmed(edges, [left.accepting[s] and right.accepting[t] for s, t in order])


def difference(left: Dfa, right: Dfa | None, budget: Budget) -> Dfa | None:
    """What `left` accepts and `right` does not, or None; `left` itself where they have no text in common."""
    if left is right or right is ANY_TEXT:
        return None
    if right is None or not _overlap(left, right, budget):
        return left
    pairs = {(0, 0): 0}
    order, edges = [(0, 0)], []
    for s, t in order:
        out: Edges = []
        there = right.edges[t] if t != DEAD else []
        budget.spend("automaton_steps", 1 + len(left.edges[s]) + len(there))
        for low, high, beside, target in _aligned(left.edges[s], there):
            pair = target, beside
            number = pairs.get(pair)
            if number is None:
                number = pairs[pair] = len(order)
                order.append(pair)
                budget.check("automaton_states", number + 1)
            add_edge(out, low, high, number)
        edges.append(out)
    return trimmed(edges, [left.accepting[s] and (t == DEAD or not right.accepting[t]) for s, t in order])


def _overlap(left: Dfa, right: Dfa, budget: Budget) -> bool:
    """Whether some text is accepted by both."""
    order = [(0, 0)]
    known = {(0, 0)}
    for s, t in order:
        if left.accepting[s] and right.accepting[t]:
            return True
        here, there = left.edges[s], right.edges[t]
        budget.spend("automaton_steps", 1 + len(here) + len(there))
        i = j = 0
        while i < len(here) and j < len(there):
            if max(here[i][0], there[j][0]) <= min(here[i][1], there[j][1]):
                pair = here[i][2], there[j][2]
                if pair not in known:
                    known.add(pair)
                    order.append(pair)
            if here[i][1] < there[j][1]:
                i += 1
            else:
                j += 1
    return False


def complement(dfa: Dfa | None, budget: Budget) -> Dfa | None:
    """All texts that `dfa` does not accept, or None."""
    return difference(ANY_TEXT, dfa, budget)


def union(parts: Sequence[Dfa], budget: Budget) -> Dfa:
    """What one of `parts` (at least one) accepts."""
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
                budget.check("automaton_states", len(order))
            add_edge(out, low, high, numbers[targets])
        edges.append(out)
    return Dfa(edges, accepting)


def _aligned(here: Edges, there: Edges) -> Iterable[tuple[int, int, int, int]]:
    """The edges `here`, cut where edges `there` begin or end: (first, last, target there or DEAD, target here)."""
    j = 0
    for first, last, target in here:
        low = first
        while low <= last:
            while j < len(there) and there[j][1] < low:
                j += 1
            if j == len(there) or there[j][0] > last:
                yield low, last, DEAD, target
                break
            if there[j][0] > low:
                yield low, there[j][0] - 1, DEAD, target
                low = there[j][0]
            high = min(last, there[j][1])
            yield low, high, there[j][2], target
            low = high + 1


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


def add_edge(edges: Edges, low: int, high: int, target: int) -> None:
    """Append an edge behind the others, as a part of the last one where that goes on."""
    if edges and edges[-1][2] == target and edges[-1][1] + 1 == low:
        edges[-1] = edges[-1][0], high, target
    else:
        edges.append((low, high, target))


def minimised(dfa: Dfa | None, budget: Budget) -> Dfa | None:
    """The same texts with the fewest states (as they are, where there are very many)."""
    if dfa is None:
        return None
    sets = {tuple((low, high) for low, high, target in out if target == one)
            for out in dfa.edges for one in {target for _, _, target in out}}
    alphabet = Alphabet(list(sets))
    table = [_row(out, alphabet) for out in dfa.edges]
    budget.spend("automaton_steps", len(table) * (1 + alphabet.size))
    return from_table(alphabet, table, dfa.accepting, budget)


def _row(out: Edges, alphabet: Alphabet) -> list[int]:
    """The targets of the classes. Each class lies within one edge or outside them all."""
    row = [DEAD] * alphabet.size
    j = 0
    for first, _, number in alphabet.segments:
        while j < len(out) and out[j][1] < first:
            j += 1
        if j < len(out) and out[j][0] <= first:
            row[number] = out[j][2]
    return row
