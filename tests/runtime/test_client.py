"""The engine process and the client at the other end of its pipe, with a tiny model made on the spot."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from pickle import UnpicklingError

import pytest

from runtime.client import EngineClient, Generation
from runtime.config import EngineConfig
from runtime.errors import EngineAsleep, EngineBusy, EngineDied, EngineUnavailable, GrammarRefused, RequestTooLong
from runtime.protocol import Delta, EngineStats, Finished, GenerationRequest, GrammarSpec, SamplingParams
from tests.support.tiny_models import save_folder, tiny_llama


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_folder(tmp_path_factory.mktemp("model"), tiny_llama())


@asynccontextmanager
async def started(path: Path, **settings) -> AsyncIterator[EngineClient]:
    client = EngineClient(EngineConfig(path, "tiny", kv_cache_tokens=1024, threads=1, device="cpu", **settings))
    try:
        await client.start()
        yield client
    finally:
        await client.stop()


def request(name: str, text: str = "the cat", n: int = 6, client: EngineClient | None = None, grammar: GrammarSpec | None = None,
            **params) -> GenerationRequest:
    prompt = client.tokenizer.encode(text) if client else [5, 6, 7]
    return GenerationRequest(name, tuple(prompt), SamplingParams(n, **{"temperature": 0.0, **params}), b"d", grammar)


async def collect(generation: Generation) -> list[Delta | Finished]:
    return [event async for event in generation]


async def eventually(holds: Callable[[], bool], within_s: float = 20.0) -> None:
    for _ in range(int(within_s / 0.02)):
        if holds():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it never came to hold")


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 90))


def engine_pid(client: EngineClient) -> int:
    return client._link._process.pid


def test_requests_are_answered_and_counted(folder: Path) -> None:
    async def test() -> None:
        async with started(folder) as client:
            assert client.state == "ready"
            assert client.model.name == "tiny"
            first = await collect(client.submit(request("a", client=client, ignore_eos=True)))
            assert sum(len(e.token_ids) for e in first[:-1]) == 6
            assert isinstance(first[-1], Finished)
            assert first[-1].usage.completion_tokens == 6
            await eventually(lambda: client.stats.generated_tokens == 6 and client.stats.running == 0)

    run(test)


def test_many_at_once_answer_like_one(folder: Path) -> None:
    async def test() -> None:
        async with started(folder) as client:
            alone = await collect(client.submit(request("alone", "hello there", 10, client, ignore_eos=True)))
            together = await asyncio.gather(*(
                collect(client.submit(request(f"r{i}", "hello there", 10, client, ignore_eos=True))) for i in range(6)))
            texts = {"".join(e.text for e in events[:-1]) for events in together}
            assert texts == {"".join(e.text for e in alone[:-1])}

    run(test)


def test_refusals_of_the_engine_are_typed_exceptions(folder: Path) -> None:
    async def test() -> None:
        async with started(folder) as client:
            with pytest.raises(GrammarRefused, match="strnig"):
                await collect(client.submit(request("a", grammar=GrammarSpec("json_schema", '{"type": "strnig"}'))))
            long = GenerationRequest("b", tuple([5] * 400), SamplingParams(4), b"d")
            with pytest.raises(RequestTooLong, match="400"):
                await collect(client.submit(long))

    run(test)


def test_a_killed_engine_fails_its_requests_and_is_started_again(folder: Path) -> None:
    async def test() -> None:
        async with started(folder) as client:
            generation = client.submit(request("a", n=200, ignore_eos=True))
            before = engine_pid(client)
            os.kill(before, signal.SIGKILL)
            with pytest.raises(EngineDied, match="-9"):
                await collect(generation)
            await eventually(lambda: client.state == "restarting")
            assert client.stats == EngineStats(), "it shows what a dead engine held"
            with pytest.raises(EngineUnavailable, match="restarting"):
                client.submit(request("b"))
            await eventually(lambda: client.state == "ready")
            assert engine_pid(client) != before
            assert client.restarts == 1
            assert isinstance((await collect(client.submit(request("c"))))[-1], Finished)

    run(test)


def test_a_stuck_engine_is_ended_and_started_again_and_an_idle_one_is_left_alone(folder: Path) -> None:
    async def test() -> None:
        async with started(folder, step_timeout_s=1.0) as client:
            await asyncio.sleep(1.5)
            assert client.restarts == 0
            generation = client.submit(request("a", n=200, ignore_eos=True))
            before = engine_pid(client)
            os.kill(before, signal.SIGSTOP)
            with pytest.raises(EngineDied):
                await collect(generation)
            await eventually(lambda: client.state == "ready" and client.restarts == 1)
            assert engine_pid(client) != before
            assert isinstance((await collect(client.submit(request("b"))))[-1], Finished)

    run(test)


def test_an_engine_that_can_not_be_understood_is_ended_and_started_again(folder: Path) -> None:
    def garbage() -> None:
        raise UnpicklingError("invalid load key")

    async def test() -> None:
        async with started(folder) as client:
            client._link._pipe.recv = garbage
            with pytest.raises(EngineDied):
                await collect(client.submit(request("a", n=200, ignore_eos=True)))
            await eventually(lambda: client.state == "ready" and client.restarts == 1)
            assert isinstance((await collect(client.submit(request("b"))))[-1], Finished)

    run(test)


def test_a_bug_at_the_start_is_told_and_nobody_waits_for_ever(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: Path) -> None:
        raise ZeroDivisionError("a bug")

    async def test() -> None:
        client = EngineClient(EngineConfig(folder, "tiny"))
        with pytest.raises(EngineUnavailable, match="ZeroDivisionError: a bug"):
            await client.start()
        assert client.state == "failed"
        await client.stop()

    monkeypatch.setattr("runtime.client.load_tokenizer", broken)
    run(test)


def test_cancelling_frees_the_engine_and_ends_the_iteration(folder: Path) -> None:
    async def test() -> None:
        async with started(folder) as client:
            generation = client.submit(request("a", n=240, ignore_eos=True))
            seen = []
            async for event in generation:
                seen.append(event)
                if len(seen) == 2:
                    generation.cancel()
                    generation.cancel()
            assert not any(isinstance(e, Finished) for e in seen)
            await eventually(lambda: client.stats.running == 0 and client.stats.pools[0].blocks_used == 0)

    run(test)


def test_a_model_that_can_not_be_read_is_said_at_once_and_not_tried_again(tmp_path: Path) -> None:
    async def test() -> None:
        broken = tmp_path / "broken.gguf"
        broken.write_bytes(b"GGUF" + bytes(100))
        client = EngineClient(EngineConfig(broken, "broken"))
        with pytest.raises(EngineUnavailable, match=r"broken\.gguf"):
            await client.start()
        assert client.state == "failed"
        await client.stop()

    run(test)


def test_an_engine_that_has_served_is_tried_again_when_it_can_not_start_for_a_while(folder: Path, tmp_path: Path) -> None:
    async def test() -> None:
        moved = tmp_path / "moved"
        async with started(folder) as client:
            folder.rename(moved)
            try:
                os.kill(engine_pid(client), signal.SIGKILL)
                await eventually(lambda: client.restarts >= 2)
                assert client.state == "restarting"
            finally:
                moved.rename(folder)
            await eventually(lambda: client.state == "ready", 40)
            assert isinstance((await collect(client.submit(request("c"))))[-1], Finished)

    run(test)


def test_a_cache_beyond_memory_is_refused_with_its_size(folder: Path) -> None:
    async def test() -> None:
        client = EngineClient(EngineConfig(folder, "tiny", kv_cache_tokens=10**12, device="cpu"))
        with pytest.raises(EngineUnavailable, match="GiB are free"):
            await client.start()
        await client.stop()

    run(test)


def is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def test_an_engine_put_to_sleep_is_no_process_and_answers_again_when_it_is_woken(folder: Path) -> None:
    async def test() -> None:
        async with started(folder) as client:
            before = await collect(client.submit(request("a", client=client, ignore_eos=True)))
            pid = engine_pid(client)
            await client.sleep()
            assert (client.state, is_gone(pid), client.takes_requests) == ("asleep", True, False)
            await client.sleep()
            with pytest.raises(EngineAsleep, match="woken"):
                client.submit(request("b"))
            await client.rouse()
            assert client.state == "asleep", "a request woke what somebody had put to sleep"
            assert client.stats == EngineStats()
            await client.wake()
            assert (client.state, client.restarts) == ("ready", 0)
            again = await collect(client.submit(request("c", client=client, ignore_eos=True)))
            assert [e.text for e in again[:-1]] == [e.text for e in before[:-1]]
            assert again[-1].usage.cached_tokens == 0

    run(test)


def test_an_engine_with_requests_is_not_put_to_sleep(folder: Path) -> None:
    async def test() -> None:
        async with started(folder) as client:
            generation = client.submit(request("a", n=200, ignore_eos=True))
            with pytest.raises(EngineBusy, match="1 requests"):
                await client.sleep()
            assert isinstance((await collect(generation))[-1], Finished)
            await client.sleep()
            assert client.state == "asleep"

    run(test)


def test_an_idle_engine_falls_asleep_and_the_next_requests_wake_it(folder: Path) -> None:
    async def test() -> None:
        async with started(folder, idle_sleep_s=0.3, step_timeout_s=4.0) as client:
            pid = engine_pid(client)
            await eventually(lambda: client.state == "asleep" and is_gone(pid))
            assert client.takes_requests
            await asyncio.gather(*(client.rouse() for _ in range(3)))
            answers = await asyncio.gather(*(collect(client.submit(request(f"r{i}"))) for i in range(3)))
            assert all(isinstance(events[-1], Finished) for events in answers)
            assert client.restarts == 0
            await eventually(lambda: client.state == "asleep")

    run(test)


def test_waking_an_engine_that_can_not_start_is_said_and_tried_again(folder: Path, tmp_path: Path) -> None:
    async def test() -> None:
        moved = tmp_path / "moved"
        async with started(folder) as client:
            await client.sleep()
            folder.rename(moved)
            try:
                with pytest.raises(EngineUnavailable, match="restarting"):
                    await client.wake()
            finally:
                moved.rename(folder)
            await eventually(lambda: client.state == "ready", 40)

    run(test)


def test_stopping_while_it_sleeps_ends_everything(folder: Path) -> None:
    async def test() -> None:
        async with started(folder) as client:
            await client.sleep()
        assert client.state == "stopped"
        with pytest.raises(EngineUnavailable, match="stopped"):
            client.submit(request("a"))

    run(test)


def test_stopping_ends_the_process_and_what_is_in_it(folder: Path) -> None:
    async def test() -> None:
        client = EngineClient(EngineConfig(folder, "tiny", kv_cache_tokens=1024, device="cpu"))
        await client.start()
        generation = client.submit(request("a", n=240, ignore_eos=True))
        process = client._link._process
        await client.stop()
        assert not process.is_alive()
        with pytest.raises(EngineUnavailable, match="shutting down"):
            await collect(generation)

    run(test)
