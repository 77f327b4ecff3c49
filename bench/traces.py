"""Loads for the simulator and for an engine: who asks what, and when. The same seed gives the same trace."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request: its prompt's tokens, and how long its answer is."""

    at_s: float
    prompt: tuple[int, ...]
    answer_tokens: int
    tenant: str = "one"
    priority: int = 0
    kind: str = "chat"          # reports are by kind


Trace = list[Arrival]


def chat(n: int, rate_per_s: float, seed: int, *, prefixes: int = 4, prefix_tokens: int = 512, own_tokens: int = 48,
         answer_tokens: int = 64) -> Trace:
    """Poisson arrivals; each prompt is one of a few long prefixes and some tokens of its own."""
    rng = random.Random(seed)
    shared = [_fresh(rng, prefix_tokens) for _ in range(prefixes)]
    at_s, trace = 0.0, []
    for _ in range(n):
        at_s += rng.expovariate(rate_per_s)
        prompt = rng.choice(shared) + _fresh(rng, _around(rng, own_tokens))
        trace.append(Arrival(at_s, prompt, _around(rng, answer_tokens)))
    return trace


def unique(n: int, rate_per_s: float, seed: int, *, prompt_tokens: int = 200, answer_tokens: int = 64, tenant: str = "one",
           kind: str = "unique") -> Trace:
    """Poisson arrivals of prompts that share nothing."""
    rng = random.Random(seed)
    at_s, trace = 0.0, []
    for _ in range(n):
        at_s += rng.expovariate(rate_per_s)
        trace.append(Arrival(at_s, _fresh(rng, _around(rng, prompt_tokens)), _around(rng, answer_tokens), tenant, kind=kind))
    return trace


def beside_a_long_prompt(n: int, rate_per_s: float, seed: int, *, long_tokens: int = 32_000, prompt_tokens: int = 100,
                         answer_tokens: int = 16) -> Trace:
    """Short requests, and one very long prompt that arrives among the first of them."""
    short = unique(n, rate_per_s, seed, prompt_tokens=prompt_tokens, answer_tokens=answer_tokens, kind="short")
    long = Arrival(short[n // 10].at_s, _fresh(random.Random(seed + 1), long_tokens), answer_tokens, kind="long")
    return sorted([*short, long], key=lambda arrival: arrival.at_s)


def tenants(n: int, seed: int, sizes: tuple[int, ...] = (32, 32, 128, 512)) -> Trace:
    """Everybody's requests at once; the tenants' differ in size only."""
    rng = random.Random(seed)
    return [Arrival(0.0, _fresh(rng, size), max(1, size // 4), f"tenant {i}", kind=f"tenant {i}")
            for _ in range(n) for i, size in enumerate(sizes)]


TRACES: dict[str, Callable[[int, float, int], Trace]] = {
    "chat": chat, "unique": unique, "long": beside_a_long_prompt, "tenants": lambda n, _, seed: tenants(n, seed)}


def _around(rng: random.Random, mean: int) -> int:
    return max(1, round(mean * rng.uniform(0.5, 1.5)))


def _fresh(rng: random.Random, n: int) -> tuple[int, ...]:
    return tuple(rng.randrange(1_000, 40_000) for _ in range(n))
