"""Text that a grammar leaves no choice about costs no steps of its own. The real model, in this process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from runtime.config import EngineConfig
from runtime.engine import Engine
from runtime.protocol import Delta, Finished, GenerationRequest, GrammarSpec, SamplingParams
from runtime.start import start_engine
from tests.end_to_end.test_schemas import SCHEMAS, closed

PRODUCT = closed({
    "productId": {"type": "integer", "minimum": 1, "maximum": 9999}, "category": {"enum": ["books", "games", "tools"]},
    "currency": {"const": "EUR"}, "inStock": {"type": "boolean"}, "warehouse": {"enum": ["north", "south"]},
    "dimensions": closed({"lengthCentimeters": {"type": "integer", "minimum": 0, "maximum": 99},
                          "widthCentimeters": {"type": "integer", "minimum": 0, "maximum": 99}})})
ASKED = {**{name: SCHEMAS[name] for name in (
    "flat", "enum", "const", "nested", "array of enums", "optional", "pattern", "anyOf", "defs", "unusual keys", "matrix")},
    "product": PRODUCT}


@dataclass(frozen=True)
class Answer:
    text: str
    tokens: list[int]
    steps: int
    forced: int


def answer(engine: Engine, schema: Any, **params: Any) -> Answer:
    prompt = engine._tokenizer.encode_chat([{"role": "user", "content": "Answer in JSON with a short made-up example."}])
    sampling = SamplingParams(160, **{"temperature": 0.0, **params})
    request = GenerationRequest("a", tuple(prompt), sampling, b"d", GrammarSpec("json_schema", json.dumps(schema)))
    began, text, tokens = engine.stats().steps, "", []
    events = engine.submit(request)
    while True:
        for event in events:
            if isinstance(event, Delta):
                text, tokens = text + event.text, [*tokens, *event.token_ids]
            else:
                assert isinstance(event, Finished), event
                assert event.usage.completion_tokens == len(tokens)
                return Answer(text, tokens, engine.stats().steps - began, event.usage.forced_tokens)
        events = engine.step()
        engine.check()


@pytest.fixture(scope="module")
def engines(model_path: Path) -> tuple[Engine, Engine]:
    """Without forced runs, and with them."""
    made = (start_engine(EngineConfig(model_path, "model", kv_cache_tokens=4096, forced_runs=forced, guessing_rows=0))[0]
            for forced in (False, True))
    return next(made), next(made)


@pytest.fixture(scope="module")
def answers(engines: tuple[Engine, Engine]) -> dict[str, tuple[Answer, Answer]]:
    return {name: (answer(engines[0], schema), answer(engines[1], schema)) for name, schema in ASKED.items()}


@pytest.mark.parametrize("name", ASKED)
def test_answers_validate_and_no_step_is_spent_on_a_forced_token(answers, name: str) -> None:
    _, forced = answers[name]
    Draft202012Validator(ASKED[name]).validate(json.loads(forced.text))
    assert forced.steps <= len(forced.tokens) - forced.forced + 1


def test_passes_are_fewer_by_half(answers) -> None:
    plain = sum(a.steps for a, _ in answers.values())
    forced = sum(a.steps for _, a in answers.values())
    assert forced <= plain / 2
    assert sum(len(a.tokens) for _, a in answers.values()) / forced >= 1.9
    assert len(answers["product"][1].tokens) / answers["product"][1].steps >= 3.5


def test_logprobs_are_of_every_token_and_nothing_is_forced_then(engines) -> None:
    asked = answer(engines[1], ASKED["flat"], logprobs=1)
    assert asked.forced == 0


def test_forced_text_stops_at_a_stop_string(engines) -> None:
    assert answer(engines[1], ASKED["const"], stop=('"kind',)).text == '{"version":3,'


def test_an_answer_cut_by_max_tokens_within_a_forced_run_has_just_so_many(engines) -> None:
    whole = answer(engines[1], ASKED["const"])
    engine = engines[1]
    prompt = engine._tokenizer.encode_chat([{"role": "user", "content": "Answer in JSON with a short made-up example."}])
    for n in range(1, len(whole.tokens)):
        request = GenerationRequest("cut", tuple(prompt), SamplingParams(n, temperature=0.0), b"d",
                                    GrammarSpec("json_schema", json.dumps(ASKED["const"])))
        events = engine.submit(request)
        while not any(isinstance(event, Finished) for event in events):
            events += engine.step()
        assert [t for e in events if isinstance(e, Delta) for t in e.token_ids] == whole.tokens[:n]
        assert events[-1].reason == "length"
