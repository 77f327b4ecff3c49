"""The gateway's end of the pipe: starts the engine process, submits, hands events to their requests.

    EngineClient.start() -> submit(request) -> async for delta in generation -> generation.finished

One engine process at a time. When it dies, every request in it fails with EngineDied and the process is
started again, after a pause that doubles with each death in a row. When the engine says itself, the first
time, that it can't start, it isn't tried again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import os
import queue
import threading
from collections.abc import AsyncIterator, Callable
from multiprocessing.connection import Connection

from .config import EngineConfig
from .errors import EngineDied, EngineUnavailable, RuntimeFault, fault_of
from .protocol import (
    Cancel,
    Command,
    Delta,
    EngineState,
    EngineStats,
    Event,
    Failed,
    Finished,
    GenerationRequest,
    ModelInfo,
    Ready,
    Shutdown,
    StartFailed,
    Submit,
)
from .tokenizer import Tokenizer, load_tokenizer

log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 30.0
MOST_FAILED_STARTS = 5
STOP_WAIT_S = 5.0


class Generation:
    """One request's answer as it comes: an async iterator of Delta, then exactly one Finished, then the end.

    Iterating raises a RuntimeFault if the request failed. `cancel` may be called at any time, from the event
    loop, also after the end; nothing more comes then.
    """

    def __init__(self, request_id: str, cancel: Callable[[str], None]) -> None:
        self.request_id = request_id
        self._cancel = cancel
        self._events: asyncio.Queue[Delta | Finished | RuntimeFault | None] = asyncio.Queue()
        self._over = False

    def cancel(self) -> None:
        if not self._over:
            self._cancel(self.request_id)
            self._put(None)

    def _put(self, event: Delta | Finished | RuntimeFault | None) -> None:
        if not self._over:
            self._over = not isinstance(event, Delta)
            self._events.put_nowait(event)

    async def __aiter__(self) -> AsyncIterator[Delta | Finished]:
        while True:
            event = await self._events.get()
            if event is None:
                return
            if isinstance(event, RuntimeFault):
                raise event
            yield event
            if isinstance(event, Finished):
                return


class EngineClient:
    """All methods belong to the event loop that called `start`."""

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        self.state: EngineState = "starting"
        self.model: ModelInfo | None = None
        self.stats = EngineStats()
        self.restarts = 0
        self.failure: str | None = None              # why `state` is "failed"
        self.tokenizer: Tokenizer | None = None      # known before the engine is ready, and across restarts
        self._generations: dict[str, Generation] = {}
        self._link: _Link | None = None
        self._supervisor: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()

    async def start(self) -> None:
        """Start the engine; returns when it is ready. Raises EngineUnavailable if it says that it can't be."""
        self._supervisor = asyncio.create_task(self._watch())
        await self._settled.wait()
        if self.state == "failed":
            raise EngineUnavailable(self.failure or "the engine could not start")

    async def stop(self) -> None:
        """End the engine process; requests still in it fail."""
        self.state = "stopped"
        if self._supervisor is not None:
            self._supervisor.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._supervisor
            self._supervisor = None
        if self._link is not None:
            await asyncio.to_thread(self._link.close)
            self._link = None
        self._fail_all(EngineUnavailable("the server is shutting down"))

    def submit(self, request: GenerationRequest) -> Generation:
        """Hand a request to the engine. Raises EngineUnavailable while there is none."""
        if self.state != "ready" or self._link is None:
            raise EngineUnavailable(f"the engine is {self.state}: " + (self.failure or "try again in a moment"))
        generation = Generation(request.request_id, self._cancel)
        self._generations[request.request_id] = generation
        self._link.send(Submit(request))
        return generation

    def _cancel(self, request_id: str) -> None:
        if self._generations.pop(request_id, None) is not None and self._link is not None:
            self._link.send(Cancel(request_id))

    async def _watch(self) -> None:
        """Supervise; should that itself fail, nobody is left waiting for an engine that never comes."""
        try:
            await self._supervise()
        except Exception as error:
            log.exception("the engine can't be supervised")
            self._give_up(f"{type(error).__name__}: {error}")
            self._fail_all(EngineUnavailable(f"the engine is failed: {error}"))

    async def _supervise(self) -> None:
        try:
            self.tokenizer = await asyncio.to_thread(load_tokenizer, self.config.model_path)
        except RuntimeFault as fault:
            self._give_up(str(fault))
            return
        pause_s, n_failed_starts = FIRST_PAUSE_S, 0
        while True:
            ended = asyncio.Event()
            self._link = _Link(self.config, asyncio.get_running_loop(), self._receive, ended.set)
            await ended.wait()
            was_ready = self.state == "ready"
            if self.state != "failed":
                self.state = "restarting"
            exit_code = await asyncio.to_thread(self._link.close)
            self._link, self.stats = None, EngineStats()
            if self.state == "failed":
                return
            self._fail_all(EngineDied(f"the engine process ended (exit code {exit_code}) while this request was in it: "
                                      "send it again"))
            n_failed_starts = 0 if was_ready else n_failed_starts + 1
            if n_failed_starts == MOST_FAILED_STARTS:
                self._give_up(f"the engine process ended {n_failed_starts} times in a row before it was ready, "
                              f"last with exit code {exit_code}")
                return
            self.restarts += 1
            log.error("the engine process ended with exit code %s; starting it again", exit_code)
            pause_s = FIRST_PAUSE_S if was_ready else min(2 * pause_s, LONGEST_PAUSE_S)
            await asyncio.sleep(pause_s)

    def _receive(self, events: list[Event]) -> None:
        for event in events:
            match event:
                case Delta():
                    if generation := self._generations.get(event.request_id):
                        generation._put(event)
                case Finished():
                    if generation := self._generations.pop(event.request_id, None):
                        generation._put(event)
                case Failed():
                    if generation := self._generations.pop(event.request_id, None):
                        generation._put(fault_of(event.code, event.message, event.param))
                case EngineStats():
                    self.stats = event
                case Ready():
                    self.model, self.state = event.model, "ready"
                    self._settled.set()
                case StartFailed() if self.model is None:
                    self._give_up(event.message)
                case StartFailed():                  # it has served before: what is missing now may come back
                    log.error("the engine could not start again: %s", event.message)

    def _give_up(self, why: str) -> None:
        self.state, self.failure = "failed", why
        self._settled.set()

    def _fail_all(self, fault: RuntimeFault) -> None:
        generations, self._generations = self._generations, {}
        for generation in generations.values():
            generation._put(fault)


def _engine_main(config: EngineConfig, pipe: Connection) -> None:
    """The engine process's main function. Imports torch, which the gateway's process does without."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")      # torch's threads sleep while they wait: spinning starves neighbours
    from .process import run

    run(config, pipe)


class _Link:
    """One engine process, with a thread that reads its events and one that writes commands to it.

    Writing has its own thread because a pipe fills up while the engine is in a long step, and the event loop
    must never wait for that.
    """

    def __init__(self, config: EngineConfig, loop: asyncio.AbstractEventLoop,
                 receive: Callable[[list[Event]], None], ended: Callable[[], None]) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_engine_main, args=(config, theirs), name="turnstile-engine", daemon=True)
        self._process.start()
        theirs.close()
        self._commands: queue.SimpleQueue[Command | None] = queue.SimpleQueue()
        self._loop, self._receive, self._ended = loop, receive, ended
        self._threads = [threading.Thread(target=self._read, daemon=True), threading.Thread(target=self._write, daemon=True)]
        for thread in self._threads:
            thread.start()

    def send(self, command: Command) -> None:
        self._commands.put(command)

    def close(self) -> int | None:
        """End the process, politely first; its exit code. Blocks."""
        self._commands.put(Shutdown())
        self._commands.put(None)
        self._process.join(STOP_WAIT_S)
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join()
        for thread in self._threads:
            thread.join(STOP_WAIT_S)
        self._pipe.close()
        return self._process.exitcode

    def _read(self) -> None:
        try:
            while True:
                self._call(self._receive, self._pipe.recv())
        except (EOFError, OSError):
            pass                                             # it ended, or was ended
        except Exception:
            log.exception("what the engine process said can't be read: ending it")
        finally:
            self._call(self._ended)

    def _write(self) -> None:
        with contextlib.suppress(OSError):
            while (command := self._commands.get()) is not None:
                self._pipe.send(command)

    def _call(self, function: Callable[..., None], *args: object) -> None:
        with contextlib.suppress(RuntimeError):              # the loop is closed: nobody listens any more
            self._loop.call_soon_threadsafe(function, *args)
