"""The algebra of deterministic automata: from regexes and words, and from each other.

    from_regex, from_words                      made from their sources
    union, intersection, difference, complement made from each other (`grammar.text.products`)
    minimised                                   the same with the fewest states
    at_least, at_most, at_most_weight           lengths
    prefixed, separated, listed, embedded       one text after another, and one inside another
    count                                       how many texts are accepted

Where a result accepts nothing it is None, and None is read as such an automaton where that makes sense. All texts are made of
characters; surrogates are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from grammar.budget import Budget
from grammar.text import lookaround, positions, regex_tree
from grammar.text.dfa import Dfa, Edges, trimmed
from grammar.text.products import ANY_TEXT, add_edge, complement, difference, intersection, minimised, union
from grammar.text.regex_tree import Begin, Either, Join, Look, Regex

__all__ = [
    "ANY_TEXT", "Dfa", "Edges", "at_least", "at_most", "at_most_weight", "complement", "count", "difference", "embedded",
    "from_regex", "from_words", "intersection", "listed", "minimised", "prefixed", "separated", "trimmed", "union"]


def from_regex(tree: Regex, budget: Budget) -> Dfa | None:
    """The automaton of the texts that match `tree` as a whole, with the fewest states possible; None where no text does.

    Raises GrammarTooLarge, and PatternError for a look-ahead within a look-behind.
    """
    tree = _taking_what_is_ahead(tree)
    if not regex_tree.has_look(tree):
        return positions.automaton(tree, budget)
    looks, rest = _looks_at_begin(tree)
    if not looks:
        return lookaround.automaton(tree, budget)
    found = from_regex(rest, budget)
    for look in looks:
        whole = from_regex(Join((look.part, regex_tree.ANY_TEXT)), budget)
        if found is not None:
            found = difference(found, whole, budget) if look.negative else whole and intersection(found, whole, budget)
    return minimised(found, budget)


def _taking_what_is_ahead(tree: Regex) -> Regex:
    """Where any text may follow, looking for something ahead is the same as taking it."""
    if not (isinstance(tree, Join) and tree.parts and tree.parts[-1] == regex_tree.ANY_TEXT):
        return tree
    *parts, end = tree.parts
    return Join((*parts[:-1], *map(_taken, parts[-1:]), end))


def _taken(tree: Regex) -> Regex:
    match tree:
        case Join((*parts, last)):
            return Join((*parts, _taken(last)))
        case Either(parts):
            return Either(tuple(_taken(part) for part in parts))
        case Look(part, True, False):
            return _taken(part)
    return tree


def _looks_at_begin(tree: Regex) -> tuple[list[Look], Regex]:
    """The look-aheads that stand at the begin of the text, and the rest of the tree: they are conditions on the text as a whole,
    so products of small automata take their place."""
    parts = _flat(tree)
    if parts[:1] == [regex_tree.ANY_TEXT]:
        parts = parts[1:]
        if not parts or not isinstance(parts[0], Begin):
            return [], tree
    looks: list[Look] = []
    for n, part in enumerate(parts):
        if isinstance(part, Look) and part.ahead:
            looks.append(part)
        elif not isinstance(part, Begin):
            return looks, Join((Begin(), *parts[n:]))
    return looks, Begin()


def _flat(tree: Regex) -> list[Regex]:
    return [one for part in tree.parts for one in _flat(part)] if isinstance(tree, Join) else [tree]


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


# --- lengths


def at_least(dfa: Dfa, n: int, budget: Budget) -> Dfa | None:
    """What `dfa` accepts with n characters or more, or None."""
    if not n or n <= dfa.shortest()[0]:
        return dfa
    return _counted(dfa, n, lambda k: min(k + 1, n), lambda k: k == n, budget)


def at_most(dfa: Dfa, n: int, budget: Budget) -> Dfa | None:
    """What `dfa` accepts with n characters or fewer, or None."""
    nearest = dfa.shortest()
    return _counted(dfa, n, lambda k: k + 1, lambda _: True, budget, within=lambda state, k: k + nearest[state] <= n)


def at_most_weight(dfa: Dfa, weight: Callable[[int], int], most: int, budget: Budget) -> Dfa | None:
    """What `dfa` accepts whose characters weigh `most` or less altogether. `weight` must not decrease from one code point to the
    next: every edge is cut where it steps."""
    cut = Dfa([[(low, high, target) for first, last, target in out for low, high in _level(first, last, weight)]
               for out in dfa.edges], dfa.accepting)
    pairs = {(0, 0): 0}
    order, edges = [(0, 0)], []
    for state, used in order:
        out: Edges = []
        budget.spend("automaton_steps", 1 + len(cut.edges[state]))
        for low, high, target in cut.edges[state]:
            after = used + weight(low)
            if after > most:
                continue
            number = pairs.setdefault((target, after), len(order))
            if number == len(order):
                order.append((target, after))
                budget.check("automaton_states", number + 1)
            add_edge(out, low, high, number)
        edges.append(out)
    return minimised(trimmed(edges, [dfa.accepting[state] for state, _ in order]), budget)


def _level(first: int, last: int, weight: Callable[[int], int]) -> Iterable[tuple[int, int]]:
    """A range cut into pieces of one weight."""
    while weight(first) < weight(last):
        low, high = first, last     # low has the weight of `first`, high more
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if weight(middle) == weight(first) else (low, middle)
        yield first, low
        first = high
    yield first, last


def _counted(dfa: Dfa, n: int, following: Callable[[int], int], final: Callable[[int], bool], budget: Budget, *,
             within: Callable[[int, int], bool] = lambda state, k: True) -> Dfa | None:
    """The product with a counter of characters, of its pairs only those that are `within`."""
    budget.check("automaton_states", n)
    if not within(0, 0):
        return None
    pairs = {(0, 0): 0}
    order, edges = [(0, 0)], []
    for state, k in order:
        out: Edges = []
        budget.spend("automaton_steps", 1 + 2 * len(dfa.edges[state]))
        after = following(k)
        for low, high, target in dfa.edges[state]:
            if not within(target, after):
                continue
            number = pairs.setdefault((target, after), len(order))
            if number == len(order):
                order.append((target, after))
                budget.check("automaton_states", number + 1)
            out.append((low, high, number))
        edges.append(out)
    return trimmed(edges, [dfa.accepting[state] and final(k) for state, k in order])


def prefixed(char: str, dfa: Dfa) -> Dfa:
    """`char`, then what `dfa` accepts."""
    shifted = [[(low, high, target + 1) for low, high, target in out] for out in dfa.edges]
    return Dfa([[(ord(char), ord(char), 1)], *shifted], [False, *dfa.accepting])


def separated(left: Dfa, char: str, right: Dfa) -> Dfa:
    """What `left` accepts, then `char`, then what `right` accepts. No text of `left` may go on with `char`."""
    n, point = len(left.edges), ord(char)
    edges = [_with_edge(out, point, n) if accepting else list(out)
             for out, accepting in zip(left.edges, left.accepting, strict=True)]
    edges += [[(low, high, target + n) for low, high, target in out] for out in right.edges]
    return Dfa(edges, [False] * n + list(right.accepting))


def listed(dfa: Dfa, char: str) -> Dfa:
    """One or more texts of `dfa` with `char` between them. No text may hold `char`, and none be empty."""
    return Dfa([_with_edge(out, ord(char), 0) if accepting else list(out)
                for out, accepting in zip(dfa.edges, dfa.accepting, strict=True)], list(dfa.accepting))


def embedded(host: Dfa, place: str, guest: Dfa) -> Dfa:
    """`host` with a text of `guest` wherever it has the character `place`.

    The result must be deterministic by itself: where a text of the guest may end it does not go on with what comes behind it in
    the host, and where one begins the host has no other edge that the guest could take. The guest accepts no empty text.
    """
    edges, accepting, point = [list(out) for out in host.edges], list(host.accepting), ord(place)
    starts: dict[int, int] = {}     # state behind the place -> first state of the guest that returns there
    for out in host.edges:
        for low, high, target in out:
            if low <= point <= high and target not in starts:
                first = starts[target] = len(edges)
                for inside, final in zip(guest.edges, guest.accepting, strict=True):
                    shifted = [(a, b, t + first) for a, b, t in inside]
                    edges.append(sorted(shifted + host.edges[target]) if final else shifted)
                    accepting.append(final and host.accepting[target])
    for state, out in enumerate(host.edges):
        for low, high, target in out:
            if low <= point <= high:
                assert low == high, "the place is a character of its own"
                edges[state] = sorted([edge for edge in out if edge[0] != point] + edges[starts[target]])
    found = trimmed(edges, accepting)
    assert found is not None
    return found


def _with_edge(out: Edges, point: int, target: int) -> Edges:
    assert all(not low <= point <= high for low, high, _ in out), "the separator is a part of the text"
    return sorted([*out, (point, point, target)])


# --- questions


def count(dfa: Dfa | None) -> int | None:
    """How many texts are accepted; None where there is no end of them. A trimmed automaton is finite if it has no cycle."""
    if dfa is None:
        return 0
    order = _topological(dfa)
    if order is None:
        return None
    numbers = [0] * len(dfa.edges)
    for state in reversed(order):
        numbers[state] = dfa.accepting[state] + sum((last - first + 1) * numbers[target]
                                                    for first, last, target in dfa.edges[state])
    return numbers[0]


def _topological(dfa: Dfa) -> list[int] | None:
    """The states that the start leads to, each before those that it leads to; None where there is a cycle."""
    incoming = [0] * len(dfa.edges)
    reached = [0]
    known = {0}
    for state in reached:
        for _, _, target in dfa.edges[state]:
            incoming[target] += 1
            if target not in known:
                known.add(target)
                reached.append(target)
    order = [0] if not incoming[0] else []
    for state in order:
        for _, _, target in dfa.edges[state]:
            incoming[target] -= 1
            if not incoming[target]:
                order.append(target)
    return order if len(order) == len(reached) else None
