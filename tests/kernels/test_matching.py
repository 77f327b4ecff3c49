"""The extension module does what the reference does, on the same tables: masks, moves and ends."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from grammar import SchemaError, Vocabulary
from grammar.budget import Budget
from grammar.ebnf.compile import compile_ebnf
from grammar.emission.emit import emit_text
from grammar.tags.structural_tags import JsonValue, Tag, TriggeredTags, compile_structural_tags
from grammar.text import automata, regex
from kernels import matching
from kernels.matching import extension, native_machine
from kernels.pushdown import Tables
from kernels.trie import PlainMachine
from tests.support.matching import (
    AMBIGUOUS,
    SCHEMAS,
    TOKENS,
    TRIE,
    TooCostly,
    mask_of,
    native,
    next_token,
    plain_mask,
    tables_of,
)
from tests.support.random_schemas import random_document

pytestmark = pytest.mark.skipif(extension() is None, reason="the extension module was not built")

# What the machine has an operation of its own for.
TALLIED = [
    {"type": "object", "properties": {"a": {}, "b": {"type": "integer"}, "ab": {}}, "minProperties": 2, "maxProperties": 3},
    {"type": "object", "properties": {"a": {}, "b": {}}, "minProperties": 1, "additionalProperties": False, "required": ["b"]},
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
     "not": {"properties": {"a": {"minimum": 3}}, "required": ["a"]}},
    {"type": "array", "items": {"type": "integer"}, "contains": {"minimum": 5}, "minContains": 2, "maxContains": 3},
    {"type": "array", "prefixItems": [{"type": "string"}, {}], "contains": {"const": "a"}, "maxItems": 4},
    {"type": "object", "dependentRequired": {"a": ["b"]}, "properties": {"a": {}, "b": {}, "c": {}}, "maxProperties": 2},
]
DISTINCT = [
    {"type": "array", "items": {"type": "string", "maxLength": 2}, "uniqueItems": True},
    {"type": "array", "items": {"enum": ["a", "ab", "abc", 1, 12, None]}, "uniqueItems": True, "minItems": 3},
    {"type": "array", "items": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 3}, "uniqueItems": True},
     "uniqueItems": True},
    {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"enum": [1, 2]}},
                                "additionalProperties": False}, "uniqueItems": True},
    {"type": "array", "items": {}, "uniqueItems": True, "maxItems": 5},
    {"type": "array", "prefixItems": [{"type": "boolean"}, {"type": "boolean"}], "uniqueItems": True,
     "items": {"type": "integer"}},
    {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True, "minItems": 2},
    {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 2, "maxProperties": 4},
    {"type": "object", "patternProperties": {"^a": {"type": "integer"}}, "minProperties": 2, "properties": {"k": {}}},
    {"type": "array", "uniqueItems": True, "items": {"type": "string", "pattern": "^[ab]{1,3}$"}, "maxItems": 6},
]
WAYS = [("free", "schema"), ("compact", "schema"), ("pretty", "schema"), ("free", "any"), ("compact", "any")]


def compare(tables: Tables, seed: int, n: int = 20) -> None:
    """Both machines along a random walk. The native one keeps its masks from place to place, so a wrong key would show."""
    matcher, plain = native(tables), PlainMachine(tables, TRIE)
    there, r, text = plain.start(), Random(seed), b""
    for _ in range(n):
        allowed = mask_of(matcher)
        assert allowed == plain_mask(plain, there), text
        assert matcher.may_end == plain.may_end(there), text
        assert matcher.next_bytes() == bytes(b for b in range(256) if plain.step(there, b) is not None)
        refused = [token for token in range(len(TOKENS)) if token not in allowed]
        assert not any(matcher.accept(token) for token in refused), text
        if not allowed:
            return
        token = next_token(r, allowed)
        assert matcher.accept(token)
        there, text = plain.advance(there, TOKENS[token]), text + TOKENS[token]
        assert there is not None


@pytest.mark.parametrize("seed", range(40))
def test_the_machines_agree_on_random_schemas(seed):
    style, order = WAYS[seed % len(WAYS)]
    try:
        tables = tables_of(random_document(Random(seed)), style, order)
    except SchemaError:
        tables = tables_of(SCHEMAS[seed % len(SCHEMAS)], style, order)
    compare(tables, seed)


@pytest.mark.parametrize(("style", "order"), WAYS)
@pytest.mark.parametrize("schema", [*SCHEMAS, *TALLIED, *DISTINCT], ids=lambda s: str(s)[:60])
def test_the_machines_agree_on_every_operation(schema, style, order):
    tables = tables_of(schema, style, order)
    for seed in range(2):
        compare(tables, seed, n=12)


@pytest.mark.parametrize("pattern", ["(ab|a)*c?", "[^a]+é*", ".*", "日本.{2,5}", r'["\\]*', "[a-z_-]{1,9}", "(a|b|abc)*"])
def test_the_machines_agree_on_regexes(pattern):
    dfa = automata.from_regex(regex.parse(pattern), Budget())
    assert dfa is not None
    for seed in range(3):
        compare(emit_text(dfa, Budget()), seed)


@pytest.mark.parametrize("style", ["free", "compact"])
@pytest.mark.parametrize("order", ["schema", "any"])
def test_the_machines_agree_among_the_names_of_an_object(style, order):
    properties = {"abc": {"type": "integer"}, "ab": {}, "é": {"type": "string"}}
    tables = tables_of({"type": "object", "properties": properties}, style, order)
    start, plain = native(tables), PlainMachine(tables, TRIE)
    for text in ['{"', '{"a', '{"ab', '{"abc', '{"x', '{"é', '{"\\', '{"a\\', '{"\\u00', '{"\\ud83d', '{"ab":1,"', '{"abc":1,"a',
                 '{"zz":"a', '{"zz":"\\', '{"abc":1,"abd', '{"ab":1,"é":"', '{"ab\\u00e9']:
        for data in (text.encode(), text.encode() + b"\xc3", text.encode() + b"\xf0\x9f"):
            matcher, there = start.fork(), plain.advance(plain.start(), data)
            assert matcher.advance(data) == (there is not None), data
            if there is not None:
                assert mask_of(matcher) == plain_mask(plain, there), data


@pytest.mark.parametrize("grammar", [
    'root ::= "a" root "b" | "ab" | "a"',
    'root ::= item root | item\nitem ::= [a-c]+ | "," | "(" root ")"',
    'root ::= sum\nsum ::= (sum [-+])? part\npart ::= [0-9]{1,3} | "(" sum ")" | [a-z][a-zé]*'])
def test_the_machines_agree_on_context_free_grammars(grammar):
    tables = compile_ebnf(grammar, Vocabulary(TOKENS, [])).tables
    for seed in range(6):
        compare(tables, seed)


def test_the_machines_agree_on_structural_tags():
    tag = Tag("<a>", JsonValue({"type": "object", "properties": {"a": {"type": "integer"}}}), ("</a>",))
    tables = compile_structural_tags(TriggeredTags(("<a",), (tag,)), Vocabulary(TOKENS, [])).tables
    for seed in range(6):
        compare(tables, seed)
    matcher = native(tables)
    assert matcher.advance(b'Text. <a>{"a": 1}</a> and <b')
    assert not matcher.advance(b"<ax")


@pytest.mark.parametrize("style", ["free", "compact"])
@pytest.mark.parametrize("pattern", [
    "^[\\x00-\\x20\"\\\\/é]*$", "^[a-z]{1,12}$", "^[ -~]*$", "b+a", "^.{2,4}$", "^[0-9a-f]{4}-[a-z]*$"])
def test_the_machines_agree_on_patterns_of_strings(pattern, style):
    for extra in ({}, {"maxLength": 6}, {"minLength": 2}):
        compare(tables_of({"type": "string", "pattern": pattern, **extra}, style), seed=5)


def test_equal_positions_are_one_object():
    left = native(tables_of({"type": "array", "items": {"type": "string"}}))
    right = left.fork()
    assert left.advance(b'["ab", "x')
    assert right.advance(b'["c",')
    assert not left.same_position(right)
    assert right.advance(b' "yy')
    assert left.same_position(right)


def test_a_deep_position_is_left_again():
    matcher, depth = native(tables_of({})), 5000
    for _ in range(depth):
        assert matcher.advance(b'[{"a":')
    assert matcher.advance(b"1")
    for _ in range(depth):
        assert matcher.advance(b"}]")
    assert matcher.may_end
    assert not matcher.advance(b"]")


def test_a_move_of_too_many_steps_is_given_up():
    tables = tables_of(AMBIGUOUS)
    assert native(tables).advance(b"[[[[")
    matcher = native(tables, token_steps=200)
    with pytest.raises(TooCostly, match="steps_of_one_token"):
        matcher.advance(b"[[[[")


def test_a_position_can_not_grow_without_bound():
    matcher = native(tables_of(AMBIGUOUS))
    with pytest.raises(TooCostly):
        for _ in range(100_000):
            matcher.advance(b"[" * 200)


def test_a_mask_of_too_many_steps_is_given_up_and_the_row_left_alone():
    matcher = native(tables_of(AMBIGUOUS), mask_steps=3)
    row = np.full(TRIE.n_words, 7, dtype=np.uint32)
    with pytest.raises(TooCostly, match="steps_of_one_mask"):
        matcher.fill_mask(row)
    assert (row == 7).all()


@pytest.mark.parametrize("row", [
    np.zeros(2, dtype=np.uint32), np.zeros(100, dtype=np.uint8), np.zeros(200, dtype=np.uint32)[::2]])
def test_a_row_that_does_not_fit_is_an_error(row):
    with pytest.raises((ValueError, BufferError)):
        native(tables_of({})).fill_mask(row)


def test_a_module_of_another_version_is_not_used(monkeypatch):
    monkeypatch.setattr(matching, "INTERFACE_VERSION", matching.INTERFACE_VERSION + 1)
    matching.extension.cache_clear()
    try:
        assert extension() is None
        assert native_machine(tables_of({}), object(), None, lambda limit, allowed: None) is None
    finally:
        monkeypatch.undo()
        matching.extension.cache_clear()


def test_tables_with_an_unknown_operation_are_left_to_the_reference(monkeypatch):
    module = extension()
    vocabulary = module.Vocabulary(TOKENS, [], 1 << 20)
    monkeypatch.setattr(matching, "_OPERATIONS", frozenset({0}))
    assert native_machine(tables_of({"type": "string"}), vocabulary, None, lambda limit, allowed: None) is None
