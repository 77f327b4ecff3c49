"""Nobody's grammar waits long for another's: the quick lane, the slow lane, and turns between owners."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any

import pytest

from grammar import GrammarTooLarge, Limits
from runtime.compile_lanes import QUICK_SHARE, CompileLanes, quick_limits

WAIT_S = 20


@pytest.fixture
def lanes():
    made = CompileLanes("test")
    yield made
    made.close()


def too_large(limits: Limits) -> str:
    """Needs a fifth of all limits."""
    needed = Limits().automaton_steps // 5
    if limits.automaton_steps < needed:
        raise GrammarTooLarge("automaton_steps", limits.automaton_steps, needed)
    return "done"


def bomb(limits: Limits) -> str:
    raise GrammarTooLarge("automaton_steps", limits.automaton_steps, limits.automaton_steps + 1)


def test_what_needs_little_is_done_with_few_limits(lanes: CompileLanes) -> None:
    seen: list[Limits] = []

    def compile_within(limits: Limits) -> int:
        seen.append(limits)
        return 7

    assert lanes.submit("a", compile_within).result(WAIT_S) == 7
    assert [limits.automaton_steps for limits in seen] == [Limits().automaton_steps // QUICK_SHARE]


def test_what_needs_more_is_tried_again_with_all_limits(lanes: CompileLanes) -> None:
    assert lanes.submit("a", too_large).result(WAIT_S) == "done"


def test_what_needs_too_much_fails_by_the_full_limit(lanes: CompileLanes) -> None:
    with pytest.raises(GrammarTooLarge) as refused:
        lanes.submit("a", bomb).result(WAIT_S)
    assert refused.value.allowed == Limits().automaton_steps


def test_any_other_failure_is_the_futures(lanes: CompileLanes) -> None:
    def broken(limits: Limits) -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        lanes.submit("a", broken).result(WAIT_S)
    assert lanes.submit("a", lambda limits: 1).result(WAIT_S) == 1


def test_limits_on_nesting_are_whole_in_the_quick_lane() -> None:
    assert quick_limits(Limits()).schema_depth == Limits().schema_depth
    assert quick_limits(Limits()).nodes == Limits().nodes // QUICK_SHARE


def gated(gate: threading.Event, order: list[str], name: str) -> Callable[[Limits], str]:
    def compile_within(limits: Limits) -> str:
        assert gate.wait(WAIT_S)
        order.append(name)
        return name

    return compile_within


def test_owners_take_turns(lanes: CompileLanes) -> None:
    gate, order = threading.Event(), list[str]()
    futures = [lanes.submit("many", gated(gate, order, f"many {n}")) for n in range(4)]
    futures += [lanes.submit("few", gated(gate, order, f"few {n}")) for n in range(2)]
    gate.set()
    wait(futures, WAIT_S)
    assert order == ["many 0", "many 1", "few 0", "many 2", "few 1", "many 3"] or order == [
        "many 0", "few 0", "many 1", "few 1", "many 2", "many 3"]


def test_an_easy_grammar_passes_twenty_hard_ones(lanes: CompileLanes) -> None:
    gate = threading.Event()

    def hard(limits: Limits) -> str:
        if limits.automaton_steps < Limits().automaton_steps:
            raise GrammarTooLarge("automaton_steps", 1, 2)
        assert gate.wait(WAIT_S)
        return "hard"

    stuck: list[Future[Any]] = [lanes.submit("bomber", hard) for _ in range(20)]
    assert lanes.submit("other", lambda limits: "easy").result(WAIT_S) == "easy"
    assert not any(future.done() for future in stuck)
    gate.set()


def test_what_was_cancelled_is_not_compiled(lanes: CompileLanes) -> None:
    gate, order = threading.Event(), list[str]()
    first, second, third = (lanes.submit("a", gated(gate, order, name)) for name in ("first", "second", "third"))
    assert second.cancel()
    gate.set()
    wait([first, third], WAIT_S)
    assert order == ["first", "third"]


def test_a_result_that_nobody_wants_any_more_ends_no_lane(lanes: CompileLanes) -> None:
    begun, gate = threading.Event(), threading.Event()

    def slow(limits: Limits) -> str:
        begun.set()
        assert gate.wait(WAIT_S)
        return "late"

    future = lanes.submit("a", slow)
    assert begun.wait(WAIT_S)
    assert future.cancel()
    gate.set()
    assert lanes.submit("a", lambda limits: "next").result(WAIT_S) == "next"


def test_a_closed_lane_takes_nothing_more() -> None:
    lanes = CompileLanes("test")
    assert lanes.submit("a", lambda limits: 1).result(WAIT_S) == 1
    lanes.close()
    assert not lanes.submit("a", lambda limits: 1).done()
