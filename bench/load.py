"""A closed-loop load of chat requests, timed on the client's clock.

    report = asyncio.run(run(url, model, "schema", concurrency=4, n_requests=16))

Workloads: "chat" (one system prompt of about 600 tokens shared by all, a question of its own each), "schema" (the same,
and the answer must be a product record), "unique" (as long, but nothing shared). TTFT is from just before a request is
sent to its first chunk with content, TPOT the time between its first and last chunk by its further tokens, as the
server's usage counts them.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import time
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx
from jsonschema import Draft202012Validator

Workload = Literal["chat", "schema", "unique"]
WORDS = ["order", "store", "item", "price", "shelf", "day", "week", "customer", "paper", "colour", "weight", "box", "letter",
         "number", "list", "note", "part", "copy", "answer", "question", "reason", "change", "return", "sale", "stock"]
THINGS = ("a kettle", "a bicycle pump", "a desk lamp", "a rain coat", "a notebook", "a wall clock", "a tool box", "a scarf")

RECORD: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 32},
        "category": {"enum": ["kitchen", "garden", "clothing", "office", "travel"]},
        "price": {"type": "integer", "minimum": 1, "maximum": 999},
        "in_stock": {"type": "boolean"},
        "variants": {"type": "array", "minItems": 2, "maxItems": 2, "items": {
            "type": "object",
            "properties": {"color": {"enum": ["black", "white", "red", "green"]},
                           "quantity": {"type": "integer", "minimum": 0, "maximum": 99}},
            "required": ["color", "quantity"], "additionalProperties": False}},
    },
    "required": ["name", "category", "price", "in_stock", "variants"],
    "additionalProperties": False,
}


@dataclass
class Sample:
    """One request as its client saw it."""

    began_s: float
    arrivals_s: list[float] = field(default_factory=list)      # of chunks with content
    text: str = ""
    usage: dict[str, Any] = field(default_factory=dict)


def messages(workload: Workload, rng: random.Random) -> list[dict[str, str]]:
    source = rng if workload == "unique" else random.Random(0)
    system = "You help in a small shop. " + " ".join(source.choices(WORDS, k=540))
    if workload == "unique":
        system = f"Case {rng.random()}. {system}"       # another from its first word on
    question = f"Case {rng.randrange(10**6)}: describe {rng.choice(THINGS)}"
    if workload == "schema":
        question += " as a product record in JSON."
    return [{"role": "system", "content": system}, {"role": "user", "content": question}]


async def ask(client: httpx.AsyncClient, model: str, workload: Workload, rng: random.Random, max_tokens: int) -> Sample:
    body: dict[str, Any] = {"model": model, "messages": messages(workload, rng), "temperature": 0, "max_tokens": max_tokens,
                            "stream": True, "stream_options": {"include_usage": True}}
    if workload == "schema":
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "record", "schema": RECORD}}
        body["max_tokens"] = 256
    else:
        body["ignore_eos"] = True
    sample = Sample(time.perf_counter())
    async with client.stream("POST", "/v1/chat/completions", json=body) as response:
        response.raise_for_status()
        async for line in response.aiter_lines():
            if not line.startswith("data: {"):
                continue
            chunk = json.loads(line[6:])
            piece = "".join(choice["delta"].get("content") or "" for choice in chunk["choices"])
            if piece:
                sample.arrivals_s.append(time.perf_counter())
                sample.text += piece
            sample.usage = chunk.get("usage") or sample.usage
    return sample


async def run(url: str, model: str, workload: Workload, concurrency: int, n_requests: int, *, max_tokens: int = 64,
              seed: int = 1) -> dict[str, Any]:
    """One level, after one uncounted request. Raises httpx.HTTPError where a request fails."""
    seeds = iter(range(seed * 1_000_000, seed * 1_000_000 + n_requests))
    samples: list[Sample] = []
    async with httpx.AsyncClient(base_url=url, timeout=300) as client:
        await ask(client, model, workload, random.Random(seed - 1), max_tokens)

        async def worker() -> None:
            for each in seeds:
                samples.append(await ask(client, model, workload, random.Random(each), max_tokens))

        began_s = time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(concurrency)))
        return report(workload, concurrency, samples, time.perf_counter() - began_s)


def report(workload: Workload, concurrency: int, samples: list[Sample], wall_s: float) -> dict[str, Any]:
    prompt = sum(s.usage["prompt_tokens"] for s in samples)
    cached = sum(s.usage["prompt_tokens_details"]["cached_tokens"] for s in samples)
    answer = sum(s.usage["completion_tokens"] for s in samples)
    valid = [_is_valid(s.text) for s in samples] if workload == "schema" else []
    return {
        "workload": workload, "concurrency": concurrency, "requests": len(samples),
        "ttft_ms_p50": 1e3 * statistics.median(s.arrivals_s[0] - s.began_s for s in samples),
        "tpot_ms_p50": 1e3 * statistics.median(
            (s.arrivals_s[-1] - s.arrivals_s[0]) / max(1, s.usage["completion_tokens"] - 1) for s in samples),
        "output_tok_s": answer / wall_s, "req_s": len(samples) / wall_s, "cached_ratio": cached / prompt,
        "prompt_tokens_mean": prompt / len(samples), "completion_tokens_mean": answer / len(samples),
        "schema_valid_ratio": statistics.mean(valid) if valid else None,
    }


def _is_valid(text: str) -> bool:
    try:
        return Draft202012Validator(RECORD).is_valid(json.loads(text))
    except ValueError:
        return False
