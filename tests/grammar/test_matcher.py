"""The matcher: masks and accept() agree, the end is where it must be, forks are independent, rows are cached."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from grammar import GrammarTooLarge, Vocabulary, compile_json_object, compile_json_schema
from grammar.matcher import CompiledGrammar, fill_masks
from grammar.vocabulary import special_spelling
from tests.support.matching import AMBIGUOUS, TOKENS

EOS, OTHER_EOS, CONTROL = 256, 257, 258


def test_every_end_token_is_allowed_at_the_end_and_only_there(vocabulary, feed, allowed):
    grammar = compile_json_schema({"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False},
                                  vocabulary)
    inside = feed(grammar, '{"a": 1')
    assert not {EOS, OTHER_EOS} & set(allowed(inside))
    assert not inside.accept(EOS)
    assert not inside.may_end
    done = feed(grammar, '{"a": 1}')
    assert set(allowed(done)) == {EOS, OTHER_EOS}


@pytest.mark.parametrize("end", [EOS, OTHER_EOS])
def test_nothing_is_accepted_after_the_end(vocabulary, feed, allowed, end):
    matcher = feed(compile_json_schema({"const": 1}, vocabulary), "1")
    assert matcher.accept(end)
    assert matcher.ended
    assert not matcher.may_end
    assert allowed(matcher) == []
    assert not matcher.accept(end)
    assert not matcher.accept(ord("1"))


def test_a_number_may_end_or_go_on(vocabulary, feed, allowed):
    tokens = allowed(feed(compile_json_schema({"type": "integer"}, vocabulary), "12"))
    assert {EOS, ord("3")} <= set(tokens)


def test_a_refused_token_changes_nothing(vocabulary, feed, allowed):
    matcher = feed(compile_json_schema({"type": "boolean"}, vocabulary), "t")
    before = allowed(matcher)
    for token in (ord("x"), EOS, CONTROL, -1, vocabulary.size, vocabulary.size + 5):
        assert not matcher.accept(token)
    assert allowed(matcher) == before
    assert matcher.accept(ord("r"))


def test_a_control_token_is_never_allowed(vocabulary, feed, allowed):
    assert CONTROL not in allowed(feed(compile_json_schema({}, vocabulary), '"x'))


def test_a_draft_is_checked_on_a_fork_and_the_original_stays(vocabulary, feed):
    matcher = feed(compile_json_schema({"const": 1}, vocabulary), "")
    draft = matcher.fork()
    assert [draft.accept(token) for token in (ord("1"), EOS, ord("x"))] == [True, True, False]
    assert draft.ended
    assert not matcher.ended
    assert matcher.accept(ord("1"))


def test_a_token_of_many_bytes_is_allowed_exactly_if_its_bytes_are(vocabulary, feed, allowed):
    schema = {"type": "object", "properties": {"abc": {"type": "array", "items": {"type": "object"}}}, "required": ["abc"]}
    grammar = compile_json_schema(schema, vocabulary)
    for text in ('', '{', '{"', '{"a', '{"abc"', '{"abc": ', '{"abc": [', '{"abc": [{"k": "v', '{"abc": [{"k": "v"',
                 '{"abc": [{}'):
        tokens = set(allowed(feed(grammar, text)))
        for token, data in enumerate(vocabulary.token_bytes):
            if data:
                assert (token in tokens) == (feed(grammar, text.encode() + data) is not None), (text, data)


def test_a_row_wider_than_the_vocabulary_is_cleared_behind_it(vocabulary):
    row = np.full(40, 0xFFFFFFFF, dtype=np.uint32)
    compile_json_object(vocabulary).new_state().fill_mask(row)
    n_words = (vocabulary.size + 31) // 32
    assert row[n_words:].sum() == 0
    bits = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
    assert {vocabulary.token_bytes[b] for b in bits} == {b"{", b'{"'}


def n_masks(vocabulary):
    return vocabulary.native.n_masks if vocabulary.native is not None else len(vocabulary.masks)


def test_a_mask_is_computed_once_for_equal_positions(vocabulary, feed, allowed):
    grammar = compile_json_schema({"type": "array", "items": {"type": "string"}, "maxItems": 5000}, vocabulary)
    first = feed(grammar, '["x", "y", "zzz')
    before = n_masks(vocabulary)
    second = feed(grammar, '["x", "y", "zzz", "q')
    assert n_masks(vocabulary) == before     # nothing new to learn from a fourth item
    assert allowed(first) == allowed(second)


def test_two_grammars_do_not_share_a_mask_by_mistake(vocabulary, feed, allowed):
    left, right = (compile_json_schema({"const": value}, vocabulary) for value in ("ax", "ay"))
    assert allowed(feed(left, '"a')) != allowed(feed(right, '"a'))


@pytest.mark.parametrize("ids", [[5], [-1]])
def test_an_end_token_out_of_the_vocabulary_is_an_error(ids):
    with pytest.raises(ValueError, match="eos_ids"):
        Vocabulary([b"a", b"b"], eos_ids=ids)


def test_an_end_token_with_a_text_is_never_that_text(feed, allowed):
    vocabulary = Vocabulary([b"1", b"2", b"1"], eos_ids=[2])
    matcher = compile_json_schema({"const": 1}, vocabulary).new_state()
    row = np.zeros(1, dtype=np.uint32)
    matcher.fill_mask(row)
    assert row[0] == 0b001
    assert matcher.accept(0)
    matcher.fill_mask(row)
    assert row[0] == 0b100


@pytest.fixture(params=["native", "reference"])
def both(request, vocabulary):
    """Compiles a schema for either machine."""
    if request.param == "native" and vocabulary.native is None:
        pytest.skip("the extension module was not built")

    def compiled(schema, **options):
        return CompiledGrammar(compile_json_schema(schema, vocabulary, **options).tables, vocabulary, request.param)
    return compiled


def feed_all(matcher, data):
    assert all(matcher.accept(byte) for byte in data)
    return matcher


def test_tokens_are_taken_back_one_by_one(both, allowed):
    matcher = both({"type": "array", "items": {"type": "integer"}}).new_state()
    masks = []
    for byte in b"[12, 3]":
        masks.append(allowed(matcher))
        assert matcher.accept(byte)
    for mask in reversed(masks):
        matcher.rollback(1)
        assert allowed(matcher) == mask


def test_the_end_is_taken_back_too(both):
    matcher = feed_all(both({"const": 1}).new_state(), b"1")
    assert matcher.accept(EOS)
    matcher.rollback(1)
    assert not matcher.ended
    assert matcher.may_end
    matcher.rollback(1)
    assert matcher.accept(ord("1"))


def test_a_refused_token_is_none_that_could_be_taken_back(both):
    matcher = both({"const": 12}).new_state()
    assert matcher.accept(ord("1"))
    assert not matcher.accept(ord("x"))
    matcher.rollback(1)
    with pytest.raises(ValueError, match="0 are remembered"):
        matcher.rollback(1)
    with pytest.raises(ValueError, match="take back"):
        matcher.rollback(-1)


def test_a_thousand_tokens_are_remembered(both):
    matcher = feed_all(both({"type": "string"}).new_state(), b'"' + b"x" * 5000)
    matcher.rollback(1024)
    assert not matcher.may_end


def test_a_fork_takes_back_by_itself(both, allowed):
    matcher = feed_all(both({"type": "string"}).new_state(), b'"ab')
    other = matcher.fork()
    other.rollback(3)
    assert allowed(other) == allowed(both({"type": "string"}).new_state())
    assert matcher.accept(ord('"'))
    assert matcher.may_end
    assert not other.may_end


def test_bytes_are_one_move(both):
    matcher = both({"type": "object"}).new_state()
    assert matcher.advance(b'{"a": [')
    assert not matcher.advance(b"]}x")
    assert matcher.advance(b"1")
    matcher.rollback(2)
    assert matcher.advance(b"{}")


@pytest.mark.parametrize("machine", ["native", "reference"])
def test_the_masks_of_a_batch_are_those_of_its_members(machine, vocabulary, feed, allowed):
    grammars = [compile_json_schema(schema, vocabulary) for schema in ({}, {"type": "integer"}, {"const": "ab"})]
    if machine == "native" and vocabulary.native is None:
        pytest.skip("the extension module was not built")
    matchers = [CompiledGrammar(g.tables, vocabulary, machine).new_state() for g in grammars for _ in range(5)]
    assert matchers[10].advance(b'"ab"')
    assert matchers[10].accept(EOS)
    rows = np.full((len(matchers), 20), 0xFFFFFFFF, dtype=np.uint32)
    assert fill_masks(matchers, rows, n_threads=2) == []
    for matcher, row in zip(matchers, rows, strict=True):
        assert np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist() == allowed(matcher)


def test_a_row_of_a_batch_that_costs_too_much_fails_alone(vocabulary, monkeypatch, allowed):
    good = compile_json_schema({"type": "integer"}, vocabulary).new_state()
    tables = compile_json_schema(AMBIGUOUS, vocabulary).tables
    monkeypatch.setattr("kernels.matching.MASK_STEPS", 3)
    monkeypatch.setattr("kernels.trie._REFERENCE_STEP_LIMIT", 3)
    costly = CompiledGrammar(tables, vocabulary).new_state()
    rows = np.zeros((3, 20), dtype=np.uint32)
    allowed(good)
    assert fill_masks([good, costly, good.fork()], rows) == [1]
    assert rows[0].any()
    assert (rows[0] == rows[2]).all()
    with pytest.raises(GrammarTooLarge, match="steps of one mask"):
        allowed(costly)


def test_an_empty_batch_is_none():
    assert fill_masks([], np.zeros((0, 4), dtype=np.uint32)) == []


def test_threads_may_use_one_grammar_at_a_time(vocabulary, allowed):
    grammar = compile_json_schema({"type": "array", "items": {"type": "string", "pattern": "^[a-z]+[0-9]?$"}}, vocabulary)
    wrong = []

    def work(n):
        for i in range(100):
            matcher = grammar.new_state()
            if not matcher.advance(b'["' + b"ab" * (i % 7 + 1)) or ord("9") not in allowed(matcher):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_special_token_is_never_text():
    vocabulary = Vocabulary([*(bytes([b]) for b in range(256)), b"<call>", b""], eos_ids=[257], special_tokens={"<call>": 256})
    matcher = compile_json_schema({"type": "string"}, vocabulary).new_state()
    row = np.zeros(9, dtype=np.uint32)
    assert matcher.advance(b'"')
    matcher.fill_mask(row)
    assert not row[8] & 1           # neither by itself nor as the text that it looks like
    assert not matcher.accept(256)
    assert not matcher.accept(0xFF)
    assert matcher.advance(b"<call>")
    assert special_spelling(256) == b"\xff\x00\x01\x00"


def test_a_special_token_out_of_the_vocabulary_is_an_error():
    with pytest.raises(ValueError, match="special_tokens"):
        Vocabulary([b"a"], eos_ids=[], special_tokens={"x": 4})


def test_insisting_on_a_missing_extension_is_an_error(vocabulary, monkeypatch):
    tables = compile_json_schema({}, vocabulary).tables
    monkeypatch.setattr("grammar.matcher.native_machine", lambda *_: None)
    with pytest.raises(ImportError, match="extension module"):
        CompiledGrammar(tables, vocabulary, "native")
    assert CompiledGrammar(tables, vocabulary).new_state().advance(b"[]")


@pytest.mark.parametrize("prefix", [b"", b"a", b"ab", b"abc", b"abd", b'"', b"\xf0", b"zz"])
def test_the_tokens_that_begin_with_a_text_and_go_on_are_found(prefix):
    expected = sorted({data for data in TOKENS if data.startswith(prefix) and len(data) > len(prefix)})
    assert list(Vocabulary(TOKENS, []).longer_than(prefix)) == expected
