"""The token trie and the two machines: the native walk does what the reference does, and both what trying every token does."""

from __future__ import annotations

import codecs
from random import Random

import numpy as np
import pytest

from grammar import SchemaError, automata, regex
from grammar.budget import Budget
from grammar.emit import Style, emit_json, emit_text
from grammar.normal import normal_form
from kernels import library
from kernels.pushdown import Tables
from kernels.trie import MaskTooCostly, PlainMachine, TokenTrie, load_machine
from tests.support.random_schemas import random_document

TOKENS = [bytes([b]) for b in range(256)] + [
    b"", b"ab", b"abc", b"abd", b"abc", b'{"', b'": ', b'"}', b"}}", b'", "', b"],[", b"\\u00e9", b"\\ud83d\\ude00", b"\\ud8",
    b"00", b"true",
    "é".encode(), "日本語".encode(), "😀".encode(), "😀".encode()[:3], "😀".encode()[3:], b"e\xcc\x81", b"\xc3", b"a\n", b"a\"",
    b"\xed\xa0\x80",
    b"x" * 40, b'"' * 5]
TRIE = TokenTrie.build(TOKENS)

SCHEMAS = [
    {},
    {"type": "string", "maxLength": 3},
    {"type": "array", "items": {"type": "array", "maxItems": 2, "items": {"type": "integer"}}, "minItems": 2, "maxItems": 100},
    {"anyOf": [{"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]},
               {"type": "object", "properties": {"ab": {"type": "string", "pattern": "^[aé😀]*$", "maxLength": 9}},
                "additionalProperties": False},
               {"enum": ["ab", "é", 1, 12, 1.5, {"k": [1, "x"]}]}]},
    {"type": "object", "properties": {"next": {"$ref": "#"}, "v": {"enum": [1, 2]}}, "additionalProperties": False},
]

needs_native = pytest.mark.skipif(library.load() is None, reason="the native library was not built")


def tables_of(schema, **style) -> Tables:
    budget = Budget()
    return emit_json(normal_form(schema, budget), Style(**style), budget)


def bits(row: np.ndarray) -> set[int]:
    return set(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist())


def mask(machine, position) -> set[int]:
    row = np.full(TRIE.n_words, 0xFFFFFFFF, dtype=np.uint32)
    machine.fill(position, row)
    return bits(row)


def walk(machine, seed: int, n: int = 25):
    """Positions along a random walk, with the token taken to each."""
    r, position = Random(seed), machine.start()
    yield None, position
    for _ in range(n):
        tokens = sorted(mask(machine, position))
        if not tokens:
            return
        token = r.choice([t for t in tokens if len(TOKENS[t]) > 1] if r.random() < 0.4 else tokens) if any(
            len(TOKENS[t]) > 1 for t in tokens) else r.choice(tokens)
        position = machine.advance(position, TOKENS[token])
        yield token, position


def test_the_trie_holds_every_token_once_and_no_other_text():
    texts, path = {}, []
    for node in range(len(TRIE.byte)):
        del path[TRIE.depth[node] - 1:]
        path.append(TRIE.byte[node])
        for token in TRIE.tokens[TRIE.token_begin[node]:TRIE.token_begin[node + 1]].tolist():
            texts[token] = bytes(path)
    assert texts == {token: data for token, data in enumerate(TOKENS) if data}


def test_a_subtree_is_the_nodes_up_to_its_end():
    for node in range(len(TRIE.byte)):
        inside = range(node + 1, TRIE.end[node])
        assert all(TRIE.depth[n] > TRIE.depth[node] for n in inside)
        assert TRIE.end[node] == len(TRIE.byte) or TRIE.depth[TRIE.end[node]] <= TRIE.depth[node]


def goes_on_plainly(data: bytes) -> bool:
    """Whether a text is, or can go on as, well-formed UTF-8 without quote, backslash or control character."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        return False
    return not any(c < " " or c in '"\\' for c in text)


def is_whole(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def test_a_subtree_is_plain_exactly_if_every_text_in_it_may_stand_in_a_json_string():
    prefixes, path = [], []
    for node in range(len(TRIE.byte)):
        del path[TRIE.depth[node] - 1:]
        path.append(int(TRIE.byte[node]))
        prefixes.append(bytes(path))
    expected = []
    for node, prefix in enumerate(prefixes):
        at = len(prefix) - 1    # where the subtree begins: only what comes from there on matters
        expected.append(is_whole(prefix[:at]) and all(goes_on_plainly(text[at:]) for text in prefixes[node:TRIE.end[node]]))
    assert TRIE.plain.astype(bool).tolist() == expected


def test_the_plain_row_and_the_special_trie_share_the_vocabulary_out():
    plain = {token for token, data in enumerate(TOKENS) if data and goes_on_plainly(data)}
    assert bits(TRIE.plain_row) == plain
    assert TRIE.special is not None
    assert set(TRIE.special.tokens.tolist()) == {token for token, data in enumerate(TOKENS) if data} - plain


def test_an_empty_vocabulary_has_an_empty_trie():
    trie = TokenTrie.build([b"", b""])
    assert len(trie.byte) == 0
    assert trie.n_words == 1


@pytest.mark.parametrize("escapes", [True, False])
@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda s: str(s)[:30])
def test_a_mask_is_the_tokens_that_can_be_advanced_by(schema, escapes):
    machine = PlainMachine(tables_of(schema, escapes=escapes), TRIE)
    for _, position in walk(machine, seed=1, n=12):
        assert mask(machine, position) == {t for t,
                                           data in enumerate(TOKENS) if data and machine.advance(position, data) is not None}


@needs_native
@pytest.mark.parametrize("seed", range(60))
def test_native_and_reference_agree_on_random_schemas(seed):
    try:
        style = {"spaces": seed % 3 > 0, "ordered": seed % 2 > 0, "escapes": seed % 5 > 1}
        tables = tables_of(random_document(Random(seed)), **style)
    except SchemaError:
        tables = tables_of(SCHEMAS[seed % len(SCHEMAS)])
    compare(tables, seed)


@needs_native
@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda s: str(s)[:30])
def test_native_and_reference_agree_where_each_character_has_one_spelling(schema):
    compare(tables_of(schema, escapes=False), seed=5)
    compare(tables_of({"type": "string", "pattern": "^[\\x00-\\x20\"\\\\/é]*$"}, escapes=False), seed=6)


@needs_native
@pytest.mark.parametrize("pattern", ["(ab|a)*c?", "[^a]+é*", ".*", "日本.{2,5}", r'["\\]*'])
def test_native_and_reference_agree_on_regexes(pattern):
    dfa = automata.from_regex(regex.parse(pattern), Budget())
    assert dfa is not None
    compare(emit_text(dfa, Budget()), seed=3)


def compare(tables: Tables, seed: int) -> None:
    native, plain = load_machine(tables, TRIE, "native"), load_machine(tables, TRIE, "reference")
    there = plain.start()
    keys = {}
    for token, here in walk(native, seed):
        there = plain.advance(there, TOKENS[token]) if token is not None else there
        assert there is not None
        allowed = mask(native, here)
        assert allowed == mask(plain, there)
        assert native.may_end(here) == plain.may_end(there)
        for refused in set(range(256)) - allowed:
            assert native.advance(here, TOKENS[refused]) is None
        for machine, position in ((native, here), (plain, there)):
            key = type(machine), machine.mask_key(position)
            assert keys.setdefault(key, allowed) == allowed


@needs_native
def test_equal_positions_are_equal_bytes():
    machine = load_machine(tables_of({"type": "array", "items": {"type": "string"}}), TRIE, "native")
    left = machine.advance(machine.start(), b'["ab", "x')
    right = machine.advance(machine.advance(machine.start(), b'["c",'), b' "yy')
    assert left == right


@needs_native
def test_a_position_deeper_than_the_first_buffer_is_returned_whole():
    tables = tables_of({})
    native, plain = load_machine(tables, TRIE, "native"), load_machine(tables, TRIE, "reference")
    text = b'[{"a":' * 400
    here, there = native.advance(native.start(), text), plain.advance(plain.start(), text)
    closing = b"1" + b"}]" * 400
    assert native.may_end(native.advance(here, closing))
    assert plain.may_end(plain.advance(there, closing))
    assert native.advance(here, closing + b"]") is None


def test_insisting_on_a_missing_library_is_an_error(monkeypatch):
    monkeypatch.setattr(library, "load", lambda: None)
    monkeypatch.setattr(library, "why_missing", lambda: "no compiler")
    with pytest.raises(ImportError, match="no compiler"):
        load_machine(tables_of({}), TRIE, "native")
    assert isinstance(load_machine(tables_of({}), TRIE), PlainMachine)


# Each bracket can be that of twelve arrays, whose items are of any of six such kinds.
AMBIGUOUS = {"$ref": "#/$defs/0", "$defs": {str(i): {"anyOf": [
    {"type": "array", "minItems": k, "maxItems": k + 3, "items": {"$ref": f"#/$defs/{(i + k) % 6}"}} for k in range(12)
]} for i in range(6)}}


@needs_native
def test_a_move_of_too_many_steps_is_given_up(monkeypatch):
    machine = load_machine(tables_of(AMBIGUOUS), TRIE, "native")
    assert machine.advance(machine.start(), b"[[[[") is not None
    monkeypatch.setattr("kernels.trie._ADVANCE_STEP_LIMIT", 200)
    with pytest.raises(MaskTooCostly):
        machine.advance(machine.start(), b"[[[[")


@needs_native
def test_a_position_can_not_grow_without_bound():
    machine = load_machine(tables_of(AMBIGUOUS), TRIE, "native")
    position = machine.start()
    with pytest.raises(MaskTooCostly):
        for _ in range(20):
            position = machine.advance(position, b"[" * 200)
    assert len(position.configuration) < 1 << 22


@pytest.mark.parametrize(("wanted", "limit"), [
    ("reference", "_REFERENCE_STEP_LIMIT"), pytest.param("native", "_STEP_LIMIT", marks=needs_native)])
def test_a_mask_of_too_many_steps_is_given_up(wanted, limit, monkeypatch):
    machine = load_machine(tables_of(AMBIGUOUS), TRIE, wanted)
    monkeypatch.setattr(f"kernels.trie.{limit}", 3)
    with pytest.raises(MaskTooCostly):
        machine.fill(machine.start(), np.zeros(TRIE.n_words, dtype=np.uint32))
