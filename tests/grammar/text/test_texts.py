"""Automata of string shapes against jsonschema."""

from __future__ import annotations

import itertools

import pytest
from jsonschema import Draft202012Validator

from grammar import formats
from grammar.algebra.shapes import String
from grammar.budget import Budget, Limits
from grammar.errors import GrammarTooLarge, PatternError
from grammar.text import automata
from grammar.text.texts import Texts

WORDS = ["".join(chars) for n in range(5) for chars in itertools.product("ab1-", repeat=n)]
SHAPES = {
    "patterns": String(patterns=("^a", "1")),
    "a look-around": String(patterns=("^(?!.*--)", "(?<=a)1")),
    "lengths": String(2, 3, ("a",)),
    "only lengths": String(2, 3),
    "not patterns": String(patterns=("^[ab]+",), not_patterns=("b$", "aa")),
    "only not patterns": String(1, 3, not_patterns=("[^a1]",)),
    "without words": String(patterns=("^a",), without=frozenset(["a", "ab1", "xyz"])),
    "a format": String(formats=("hostname",), most=4),
    "not a format": String(not_formats=("uri", "email"), not_patterns=("^.?$",)),
    "all at once": String(1, 4, ("^[ab1-]*$",), ("hostname",), ("-",), ("ipv4",), frozenset(["b"])),
    "nothing by patterns": String(patterns=("^a", "^b")),
    "nothing by lengths": String(3, 2, ("a",)),
    "nothing by the lower length": String(3, patterns=("^.{2}$",)),
    "nothing by the upper length": String(0, 1, ("ab",)),
    "nothing by negation": String(patterns=("a",), not_patterns=("a",))}


def as_schema(shape: String) -> dict:
    unwanted = [{"pattern": pattern} for pattern in shape.not_patterns] + [{"format": name} for name in shape.not_formats]
    unwanted += [{"const": word} for word in shape.without]
    return {"minLength": shape.least, "maxLength": 99 if shape.most is None else shape.most,
            "allOf": [*({"pattern": pattern} for pattern in shape.patterns), *({"format": name} for name in shape.formats)],
            "not": {"anyOf": [*unwanted, {"const": None}]}}


def valid(shape: String) -> list[str]:
    oracle = Draft202012Validator(as_schema(shape), format_checker=Draft202012Validator.FORMAT_CHECKER)
    return [word for word in WORDS if oracle.is_valid(word)]


def within(shape: String, word: str) -> bool:
    return shape.most is None or len(word) <= shape.most


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_automaton_and_an_upper_length_accept_what_jsonschema_does(shape):
    dfa = Texts(Budget()).of(shape)
    assert [word for word in WORDS if dfa is not None and within(shape, word) and dfa.accepts(word)] == valid(shape)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_single_word_is_judged_alike(shape):
    texts = Texts(Budget())
    assert [word for word in WORDS if texts.accepts_inner(word, shape)] == valid(shape)


def test_a_negated_pattern_excludes_what_any_reader_finds():
    """é is a word character to Python and none to ECMA-262: it has neither the pattern nor its negation."""
    texts = Texts(Budget())
    for shape in (String(patterns=(r"^\w$",)), String(not_patterns=(r"^\w$",)), String(patterns=(r"\W",))):
        assert not texts.accepts_inner("é", shape)
        found = texts.of(shape)
        assert found is not None
        assert not found.accepts("é")


def test_both_readings_of_a_plain_pattern_are_one_automaton():
    texts = Texts(Budget())
    assert texts.outer_search("^a[bc]*(?!d)") is texts.search("^a[bc]*(?!d)")
    assert texts.outer_search("a$") is not texts.search("a$")


def test_shapes_that_differ_in_their_upper_length_alone_share_an_automaton():
    texts = Texts(Budget())
    assert texts.of(String(1, 5, ("a",))) is texts.of(String(1, None, ("a",)))


def test_any_text_is_the_shape_that_says_nothing():
    assert Texts(Budget()).of(String()) is automata.ANY_TEXT


def test_a_format_alone_is_the_automaton_that_the_process_keeps():
    assert Texts(Budget()).of(String(formats=("uri",))) is formats.inner("uri")


def test_a_bad_pattern_and_too_large_a_product_are_refused():
    with pytest.raises(PatternError):
        Texts(Budget()).of(String(patterns=(r"(a)\1",)))
    with pytest.raises(GrammarTooLarge):
        Texts(Budget(Limits(automaton_states=200))).of(String(patterns=tuple(f"{c}.{{5}}{c}" for c in "abcd")))
