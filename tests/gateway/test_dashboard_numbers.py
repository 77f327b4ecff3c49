"""How the dashboard writes numbers, keeps its history and draws its charts: pure functions and one small ring."""

from __future__ import annotations

import asyncio

import numpy
import pytest

from gateway.dashboard import charts, formats
from gateway.dashboard.series import STEP_S, WINDOW_S, Counters, Series, Step, close_steps_forever
from gateway.dashboard.snapshot import nearest_rank
from tests.support.dashboard_engine import Stage


def plain(text: str) -> str:
    """With ordinary spaces."""
    return text.replace(formats.SPACE, " ").replace(formats.NARROW_SPACE, " ")


# How numbers are written


@pytest.mark.parametrize("write", [formats.count, formats.percent, formats.rate, formats.seconds])
def test_the_unknown_is_a_dash(write):
    assert write(None) == "–"


@pytest.mark.parametrize(("value", "text"), [
    (formats.count(0), "0"), (formats.count(12_345), "12,345"), (formats.count(12_345_678), "12.35 M"),
    (formats.percent(0.0), "0 %"), (formats.percent(1.0), "100 %"), (formats.percent(0.8333), "83.3 %"),
    (formats.percent(0.99999), "99.9 %"), (formats.percent(0.00001), "0.1 %"),
    (formats.seconds(0.0042), "4.2 ms"), (formats.seconds(0.0841), "84 ms"), (formats.seconds(0.9997), "1.00 s"),
    (formats.seconds(12.34), "12.3 s"), (formats.seconds(120.0), "120 s"),
    (formats.rate(0.0), "0"), (formats.rate(3.21), "3.2"), (formats.rate(1234.5), "1,234"),
    (formats.size(0), "0 B"), (formats.size(1023), "1023 B"), (formats.size(1536), "1.5 KiB"), (formats.size(5 << 30), "5.0 GiB"),
    (formats.duration(59), "under a minute"), (formats.duration(3600 + 61), "1 h 1 min"), (formats.duration(90_000), "1 d 1 h"),
    (formats.axis_seconds(0.5), "500 ms"), (formats.axis_seconds(2.0), "2 s"),
])
def test_a_number_is_written_short_and_never_rounded_to_all_or_nothing(value, text):
    assert plain(value) == text


@pytest.mark.parametrize("n", [1, 2, 3, 10, 99, 100, 101, 200])
@pytest.mark.parametrize("share", [0.5, 0.99])
def test_a_percentile_is_the_inverse_of_the_empirical_distribution(n, share):
    values = numpy.random.default_rng(n).exponential(size=n)
    assert nearest_rank(values.tolist(), share) == numpy.percentile(values, share * 100, method="inverted_cdf")


# The history


def test_a_step_holds_what_the_counters_gained_in_it():
    series = Series(0.0, Counters(100, 50, 7))
    series.close_step(5.0, Counters(160, 60, 9))
    assert series.window() == [Step(0.0, 5.0, Counters(60, 10, 2))]


def test_a_restarted_engine_counts_from_zero_and_not_below():
    series = Series(0.0, Counters(1000, 1000, 1000))
    series.close_step(5.0, Counters(40, 20, 3))
    assert series.window()[0].tokens == Counters(40, 20, 3)


def test_the_series_keeps_a_quarter_of_an_hour_and_no_more():
    series = Series(0.0, Counters())
    for i in range(1, 1001):
        series.close_step(i * STEP_S, Counters(i, 0, 0))
    kept = series.window()
    assert len(kept) == 180
    assert kept[-1].end_s - kept[0].start_s == WINDOW_S
    assert sum(step.tokens.cached_tokens for step in kept) == 180


def test_a_clock_that_stands_still_closes_no_step():
    series = Series(5.0, Counters())
    series.close_step(5.0, Counters(10, 0, 0))
    assert series.window() == []


def test_the_minutes_hold_each_step_once_newest_first():
    series = Series(0.0, Counters())
    for i in range(1, 31):
        series.close_step(i * STEP_S, Counters(i, 0, 0))
    assert [(ago, len(steps)) for ago, steps in series.minutes()] == [(0, 12), (1, 12), (2, 6)]


def test_the_recent_rate_is_over_the_last_ten_seconds_or_a_little_more():
    series = Series(0.0, Counters())
    series.close_step(5.0, Counters(9000, 9000, 9000))
    series.close_step(10.0, Counters(9100, 9050, 9020))
    series.close_step(15.0, Counters(9150, 9100, 9030))
    assert series.recent_rate(17.0, Counters(9156, 9100, 9036)) == ((156 + 100) / 12, 36 / 12)


def test_there_is_no_rate_before_the_first_second():
    assert Series(0.0, Counters()).recent_rate(0.5, Counters(10, 10, 10)) is None


def test_steps_are_closed_again_and_again_until_cancelled():
    async def count_for_a_moment() -> int:
        calls: list[None] = []
        task = asyncio.create_task(close_steps_forever(lambda: calls.append(None), every_s=0.01))
        await asyncio.sleep(0.2)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return len(calls)

    assert asyncio.run(count_for_a_moment()) >= 5


def test_the_ttft_of_a_request_is_counted_in_one_step_only():
    stage = Stage()
    stage.answer(prompt=100, cached=0, completion=1, ttft_s=0.5, total_s=1.0)
    stage.answer(prompt=100, cached=96, completion=1, ttft_s=0.1, total_s=1.0)
    stage.pass_time(20)
    stage.answer(prompt=100, cached=96, completion=1, ttft_s=0.2, total_s=1.0)
    stage.pass_time(10)
    steps = stage.board.snapshot(None).steps
    assert [value for step in steps for value in step.hit_ttfts_s] == pytest.approx([0.1, 0.2])
    assert [value for step in steps for value in step.miss_ttfts_s] == pytest.approx([0.5])


# The charts


def test_stacked_areas_are_drawn_to_scale():
    steps = [Step(0.0, 5.0, Counters(250, 0, 0)), Step(5.0, 10.0, Counters(100, 400, 0))]     # 50+0, then 20+80 a second
    cached, computed = charts.stacked_areas(steps, 10.0, 100.0)
    assert cached == "M890 50L895 50L895 80L900 80L900 100L890 100Z"
    assert computed == "M890 50L895 50L895 0L900 0L900 80L895 80L895 50L890 50Z"


def test_an_idle_quarter_of_an_hour_is_a_level_line():
    steps = [Step(i * 5.0, i * 5.0 + 5, Counters()) for i in range(180)]
    assert charts.stacked_areas(steps, 900.0, 10.0)[0] == "M0 100L900 100L900 100L0 100Z"


def test_medians_more_than_a_minute_apart_are_not_joined():
    points = [(800.0, 1.0), (860.0, 0.5), (930.0, 0.5)]
    assert charts.joined(points, 930.0, 1.0) == "M770 0L830 50M900 50"
    assert charts.dots(points, 930.0, 1.0) == "M770 0h0M830 50h0M900 50h0"


@pytest.mark.parametrize(("value", "top"), [
    (0, 1), (0.3, 0.3), (1, 1), (1.01, 1.5), (2.2, 3), (7, 8), (8.5, 10), (430, 600), (6001, 8000)])
def test_an_axis_ends_at_a_round_number(value, top):
    assert charts.round_up(value) == pytest.approx(top)
