"""Forced runs with a vocabulary of bytes, in which every text has one spelling: tokens are the same with and without them."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from runtime.protocol import GrammarSpec
from tests.runtime.test_engine import TOKENIZER, make_engine, prompts, request, run, text, tokens
from tests.support.counting_model import CountingModel

BYTES = SimpleNamespace(**{**vars(TOKENIZER), "encode": lambda written: list(written.encode())})

GRAMMARS: dict[str, GrammarSpec] = {
    "const": GrammarSpec("json_schema", json.dumps({"const": {"kind": "order", "version": [1, 2]}})),
    "names with a common start": GrammarSpec("json_schema", json.dumps({
        "type": "object", "additionalProperties": False, "required": ["orderName"],
        "properties": {"orderId": {"type": "boolean"}, "orderName": {"enum": ["a", "b"]}}})),
    "nested": GrammarSpec("json_schema", json.dumps({
        "type": "array", "minItems": 2, "maxItems": 3, "items": {
            "type": "object", "properties": {"x": {"type": "integer", "minimum": 0, "maximum": 99}, "é": {"type": "null"}},
            "required": ["x", "é"], "additionalProperties": False}})),
    "regex": GrammarSpec("regex", "abc(de|fg){2,5}hij[0-9]klm"),
    "choice": GrammarSpec("choice", json.dumps(["the same start, one end", "the same start, another end"])),
    "free style": GrammarSpec("json_schema", json.dumps({"const": {"a": 1}}), "free"),
}


def both(asked: list, n_blocks: int = 128, **settings: Any):
    """(events, engine) without forced runs and with them."""
    made = []
    for forced_runs in (False, True):
        engine = make_engine(n_blocks=n_blocks, tokenizer=BYTES, forced_runs=forced_runs, guessing_rows=0, **settings)
        made.append((run(engine, *asked), engine))
    return made


@pytest.mark.parametrize("name", GRAMMARS)
def test_the_tokens_are_the_same_and_forced_ones_took_no_step(name: str) -> None:
    asked = [request("a", [1, 2, 3], n=300, grammar=GRAMMARS[name])]
    (plain, slow), (forced, fast) = both(asked)
    assert tokens(forced["a"]) == tokens(plain["a"]) and text(forced["a"]) == text(plain["a"])
    assert forced["a"][-1].reason == plain["a"][-1].reason == "stop"
    n_forced = forced["a"][-1].usage.forced_tokens
    assert plain["a"][-1].usage.forced_tokens == 0
    assert fast.stats().steps == slow.stats().steps - n_forced
    assert fast.stats().forced_tokens == n_forced
    assert n_forced > 0 or name == "free style"


@pytest.mark.parametrize("step_tokens", [8, 32])
def test_many_together_in_a_small_pool_are_the_same_too(step_tokens: int) -> None:
    asked = [request(f"{name} {i}", prompt, n=200, grammar=spec)
             for name, spec in GRAMMARS.items() for i, prompt in enumerate(prompts(3, seed=len(name)))]
    (plain, _), (forced, engine) = both(asked, n_blocks=60, step_tokens=step_tokens)
    for name in plain:
        assert tokens(forced[name]) == tokens(plain[name])
    assert engine.stats().forced_tokens > 0


def test_forced_runs_and_guesses_go_together() -> None:
    asked = [request(str(i), [*b'{"x":11,"', i], n=200, grammar=GRAMMARS["nested"]) for i in range(3)]
    (plain, _), _ = both(asked)
    engine = make_engine(tokenizer=BYTES, model=CountingModel(), guessing_rows=8)
    together = run(engine, *asked)
    for name in plain:
        assert tokens(together[name]) == tokens(plain[name])
    assert engine.stats().forced_tokens > 0 and engine.stats().guessed_tokens > 0


@pytest.mark.parametrize("n", range(1, 20))
def test_max_tokens_cuts_a_forced_run_where_it_would_have_cut_it(n: int) -> None:
    (plain, _), (forced, _) = both([request("a", [1], n=n, grammar=GRAMMARS["const"])])
    assert tokens(forced["a"]) == tokens(plain["a"]) and len(tokens(forced["a"])) == n
    assert forced["a"][-1].reason == plain["a"][-1].reason == "length"


def test_a_stop_string_within_a_forced_run_ends_the_answer_there() -> None:
    (plain, _), (forced, _) = both([request("a", [1], n=100, grammar=GRAMMARS["const"], stop=('"version',))])
    assert text(forced["a"]) == text(plain["a"]) == '{"kind":"order",'


def test_the_context_s_end_cuts_a_forced_run() -> None:
    (plain, _), (forced, _) = both([request("a", list(range(40)), n=24, grammar=GRAMMARS["const"])], max_context_tokens=50)
    assert tokens(forced["a"]) == tokens(plain["a"]) and len(tokens(forced["a"])) == 10
