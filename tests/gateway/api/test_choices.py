"""best_of and beam search at the gateway: which answers are made, which are told, and what is refused."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from runtime.protocol import BeamParams
from tests.support.http import CHAT, chat_body
from tests.support.memory_engine import MemoryEngine

pytestmark = pytest.mark.anyio
COMPLETIONS = "/v1/completions"


async def asked(client: httpx.AsyncClient, path: str = CHAT, status: int = 200, **fields: Any) -> dict[str, Any]:
    body = chat_body(**fields) if path == CHAT else {"model": "memory", "prompt": "hello", **fields}
    answer = await client.post(path, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def texts(body: dict[str, Any]) -> list[str]:
    return [choice["message"]["content"] if "message" in choice else choice["text"] for choice in body["choices"]]


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
async def test_of_best_of_answers_the_n_with_the_highest_mean_logprob_are_told(
    client: httpx.AsyncClient, engine: MemoryEngine, path: str
) -> None:
    surprise = {7: 0.9, 8: 0.2, 9: 0.5, 10: 0.1, 11: 0.7}
    engine.surprise = lambda request: surprise[request.sampling.seed]
    body = await asked(client, path, n=2, best_of=5, seed=7)
    assert [text.rpartition("[")[2] for text in texts(body)] == ["seed 10]", "seed 8]"]
    assert [choice["index"] for choice in body["choices"]] == [0, 1]
    assert all(choice["logprobs"] is None for choice in body["choices"]), "none were asked for"


async def test_usage_counts_all_answers_that_were_made_and_the_prompt_once(
    client: httpx.AsyncClient, engine: MemoryEngine
) -> None:
    one = (await asked(client, COMPLETIONS))["usage"]
    five = (await asked(client, COMPLETIONS, best_of=5))["usage"]
    assert len(engine.requests) == 6
    assert five["completion_tokens"] == 5 * one["completion_tokens"]
    assert five["prompt_tokens"] == one["prompt_tokens"]


async def test_each_prompt_of_several_gets_its_own_best(client: httpx.AsyncClient, engine: MemoryEngine) -> None:
    surprise = {0: 0.9, 1: 0.2, 2: 0.3, 3: 0.8}
    engine.surprise = lambda request: surprise[request.sampling.seed]
    body = await asked(client, COMPLETIONS, prompt=["one", "two"], best_of=2, seed=0)
    assert texts(body) == ["You said: one [seed 1]", "You said: two [seed 2]"]


async def test_best_of_as_large_as_n_keeps_the_order_and_asks_the_engine_for_no_logprobs(
    client: httpx.AsyncClient, engine: MemoryEngine
) -> None:
    body = await asked(client, n=3, best_of=3, seed=1)
    assert [text.rpartition("[")[2] for text in texts(body)] == ["seed 1]", "seed 2]", "seed 3]"]
    assert {request.sampling.logprobs for request in engine.requests} == {None}


async def test_logprobs_that_were_asked_for_come_with_the_chosen_answer(client: httpx.AsyncClient) -> None:
    body = await asked(client, best_of=3, logprobs=True, top_logprobs=1)
    assert all(entry["top_logprobs"] for entry in body["choices"][0]["logprobs"]["content"])


@pytest.mark.parametrize(("fields", "beams"), [
    ({"n": 3}, BeamParams(3, 3)),
    ({"n": 2, "beam_width": 5}, BeamParams(5, 2)),
    ({"best_of": 4, "n": 2}, BeamParams(4, 2)),
    ({"n": 2, "length_penalty": 0.5, "early_stopping": "never", "temperature": 0}, BeamParams(2, 2, 0.5, "never")),
    ({"beam_width": 2, "early_stopping": True}, BeamParams(2, 1, 1.0, True)),
])
@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
async def test_a_beam_search_is_one_request_of_the_engine_and_n_choices(
    client: httpx.AsyncClient, engine: MemoryEngine, path: str, fields: dict[str, Any], beams: BeamParams
) -> None:
    body = await asked(client, path, use_beam_search=True, **fields)
    [request] = engine.requests
    assert request.beams == beams
    assert request.sampling.temperature == 0
    assert [text.rpartition(" ")[2] for text in texts(body)] == [f"#{i}" for i in range(beams.n)]


async def test_several_prompts_are_several_beam_searches(client: httpx.AsyncClient, engine: MemoryEngine) -> None:
    body = await asked(client, COMPLETIONS, prompt=["one", "two"], use_beam_search=True, n=2)
    assert texts(body) == ["You said: one #0", "You said: one #1", "You said: two #0", "You said: two #1"]
    assert body["usage"]["prompt_tokens"] == 6


@pytest.mark.parametrize(("fields", "param"), [
    ({"n": 3, "best_of": 2}, "best_of"),
    ({"best_of": 2, "stream": True}, "stream"),
    ({"best_of": 17}, "best_of"),
    ({"best_of": 0}, "best_of"),
    ({"beam_width": 2}, "beam_width"),
    ({"length_penalty": 2.0}, "length_penalty"),
    ({"early_stopping": "never"}, "early_stopping"),
    ({"use_beam_search": True, "stream": True}, "stream"),
    ({"use_beam_search": True, "n": 3, "beam_width": 2}, "beam_width"),
    ({"use_beam_search": True, "n": 3, "best_of": 2}, "best_of"),
    ({"use_beam_search": True, "beam_width": 3, "best_of": 2}, "best_of"),
    ({"use_beam_search": True, "beam_width": 17}, "beam_width"),
    ({"use_beam_search": True, "temperature": 0.7}, "temperature"),
    ({"use_beam_search": True, "top_p": 0.9}, "top_p"),
    ({"use_beam_search": True, "length_penalty": 11}, "length_penalty"),
    ({"use_beam_search": "yes"}, "use_beam_search"),
    ({"use_beam_search": True, "early_stopping": "always"}, "early_stopping"),
])
async def test_what_contradicts_itself_is_refused_by_the_fields_name(
    client: httpx.AsyncClient, engine: MemoryEngine, fields: dict[str, Any], param: str
) -> None:
    error = (await asked(client, status=400, **fields))["error"]
    assert error["param"] == param
    assert engine.requests == []


@pytest.mark.parametrize("fields", [
    {"use_beam_search": False, "length_penalty": 1.0, "early_stopping": False}, {"best_of": 1, "stream": True},
    {"use_beam_search": True, "temperature": 1.0, "top_p": 1.0, "top_k": -1, "min_p": 0, "seed": 4}])
async def test_values_that_ask_for_nothing_are_no_contradiction(client: httpx.AsyncClient, fields: dict[str, Any]) -> None:
    answer = await client.post(CHAT, json=chat_body(**fields))
    assert answer.status_code == 200


async def test_best_of_and_prompts_together_cannot_fill_the_queue(client: httpx.AsyncClient) -> None:
    await asked(client, COMPLETIONS, prompt=["a"] * 8, best_of=16, max_tokens=1)
    assert (await asked(client, COMPLETIONS, 400, prompt=["a"] * 9, best_of=16))["error"]["param"] == "prompt"
