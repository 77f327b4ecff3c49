"""The ledger's and the engine's numbers in Prometheus' text format.

Names end in their unit; labels have few values, and none comes from a caller. The engine's counters start anew when
the engine does, which Prometheus takes for what it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from gateway.ledger import Histogram, LedgerSnapshot
from runtime.protocol import EngineStats, ModelInfo

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Labels = dict[str, str]


def render(ledger: LedgerSnapshot, stats: EngineStats, state: str, model: ModelInfo | None, version: str) -> str:
    return "\n".join([*_of_gateway(ledger, version), *_of_engine(stats, state, model)]) + "\n"


def _of_gateway(ledger: LedgerSnapshot, version: str) -> Iterator[str]:
    yield from _metric("turnstile_build_info", "gauge", "1, labelled with the gateway's version.", [({"version": version}, 1)])
    yield from _metric(
        "turnstile_requests_total", "counter", "Requests that have ended, by endpoint and HTTP status (499: the client hung up).",
        [({"endpoint": endpoint, "status": str(status)}, count) for (endpoint, status), count in sorted(ledger.requests.items())])
    yield from _metric(
        "turnstile_cancelled_requests_total", "counter", "Requests whose client hung up.", [({}, ledger.cancelled)])
    yield from _metric("turnstile_requests_open", "gauge", "Requests that have not ended.", [({}, ledger.open)])
    for name, help, value in (
        ("prompt", "Prompt tokens of answered requests: cached and computed.", ledger.prompt_tokens),
        ("cached", "Prompt tokens read from the prefix cache.", ledger.cached_tokens),
        ("computed", "Prompt tokens computed.", ledger.computed_tokens),
        ("completion", "Tokens generated.", ledger.completion_tokens),
        ("forced", "Generated tokens that a grammar left no choice about: no step was spent on them.", ledger.forced_tokens),
        ("recomputed", "Tokens computed a second time after a preemption.", ledger.recomputed_tokens),
    ):
        yield from _metric(f"turnstile_{name}_tokens_total", "counter", help, [({}, value)])
    yield from _histogram(
        "turnstile_ttft_seconds", "From a request's arrival to its first token; hit: some of its prompt came from cache.",
        [({"cache": "hit"}, ledger.ttft_hit), ({"cache": "miss"}, ledger.ttft_miss)])
    yield from _histogram("turnstile_queue_seconds", "In the engine's queue, before the first step.", [({}, ledger.queue)])
    yield from _histogram("turnstile_request_seconds", "From a request's arrival to the end of its answer.", [({}, ledger.total)])


def _of_engine(stats: EngineStats, state: str, model: ModelInfo | None) -> Iterator[str]:
    yield from _metric("turnstile_engine_up", "gauge", "1 while the engine takes requests.", [({}, int(state == "ready"))])
    if model is not None:
        labels = {"model": model.name, "device": model.device, "kernels": model.kernels, "epoch": model.epoch}
        yield from _metric("turnstile_model_info", "gauge", "1, labelled with the model that is served.", [(labels, 1)])
        yield from _metric(
            "turnstile_context_tokens", "gauge", "The longest prompt and answer together.", [({}, model.context_tokens)])
        yield from _metric("turnstile_model_load_seconds", "gauge", "How long the model took to load.", [({}, model.load_s)])
    yield from _metric("turnstile_requests_running", "gauge", "Sequences in the engine's steps.", [({}, stats.running)])
    yield from _metric("turnstile_requests_waiting", "gauge", "Sequences in the engine's queue.", [({}, stats.waiting)])
    for name, help, value in (
        ("engine_steps", "Steps of the engine.", stats.steps),
        ("generated_tokens", "Tokens of the engine's answers, those of cancelled requests included.", stats.generated_tokens),
        ("guessed_tokens", "Tokens guessed ahead.", stats.guessed_tokens),
        ("guessed_right_tokens", "Of these, tokens that were what was drawn.", stats.guessed_right_tokens),
        ("preemptions", "Sequences that had to give their blocks back.", stats.preemptions),
        ("evicted_blocks", "Cached blocks evicted for want of room.", stats.evicted_blocks),
        ("expired_blocks", "Cached blocks whose retention ended.", stats.expired_blocks),
    ):
        yield from _metric(f"turnstile_{name}_total", "counter", help, [({}, value)])
    yield from _metric("turnstile_engine_step_seconds", "gauge", "The last step's length.", [({}, stats.step_s)])
    yield from _pools(stats)


def _pools(stats: EngineStats) -> Iterator[str]:
    blocks = [
        ({"tier": pool.tier, "state": state}, count)
        for pool in stats.pools
        for state, count in (("free", pool.blocks_free), ("cached", pool.blocks_cached), ("used", pool.blocks_used))
    ]
    yield from _metric("turnstile_pool_blocks", "gauge", "Blocks of a tier by state; the states add up to all.", blocks)
    yield from _metric(
        "turnstile_pool_block_tokens", "gauge", "Token positions in a block.",
        [({"tier": pool.tier}, pool.block_tokens) for pool in stats.pools])
    yield from _metric(
        "turnstile_pool_block_bytes", "gauge", "Memory of a block.",
        [({"tier": pool.tier}, pool.block_bytes) for pool in stats.pools])


def _metric(
    name: str, kind: Literal["counter", "gauge"], help: str, samples: Iterable[tuple[Labels, float]]
) -> Iterator[str]:
    yield f"# HELP {name} {help}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        yield f"{name}{_shown(labels)} {value}"


def _histogram(name: str, help: str, series: Iterable[tuple[Labels, Histogram]]) -> Iterator[str]:
    yield f"# HELP {name} {help}"
    yield f"# TYPE {name} histogram"
    for labels, histogram in series:
        below = 0
        for bound, count in zip((*histogram.bounds, "+Inf"), histogram.counts, strict=True):
            below += count
            yield f"{name}_bucket{_shown({**labels, 'le': str(bound)})} {below}"
        yield f"{name}_sum{_shown(labels)} {histogram.total}"
        yield f"{name}_count{_shown(labels)} {histogram.n}"


def _shown(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
