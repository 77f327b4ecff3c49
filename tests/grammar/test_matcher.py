"""The matcher: masks and accept() agree, the end is where it must be, forks are independent, rows are cached."""

from __future__ import annotations

import numpy as np
import pytest

from grammar import Vocabulary, compile_json_object, compile_json_schema
from grammar.masks import MaskCache

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


def test_a_mask_is_computed_once_for_equal_positions(vocabulary, feed, allowed):
    grammar = compile_json_schema({"type": "array", "items": {"type": "string"}, "maxItems": 5000}, vocabulary)
    allowed(feed(grammar, '["a'))
    before = len(vocabulary.masks)
    for text in ('["b', '["bcd', '["x", "y', '["x", "y", "zzz'):
        allowed(feed(grammar, text))
    new = len(vocabulary.masks) - before
    allowed(feed(grammar, '["x", "y", "zzz", "q'))
    assert len(vocabulary.masks) == before + new     # nothing new to learn from a fourth item


def test_two_grammars_do_not_share_a_mask_by_mistake(vocabulary, feed, allowed):
    left, right = (compile_json_schema({"const": value}, vocabulary) for value in ("ax", "ay"))
    assert allowed(feed(left, '"a')) != allowed(feed(right, '"a'))


def test_the_mask_cache_forgets_the_oldest_beyond_its_bytes():
    cache, row = MaskCache(bytes_limit=3000), np.zeros(100, dtype=np.uint32)
    for key in "abcd":
        cache.put(key, row)
        cache.get("a")
    assert cache.bytes_used <= 3000
    assert cache.get("a") is not None
    assert cache.get("b") is None
    assert cache.get("d") is row


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
