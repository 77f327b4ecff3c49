"""The load's own arithmetic, by hand, and that its prompts share what they say they share."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator

import pytest
from jsonschema import Draft202012Validator

from bench.load import RECORD, Sample, messages, report, run
from tests.support.served import Server, serve
from tests.support.tiny_models import save_folder, tiny_llama


def sample(arrivals_s: list[float], text: str, completion: int, cached: int) -> Sample:
    usage = {"prompt_tokens": 100, "completion_tokens": completion, "prompt_tokens_details": {"cached_tokens": cached}}
    return Sample(10.0, arrivals_s, text, usage)


def test_times_and_rates_are_those_counted_by_hand() -> None:
    samples = [sample([10.5, 11.0, 11.5], "", 5, 0), sample([10.1, 10.4], "", 3, 80), sample([10.2], "", 1, 40)]
    told = report("chat", 2, samples, wall_s=3.0)
    assert told["ttft_ms_p50"] == pytest.approx(200)            # of 500, 100, 200
    assert told["tpot_ms_p50"] == pytest.approx(150)            # of 1000 / 4, 300 / 2, 0
    assert told["output_tok_s"] == pytest.approx(3)             # 9 tokens in 3 s
    assert told["req_s"] == pytest.approx(1)
    assert told["cached_ratio"] == pytest.approx(0.4)           # 120 of 300
    assert told["schema_valid_ratio"] is None


def test_answers_are_held_to_the_schema() -> None:
    good = {"name": "kettle", "category": "kitchen", "price": 5, "in_stock": True,
            "variants": [{"color": "red", "quantity": 1}] * 2}
    assert Draft202012Validator(RECORD).is_valid(good)
    texts = [json.dumps(good), json.dumps(good | {"price": 0}), '{"name":']
    told = report("schema", 1, [sample([10.5], text, 5, 0) for text in texts], wall_s=1.0)
    assert told["schema_valid_ratio"] == pytest.approx(1 / 3)


def test_chats_share_their_system_prompt_and_unique_prompts_nothing() -> None:
    chats = [messages("chat", random.Random(seed)) for seed in range(3)]
    assert len({chat[0]["content"] for chat in chats}) == 1
    assert len({chat[1]["content"] for chat in chats}) == 3
    unique = [messages("unique", random.Random(seed))[0]["content"] for seed in range(3)]
    assert len({text[:12] for text in unique}) == 3


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("tiny")
    model = save_folder(folder / "model", tiny_llama())
    with serve(folder, str(model), "--model-name", "tiny", "--data-dir", str(folder), "--kv-cache-tokens", "4096") as server:
        yield server


def test_a_level_runs_against_a_real_server(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.load.messages", lambda workload, rng: [{"role": "user", "content": f"the cat {rng.random()}"}])
    told = asyncio.run(run(server.url, "tiny", "chat", concurrency=2, n_requests=4, max_tokens=6))
    assert (told["requests"], told["completion_tokens_mean"]) == (4, 6)
    assert told["output_tok_s"] > 0
