"""The simulator's timing model, fitted to an engine's steps and judged on a load that it has not seen."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bench.simulate import Outcome, Run, Timing, features, quantile, request_of, simulate
from bench.traces import Trace, chat, unique
from runtime.config import EngineConfig
from runtime.engine import Engine
from runtime.protocol import Delta, Failed
from runtime.scheduler import Row
from runtime.start import start_engine

KV_TOKENS = 32_768


@dataclass
class Recorder:
    """Serves traces on an engine, and keeps what each step was and how long it took."""

    engine: Engine
    steps: list[tuple[tuple[int, int, int, int], float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rows: list[Row] = []
        plan = self.engine.scheduler.plan

        def noted(now_s: float) -> list[Row]:
            self._rows = plan(now_s)
            return self._rows
        self.engine.scheduler.plan = noted  # type: ignore[method-assign]

    def serve(self, trace: Trace) -> Run:
        """As `simulate`, on the engine and by the wall clock."""
        waiting = sorted(trace, key=lambda arrival: arrival.at_s)
        outcomes: dict[str, Outcome] = {}
        begun_s = time.perf_counter()
        n = 0
        while n < len(waiting) or not self.engine.idle:
            now_s = time.perf_counter() - begun_s
            while n < len(waiting) and waiting[n].at_s <= now_s:
                name = f"{id(trace)}-{n}"
                outcomes[name] = Outcome(waiting[n])
                self.engine.submit(request_of(name, waiting[n]))
                n += 1
            if self.engine.idle:
                time.sleep(max(0.0, waiting[n].at_s - now_s))
                continue
            self._step(outcomes, begun_s)
        return Run(list(outcomes.values()), time.perf_counter() - begun_s, len(self.steps))

    def _step(self, outcomes: dict[str, Outcome], begun_s: float) -> None:
        started_s = time.perf_counter()
        events = self.engine.step()
        ended_s = time.perf_counter()
        self.steps.append((features(self._rows), ended_s - started_s))
        for event in events:
            if isinstance(event, Failed):
                raise RuntimeError(f"a request failed: {event.message}")
            if isinstance(event, Delta):
                outcome = outcomes[event.request_id]
                outcome.last_s = ended_s - begun_s
                if outcome.first_s != outcome.first_s:    # no token yet
                    outcome.first_s = outcome.last_s


def fit(model: Path) -> Timing:
    """Measure an engine on this machine, print how well the fit predicts another load, and return it."""
    config = EngineConfig(model, model.stem, kv_cache_tokens=KV_TOKENS, forced_runs=False, guessing_rows=0)
    engine, _ = start_engine(config)
    recorder = Recorder(engine)
    for seen in (unique(12, 50.0, 1, prompt_tokens=400), chat(24, 4.0, 2), unique(8, 0.7, 3),
                 chat(32, 50.0, 4, prefix_tokens=900)):
        recorder.serve(seen)
    timing = fitted([step for step, _ in recorder.steps], [seconds for _, seconds in recorder.steps])
    print("  ".join(f"{name} {getattr(timing, name):.3g}" for name in Timing.__slots__))
    held_out = chat(40, 3.0, 99, prefixes=6, prefix_tokens=300, answer_tokens=48)
    measured = recorder.serve(held_out)
    predicted = simulate(held_out, timing, engine.scheduler.limits, KV_TOKENS // config.block_tokens, config.block_tokens)
    print(compared(measured, predicted))
    return timing


def fitted(steps: list[tuple[int, int, int, int]], seconds: list[float]) -> Timing:
    """Least squares of the relative error, without negative coefficients: those that would be are left out one by one.

    Steps much slower than others of the same size were interrupted by other work, so two rounds leave out the worst twentieth.
    """
    x, y = np.array(steps, dtype=float), np.array(seconds)
    kept = np.ones(len(y), dtype=bool)
    coefficients = np.zeros(x.shape[1])
    for _ in range(3):
        coefficients = _non_negative(x[kept] / y[kept, None])
        error = np.abs(x @ coefficients - y) / y
        kept = error <= np.quantile(error, 0.95)
    return Timing(*coefficients.tolist())


def _non_negative(x: np.ndarray) -> np.ndarray:
    """c >= 0 with x @ c close to 1."""
    used = np.ones(x.shape[1], dtype=bool)
    while True:
        found = np.zeros(x.shape[1])
        found[used] = np.linalg.lstsq(x[:, used], np.ones(len(x)), rcond=None)[0]
        if (found >= 0).all():
            return found
        used &= found > 0


def compared(measured: Run, predicted: Run) -> str:
    """A Markdown table: measured, simulated, and how far apart."""
    rows = [("seconds", measured.seconds, predicted.seconds), ("tokens/s", measured.tokens_per_s, predicted.tokens_per_s)]
    for name in ("ttft_s", "tpot_s"):
        for share in (0.5, 0.9):
            one, other = (quantile([getattr(o, name) for o in run.outcomes], share) for run in (measured, predicted))
            rows.append((f"{name[:-2]} p{share * 100:.0f} s", one, other))
    lines = ["| held-out load | engine | simulator | off by |", "|---|--:|--:|--:|"]
    lines += [f"| {name} | {one:.4g} | {other:.4g} | {abs(other / one - 1):.1%} |" for name, one, other in rows]
    return "\n".join(lines)
