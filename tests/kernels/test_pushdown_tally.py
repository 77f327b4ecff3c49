"""Tallied objects and arrays: what their registers allow is what can still be finished, found by trying everything."""

from __future__ import annotations

import functools
import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from grammar.budget import Budget
from grammar.emission.tallies import Counter, Member, TallyBuilder
from kernels.pushdown_tables import CLOSE_ARRAY, CLOSE_OBJECT, COUNT, MORE, NAME, NAME_IN, NEXT_ITEM, OTHER, SERVE, UNBOUNDED
from kernels.pushdown_tally import Registers, Tallies

MANY = 9    # members: more than any of the small objects here needs


def sets(n: int) -> st.SearchStrategy[int]:
    return st.integers(0, (1 << n) - 1)


@st.composite
def tallied_objects(draw):
    n = draw(st.integers(0, 3))
    choices = st.lists(sets(n), min_size=1, max_size=2, unique=True).map(tuple)
    names = draw(st.lists(st.builds(Member, choices, st.booleans(), sets(n)), max_size=4))
    others = draw(st.lists(st.builds(Member, choices), max_size=2))
    least = draw(st.integers(0, 3))
    most = draw(st.none() | st.integers(least, 5))
    return names, others, n, least, most


class ObjectModel:
    """A tallied object as its definition says, all ways to go on being tried."""

    def __init__(self, names, others, n_obligations, least, most, ordered):
        self.names, self.members, self.ordered = names, [*names, *others], ordered
        self.everything, self.least, self.most = (1 << n_obligations) - 1, least, most
        self.can_finish = functools.cache(self.can_finish)

    def is_whole(self, taken: tuple[int, ...], closed: int) -> bool:
        missing = [name for n, name in enumerate(self.names) if n not in taken]
        for name in missing:
            closed |= name.absent
        return (not any(name.required for name in missing) and closed == self.everything
                and self.least <= len(taken) and (self.most is None or len(taken) <= self.most))

    def may_follow(self, taken: tuple[int, ...]) -> list[int]:
        """The numbers that are not ruled out by order and repetition."""
        declared = [n for n in taken if n < len(self.names)]
        if self.ordered:
            first = max(declared, default=-1) + 1
            return [n for n in range(len(self.members)) if n >= len(self.names) or n >= first]
        return [n for n in range(len(self.members)) if n >= len(self.names) or n not in declared]

    def can_finish(self, taken: tuple[int, ...], closed: int) -> bool:
        if self.is_whole(taken, closed):
            return True
        if len(taken) >= MANY or (self.most is not None and len(taken) >= self.most):
            return False
        return any(self.can_finish((*taken, n), closed | served) for n in self.may_follow(taken)
                   for served in self.members[n].choices)

    def can_take(self, taken: tuple[int, ...], closed: int, number: int) -> bool:
        return (self.most is None or len(taken) < self.most) and number in self.may_follow(taken) and any(
            self.can_finish((*taken, number), closed | served) for served in self.members[number].choices)


@settings(max_examples=150, deadline=None)
@given(tallied_objects(), st.booleans())
def test_an_object_allows_exactly_the_members_after_which_it_can_be_finished(case, ordered):
    names, others, n_obligations, least, most = case
    builder = TallyBuilder(Budget())
    y = builder.add_object(names, others, ordered=ordered, remembers=False, least=least, most=most, obligations=n_obligations)
    model = ObjectModel(names, others, n_obligations, least, most, ordered)
    tallies = Tallies(builder.build(), list(range(len(model.members))))
    required = next((n for n, name in enumerate(names) if name.required), UNBOUNDED)
    start = Registers(0, required if ordered else 0, 0)
    if not model.can_finish((), 0):
        return      # such objects are not emitted
    queue = [((), 0, start)]
    for taken, closed, registers in queue:
        if len(taken) > 4 or len(queue) > 400:
            continue
        assert (tallies.after(registers, CLOSE_OBJECT, 0, y) is not None) == model.is_whole(taken, closed)
        takable = [model.can_take(taken, closed, n) for n in range(len(model.members))]
        assert (tallies.after(registers, MORE, 0, y) is not None) == any(takable)
        for begin, end in itertools.combinations(range(len(takable) + 1), 2):
            assert (tallies.after(registers, NAME_IN, begin << 32 | end, y) is not None) == any(takable[begin:end])
        for n, expected in enumerate(takable):
            after = tallies.after(registers, NAME if n < len(names) else OTHER, n, y)
            assert (after is not None) == expected
            for served in model.members[n].choices if after else ():
                value = tallies.after(after, SERVE, served, y)
                assert (value is not None) == model.can_finish((*taken, n), closed | served)
                if value is not None:
                    queue.append(((*taken, n), closed | served, value))


@st.composite
def tallied_arrays(draw):
    n = draw(st.integers(1, 3))
    bounds = st.tuples(st.integers(0, 2), st.none() | st.integers(0, 2)).map(
        lambda pair: Counter(pair[0], None if pair[1] is None else pair[0] + pair[1]))
    counters = draw(st.lists(bounds, min_size=n, max_size=n))
    choices = st.lists(sets(n), min_size=1, max_size=3, unique=True)
    places = draw(st.lists(choices, max_size=3))
    tail = draw(st.just([]) | choices)
    least = draw(st.integers(0, 3))
    most = draw(st.none() | st.integers(max(least, 1), 5))
    return counters, [*places, tail], least, most


@settings(max_examples=150, deadline=None)
@given(tallied_arrays())
def test_an_array_allows_exactly_the_items_after_which_it_can_be_finished(case):
    counters, places, least, most = case

    def counts(served):
        return [sum(choice >> i & 1 for choice in served) for i in range(len(counters))]

    def is_whole(served):
        return least <= len(served) and (most is None or len(served) <= most) and all(
            c.least <= count and (c.most is None or count <= c.most) for c, count in zip(counters, counts(served), strict=True))

    def place_of(n_items):
        return min(n_items, len(places) - 1)

    @functools.cache
    def can_finish(served):
        if is_whole(served):
            return True
        if len(served) >= MANY or (most is not None and len(served) >= most):
            return False
        return any(can_finish(with_one_more(served, choice)) for choice in places[place_of(len(served))])

    def with_one_more(served, choice):    # the order of what was read does not matter
        return tuple(sorted((*served, choice)))

    builder = TallyBuilder(Budget())
    numbers = builder.add_array(counters, places)
    tallies = Tallies(builder.build(), [])
    queue = [((), Registers(max(least - 1, 0), UNBOUNDED if most is None else most - 1, 0))]
    for served, registers in queue:
        if len(served) > 4 or len(queue) > 400:
            continue
        here = place_of(len(served))
        if served:
            last = numbers[place_of(len(served) - 1)]
            assert (tallies.after(registers, CLOSE_ARRAY, 0, last) is not None) == is_whole(served)
            expected = (most is None or len(served) < most) and any(
                can_finish(with_one_more(served, choice)) for choice in places[here])
            before = tallies.after(registers, NEXT_ITEM, 0, last)
            assert (before is not None) == expected
        else:
            before = registers
        for choice in places[here] if before else ():
            value = tallies.after(before, COUNT, choice, numbers[here])
            assert (value is not None) == can_finish(with_one_more(served, choice))
            if value is not None:
                queue.append(((*served, choice), value))
