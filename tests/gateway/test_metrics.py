"""What Prometheus reads: judged by its own client's parser."""

from __future__ import annotations

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.ledger import Ledger
from gateway.metrics import render
from runtime.protocol import EngineStats, ModelInfo, PoolStats, Usage
from tests.support.http import CHAT, chat_body
from tests.support.memory_engine import MemoryEngine

pytestmark = pytest.mark.anyio
LONG = [{"role": "user", "content": "a prompt of more than sixteen tokens " * 4}]


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text) for sample in family.samples
    }


async def scraped(client: httpx.AsyncClient) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    answer = await client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return samples(answer.text)


async def test_every_metric_has_help_and_a_type_and_the_prefix(client: httpx.AsyncClient) -> None:
    await client.post(CHAT, json=chat_body())
    text = (await client.get("/metrics")).text
    families = list(text_string_to_metric_families(text))
    assert len(families) > 20
    for family in families:
        assert family.name.startswith("turnstile_")
        assert family.documentation
        assert family.type in ("counter", "gauge", "histogram")
        assert text.count(f"# TYPE {family.name}") == text.count(f"# HELP {family.name}") >= 1


async def test_requests_are_counted_by_endpoint_and_status(client: httpx.AsyncClient) -> None:
    await client.post(CHAT, json=chat_body())
    await client.post(CHAT, json=chat_body(n=0))
    await client.post("/v1/completions", json={"model": "memory", "prompt": "x"})
    found = await scraped(client)

    def count(endpoint: str, status: str) -> float:
        return found["turnstile_requests_total", (("endpoint", endpoint), ("status", status))]

    assert (count("chat.completions", "200"), count("chat.completions", "400"), count("completions", "200")) == (1, 1, 1)


async def test_token_totals_equal_the_usage_that_was_answered(client: httpx.AsyncClient) -> None:
    usages = [(await client.post(CHAT, json=chat_body(messages=LONG))).json()["usage"] for _ in range(3)]
    found = await scraped(client)
    prompt, cached = sum(u["prompt_tokens"] for u in usages), sum(u["prompt_tokens_details"]["cached_tokens"] for u in usages)
    assert cached > 0
    assert found["turnstile_prompt_tokens_total", ()] == prompt
    assert found["turnstile_cached_tokens_total", ()] == cached
    assert found["turnstile_computed_tokens_total", ()] == prompt - cached
    assert found["turnstile_completion_tokens_total", ()] == sum(u["completion_tokens"] for u in usages)


async def test_ttft_tells_hits_from_misses(client: httpx.AsyncClient) -> None:
    for _ in range(3):
        await client.post(CHAT, json=chat_body(messages=LONG))
    found = await scraped(client)
    assert found["turnstile_ttft_seconds_count", (("cache", "miss"),)] == 1
    assert found["turnstile_ttft_seconds_count", (("cache", "hit"),)] == 2
    assert found["turnstile_ttft_seconds_bucket", (("cache", "hit"), ("le", "+Inf"))] == 2
    assert found["turnstile_request_seconds_count", ()] == 3


async def test_histogram_buckets_only_grow(client: httpx.AsyncClient) -> None:
    await client.post(CHAT, json=chat_body())
    (family,) = [f for f in text_string_to_metric_families((await client.get("/metrics")).text)
                 if f.name == "turnstile_request_seconds"]
    counts = [sample.value for sample in family.samples if sample.name.endswith("_bucket")]
    assert counts == sorted(counts) and counts[-1] == 1


async def test_the_engines_numbers_are_shown(client: httpx.AsyncClient, engine: MemoryEngine) -> None:
    found = await scraped(client)
    stats = engine.stats
    pool = stats.pools[0]
    assert found["turnstile_engine_up", ()] == 1
    assert found["turnstile_preemptions_total", ()] == stats.preemptions
    assert found["turnstile_evicted_blocks_total", ()] == stats.evicted_blocks
    assert found["turnstile_requests_running", ()] == 0
    blocks = {
        state: found["turnstile_pool_blocks", (("state", state), ("tier", "device"))] for state in ("free", "cached", "used")}
    assert blocks == {"free": pool.blocks_free, "cached": pool.blocks_cached, "used": pool.blocks_used}


async def test_an_engine_that_is_down_shows(client: httpx.AsyncClient, engine: MemoryEngine) -> None:
    engine.state = "restarting"
    assert (await scraped(client))["turnstile_engine_up", ()] == 0


def test_names_with_quotes_and_line_breaks_stay_one_label() -> None:
    model = ModelInfo('a "b"\\c\nd', 10, 10, "native", "cpu", 1.0, "ab12")
    ledger = Ledger(lambda: 0.0, lambda: 0.0)
    account = ledger.open("r", "completions")
    account.close(200, "stop", usage=Usage(1, 0, 1, 1))
    text = render(ledger.snapshot(), EngineStats(pools=(PoolStats("device", 1, 1, 0, 0, 16, 1),)), "ready", model, "1")
    labels = [dict(labels) for (name, labels) in samples(text) if name == "turnstile_model_info"]
    assert labels == [{"model": model.name, "device": "cpu", "kernels": "native", "epoch": "ab12"}]
