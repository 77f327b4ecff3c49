"""The texts of numbers, held against jsonschema and exact arithmetic: bounds, kinds, multiples, exclusions and spellings."""

from __future__ import annotations

import itertools
import json
import math
import re
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from grammar.algebra.shapes import Number
from grammar.number.numbers import Range, holds, is_empty, literal_texts, number_automaton

NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
SHORT = [text for n in range(1, 6) for text in map("".join, itertools.product("01259.e-+", repeat=n)) if NUMBER.fullmatch(text)]
VALUES = [0, 1, 2, 5, 9, 10, 12, 0.5, 0.1, 1.5, 0.25, 0.01, 100, -1, -2, -0.5, 1e-5, 1e16, 19.99, 0.05, 99, 1e3, 2.5e5]
DIVISORS = [1, 2, 3, 5, 7, 10, 12, 100, 0.5, 0.25, 2.5, 1.5, 0.1, 0.01, 0.05, 0.2, 0.3, 0.03, 0.001, 0.0001, 1e-8]


def random_case(r: Random) -> tuple[dict[str, Any], Number]:
    """A schema and its shape."""
    schema: dict[str, Any] = {"type": "number"}
    shape: dict[str, Any] = {}
    bounds = Range()
    if r.random() < 0.5:
        value, is_open = r.choice(VALUES), r.random() < 0.5
        schema["exclusiveMinimum" if is_open else "minimum"] = value
        bounds = bounds.meet(Range(low=Fraction(value), low_open=is_open))
    if r.random() < 0.5:
        value, is_open = r.choice(VALUES), r.random() < 0.5
        schema["exclusiveMaximum" if is_open else "maximum"] = value
        bounds = bounds.meet(Range(high=Fraction(value), high_open=is_open))
    excluded: list[Any] = []
    if r.random() < 0.4:
        shape["whole"] = r.random() < 0.6
        if shape["whole"]:
            schema["type"] = "integer"
        else:
            excluded.append({"type": "integer"})
    if r.random() < 0.3:
        schema["multipleOf"] = r.choice(DIVISORS)
        shape["multiples"] = (Fraction(repr(schema["multipleOf"])),)
    if r.random() < 0.2:
        excluded.append({"multipleOf": r.choice(DIVISORS[:17])})
        shape["not_multiples"] = (Fraction(repr(excluded[-1]["multipleOf"])),)
    if r.random() < 0.2:
        excluded.append({"enum": r.sample(VALUES, r.randint(1, 4))})
        shape["without"] = frozenset(map(Fraction, excluded[-1]["enum"]))
    return {**schema, "allOf": [{"not": branch} for branch in excluded]}, Number(bounds, **shape)


@pytest.mark.parametrize("seed", range(4))
def test_every_short_text_that_is_accepted_is_valid_json_in_the_schema(seed):
    r = Random(seed)
    for _ in range(15):
        schema, shape = random_case(r)
        oracle = Draft202012Validator(schema)
        for spelling in ("free", "plain", "canonical"):
            dfa = number_automaton(shape, spelling=spelling)
            for text in r.sample(SHORT, 250):
                if dfa is not None and dfa.accepts(text):
                    value = json.loads(text)
                    assert oracle.is_valid(value), (schema, text)
                    assert holds(value, shape), (schema, text)


@pytest.mark.parametrize("seed", range(4))
def test_every_short_decimal_that_is_valid_is_accepted(seed):
    r = Random(100 + seed)
    decimals = [text for text in SHORT if "e" not in text and text != "-0"]
    for _ in range(15):
        schema, shape = random_case(r)
        if shape.not_multiples or any(divisor.denominator > 1 for divisor in shape.multiples):
            continue    # there some are out of reach
        oracle = Draft202012Validator(schema)
        dfa = number_automaton(shape)
        for text in r.sample(decimals, 400):
            if shape.whole or shape.multiples:
                text = re.sub(r"\.0+$", ".0", text)
            if oracle.is_valid(json.loads(text)):
                assert dfa is not None
                assert dfa.accepts(text), (schema, text)


@settings(deadline=None, max_examples=60)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_double_can_be_written_as_python_writes_it(value):
    dfa = number_automaton(Number())
    assert dfa is not None
    assert dfa.accepts(json.dumps(value))


@settings(deadline=None, max_examples=60)
@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False), st.booleans())
def test_a_double_is_accepted_exactly_where_it_is_within_bounds(value, bound, is_open):
    least = number_automaton(Number(Range(low=Fraction(bound), low_open=is_open)))
    most = number_automaton(Number(Range(high=Fraction(bound), high_open=is_open)))
    assert (least is not None and least.accepts(json.dumps(value))) == (value > bound if is_open else value >= bound)
    assert (most is not None and most.accepts(json.dumps(value))) == (value < bound if is_open else value <= bound)


@settings(deadline=None, max_examples=60)
@given(st.integers(-10**31, 10**31), st.integers(-10**31, 10**31))
def test_an_integer_is_compared_exactly(value, bound):
    dfa = number_automaton(Number(Range(low=Fraction(bound)), whole=True))
    fits = abs(value) < 10**max(30, len(str(abs(bound))))
    if fits:
        assert (dfa is not None and dfa.accepts(str(value))) == (value >= bound)


@settings(deadline=None, max_examples=60)
@given(st.decimals(-1000, 1000, places=25).map(lambda d: format(d, "f")), st.floats(-1000, 1000))
def test_what_rounds_onto_an_open_bound_is_refused(text, bound):
    dfa = number_automaton(Number(Range(low=Fraction(bound), low_open=True)))
    if dfa is not None and dfa.accepts(text):
        assert json.loads(text) > bound
        assert Decimal(text) > Decimal(bound) or float(text) > bound


def test_a_schema_of_integers_accepts_one_point_zero_only_in_free_style():
    for spelling, expected in (("free", True), ("plain", False), ("canonical", False)):
        dfa = number_automaton(Number(whole=True), spelling=spelling)
        assert dfa is not None
        assert dfa.accepts("1")
        assert dfa.accepts("1.0") == dfa.accepts("1e+16") == dfa.accepts("1.5e300") == expected
        assert not any(map(dfa.accepts, ("1.00", "1.5", "1e3", "1.5e+0", "-0")))


def test_numbers_that_are_no_integers_are_none_as_doubles_either():
    dfa = number_automaton(Number(whole=False))
    assert dfa is not None
    for text in ("0.5", "-1.25", "1e-05", "123456.789", "0.30000000000000004"):
        assert dfa.accepts(text)
    for text in ("1", "1.0", "9007199254740993.5", "0.99999999999999999999", "4503599627370497.00001", "1e3"):
        assert not dfa.accepts(text)


@pytest.mark.parametrize("excluded", [1, 0.1, -2.5, 1e16, 123456789, 1e-7, 0])
def test_an_excluded_number_is_excluded_with_all_that_rounds_to_it(excluded):
    dfa = number_automaton(Number(without=frozenset((Fraction(excluded),))))
    assert dfa is not None
    exact = format(Decimal(excluded), "f")
    for text in {json.dumps(excluded), exact, exact + ("0" if "." in exact else ".0"), f"{excluded:.16e}"}:
        assert not dfa.accepts(text)
    for other in (math.nextafter(excluded, math.inf), math.nextafter(excluded, -math.inf)):
        assert dfa.accepts(json.dumps(other))


@pytest.mark.parametrize("divisor", [0.01, 0.1, 0.05, 0.5, 0.25, 0.2, 0.001])
def test_multiples_of_a_fraction_are_accepted_exactly_where_jsonschema_takes_them(divisor):
    """All up to 2,000, the multiples and what lies between, written with the digits that they have."""
    dfa = number_automaton(Number(multiples=(Fraction(repr(divisor)),)))
    assert dfa is not None
    oracle = Draft202012Validator({"multipleOf": divisor})
    digits = len(repr(divisor)) - 2
    r = Random(1)
    highest = min(2000, 500_000 // 10**digits) * 10**digits
    for numerator in [r.randrange(highest) for _ in range(1500)]:
        exact = Fraction(numerator, 10**digits)
        text = format(Decimal(numerator).scaleb(-digits), "f")
        expected = exact % Fraction(repr(divisor)) == 0 and oracle.is_valid(json.loads(text))
        assert dfa.accepts(text) == expected, text


def test_nineteen_ninety_nine_is_no_multiple_of_a_cent_in_doubles():
    dfa = number_automaton(Number(multiples=(Fraction(1, 100),)))
    assert dfa is not None
    assert not dfa.accepts("19.99")
    assert all(map(dfa.accepts, ("0.01", "19.98", "20", "20.0", "20.50", "123456.25", "-3.75", "1000000000")))
    assert not any(map(dfa.accepts, ("0.001", "1.005")))


@pytest.mark.parametrize("divisor", [3, 7, 60, 997, 1000, 9973])
def test_multiples_of_an_integer_have_no_rest(divisor):
    dfa = number_automaton(Number(multiples=(Fraction(divisor),)), spelling="plain")
    assert dfa is not None
    for n in range(-divisor, divisor + 1, max(divisor // 50, 1)):
        assert dfa.accepts(str(n)) == (n % divisor == 0)
    assert all(dfa.accepts(str(n * divisor)) for n in range(-900, 901, 7))


def test_several_multiples_hold_together():
    dfa = number_automaton(Number(multiples=(Fraction(4), Fraction(6), Fraction(1, 2))))
    assert dfa is not None
    assert [n for n in range(50) if dfa.accepts(str(n))] == [0, 12, 24, 36, 48]


def test_the_multiples_of_a_huge_number_that_are_nearest_to_zero_are_listed():
    unit = 123_456_789_012
    dfa = number_automaton(Number(multiples=(Fraction(unit),)))
    assert dfa is not None
    assert all(dfa.accepts(str(unit * n)) for n in range(-900, 900) if abs(unit * n) < 2**53)
    assert not dfa.accepts(str(unit + 1))


def test_a_multiple_of_a_double_is_one_for_readers_of_doubles_too():
    """Python's jsonschema reads an integer under `multipleOf: 7.0` as a double, which rounds it."""
    dfa = number_automaton(Number(whole=True, multiples=(Fraction(7),)))
    oracle = Draft202012Validator({"multipleOf": 7.0})
    r = Random(3)
    assert dfa is not None
    for n in (r.randrange(2**52, 2**58) for _ in range(3000)):
        if dfa.accepts(str(n)):
            assert oracle.is_valid(n)


@settings(deadline=None, max_examples=60)
@given(st.integers(-10**6, 10**6), st.sampled_from([0, 1, 2, 3]), st.sampled_from([1, 3, 10, 0.5, 0.1, 0.25, 2.5]))
def test_what_no_multiple_may_be_is_off_every_multiple_for_every_reader(numerator, digits, divisor):
    text = format(Decimal(numerator).scaleb(-digits), "f")
    dfa = number_automaton(Number(not_multiples=(Fraction(repr(divisor)),)))
    exact = Fraction(text) % Fraction(repr(divisor)) == 0
    valid = not Draft202012Validator({"multipleOf": divisor}).is_valid(json.loads(text))
    if text != "-0":
        assert (dfa is not None and dfa.accepts(text)) == (valid and not exact)


def test_canonical_texts_are_those_of_python_and_no_two_have_one_value():
    dfa = number_automaton(Number(), spelling="canonical")
    assert dfa is not None
    values: dict[Any, str] = {}
    for text in SHORT:
        if dfa.accepts(text):
            value = json.loads(text)
            assert text == json.dumps(value)
            assert values.setdefault(value, text) == text
    for value in (0, 1, -5, 0.1, -2.75, 1e-05, 1.5e-09, 123456.789, 10**29):
        assert dfa.accepts(json.dumps(value))
    for text in ("1.0", "1.10", "-0", "-0.0", "1e5", "1E-05", "0.00001", "1.0e-05", "0.1000000000000000055511151231257827"):
        assert not dfa.accepts(text)


@pytest.mark.parametrize("shape", [
    Number(Range(Fraction(2), Fraction(1))), Number(Range(Fraction(1, 3), Fraction(2, 3)), whole=True),
    Number(Range(Fraction(1), Fraction(4)), multiples=(Fraction(5),)), Number(whole=True, not_multiples=(Fraction(1),)),
    Number(whole=False, multiples=(Fraction(3),)), Number(Range(Fraction(1), Fraction(1)), without=frozenset((Fraction(1),))),
    Number(multiples=(Fraction(4),), not_multiples=(Fraction(2),)), Number(Range(Fraction(3), Fraction(3)), whole=False),
], ids=str)
def test_a_shape_without_a_number_is_empty(shape):
    assert is_empty(shape)


@pytest.mark.parametrize("bound", [10**40, -(10**50) - 7, 123456789012345678901234567890123])
def test_a_bound_beyond_thirty_digits_can_be_written_itself(bound):
    low = number_automaton(Number(Range(low=Fraction(bound)), whole=True), spelling="plain")
    high = number_automaton(Number(Range(high=Fraction(bound)), whole=True), spelling="plain")
    assert low is not None
    assert high is not None
    assert low.accepts(str(bound))
    assert high.accepts(str(bound))
    assert not low.accepts(str(bound - 1))
    assert not high.accepts(str(bound + 1))


@pytest.mark.parametrize("seed", range(3))
def test_no_state_is_a_dead_end_and_edges_are_sorted_and_disjoint(seed):
    r = Random(200 + seed)
    for _ in range(15):
        _, shape = random_case(r)
        for spelling in ("free", "canonical"):
            dfa = number_automaton(shape, spelling=spelling)
            if dfa is not None:
                assert min(dfa.shortest()) >= 0
                assert all(one[1] < other[0] for out in dfa.edges for one, other in itertools.pairwise(out))


@pytest.mark.parametrize(("value", "spelling", "texts"), [
    (1, "plain", {"1"}), (1, "free", {"1", "1.0"}), (1.0, "free", {"1", "1.0"}), (1.0, "plain", {"1", "1.0"}),
    (1.0, "canonical", {"1"}), (0.1, "free", {"0.1"}),
    (1e-7, "free", {"1e-07", "0.0000001"}), (1e-7, "canonical", {"1e-07"}), (1e23, "free", {"1e+23"}),
    (2**53, "free", {"9007199254740992", "9007199254740992.0"}), (2**53 + 1, "free", {"9007199254740993"}),
    (10**16, "free", {"10000000000000000", "10000000000000000.0", "1e+16"}),
])
def test_a_listed_number_has_the_spellings_of_its_style(value, spelling, texts):
    assert literal_texts(value, spelling) == texts
    assert all(json.loads(text) == value for text in texts)


def test_a_shape_with_a_number_can_be_written_in_every_style():
    for shape in (Number(Range(Fraction(1e-310), Fraction(2e-310))), Number(Range(low=Fraction(10**150)), whole=True),
                  Number(Range(Fraction(0.12345678901234567), Fraction(0.12345678901234567)))):
        assert not is_empty(shape)
        for spelling in ("free", "plain", "canonical"):
            assert number_automaton(shape, spelling=spelling) is not None
