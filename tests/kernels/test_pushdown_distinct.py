"""Texts at distinct places: their normal form, and which of them can still be written."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from kernels.pushdown_distinct import extends, normalised
from kernels.pushdown_tables import CLOSE

NAMES = st.sampled_from(["", "a", "ab", "b", '"', "{,"])
VALUES = st.recursive(
    st.sampled_from([1, 12, 0, "a", "ab", "", "{}", "]", True]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=5)


def spellings(value) -> list[tuple[int, ...]]:
    """The texts of a value, its members in all orders."""
    if isinstance(value, str):
        return [(0x22, *map(ord, value), CLOSE)]
    if isinstance(value, list):
        return [bracketed("[", items, "]") for items in itertools.product(*map(spellings, value))]
    if isinstance(value, dict):
        members = [[(*spellings(name)[0], ord(":"), *text) for text in spellings(item)] for name, item in value.items()]
        return [bracketed("{", texts, "}") for order in itertools.permutations(members) for texts in itertools.product(*order)]
    return [tuple(map(ord, str(value).lower()))]


def bracketed(first: str, parts, last: str) -> tuple[int, ...]:
    inside = [point for part in parts for point in (ord(","), *part)][1:]
    return (ord(first), *inside, ord(last))


@given(VALUES)
def test_all_spellings_of_a_value_have_one_normal_form(value):
    assert len({normalised(text) for text in spellings(value)}) == 1


@given(VALUES, VALUES)
def test_different_values_have_different_normal_forms(left, right):
    same = normalised(spellings(left)[0]) == normalised(spellings(right)[0])
    assert same == (typed(left) == typed(right))


def typed(value):
    """A form in which true is not 1."""
    if isinstance(value, list):
        return [typed(item) for item in value]
    if isinstance(value, dict):
        return {name: typed(item) for name, item in value.items()}
    return type(value), value


@given(VALUES, VALUES, st.data())
def test_a_value_extends_a_text_if_one_of_its_spellings_begins_with_it(value, other, data):
    text = data.draw(st.sampled_from(spellings(other if data.draw(st.booleans()) else value)))
    text = text[:data.draw(st.integers(1, len(text)))]
    assert extends(normalised(spellings(value)[0]), text) == any(found[:len(text)] == text for found in spellings(value))
