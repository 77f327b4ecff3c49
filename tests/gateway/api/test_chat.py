"""POST /v1/chat/completions in one body: fields in, shape out."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from runtime.protocol import SamplingParams
from tests.support.http import CHAT, chat_body
from tests.support.memory_engine import MemoryEngine, text_of

pytestmark = pytest.mark.anyio
# <start>user\nhello<end>\n<start>assistant\n, counted by hand: 1 + 5 + 5 + 1 + 1 + 1 + 10
HELLO_TOKENS = 24


async def answered(client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    answer = await client.post(CHAT, json=chat_body(**fields))
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_the_body_has_all_that_clients_read(client: httpx.AsyncClient) -> None:
    body = await answered(client)
    assert body["object"] == "chat.completion" and body["id"].startswith("chatcmpl-") and body["model"] == "memory"
    assert isinstance(body["created"], int)
    (choice,) = body["choices"]
    assert choice["index"] == 0 and choice["finish_reason"] == "stop" and choice["logprobs"] is None
    assert choice["message"] == {"role": "assistant", "content": "You said: hello", "refusal": None, "annotations": []}
    assert "tool_calls" not in choice["message"]


async def test_usage_has_all_keys_zeros_included(client: httpx.AsyncClient) -> None:
    usage = (await answered(client))["usage"]
    assert usage == {
        "prompt_tokens": HELLO_TOKENS, "completion_tokens": 15, "total_tokens": HELLO_TOKENS + 15,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0, "audio_tokens": 0,
            "forced_tokens": 0},
    }


async def test_a_repeated_prompt_tells_its_cached_tokens(client: httpx.AsyncClient) -> None:
    await answered(client)
    assert (await answered(client))["usage"]["prompt_tokens_details"]["cached_tokens"] == 16


async def test_an_answer_that_is_cut_says_length(client: httpx.AsyncClient) -> None:
    body = await answered(client, max_tokens=3)
    assert (body["choices"][0]["finish_reason"], body["choices"][0]["message"]["content"]) == ("length", "You")
    assert body["usage"]["completion_tokens"] == 3


async def test_the_defaults_leave_the_models_distribution_as_it_is(client: httpx.AsyncClient, engine: MemoryEngine) -> None:
    await answered(client)
    assert engine.requests[0].sampling == SamplingParams(max_tokens=4096 - HELLO_TOKENS)
    assert engine.requests[0].ttl_s is None and engine.requests[0].grammar is None


async def test_null_means_not_given(client: httpx.AsyncClient, engine: MemoryEngine) -> None:
    names = ["max_tokens", "temperature", "top_p", "n", "stop", "seed", "logit_bias", "stream", "stream_options", "tools",
             "tool_choice", "response_format", "logprobs", "top_logprobs", "user", "presence_penalty", "modalities", "audio"]
    await answered(client, **dict.fromkeys(names))
    assert engine.requests[0].sampling == SamplingParams(max_tokens=4096 - HELLO_TOKENS)


async def test_every_sampling_field_reaches_the_engine(client: httpx.AsyncClient, engine: MemoryEngine) -> None:
    await answered(
        client, max_tokens=7, temperature=0, top_p=0.5, top_k=40, min_p=0.1, seed=-5, stop=["a", "b"], stop_token_ids=[1, 2],
        ignore_eos=True, min_tokens=2, presence_penalty=-2, frequency_penalty=1.5, repetition_penalty=1.1,
        logit_bias={"5": -100, "7": 2.5}, logprobs=True, top_logprobs=3, typical_p=0.8, logprobs_of="allowed")
    assert engine.requests[0].sampling == SamplingParams(
        max_tokens=7, temperature=0, top_p=0.5, top_k=40, min_p=0.1, seed=-5, stop=("a", "b"), stop_token_ids=(1, 2),
        ignore_eos=True, min_tokens=2, presence_penalty=-2, frequency_penalty=1.5, repetition_penalty=1.1,
        logit_bias=((5, -100), (7, 2.5)), logprobs=3, typical_p=0.8, logprobs_of="allowed")


@pytest.mark.parametrize(("fields", "name", "value"), [
    ({"max_completion_tokens": 5}, "max_tokens", 5),
    ({"max_completion_tokens": 5, "max_tokens": 9}, "max_tokens", 5),
    ({"max_tokens": 1_000_000}, "max_tokens", 4096 - HELLO_TOKENS),
    ({"top_k": -1}, "top_k", 0),
    ({"stop": "end"}, "stop", ("end",)),
    ({"logprobs": True}, "logprobs", 0),
    ({"logprobs": False}, "logprobs", None),
    ({"top_p": 1}, "top_p", 1.0),
])
async def test_other_ways_of_saying_it(
    client: httpx.AsyncClient, engine: MemoryEngine, fields: dict[str, Any], name: str, value: Any
) -> None:
    await answered(client, **fields)
    assert getattr(engine.requests[0].sampling, name) == value


async def test_top_p_of_zero_leaves_the_likeliest_token(client: httpx.AsyncClient, engine: MemoryEngine) -> None:
    await answered(client, top_p=0)
    assert 0 < engine.requests[0].sampling.top_p < 1e-3


async def test_requests_carry_their_tenant_and_their_priority(client: httpx.AsyncClient, engine: MemoryEngine) -> None:
    await client.post(CHAT, json=chat_body(priority=-3))
    await client.post(CHAT, json=chat_body())
    assert [(r.tenant, r.priority) for r in engine.requests] == [("anonymous", -3), ("anonymous", 0)]


@pytest.mark.parametrize(("fields", "ttl_s"), [
    ({"prompt_cache_retention": "24h"}, 86_400), ({"prompt_cache_retention": "in_memory"}, None),
    ({"ttl": "5m"}, 300), ({"ttl": "1h"}, 3600), ({"prompt_cache_options": {"mode": "implicit", "ttl": "30m"}}, 1800),
])
async def test_retention_is_told_in_seconds(
    client: httpx.AsyncClient, engine: MemoryEngine, fields: dict[str, Any], ttl_s: float | None
) -> None:
    await answered(client, **fields)
    assert engine.requests[0].ttl_s == ttl_s


async def test_all_roles_and_forms_of_content_are_read(client: httpx.AsyncClient, engine: MemoryEngine) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    await answered(client, messages=[
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Say "}, {"type": "text", "text": "hi."}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        {"role": "user", "content": "", "name": "alice"},
    ])
    assert text_of(engine.requests[0].prompt_tokens) == (
        "system\nBe brief.\nuser\nSay hi.\nassistant\n\ntool\ndone\nassistant\nNo.\nuser\n\nassistant\n")


@pytest.mark.parametrize("part", [
    {"type": "image_url", "image_url": {"url": "http://127.0.0.1:9/x.png"}}, {"type": "input_audio"}, {"type": "file"}, {},
    {"type": 5}])
async def test_parts_that_are_no_text_are_refused_by_their_place(client: httpx.AsyncClient, part: dict[str, Any]) -> None:
    messages = [{"role": "system", "content": "x"}, {"role": "user", "content": [{"type": "text", "text": "look"}, part]}]
    answer = await client.post(CHAT, json=chat_body(messages=messages))
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "messages[1].content[1]")


async def test_a_template_that_refuses_the_messages_is_a_400_with_its_words(client: httpx.AsyncClient) -> None:
    answer = await client.post(CHAT, json=chat_body(messages=[{"role": "user", "content": "REFUSED BY TEMPLATE"}]))
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "messages")
    assert "roles must alternate" in answer.json()["error"]["message"]


@pytest.mark.parametrize(("name", "value"), [
    ("audio", {"voice": "x"}), ("web_search_options", {}), ("functions", [{}]), ("function_call", "auto"), ("ebnf", "root"),
    ("regex", "a"), ("json_schema", "{}"), ("structural_tag", {"a": 1}), ("bad_words", ["x"]),
    ("include_stop_str_in_output", True),
    ("chat_template", "x"), ("continue_final_message", True), ("truncate_prompt_tokens", 5), ("modalities", ["text", "audio"]),
    ("tools", [{"type": "function"}]),
])
async def test_what_would_change_the_answer_is_refused_by_name(client: httpx.AsyncClient, name: str, value: Any) -> None:
    error = (await client.post(CHAT, json=chat_body(**{name: value}))).json()["error"]
    assert (error["code"], error["param"]) == ("unsupported_parameter", name)


async def test_tools_that_must_not_be_called_are_let_through(client: httpx.AsyncClient) -> None:
    await answered(client, tools=[{"type": "function", "function": {"name": "f"}}], tool_choice="none")


async def test_a_tool_choice_without_tools_is_refused(client: httpx.AsyncClient) -> None:
    answer = await client.post(CHAT, json=chat_body(tool_choice="required"))
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "tool_choice")


async def test_what_cannot_change_the_answer_is_accepted(client: httpx.AsyncClient) -> None:
    answer = await client.post(CHAT, json=chat_body(
        user="u", metadata={"a": "b"}, store=True, service_tier="auto", safety_identifier="s", prompt_cache_key="k",
        parallel_tool_calls=False, modalities=["text"], tools=[]))
    assert answer.status_code == 200 and "x-turnstile-ignored" not in answer.headers


@pytest.mark.parametrize("stream", [False, True])
async def test_unknown_fields_are_named_in_a_header(client: httpx.AsyncClient, stream: bool) -> None:
    options = {"stream_options": {"include_usage": True, "include_obfuscation": False, "continuous_usage_stats": True}}
    answer = await client.post(CHAT, json=chat_body(verbosity="low", top_a=0.2, stream=stream, **(options if stream else {})))
    assert answer.headers["x-turnstile-ignored"] == (
        "verbosity,top_a,stream_options.continuous_usage_stats" if stream else "verbosity,top_a")


async def test_a_fields_name_cannot_write_headers(client: httpx.AsyncClient) -> None:
    fields = {"a\r\nset-cookie: x=1": 1, "ü": 2, "ok": 3, "y" * 65: 4, "": 5, **{f"f{i}": i for i in range(100)}}
    answer = await client.post(CHAT, json=chat_body(**fields))
    assert answer.status_code == 200 and "set-cookie" not in answer.headers
    assert answer.headers["x-turnstile-ignored"].split(",") == ["ok", *(f"f{i}" for i in range(19))]


async def test_n_choices_have_seeds_that_rise_and_one_prompt_in_usage(client: httpx.AsyncClient, engine: MemoryEngine) -> None:
    body = await answered(client, n=3, seed=7)
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2]
    assert [request.sampling.seed for request in engine.requests] == [7, 8, 9]
    texts = [choice["message"]["content"] for choice in body["choices"]]
    assert texts == [f"You said: hello [seed {seed}]" for seed in (7, 8, 9)]
    assert body["usage"]["prompt_tokens"] == HELLO_TOKENS
    assert body["usage"]["completion_tokens"] == sum(len(text) for text in texts)
    assert len({request.request_id for request in engine.requests}) == 3


async def test_seeds_stay_within_64_bits(client: httpx.AsyncClient, engine: MemoryEngine) -> None:
    await answered(client, n=2, seed=2**63 - 1)
    assert [request.sampling.seed for request in engine.requests] == [2**63 - 1, -(2**63)]


async def test_logprobs_have_tokens_bytes_and_alternatives(client: httpx.AsyncClient) -> None:
    body = await answered(client, logprobs=True, top_logprobs=2, max_tokens=2)
    assert body["choices"][0]["logprobs"]["refusal"] is None
    first, second = body["choices"][0]["logprobs"]["content"]
    assert (first["token"], first["bytes"], first["logprob"]) == ("Y", [89], -0.25)
    # minus infinity, which a masked token has, is not JSON
    assert [(t["token"], t["logprob"]) for t in second["top_logprobs"]] == [("o", -0.25), ("\0", -9999.0)]


async def test_logprobs_without_alternatives_have_an_empty_list(client: httpx.AsyncClient) -> None:
    body = await answered(client, logprobs=True, max_tokens=1)
    assert body["choices"][0]["logprobs"]["content"][0]["top_logprobs"] == []


async def test_a_prompt_beyond_the_context_says_both_lengths(client: httpx.AsyncClient, engine: MemoryEngine) -> None:
    answer = await client.post(CHAT, json=chat_body(messages=[{"role": "user", "content": "x" * 5000}], max_tokens=1))
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, "context_length_exceeded", "messages")
    assert "4096" in error["message"] and str(5000 + HELLO_TOKENS - 5) in error["message"]
    assert engine.requests == []


async def test_a_prompt_far_beyond_the_context_is_refused_without_the_work_of_tokenising(
    client: httpx.AsyncClient, engine: MemoryEngine
) -> None:
    engine.tokenizer.encode_chat = lambda messages: 1 / 0
    answer = await client.post(CHAT, json=chat_body(messages=[{"role": "user", "content": "x" * 1_000_000}]))
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, "context_length_exceeded", "messages")
    assert "at least 250000" in error["message"]


@pytest.mark.parametrize(("n_free", "status"), [(1, 200), (0, 400)])
async def test_the_answer_needs_one_token_of_the_context(client: httpx.AsyncClient, n_free: int, status: int) -> None:
    content = "x" * (4096 - (HELLO_TOKENS - 5) - n_free)
    answer = await client.post(CHAT, json=chat_body(messages=[{"role": "user", "content": content}]))
    assert answer.status_code == status


async def test_an_unknown_model_is_a_404_and_is_not_repeated_at_length(client: httpx.AsyncClient) -> None:
    answer = await client.post(CHAT, json=chat_body(model="m" * 10_000))
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "model_not_found")
    assert len(answer.text) < 500 and "memory" in answer.json()["error"]["message"]
