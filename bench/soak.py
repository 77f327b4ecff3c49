"""Whether an engine's memory stays flat: thousands of requests of all kinds, a third of them cancelled at random moments.

    python -m bench.soak --model FILE --requests 10000

Drives an engine in this process, step by step, and now and then reads the process's memory, the number of Python objects and the
blocks that requests hold. Prints a Markdown table. Exit code 1 if memory or objects grew after the first third, in which caches
fill up, or if blocks were still held at the end.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from runtime.config import EngineConfig
from runtime.engine import Engine
from runtime.protocol import BeamParams, Event, Failed, Finished, GenerationRequest, GrammarSpec, SamplingParams
from runtime.start import start_engine

READINGS = 30
SHARE_CANCELLED = 1 / 3
CANCELLED_WITHIN = 6               # steps after they were sent; some have ended by then
MOST_GROWN_BYTES = 16 << 20        # of the resident set, after the first third; an allocator's own play is about half of it
MOST_GROWN_OBJECTS = 0.02          # share of all
GRAMMARS = (
    GrammarSpec("choice", '["red", "green", "blue"]'),
    GrammarSpec("regex", "[a-d]{1,12}"),
    GrammarSpec("json_schema", '{"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}'),
)


@dataclass(frozen=True, slots=True)
class Reading:
    """One moment, after `n_requests` have been sent."""

    n_requests: int
    rss_bytes: int
    n_objects: int
    blocks_used: int


@dataclass(slots=True)
class Outcome:
    """How the requests ended, and what was read on the way."""

    readings: list[Reading]
    finished: int = 0
    failed: int = 0
    cancelled: int = 0


class Load:
    """Requests of all kinds: prompts with shared and with own beginnings, grammars, beams, penalties, stops."""

    def __init__(self, vocabulary_size: int, longest_prompt: int, longest_answer: int, seed: int) -> None:
        self._rng = random.Random(seed)
        self._vocabulary_size = vocabulary_size
        self._longest_prompt, self._longest_answer = longest_prompt, longest_answer
        self._shared = [self._tokens(longest_prompt // 2) for _ in range(5)]

    def request(self, name: str) -> GenerationRequest:
        rng = self._rng
        beginning = rng.choice(self._shared) if rng.random() < 0.6 else []
        prompt = [*beginning, *self._tokens(rng.randrange(1, self._longest_prompt // 2))]
        kind = rng.random()
        sampling = SamplingParams(
            max_tokens=rng.randrange(1, self._longest_answer), temperature=rng.choice((0.0, 0.7, 1.5)),
            seed=rng.choice((None, rng.randrange(1000))), stop=("zq",) if kind < 0.1 else (),
            frequency_penalty=0.5 if 0.1 < kind < 0.2 else 0.0, logprobs=2 if 0.2 < kind < 0.3 else None)
        return GenerationRequest(
            name, tuple(prompt), sampling, rng.choice((b"one", b"two")), rng.choice(GRAMMARS) if kind > 0.8 else None,
            tenant=rng.choice(("a", "b", "c")), beams=BeamParams(3, 2) if 0.3 < kind < 0.4 else None)

    def _tokens(self, n: int) -> list[int]:
        return [self._rng.randrange(self._vocabulary_size) for _ in range(n)]


def soak(engine: Engine, load: Load, n_requests: int, *, in_flight: int, seed: int, n_readings: int = READINGS) -> Outcome:
    """Send `n_requests`, `in_flight` at a time, to their end."""
    rng = random.Random(seed)
    alive: dict[str, int | None] = {}          # steps that each request has left before it is cancelled; None: it isn't
    outcome = Outcome([])
    for n in range(n_requests):
        alive[str(n)] = rng.randrange(CANCELLED_WITHIN) if rng.random() < SHARE_CANCELLED else None
        _count(engine.submit(load.request(str(n))), alive, outcome)
        while len(alive) >= in_flight:
            _step(engine, alive, outcome)
        if (n + 1) % max(1, n_requests // n_readings) == 0:
            outcome.readings.append(_reading(engine, n + 1))
    while not engine.idle:
        _step(engine, alive, outcome)
    outcome.readings.append(_reading(engine, n_requests))
    return outcome


def _step(engine: Engine, alive: dict[str, int | None], outcome: Outcome) -> None:
    for name, steps_left in list(alive.items()):
        if steps_left == 0:
            engine.cancel(name)
            outcome.cancelled += 1
            del alive[name]
        elif steps_left is not None:
            alive[name] = steps_left - 1
    _count(engine.step(), alive, outcome)
    if engine.waits_for_grammars_only:
        time.sleep(0.001)


def _count(events: list[Event], alive: dict[str, int | None], outcome: Outcome) -> None:
    for event in events:
        if isinstance(event, Finished | Failed):
            del alive[event.request_id]
            outcome.finished += isinstance(event, Finished)
            outcome.failed += isinstance(event, Failed)


def _reading(engine: Engine, n_requests: int) -> Reading:
    gc.collect()
    return Reading(n_requests, rss_bytes(), len(gc.get_objects()), engine.stats().pools[0].blocks_used)


def rss_bytes() -> int:
    """This process's resident memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def complaints(outcome: Outcome) -> Iterator[str]:
    """What speaks against memory being flat. Compares the means of the second and of the last third of the readings."""
    readings = outcome.readings
    third = len(readings) // 3
    middle, last = readings[third:2 * third], readings[-third:]
    grown_bytes = _mean(r.rss_bytes for r in last) - _mean(r.rss_bytes for r in middle)
    if grown_bytes > MOST_GROWN_BYTES:
        yield f"memory grew by {grown_bytes / (1 << 20):.1f} MiB from the second third of the requests to the last"
    before, after = _mean(r.n_objects for r in middle), _mean(r.n_objects for r in last)
    if after > before * (1 + MOST_GROWN_OBJECTS):
        yield f"{after - before:,.0f} more Python objects in the last third of the requests than in the second"
    if readings[-1].blocks_used:
        yield f"{readings[-1].blocks_used} blocks are held though no request is left"


def _mean(values: Iterator[int]) -> float:
    kept = list(values)
    return sum(kept) / len(kept)


def table(outcome: Outcome) -> str:
    rows = [f"| {r.n_requests:,} | {r.rss_bytes / (1 << 20):.1f} | {r.n_objects:,} | {r.blocks_used} |" for r in outcome.readings]
    head = ["| requests | resident memory, MiB | Python objects | blocks held |", "|--:|--:|--:|--:|"]
    ended = f"{outcome.finished:,} finished, {outcome.cancelled:,} cancelled, {outcome.failed:,} failed."
    return "\n".join([*head, *rows, "", ended])


def main() -> int:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--model", type=Path, required=True, metavar="FILE", help="a GGUF file or a Hugging Face folder")
    made.add_argument("--requests", type=int, default=10_000, metavar="N")
    made.add_argument("--in-flight", type=int, default=32, metavar="N", help="requests in the engine at once")
    made.add_argument("--longest-prompt", type=int, default=96, metavar="TOKENS")
    made.add_argument("--longest-answer", type=int, default=12, metavar="TOKENS")
    made.add_argument("--kv-cache-tokens", type=int, default=4096, metavar="TOKENS")
    made.add_argument("--seed", type=int, default=0)
    arguments = made.parse_args()
    config = EngineConfig(arguments.model, arguments.model.stem, kv_cache_tokens=arguments.kv_cache_tokens)
    engine, info = start_engine(config)
    load = Load(info.vocabulary_size, arguments.longest_prompt, arguments.longest_answer, arguments.seed)
    outcome = soak(engine, load, arguments.requests, in_flight=arguments.in_flight, seed=arguments.seed)
    print(table(outcome))
    wrong = list(complaints(outcome))
    for complaint in wrong:
        print(f"soak: {complaint}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
