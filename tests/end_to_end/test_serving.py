"""The main job end to end: streams, batches, the prefix cache, cancelling and a dying engine, over HTTP."""

from __future__ import annotations

import json
import os
import signal
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from tests.support.served import Server, children_of, wait_ready

QUESTIONS = ["Name three fruits.", "What is 7 times 8?", "Write a line about rain.", "Who wrote Hamlet?",
             "Translate 'good morning' to French.", "Why is the sky blue?"]


def ask(client: openai.OpenAI, model: str, question: str, **params: Any):
    return client.chat.completions.create(model=model, messages=[{"role": "user", "content": question}],
                                          **{"max_tokens": 24, "temperature": 0, **params})


def long_system(salt: str, n_rules: int = 60) -> str:
    rules = " ".join(f"Rule {i}: item {i * 7 % 101} lies on shelf {i * 13 % 59} and costs {i * 3 % 47} euros, "
                     "all taxes included." for i in range(n_rules))
    return f"{salt} You are the clerk of a small shop. {rules}"


def test_a_stream_joined_is_the_answer_not_streamed(client: openai.OpenAI, model: str) -> None:
    for question in QUESTIONS[:3]:
        whole = ask(client, model, question)
        chunks = list(ask(client, model, question, stream=True, stream_options={"include_usage": True}))
        assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == whole.choices[0].message.content
        assert chunks[-2].choices[0].finish_reason == whole.choices[0].finish_reason
        assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens


def test_concurrent_requests_answer_as_they_do_one_by_one(client: openai.OpenAI, model: str) -> None:
    alone = [ask(client, model, q).choices[0].message.content for q in QUESTIONS]
    with ThreadPoolExecutor(len(QUESTIONS)) as pool:
        together = [a.choices[0].message.content for a in pool.map(lambda q: ask(client, model, q), QUESTIONS)]
    assert together == alone


def ttft(server: Server, model: str, messages: list[dict[str, str]]) -> tuple[float, str, dict[str, Any]]:
    body = {"model": model, "messages": messages, "max_tokens": 8, "temperature": 0, "stream": True,
            "stream_options": {"include_usage": True}}
    began, first_s, text, usage = time.perf_counter(), None, "", {}
    with httpx.stream("POST", server.url + "/v1/chat/completions", json=body, timeout=180) as response:
        for line in response.iter_lines():
            if line.startswith("data: {"):
                chunk = json.loads(line[6:])
                piece = "".join(c["delta"].get("content") or "" for c in chunk["choices"])
                if piece and first_s is None:
                    first_s = time.perf_counter() - began
                text += piece
                usage = chunk.get("usage") or usage
    assert first_s is not None
    return first_s, text, usage


def test_a_second_request_skips_the_prefill_of_a_long_system_prompt(server: Server, model: str) -> None:
    """At least 1,500 tokens: the second TTFT is at most a fifth of the first, and the answer the same."""
    ratios = []
    for _ in range(2):
        messages = [{"role": "system", "content": long_system(uuid.uuid4().hex)},
                    {"role": "user", "content": "Which shelf has item 7?"}]
        cold_s, cold, cold_usage = ttft(server, model, messages)
        warm_s, warm, warm_usage = ttft(server, model, messages)
        assert cold_usage["prompt_tokens"] >= 1500
        assert cold_usage["prompt_tokens_details"]["cached_tokens"] < 64
        n_cached = warm_usage["prompt_tokens_details"]["cached_tokens"]
        assert cold_usage["prompt_tokens"] - 16 <= n_cached <= cold_usage["prompt_tokens"] - 1
        assert warm == cold
        ratios.append(warm_s / cold_s)
    assert min(ratios) <= 0.2, ratios


def test_a_request_with_another_question_reuses_the_system_prompt(client: openai.OpenAI, model: str) -> None:
    system = {"role": "system", "content": long_system(uuid.uuid4().hex, 20)}

    def asked(question: str):
        return client.chat.completions.create(model=model, messages=[system, {"role": "user", "content": question}], max_tokens=4)

    first, second = asked("Which shelf has item 7?"), asked("How much is item 21?")
    assert first.usage.prompt_tokens_details.cached_tokens < 64
    assert second.usage.prompt_tokens_details.cached_tokens > 0.8 * second.usage.prompt_tokens


def wait_until_nothing_runs(server: Server, within_s: float) -> float:
    began = time.monotonic()
    while time.monotonic() - began < within_s:
        if server.metric("turnstile_requests_running") + server.metric("turnstile_requests_waiting") == 0:
            return time.monotonic() - began
        time.sleep(0.05)
    raise AssertionError(f"something still runs after {within_s} s")


@pytest.mark.parametrize("stream", [True, False])
def test_hanging_up_frees_the_engine(server: Server, model: str, stream: bool) -> None:
    body = {"model": model, "messages": [{"role": "user", "content": "Tell a long story."}], "max_tokens": 2000,
            "ignore_eos": True, "stream": stream}
    with httpx.Client(timeout=2.0 if not stream else 60) as http:
        if stream:
            with http.stream("POST", server.url + "/v1/chat/completions", json=body) as response:
                next(response.iter_lines())
        else:
            with pytest.raises(httpx.ReadTimeout):
                http.post(server.url + "/v1/chat/completions", json=body)
    wait_until_nothing_runs(server, 5.0)


def test_seeds_repeat_and_choices_differ(client: openai.OpenAI, model: str) -> None:
    def drawn(seed: int) -> list[str]:
        answer = ask(client, model, QUESTIONS[2], temperature=1.0, seed=seed, n=3, max_tokens=12)
        return [choice.message.content for choice in answer.choices]

    first = drawn(7)
    assert drawn(7) == first
    assert len(set(first)) > 1


def test_completions_go_on_from_the_prompt(client: openai.OpenAI, model: str) -> None:
    answer = client.completions.create(model=model, prompt="The capital of France is", max_tokens=4, temperature=0)
    assert "Paris" in answer.choices[0].text


def test_a_prompt_beyond_the_context_is_refused_with_its_numbers(client: openai.OpenAI, model: str) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        ask(client, model, "word " * 20_000)
    assert refused.value.code == "context_length_exceeded"


def test_a_body_of_20_mb_is_refused(server: Server, model: str) -> None:
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "a" * 20_000_000}]})
    headers = {"content-type": "application/json"}
    answer = httpx.post(server.url + "/v1/chat/completions", content=body, headers=headers, timeout=60)
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "request_too_large"


def test_an_unknown_model_is_a_404_that_names_it(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as refused:
        ask(client, "gpt-12", "Hello")
    assert refused.value.code == "model_not_found"
    assert "gpt-12" in refused.value.body["message"]


def engine_pid(server: Server) -> int:
    """The child of the server that runs the engine, not multiprocessing's resource tracker."""
    children = children_of(server.process.pid)
    [engine] = [child for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]
    return engine


def test_a_killed_engine_is_a_typed_error_and_comes_back(server: Server, client: openai.OpenAI, model: str) -> None:
    stream = ask(client, model, "Tell a long story.", max_tokens=2000, stream=True, extra_body={"ignore_eos": True})
    next(iter(stream))
    with ThreadPoolExecutor(1) as pool:
        whole = pool.submit(ask, client, model, "Tell a long story.", max_tokens=2000, extra_body={"ignore_eos": True})
        time.sleep(1.0)
        os.kill(engine_pid(server), signal.SIGKILL)
        with pytest.raises(openai.APIError) as broken:
            list(stream)
        assert broken.value.code == "engine_died"
        with pytest.raises(openai.InternalServerError) as failed:
            whole.result()
        assert failed.value.code == "engine_died"
    wait_ready(server)
    assert ask(client, model, QUESTIONS[0]).choices[0].message.content
