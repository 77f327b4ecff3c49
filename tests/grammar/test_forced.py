"""Forced text and tokens: what must come, as the tokenizer writes it, and nothing that closes off what may come."""

from __future__ import annotations

import pytest

from grammar import Vocabulary, compile_choice, compile_json_schema

BYTES = [bytes([b]) for b in range(128)]
EOS, SPECIAL = 128, 129
WORDS = [b"order", b"Id", b"Name", b'{"', b'":', b'"}', b"true", b"tr", b"ue", b"abc", b"ab", b"null"]


def longest_match(words: list[bytes]):
    """A tokenizer that takes the longest token each time."""
    tokens = [*BYTES, b"", b"", *words]

    def encode(text: str) -> list[int]:
        data, out, at = text.encode(), [], 0
        while at < len(data):
            n = max(len(token) for token in tokens if token and data.startswith(token, at))
            out.append(tokens.index(data[at:at + n]))
            at += n
        return out

    return tokens, encode


def vocabulary_of(*extra: bytes) -> Vocabulary:
    tokens, encode = longest_match([*WORDS, *extra])
    return Vocabulary(tokens, eos_ids=[EOS], special_tokens={"<call>": SPECIAL}, encode=encode)


def spelled(vocabulary: Vocabulary, tokens: list[int]) -> list[bytes]:
    return [vocabulary.token_bytes[token] for token in tokens]


def closed(*names: str) -> dict:
    return {"type": "object", "properties": {name: {"type": "boolean"} for name in names}, "required": [names[0]],
            "additionalProperties": False}


@pytest.fixture(params=["native", "reference"])
def matcher_of(request):
    """A matcher on either machine."""
    def make(grammar):
        if request.param == "reference":
            grammar = type(grammar)(grammar.tables, grammar.vocabulary, "reference")
        elif grammar.vocabulary.native is None:
            pytest.skip("the extension module was not built")
        return grammar.new_state()
    return make


def test_a_constant_is_forced_to_its_end(matcher_of):
    vocabulary = vocabulary_of()
    matcher = matcher_of(compile_json_schema({"const": {"abc": True}}, vocabulary, style="compact"))
    assert matcher.forced_text() == '{"abc":true}'
    assert spelled(vocabulary, matcher.forced_tokens()) == [b'{"', b"abc", b'":', b"true", b"}", b""]
    assert matcher.forced_tokens()[-1] == EOS


def test_every_forced_token_is_accepted(matcher_of):
    matcher = matcher_of(compile_json_schema({"const": {"abc": True}}, vocabulary_of(), style="compact"))
    assert all(matcher.accept(token) for token in matcher.forced_tokens())
    assert matcher.ended
    assert matcher.forced_tokens() == []


def test_the_stem_of_two_names_is_forced_where_no_token_goes_beyond_it(matcher_of):
    vocabulary = vocabulary_of()
    schema = {"anyOf": [closed("orderId"), closed("orderName")]}
    matcher = matcher_of(compile_json_schema(schema, vocabulary, style="compact"))
    assert matcher.forced_text() == '{"order'
    assert spelled(vocabulary, matcher.forced_tokens()) == [b'{"', b"order"]


def test_a_token_that_goes_beyond_the_stem_keeps_it_open(matcher_of):
    vocabulary = vocabulary_of(b"orderId")
    schema = {"anyOf": [closed("orderId"), closed("orderName")]}
    matcher = matcher_of(compile_json_schema(schema, vocabulary, style="compact"))
    assert spelled(vocabulary, matcher.forced_tokens()) == [b'{"']


def test_a_token_that_goes_beyond_the_stem_to_where_nothing_leads_does_not_matter(matcher_of):
    vocabulary = vocabulary_of(b"orderXyz")
    schema = {"anyOf": [closed("orderId"), closed("orderName")]}
    matcher = matcher_of(compile_json_schema(schema, vocabulary, style="compact"))
    assert spelled(vocabulary, matcher.forced_tokens()) == [b'{"', b"order"]


def test_a_tokenizer_that_looks_ahead_is_asked_how_it_goes_on(matcher_of):
    tokens, encode = longest_match(WORDS)

    def looks_ahead(text: str) -> list[int]:
        return encode(text) if text.endswith("order") else [t for part in text for t in encode(part)]

    vocabulary = Vocabulary(tokens, eos_ids=[EOS], encode=looks_ahead)
    matcher = matcher_of(compile_json_schema({"anyOf": [closed("orderId"), closed("orderName")]}, vocabulary, style="compact"))
    assert matcher.forced_tokens() == []


def test_nothing_is_forced_where_there_is_a_choice(matcher_of):
    matcher = matcher_of(compile_json_schema({"type": "boolean"}, vocabulary_of()))
    assert matcher.forced_text() == ""
    assert matcher.forced_tokens() == []
    assert matcher.accept(ord("t"))
    assert matcher.forced_text() == "rue"


def test_nothing_is_forced_where_the_answer_may_end(matcher_of):
    matcher = matcher_of(compile_choice(["ab", "abc"], vocabulary_of()))
    assert matcher.forced_text() == "ab"
    assert matcher.forced_tokens() == []      # `abc` is a token
    assert matcher.advance(b"ab")
    assert matcher.forced_text() == ""


def test_the_end_is_forced_where_nothing_else_is_left(matcher_of):
    matcher = matcher_of(compile_choice(["ab"], vocabulary_of()))
    assert matcher.advance(b"ab")
    assert matcher.forced_tokens() == [EOS]


def test_a_character_whose_last_byte_is_open_is_not_split(matcher_of):
    tokens = [*(bytes([b]) for b in range(256)), b""]
    vocabulary = Vocabulary(tokens, eos_ids=[256], encode=lambda text: list(text.encode()))
    matcher = matcher_of(compile_choice(["xé", "xè"], vocabulary))
    assert matcher.forced_text() == "x"
    assert matcher.forced_tokens() == [ord("x")]


def test_without_a_tokenizer_only_tokens_that_stand_alone_are_forced(matcher_of):
    tokens, _ = longest_match(WORDS)
    vocabulary = Vocabulary(tokens, eos_ids=[EOS])
    assert matcher_of(compile_choice(["ab"], vocabulary)).forced_tokens() == []       # `a` or `ab`
    assert matcher_of(compile_choice(["xyz"], vocabulary)).forced_tokens() == [ord("x"), ord("y"), ord("z"), EOS]


def test_a_tokenizer_that_does_not_spell_the_text_forces_nothing(matcher_of):
    tokens, encode = longest_match(WORDS)
    vocabulary = Vocabulary(tokens, eos_ids=[EOS], encode=lambda text: encode(" " + text))
    assert matcher_of(compile_choice(["xyz"], vocabulary)).forced_tokens() == []
