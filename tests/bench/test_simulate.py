"""The simulator against hand counts, and what the scheduler promises under loads that no test could run for real."""

from __future__ import annotations

import random

import pytest

from bench.simulate import Run, Timing, features, main, quantile, simulate
from bench.simulate_fit import fitted
from bench.traces import Arrival, beside_a_long_prompt, chat, unique
from runtime.scheduler import Limits

LIMITS = Limits(context_tokens=40_000, running=32, step_tokens=256, waiting=100_000)


def test_one_request_takes_the_time_that_its_steps_add_up_to() -> None:
    timing = Timing(step_s=1.0, row_s=0.5, token_s=0.25, pair_s=0.125)
    run = simulate([Arrival(2.0, (1, 2, 3), 3)], timing, LIMITS, n_blocks=8)
    prefill = 1 + 0.5 + 3 * 0.25 + 6 * 0.125                     # three tokens that attend to 1, 2 and 3 positions
    decodes = [1 + 0.5 + 0.25 + n * 0.125 for n in (4, 5)]
    [outcome] = run.outcomes
    assert outcome.ttft_s == pytest.approx(prefill)
    assert outcome.last_s == pytest.approx(2.0 + prefill + sum(decodes))
    assert outcome.tpot_s == pytest.approx(sum(decodes) / 2)
    assert run.steps == 3


def test_the_second_of_two_equal_prompts_finds_its_whole_blocks() -> None:
    prompt = tuple(range(40))
    run = simulate([Arrival(0.0, prompt, 1), Arrival(9.0, prompt, 1)], Timing(), LIMITS, n_blocks=8)
    assert [o.cached_tokens for o in run.outcomes] == [0, 32]
    assert run.hit_rate == 32 / 80
    assert run.computed_tokens == 48


def test_the_same_seed_gives_the_same_trace_and_another_one_another() -> None:
    assert chat(20, 2.0, 1) == chat(20, 2.0, 1) != chat(20, 2.0, 2)


def test_a_fit_finds_the_timing_that_made_the_steps() -> None:
    rng = random.Random(1)
    truth = Timing(step_s=5e-3, row_s=1e-3, token_s=1e-3, pair_s=3e-7)
    steps, seconds = [], []
    for _ in range(400):
        rows, tokens = rng.randrange(1, 20), rng.randrange(1, 256)
        step = (1, rows, rows + tokens, (rows + tokens) * rng.randrange(10, 2000))
        exact = sum(c * x for c, x in zip((truth.step_s, truth.row_s, truth.token_s, truth.pair_s), step, strict=True))
        steps.append(step)
        seconds.append(exact * rng.uniform(0.98, 1.02) * (3 if rng.random() < 0.02 else 1))
    found = fitted(steps, seconds)
    for name in ("step_s", "row_s", "token_s", "pair_s"):
        assert getattr(found, name) == pytest.approx(getattr(truth, name), rel=0.15)


def test_a_fit_has_no_negative_costs() -> None:
    steps = [(1, n, n, n * 100) for n in range(1, 50)]
    found = fitted(steps, [0.01 - 0.00001 * n for n in range(1, 50)])
    assert min(found.step_s, found.row_s, found.token_s, found.pair_s) >= 0


def ttft_p99(run: Run) -> float:
    return quantile([o.ttft_s for o in run.outcomes if o.arrival.kind == "short"], 0.99)


def test_short_requests_hardly_wait_for_a_prompt_of_32_000_tokens() -> None:
    with_long = beside_a_long_prompt(300, 1.0, seed=0)
    without = [arrival for arrival in with_long if arrival.kind == "short"]
    runs = [simulate(trace, Timing(), LIMITS, n_blocks=8192) for trace in (with_long, without)]
    assert ttft_p99(runs[0]) <= 1.5 * ttft_p99(runs[1])
    assert all(o.first_s == o.first_s for o in runs[0].outcomes), "the long prompt was answered too"


def throughput(n_blocks: int) -> tuple[float, Run]:
    """Thirty-two answers of 400 tokens at a time, for which a pool of 32 * 29 blocks is just enough."""
    trace = unique(96, 1_000.0, 4, prompt_tokens=64, answer_tokens=400)
    run = simulate(trace, Timing(), LIMITS, n_blocks)
    return run.tokens_per_s, run


def test_demand_beyond_the_pool_makes_no_storm() -> None:
    enough = 32 * 29
    peak, _ = throughput(2 * enough)
    under_pressure, run = throughput(int(enough / 1.3))
    assert sum(o.preemptions for o in run.outcomes) > 0
    assert under_pressure >= 0.9 * peak


def test_features_count_the_pairs_of_tokens_and_positions() -> None:
    from bench.simulate import request_of
    from runtime.scheduler import Row
    from runtime.sequence import Sequence
    sequence = Sequence(request_of("a", Arrival(0.0, tuple(range(10)), 1)), 0.0)
    assert features([Row(sequence, 4, 3)]) == (1, 1, 3, 5 + 6 + 7)


def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chat", "--requests", "12"]) == 0
    printed = capsys.readouterr().out
    assert "| chat | 12 |" in printed and "hit rate 0." in printed
