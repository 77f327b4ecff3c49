"""Random schemas against the jsonschema library: what the masks let through validates, and what validates can be written."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from grammar import CompiledGrammar, SchemaError, Vocabulary, check_json_schema, compile_json_schema
from tests.support.random_schemas import random_document, random_value

SEEDS = range(12)
SCHEMAS_PER_SEED = 25
FINISHING = {ord(c) for c in '"}]'}
LIKELY = FINISHING | {ord(c) for c in ',:aeb019é\\ u'}


def compiled_schemas(seed: int, vocabulary: Vocabulary, **options: Any):
    r = Random(seed)
    for _ in range(SCHEMAS_PER_SEED):
        schema = random_document(r)
        try:
            yield r, schema, compile_json_schema(schema, vocabulary, **options)
        except SchemaError:
            continue


def random_answer(grammar: CompiledGrammar, vocabulary: Vocabulary, allowed: Any, r: Random) -> bytes | None:
    """A finished answer, walked token by token along the masks; None if it does not finish soon."""
    matcher, answer = grammar.new_state(), b""
    for n in range(300):
        tokens = allowed(matcher)
        assert tokens, f"dead end after {answer!r}"
        ends = [t for t in tokens if t in vocabulary.eos_ids]
        if ends and r.random() < 0.5:
            assert matcher.accept(r.choice(ends))
            return answer
        texts = [t for t in tokens if t not in vocabulary.eos_ids]
        wished = FINISHING if n > 100 else LIKELY
        preferred = [t for t in texts if t in wished] if r.random() < 0.7 or n > 100 else []
        token = r.choice(preferred or texts or ends)
        assert matcher.accept(token)
        answer += vocabulary.token_bytes[token]
        if matcher.ended:
            return answer
    return None


@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_the_masks_let_through_validates(vocabulary, allowed, seed, order):
    finished = 0
    for r, schema, grammar in compiled_schemas(seed, vocabulary, property_order=order):
        oracle = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
        for _ in range(3):
            answer = random_answer(grammar, vocabulary, allowed, r)
            if answer is not None:
                finished += 1
                assert oracle.is_valid(json.loads(answer)), (schema, answer)
    assert finished > SCHEMAS_PER_SEED


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_validates_can_be_written_and_nothing_else(vocabulary, admits, seed):
    tried = 0
    for r, schema, grammar in compiled_schemas(seed + 1000, vocabulary, property_order="any"):
        oracle = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
        for _ in range(12):
            value = random_value(r)
            valid = oracle.is_valid(value)
            tried += valid
            for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=2)) if valid else (json.dumps(value),):
                assert admits(grammar, text) == valid, (schema, text)
    assert tried > SCHEMAS_PER_SEED


@pytest.mark.parametrize("seed", SEEDS)
def test_a_schema_refused_as_without_value_has_none(seed):
    r, refused = Random(seed + 2000), 0
    for _ in range(2 * SCHEMAS_PER_SEED):
        schema = random_document(r)
        try:
            check_json_schema(schema)
        except SchemaError as error:
            if "no value" in error.reason:
                refused += 1
                oracle = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
                assert [v for v in (random_value(r) for _ in range(50)) if oracle.is_valid(v)] == []
    assert refused


SERVED = [
    {"type": "object",
     "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 0, "maximum": 150},
                                      "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 3}},
     "required": ["name", "age"], "additionalProperties": False},
    {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "number", "minimum": -1, "maximum": 1}},
    {"anyOf": [{"type": "string", "pattern": "^[A-Z]{2}\\d{4}$"}, {"type": "null"}]},
]


@pytest.mark.parametrize("schema", SERVED, ids=lambda s: str(s)[:40])
def test_answers_in_the_real_vocabulary_validate(real_vocabulary, schema):
    grammar = compile_json_schema(schema, real_vocabulary)
    row = np.zeros((real_vocabulary.size + 31) // 32, dtype=np.uint32)
    oracle, r, finished = Draft202012Validator(schema), Random(5), 0
    for _ in range(20):
        matcher, answer = grammar.new_state(), b""
        for _ in range(200):
            matcher.fill_mask(row)
            tokens = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
            token = int(r.choice(tokens))
            assert matcher.accept(token)
            answer += real_vocabulary.token_bytes[token]
            if matcher.ended:
                finished += 1
                assert oracle.is_valid(json.loads(answer)), answer
                break
    assert finished
