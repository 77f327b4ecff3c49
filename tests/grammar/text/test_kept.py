"""Values that are kept from one compilation to the next."""

from __future__ import annotations

import pytest

from grammar.budget import Budget, Limits
from grammar.errors import GrammarTooLarge
from grammar.text.kept import Kept
from grammar.text.texts import Texts


def test_what_was_not_asked_for_longest_goes_first():
    kept: Kept[str] = Kept(10)
    kept.put("a", "A", 4)
    kept.put("b", "B", 4)
    assert kept.get("a") == "A"
    kept.put("c", "C", 4)
    assert (kept.get("a"), kept.get("b"), kept.get("c")) == ("A", None, "C")


def test_what_is_too_heavy_is_not_kept_and_drives_nothing_out():
    kept: Kept[str] = Kept(10)
    kept.put("a", "A", 4)
    kept.put("b", "B", 11)
    assert (kept.get("a"), kept.get("b")) == ("A", None)


def test_a_kept_regex_costs_each_compilation_what_it_cost_the_first_one():
    pattern = "^(kept|regex){2,40}x?$"
    first, second = Budget(), Budget()
    made = Texts(first).search(pattern)
    assert Texts(second).search(pattern) is made
    assert second.used() == first.used()
    assert first.used()["automaton_steps"] > 0


def test_a_kept_regex_is_still_too_large_for_smaller_limits():
    pattern = "^(still|kept){2,40}x?$"
    assert Texts(Budget()).search(pattern) is not None
    for _ in range(2):
        with pytest.raises(GrammarTooLarge) as refusal:
            Texts(Budget(Limits(regex_states=10))).search(pattern)
        assert refusal.value.limit == "regex_states"


def test_readings_of_a_regex_are_kept_apart():
    texts = Texts(Budget())
    for _ in range(2):
        inner, outer = texts.search(r"^\d$"), texts.outer_search(r"^\d$")
        assert inner is not None and outer is not None
        assert not inner.accepts("\u0663") and outer.accepts("\u0663")     # a digit to Python's re only
        assert texts.outer_search("^[ab]") is texts.search("^[ab]")
        texts = Texts(Budget())
