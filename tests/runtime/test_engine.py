"""The step loop with a model whose next token is a function of the tokens before it (tests/support/counting_model.py)."""

from __future__ import annotations

import json
import random
import re
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from grammar import GrammarTooLarge
from grammar.matcher import NativeMatcher, PlainMatcher
from kernels.ops import load_ops
from runtime.config import EngineConfig
from runtime.engine import Engine
from runtime.protocol import Delta, Event, Failed, Finished, GenerationRequest, GrammarSpec, SamplingParams
from tests.support.counting_model import CountingModel, expected

VOCABULARY = 300
EOS = 299
CALL = 260


def byte_tokenizer(without: str = "") -> SimpleNamespace:
    """Token t < 256 is the byte t, unless it is left out; the rest are special, and one of those can be named."""
    token_bytes = [bytes([t]) if t < 256 and t not in without.encode() else b"" for t in range(VOCABULARY)]
    spelled = [b"<call>" if t == CALL else data for t, data in enumerate(token_bytes)]
    return SimpleNamespace(token_bytes=token_bytes, eos_ids=(EOS,), vocabulary_size=VOCABULARY, special_tokens={"<call>": CALL},
                           encode=lambda text: list(text.encode()), spelled_out=lambda: spelled)


TOKENIZER = byte_tokenizer()


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        self.now_s += 0.001
        return self.now_s


def make_engine(n_blocks: int = 64, model: CountingModel | None = None, tokenizer=TOKENIZER, **settings) -> Engine:
    config = EngineConfig(Path("unused"), "counting", **{"block_tokens": 4, "step_tokens": 32, "max_running": 8, **settings})
    return Engine(config, model or CountingModel(), tokenizer, load_ops(torch.device("cpu"), "reference"), n_blocks, Clock())


def request(name: str, prompt: list[int], n: int = 8, grammar: GrammarSpec | None = None, domain: bytes = b"d",
            **params) -> GenerationRequest:
    sampling = SamplingParams(max_tokens=n, **{"temperature": 0.0, **params})
    return GenerationRequest(name, tuple(prompt), sampling, domain, grammar)


def run(engine: Engine, *requests: GenerationRequest, most_steps: int = 5_000) -> dict[str, list[Event]]:
    """All events by request; every step's invariants are checked."""
    seen: dict[str, list[Event]] = {r.request_id: [] for r in requests}
    events = [event for r in requests for event in engine.submit(r)]
    for _ in range(most_steps):
        for event in events:
            seen[event.request_id].append(event)
        if engine.idle:
            return seen
        events = engine.step()
        engine.check()
    raise AssertionError("the engine does not come to rest")


def tokens(events: list[Event]) -> list[int]:
    return [t for e in events if isinstance(e, Delta) for t in e.token_ids]


def text(events: list[Event]) -> str:
    return "".join(e.text for e in events if isinstance(e, Delta))


def prompts(n: int, seed: int = 1) -> list[list[int]]:
    rng = random.Random(seed)
    return [[rng.randrange(250) for _ in range(rng.randrange(1, 60))] for _ in range(n)]


def test_an_answer_is_what_the_model_says_without_any_cache() -> None:
    [prompt] = prompts(1)
    events = run(make_engine(), request("a", prompt, n=20))["a"]
    assert tokens(events) == expected(prompt, 20)
    assert isinstance(events[-1], Finished)
    assert events[-1].reason == "length"


def test_requests_together_answer_as_they_do_one_by_one() -> None:
    asked = prompts(12)
    together = run(make_engine(), *(request(str(i), p, n=12) for i, p in enumerate(asked)))
    for i, prompt in enumerate(asked):
        assert tokens(together[str(i)]) == expected(prompt, 12)


def test_a_cached_prefix_changes_nothing_but_the_work() -> None:
    model = CountingModel()
    engine = make_engine(model=model)
    prompt = list(range(41))
    cold = run(engine, request("cold", prompt))["cold"]
    n_cold = model.n_tokens_computed
    warm = run(engine, request("warm", prompt))["warm"]
    assert tokens(warm) == tokens(cold) == expected(prompt, 8)
    assert cold[-1].usage.cached_tokens == 0
    assert warm[-1].usage.cached_tokens == 40
    assert model.n_tokens_computed - n_cold == n_cold - 40


def test_another_domain_finds_nothing_and_the_same_domain_does() -> None:
    engine = make_engine()
    prompt = list(range(30))
    run(engine, request("a", prompt, domain=b"one"))
    assert run(engine, request("b", prompt, domain=b"two"))["b"][-1].usage.cached_tokens == 0
    assert run(engine, request("c", prompt, domain=b"one"))["c"][-1].usage.cached_tokens == 28


def test_the_books_add_up() -> None:
    engine = make_engine(n_blocks=24)
    asked = [[*range(20), i] for i in range(6)] + prompts(6)
    finished = [events[-1] for events in run(engine, *(request(str(i), p, n=16) for i, p in enumerate(asked))).values()]
    assert all(f.usage.prompt_tokens == f.usage.cached_tokens + f.usage.computed_tokens for f in finished)
    stats = engine.stats()
    assert sum(len(p) for p in asked) == stats.cached_tokens + stats.computed_tokens
    assert stats.cached_tokens == sum(f.usage.cached_tokens for f in finished)
    assert stats.generated_tokens == sum(f.usage.completion_tokens for f in finished)
    assert stats.recomputed_tokens == sum(f.usage.recomputed_tokens for f in finished)


def test_preempted_answers_are_the_same_and_their_recomputing_is_no_hit() -> None:
    engine = make_engine(n_blocks=16)
    asked = [[100 + i] * 9 for i in range(4)]
    seen = run(engine, *(request(str(i), p, n=30) for i, p in enumerate(asked)))
    assert engine.stats().preemptions > 0
    for i, prompt in enumerate(asked):
        assert tokens(seen[str(i)]) == expected(prompt, 30)
        assert seen[str(i)][-1].usage.cached_tokens == 0


def test_cancelling_frees_the_blocks_at_once() -> None:
    engine = make_engine()
    for name, prompt in zip("abcdef", prompts(6, seed=3), strict=True):
        engine.submit(request(name, prompt, n=50))
    for name in "abcdef":
        engine.step()
        engine.cancel(name)
        engine.check()
        assert all(row.request_id != name for row in engine.step() if isinstance(row, Delta))
    assert engine.idle
    assert engine.stats().pools[0].blocks_used == 0
    assert engine.stats().running == engine.stats().waiting == 0


def test_hundreds_of_requests_a_third_cancelled_at_random_leave_nothing_behind() -> None:
    rng = random.Random(7)
    engine = make_engine(n_blocks=40, max_running=6, max_waiting=1000)
    alive = set()
    for i, prompt in enumerate(prompts(300, seed=5)):
        spec = GrammarSpec("regex", "[a-d]{1,20}") if i % 5 == 0 else None
        engine.submit(request(str(i), prompt, n=rng.randrange(1, 12), grammar=spec))
        alive.add(str(i))
        for _ in range(rng.randrange(3)):
            alive -= {e.request_id for e in engine.step() if isinstance(e, Finished | Failed)}
        if alive and rng.random() < 1 / 3:
            name = rng.choice(sorted(alive))
            alive.remove(name)
            engine.cancel(name)
        engine.check()
    while not engine.idle:
        alive -= {e.request_id for e in engine.step() if isinstance(e, Finished | Failed)}
        engine.check()
    assert not alive
    pool = engine.stats().pools[0]
    assert pool.blocks_used == 0
    assert pool.blocks_free + pool.blocks_cached == pool.blocks_total


def test_a_row_that_raises_ends_alone() -> None:
    engine = make_engine(model=CountingModel(poison=255))
    seen = run(engine, request("good", [1, 2, 3]), request("bad", [9, 255]), request("fine", [4, 5]))
    assert isinstance(seen["bad"][-1], Failed)
    assert seen["bad"][-1].code == "request_faulted"
    assert tokens(seen["good"]) == expected([1, 2, 3], 8)
    assert tokens(seen["fine"]) == expected([4, 5], 8)


def test_what_can_not_fit_is_refused_with_its_numbers() -> None:
    [failed] = make_engine().submit(request("long", [1] * 300))
    assert failed.code == "context_length_exceeded"
    assert "300" in failed.message
    assert "256" in failed.message


def test_one_id_can_not_be_used_twice_at_once() -> None:
    engine = make_engine()
    engine.submit(request("a", [1]))
    [failed] = engine.submit(request("a", [2]))
    assert "'a'" in failed.message


@pytest.mark.parametrize("pattern", ["(yes|no)", "[0-9]{3}-[0-9]{2}", "a(bc){2,4}d"])
def test_an_answer_under_a_regex_matches_it_and_ends_by_itself(pattern: str) -> None:
    events = run(make_engine(), request("a", [1, 2], n=50, grammar=GrammarSpec("regex", pattern)))["a"]
    assert re.fullmatch(pattern, text(events))
    assert events[-1].reason == "stop"


def test_choice_and_json_object_and_schema() -> None:
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}, "n": {"enum": [1, 22, 333]}},
              "required": ["ok", "n"], "additionalProperties": False}
    seen = run(make_engine(),
               request("choice", [3], n=40, grammar=GrammarSpec("choice", '["red", "green", "blue"]')),
               request("schema", [4], n=40, grammar=GrammarSpec("json_schema", json.dumps(schema))))
    assert text(seen["choice"]) in ("red", "green", "blue")
    answer = json.loads(text(seen["schema"]))
    assert isinstance(answer["ok"], bool)
    assert answer["n"] in (1, 22, 333)
    assert [e[-1].reason for e in seen.values()] == ["stop", "stop"]


def test_an_answer_cut_short_says_length_and_one_just_long_enough_says_stop() -> None:
    spec = GrammarSpec("regex", "abcdef")
    seen = run(make_engine(), request("cut", [1], n=5, grammar=spec), request("whole", [1], n=6, grammar=spec))
    assert (text(seen["cut"]), seen["cut"][-1].reason) == ("abcde", "length")
    assert (text(seen["whole"]), seen["whole"][-1].reason) == ("abcdef", "stop")


def test_a_schema_that_can_not_be_compiled_fails_its_request_only() -> None:
    bad = GrammarSpec("json_schema", '{"type": "strnig"}')
    seen = run(make_engine(), request("bad", [1], grammar=bad), request("good", [1, 2, 3]))
    assert isinstance(seen["bad"][-1], Failed)
    assert seen["bad"][-1].code == "invalid_json_schema"
    assert tokens(seen["good"]) == expected([1, 2, 3], 8)


def test_a_stop_string_ends_the_answer_before_it() -> None:
    prompt = next(p for p in prompts(50, seed=11) if all(32 < t < 127 for t in expected(p, 6)[:1]))
    whole = run(make_engine(), request("a", prompt, n=20))["a"]
    shown = text(whole)
    stop = shown[3:5]
    stopped = run(make_engine(), request("a", prompt, n=20, stop=(stop,)))["a"]
    assert text(stopped) == shown[: shown.index(stop)]
    assert stopped[-1].reason == "stop"


def test_seeds_decide_alone_and_in_company() -> None:
    def drawn(*others: GenerationRequest) -> list[int]:
        asked = request("a", [1, 2, 3], n=12, temperature=8.0, seed=5)
        return tokens(run(make_engine(), *others, asked)["a"])

    alone = drawn()
    assert alone == drawn(*(request(str(i), p, temperature=1.0) for i, p in enumerate(prompts(5))))
    assert alone != expected([1, 2, 3], 12)


def test_min_tokens_hold_back_the_end() -> None:
    bias = ((EOS, 100.0),)
    seen = run(make_engine(),
               request("at once", [1], n=9, logit_bias=bias),
               request("later", [2], n=9, logit_bias=bias, min_tokens=4),
               request("never", [3], n=9, logit_bias=bias, ignore_eos=True))
    assert [len(tokens(e)) for e in seen.values()] == [1, 5, 9]
    assert [e[-1].reason for e in seen.values()] == ["stop", "stop", "length"]


def test_min_tokens_hold_back_stop_tokens_too() -> None:
    bias = ((7, 100.0),)
    stopping = {"n": 9, "logit_bias": bias, "stop_token_ids": (7,)}
    seen = run(make_engine(), request("at once", [1], **stopping), request("later", [2], min_tokens=3, **stopping))
    assert [len(tokens(e)) for e in seen.values()] == [1, 4]


def test_logprobs_tell_the_models_distribution() -> None:
    events = run(make_engine(), request("a", [1, 2, 3], n=1, logprobs=2))["a"]
    [entry] = events[0].logprobs
    # By hand: one logit is 10, the other 299 are 0.
    logsum = torch.logsumexp(torch.tensor([10.0] + [0.0] * 299), 0).item()
    assert entry.logprob == pytest.approx(10 - logsum, abs=1e-5)
    assert [t[2] for t in entry.top] == pytest.approx([10 - logsum, -logsum], abs=1e-5)


def test_a_mask_that_can_not_be_made_ends_its_request_only(monkeypatch: pytest.MonkeyPatch) -> None:
    model = CountingModel()
    engine = make_engine(model=model)
    engine.submit(request("ambiguous", [1], grammar=GrammarSpec("regex", "[a-z]{5}")))
    engine.submit(request("good", [1, 2, 3], n=200))
    for _ in range(100):
        engine.step()
        if engine.stats().running == 2:
            break
        time.sleep(0.001)
    assert engine.stats().running == 2

    def too_ambiguous(self, row) -> None:
        raise GrammarTooLarge("steps_of_one_mask", 5, 6)

    for kind in (NativeMatcher, PlainMatcher):
        monkeypatch.setattr(kind, "fill_mask", too_ambiguous)
    events = engine.step()
    assert [e.code for e in events if isinstance(e, Failed)] == ["invalid_json_schema"]
    good = [e for e in events if e.request_id == "good"]
    while not engine.idle:
        good += [e for e in engine.step() if e.request_id == "good"]
    assert isinstance(good[-1], Finished)


def test_a_grammar_that_the_vocabulary_can_not_write_is_refused() -> None:
    engine = make_engine(tokenizer=byte_tokenizer(without="q"))
    [*_, failed] = run(engine, request("a", [1], n=20, grammar=GrammarSpec("choice", '["aqua"]')))["a"]
    assert isinstance(failed, Failed)
    assert failed.code == "invalid_json_schema"
    assert "no token" in failed.message
