"""What would a load do? The scheduler and the cache as they are, with a clock that a timing model moves.

    python -m bench.simulate chat --requests 400 --rate 3            # with the timing of the README's machine
    python -m bench.simulate fit MODEL.gguf --out timing.json        # measures this machine, and says how well that predicts
    python -m bench.simulate long --timing timing.json --requests 200 --rate 4

A step costs a constant, something for each row, for each token, and for each pair of a token and a position that it attends
to; `fit` finds the four numbers from an engine's own steps by least squares without negative values, then replays another load
on the engine and in the simulator and prints how far apart they are. Nothing else is modelled: the plan of every step,
admission, chunks, giving way, hits and evictions are those of the engine, since the code is the same.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.traces import TRACES, Arrival, Trace
from prefix_cache import PrefixCache
from runtime.protocol import GenerationRequest, SamplingParams
from runtime.scheduler import Limits, Row, Scheduler
from runtime.sequence import Sequence as Running


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one step. The defaults were fitted on two cores of an AMD EPYC with AVX-512, SmolLM2-135M in Q4_1."""

    step_s: float = 6.0e-3
    row_s: float = 8.0e-4
    token_s: float = 1.2e-3
    pair_s: float = 2.0e-7             # one token attending to one position

    def of(self, rows: Iterable[Row]) -> float:
        step, n_rows, tokens, pairs = features(rows)
        return self.step_s * step + self.row_s * n_rows + self.token_s * tokens + self.pair_s * pairs


def features(rows: Iterable[Row]) -> tuple[int, int, int, int]:
    """(1, rows, tokens, pairs of a token and a position that it attends to) of one step."""
    n_rows = tokens = pairs = 0
    for row in rows:
        n = row.n_tokens + len(row.guess)
        n_rows, tokens, pairs = n_rows + 1, tokens + n, pairs + n * row.start + n * (n + 1) // 2
    return 1, n_rows, tokens, pairs


@dataclass(slots=True)
class Outcome:
    """What became of one request, in seconds of the trace."""

    arrival: Arrival
    first_s: float = float("nan")
    last_s: float = float("nan")
    cached_tokens: int = 0
    preemptions: int = 0

    @property
    def ttft_s(self) -> float:
        return self.first_s - self.arrival.at_s

    @property
    def tpot_s(self) -> float:
        return (self.last_s - self.first_s) / max(1, self.arrival.answer_tokens - 1)


@dataclass(slots=True)
class Run:
    """A finished simulation."""

    outcomes: list[Outcome]
    seconds: float = 0.0
    steps: int = 0
    computed_tokens: int = 0
    served_by_tenant: dict[str, list[tuple[float, int]]] = field(default_factory=dict)    # (when, tokens) of each step

    @property
    def tokens_per_s(self) -> float:
        return sum(o.arrival.answer_tokens for o in self.outcomes) / self.seconds

    @property
    def hit_rate(self) -> float:
        return sum(o.cached_tokens for o in self.outcomes) / sum(len(o.arrival.prompt) for o in self.outcomes)

    def goodput_per_s(self, ttft_s: float, tpot_s: float) -> float:
        """Requests a second that kept both promises."""
        return sum(o.ttft_s <= ttft_s and o.tpot_s <= tpot_s for o in self.outcomes) / self.seconds


class _Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def simulate(trace: Trace, timing: Timing, limits: Limits, n_blocks: int, block_tokens: int = 16) -> Run:
    """Serve a trace to its end. Raises RequestTooLong or QueueFull as the engine would."""
    clock = _Clock()
    scheduler = Scheduler(PrefixCache(n_blocks, block_tokens, clock=clock, ttl_s=1e9), limits)
    waiting = sorted(trace, key=lambda arrival: arrival.at_s)
    outcomes: dict[str, Outcome] = {}
    run = Run([])
    n = 0
    while n < len(waiting) or scheduler.running or len(scheduler.waiting):
        while n < len(waiting) and waiting[n].at_s <= clock.now_s:
            outcomes[str(n)] = Outcome(waiting[n])
            scheduler.submit(request_of(str(n), waiting[n]), waiting[n].at_s)
            n += 1
        rows = scheduler.plan(clock.now_s)
        if not rows:
            clock.now_s = waiting[n].at_s
            continue
        clock.now_s += timing.of(rows)
        run.steps += 1
        for row in rows:
            run.computed_tokens += row.n_tokens
            run.served_by_tenant.setdefault(row.sequence.request.tenant, []).append((clock.now_s, row.n_tokens))
            _advance(scheduler, row, outcomes[row.sequence.request.request_id], clock.now_s)
    run.outcomes, run.seconds = list(outcomes.values()), clock.now_s
    return run


def request_of(name: str, arrival: Arrival) -> GenerationRequest:
    params = SamplingParams(arrival.answer_tokens, temperature=0.0, ignore_eos=True)
    return GenerationRequest(name, arrival.prompt, params, b"trace", tenant=arrival.tenant, priority=arrival.priority)


def _advance(scheduler: Scheduler, row: Row, outcome: Outcome, now_s: float) -> None:
    sequence: Running = row.sequence
    draws = row.draws
    scheduler.advance(row, [7] if draws else [])
    if not draws:
        return
    if sequence.n_generated == 1:
        outcome.first_s, outcome.cached_tokens = now_s, sequence.cached_tokens
    if sequence.n_generated == outcome.arrival.answer_tokens:
        outcome.last_s, outcome.preemptions = now_s, sequence.preemptions
        scheduler.finish(sequence)


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def report(run: Run) -> str:
    """A Markdown table by kind of request, and the sums."""
    lines = ["| kind | requests | TTFT p50 / p99 ms | TPOT p50 / p99 ms | given way |", "|---|--:|--:|--:|--:|"]
    for kind in dict.fromkeys(o.arrival.kind for o in run.outcomes):
        of_kind = [o for o in run.outcomes if o.arrival.kind == kind]
        ttft, tpot = ([getattr(o, name) * 1e3 for o in of_kind] for name in ("ttft_s", "tpot_s"))
        lines.append(f"| {kind} | {len(of_kind)} | {quantile(ttft, 0.5):,.0f} / {quantile(ttft, 0.99):,.0f} "
                     f"| {quantile(tpot, 0.5):.1f} / {quantile(tpot, 0.99):.1f} | {sum(o.preemptions for o in of_kind)} |")
    lines.append(f"\n{run.seconds:.1f} s, {run.steps:,} steps, {run.tokens_per_s:.1f} tokens/s, hit rate {run.hit_rate:.3f}, "
                 f"goodput {run.goodput_per_s(2.0, 0.1):.2f} requests/s (TTFT within 2 s, TPOT within 100 ms)")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.simulate", description=__doc__.split("\n\n")[0])
    parser.add_argument("what", choices=[*TRACES, "fit"])
    parser.add_argument("model", nargs="?", type=Path, help="for fit: a GGUF file or a folder")
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--rate", type=float, default=3.0, help="requests a second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--blocks", type=int, default=8192, help="blocks of the KV cache, 16 tokens each")
    parser.add_argument("--max-running", type=int, default=32)
    parser.add_argument("--step-tokens", type=int, default=256)
    parser.add_argument("--timing", type=Path, help="what fit wrote")
    parser.add_argument("--out", type=Path, help="for fit: where to write the timing")
    given = parser.parse_args(argv)
    if given.what == "fit":
        if given.model is None:
            parser.error("fit measures an engine: name a MODEL")
        from bench.simulate_fit import fit
        timing = fit(given.model)
        if given.out:
            given.out.write_text(json.dumps(asdict(timing), indent=2) + "\n")
        return 0
    timing = Timing(**json.loads(given.timing.read_text())) if given.timing else Timing()
    limits = Limits(given.blocks * 16, given.max_running, given.step_tokens, waiting=1_000_000)
    print(report(simulate(TRACES[given.what](given.requests, given.rate, given.seed), timing, limits, given.blocks)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
