"""POST /v1/completions."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.support.http import events
from tests.support.memory_engine import TURN_END, MemoryEngine

pytestmark = pytest.mark.anyio
PATH = "/v1/completions"


async def answered(client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    answer = await client.post(PATH, json={"model": "memory", **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_the_body_has_all_that_clients_read(client: httpx.AsyncClient) -> None:
    body = await answered(client, prompt="hello")
    assert body["object"] == "text_completion" and body["id"].startswith("cmpl-")
    assert body["choices"] == [{"index": 0, "text": "You said: hello", "logprobs": None, "finish_reason": "stop"}]
    assert (body["usage"]["prompt_tokens"], body["usage"]["completion_tokens"]) == (5, 15)


@pytest.mark.parametrize(("prompt", "tokens"), [
    ("hi", [(104, 105)]),
    ([104, 105], [(104, 105)]),
    (["hi", "ho"], [(104, 105), (104, 111)]),
    ([[104, 105], [TURN_END]], [(104, 105), (TURN_END,)]),
])
async def test_a_prompt_is_a_text_or_tokens_or_several(
    client: httpx.AsyncClient, engine: MemoryEngine, prompt: Any, tokens: list[tuple[int, ...]]
) -> None:
    await answered(client, prompt=prompt)
    assert [request.prompt_tokens for request in engine.requests] == tokens


async def test_choices_of_several_prompts_come_prompt_by_prompt(client: httpx.AsyncClient, engine: MemoryEngine) -> None:
    body = await answered(client, prompt=["aa", "bbb"], n=2, seed=1)
    assert [choice["text"] for choice in body["choices"]] == [
        "You said: aa [seed 1]", "You said: aa [seed 2]", "You said: bbb [seed 3]", "You said: bbb [seed 4]"]
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2, 3]
    assert body["usage"]["prompt_tokens"] == 2 + 3


@pytest.mark.parametrize(("prompt", "param"), [
    ("", "prompt"), ([], "prompt"), (["a", ""], "prompt[1]"), ([[]], "prompt"), ([[1], []], "prompt[1]"), ([258], "prompt"),
    ([-1], "prompt"), (None, "prompt"), (5, "prompt"), ([1, "a"], "prompt"), ({"a": 1}, "prompt"), (["a"] * 129, "prompt"),
])
async def test_a_prompt_that_is_none_is_a_400(client: httpx.AsyncClient, prompt: Any, param: str) -> None:
    answer = await client.post(PATH, json={"model": "memory", "prompt": prompt})
    assert answer.status_code == 400, answer.text
    assert (answer.json()["error"]["param"] or "").startswith(param)


@pytest.mark.parametrize(("n_prompts", "n", "status"), [(128, 1, 200), (8, 16, 200), (9, 16, 400)])
async def test_one_request_cannot_fill_the_queue(client: httpx.AsyncClient, n_prompts: int, n: int, status: int) -> None:
    answer = await client.post(PATH, json={"model": "memory", "prompt": ["a"] * n_prompts, "n": n, "max_tokens": 1})
    assert answer.status_code == status


@pytest.mark.parametrize(("name", "value", "status"), [
    ("echo", True, 400), ("echo", False, 200), ("suffix", "x", 400), ("suffix", None, 200), ("best_of", 1, 200),
    ("best_of", 16, 200), ("best_of", 17, 400), ("logprobs", 6, 400), ("logprobs", 5, 200), ("logprobs", True, 400),
])
async def test_what_completions_cannot_do_is_refused_by_name(
    client: httpx.AsyncClient, name: str, value: Any, status: int
) -> None:
    answer = await client.post(PATH, json={"model": "memory", "prompt": "x", name: value})
    assert answer.status_code == status
    if status == 400:
        assert answer.json()["error"]["param"] == name


async def test_logprobs_run_along_the_text(client: httpx.AsyncClient) -> None:
    body = await answered(client, prompt="é", logprobs=1)
    told = body["choices"][0]["logprobs"]
    text = body["choices"][0]["text"]
    assert text == "You said: é"
    assert told["tokens"][:3] == ["Y", "o", "u"]
    assert told["token_logprobs"][0] == -0.25
    assert told["top_logprobs"][0] == {"Y": -0.25}
    # two tokens make the last character: neither begins after it
    assert told["text_offset"] == [*range(len(text)), len(text) - 1]


async def test_a_stream_joins_to_the_same_text(client: httpx.AsyncClient) -> None:
    whole = await answered(client, prompt="grüße", n=2, seed=3)
    answer = await client.post(PATH, json={
        "model": "memory", "prompt": "grüße", "n": 2, "seed": 3, "stream": True, "stream_options": {"include_usage": True}})
    *chunks, last, done = events(answer.text)
    assert done == "[DONE]" and last["choices"] == []
    joined = ["", ""]
    for chunk in chunks:
        assert chunk["object"] == "text_completion" and chunk["usage"] is None
        for choice in chunk["choices"]:
            joined[choice["index"]] += choice["text"]
    assert joined == [choice["text"] for choice in whole["choices"]]
    assert last["usage"]["completion_tokens"] == whole["usage"]["completion_tokens"]


async def test_streamed_offsets_run_on_through_the_chunks(client: httpx.AsyncClient) -> None:
    answer = await client.post(PATH, json={"model": "memory", "prompt": "abc", "logprobs": 0, "stream": True})
    offsets = [offset for chunk in events(answer.text)[:-1] for choice in chunk["choices"] if choice["logprobs"]
               for offset in choice["logprobs"]["text_offset"]]
    assert offsets == list(range(len("You said: abc")))
