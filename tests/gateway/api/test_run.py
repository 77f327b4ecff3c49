"""Several sequences as one series of events."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gateway.api.run import Run, while_connected
from gateway.errors import ClientGone
from runtime.errors import EngineDied, QueueFull, RequestFaulted
from runtime.protocol import Delta, GenerationRequest, SamplingParams, Usage
from tests.support.memory_engine import MemoryEngine

pytestmark = pytest.mark.anyio


def request(i: int, text: str = "hello") -> GenerationRequest:
    return GenerationRequest(f"r-{i}", tuple(text.encode()), SamplingParams(max_tokens=100), b"domain")


async def drained(run: Run) -> dict[int, str]:
    texts: dict[int, str] = {}
    while steps := await run.take():
        for index, happened in steps:
            if isinstance(happened, Delta):
                texts[index] = texts.get(index, "") + happened.text
    return texts


async def test_all_sequences_are_heard_to_their_end(engine: MemoryEngine) -> None:
    run = Run(engine, [request(0, "a"), request(1, "bb")])
    assert await drained(run) == {0: "You said: a", 1: "You said: bb"}
    assert await run.take() == []
    assert sorted(run.finished) == [0, 1]
    await run.close()
    assert engine.cancelled == []


async def test_a_fault_comes_after_what_was_said_before_it(engine: MemoryEngine) -> None:
    engine.fault_after, engine.fault = 3, RequestFaulted("raised")
    run = Run(engine, [request(0)])
    text = ""
    with pytest.raises(RequestFaulted):
        while steps := await run.take():
            text += "".join(happened.text for _, happened in steps if isinstance(happened, Delta))
    with pytest.raises(RequestFaulted):
        await run.take()
    assert text == "You"
    await run.close()


async def test_a_refused_sequence_takes_those_before_it_along(engine: MemoryEngine) -> None:
    submit = engine.submit

    def full_at_two(wanted: GenerationRequest) -> Any:
        if len(engine.requests) == 2:
            raise QueueFull("full")
        return submit(wanted)

    engine.submit = full_at_two
    with pytest.raises(QueueFull):
        Run(engine, [request(i) for i in range(3)])
    assert engine.active == [] and engine.cancelled == ["r-0", "r-1"]


async def test_closing_cancels_what_has_not_ended(engine: MemoryEngine) -> None:
    engine.token_delay_s = 10
    run = Run(engine, [request(0), request(1)])
    await asyncio.sleep(0.01)
    await run.close()
    await run.close()
    assert engine.active == [] and engine.cancelled == ["r-0", "r-1"]


async def test_an_engine_that_ends_without_a_word_is_a_fault(engine: MemoryEngine) -> None:
    class Silent:
        async def __aiter__(self) -> Any:
            return
            yield

        def cancel(self) -> None:
            pass

    engine.submit = lambda wanted: Silent()
    run = Run(engine, [request(0)])
    with pytest.raises(EngineDied):
        await run.take()
    await run.close()


async def test_usage_counts_a_prompt_once_and_all_answers(engine: MemoryEngine) -> None:
    long = "a prompt of more than sixteen bytes"
    run = Run(engine, [request(0, long), request(1, long), request(2, "b"), request(3, "b")])
    await drained(run)
    said = len("You said: " + long)
    assert run.usage(2) == Usage(len(long) + 1, 0, len(long) + 1, 2 * said + 2 * len("You said: b"))
    await run.close()


async def receive_never() -> Any:
    await asyncio.Event().wait()


async def receive_gone() -> Any:
    return {"type": "http.disconnect"}


async def test_work_that_ends_first_gives_its_result() -> None:
    async def work() -> int:
        await asyncio.sleep(0.01)
        return 5

    assert await while_connected(receive_never, work()) == 5


async def test_a_caller_that_hangs_up_cancels_the_work() -> None:
    cancelled = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    with pytest.raises(ClientGone):
        await while_connected(receive_gone, work())
    assert cancelled.is_set()


async def test_an_error_of_the_work_is_raised_as_it_is() -> None:
    async def work() -> None:
        raise QueueFull("full")

    with pytest.raises(QueueFull):
        await while_connected(receive_never, work())
