"""A few hundred cases of the fuzz job, and the job's own parts."""

from __future__ import annotations

from random import Random

import pytest
from jsonschema.validators import validator_for

from bench.grammar_fuzz import (
    Failure,
    Fuzzer,
    accepts,
    judged,
    keywords_of,
    minimised,
    shown,
    small_vocabulary_once,
    smaller,
    written,
)
from bench.wide_schemas import values_for, wide_document
from grammar import compile_json_schema

CASES_PER_SEED = 30


@pytest.mark.parametrize("seed", range(0, 300, CASES_PER_SEED))
def test_no_random_schema_has_an_invalid_answer_a_dead_end_or_a_valid_value_out_of_reach(seed):
    fuzzer = Fuzzer(small_vocabulary_once(), walks=2, values=6)
    failures = [failure for n in range(CASES_PER_SEED) if (failure := fuzzer.case(1_000_000 + seed + n)) is not None]
    assert failures == [], "\n".join(map(shown, failures))
    assert fuzzer.statistics.finished > CASES_PER_SEED / 2
    assert fuzzer.statistics.values > CASES_PER_SEED / 2


def test_random_schemas_are_schemas_and_have_every_keyword_of_the_list():
    r, seen = Random(4), set()
    for _ in range(1500):
        schema = wide_document(r)
        validator_for(schema).check_schema(schema)
        seen.update(keywords_of(schema))
    assert {
        "type", "enum", "const", "properties", "required", "additionalProperties", "patternProperties", "propertyNames",
        "minProperties", "maxProperties", "dependentRequired", "dependentSchemas", "dependencies", "items", "prefixItems",
        "additionalItems", "minItems", "maxItems", "contains", "minContains", "maxContains", "uniqueItems", "unevaluatedItems",
        "unevaluatedProperties", "minLength", "maxLength", "pattern", "format", "minimum", "maximum", "exclusiveMinimum",
        "exclusiveMaximum", "multipleOf", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref", "$dynamicRef",
        "$anchor", "$defs", "definitions", "$schema"} <= seen


def test_values_made_for_a_schema_are_often_valid():
    valid = 0
    for seed in range(60):
        r = Random(seed)
        schema = wide_document(r)
        guesses, oracle = values_for(schema, r), validator_for(schema)(schema)
        valid += any(judged(oracle, next(guesses)) for _ in range(30))
    assert valid > 40


def test_a_failure_is_made_smaller_until_nothing_can_be_left_out():
    """A schema that refuses a valid value by a lie: its failure stands for one of the engine."""

    class Lying(Fuzzer):
        def examine(self, schema, options, seed):
            guilty = "maxItems" in keywords_of(schema) and "b" in schema.get("properties", {})
            return Failure("invalid", schema, options, "", seed) if guilty else None

    schema = {"type": "object", "required": ["a"],
              "properties": {"a": {"type": "string"}, "b": {"type": "array", "maxItems": 3, "items": {"type": "null"}}}}
    failure = Failure("invalid", schema, {}, "")
    assert minimised(failure, Lying(small_vocabulary_once())).schema == {"properties": {"b": {"maxItems": 3}}}


def test_what_is_smaller_lacks_one_thing():
    assert {"a": 1} in list(smaller({"a": 1, "b": {"c": 2}}))
    assert {"a": 1, "b": {}} in list(smaller({"a": 1, "b": {"c": 2}}))


def test_the_ways_to_write_a_value_are_read_back_as_it():
    grammar = compile_json_schema({}, small_vocabulary_once())
    texts = written({"a": [1.0, "é"]}, {}, "free")
    assert '{"a": [1.0, "\\u00e9"]}' in texts
    assert all(accepts(grammar, text) for text in texts)
    assert not accepts(grammar, '{"a":')
    assert written([1.0], {}, "compact") == ["[1]"]
    assert written(1e-5, {"multipleOf": 0.5}, "free") == []
