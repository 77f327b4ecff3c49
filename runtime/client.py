"""The gateway's end of the pipe: starts the engine process, submits, hands events to their requests.

    EngineClient.start() -> submit(request) -> async for delta in generation -> generation.finished

One engine process at a time. When it dies, every request in it fails with EngineDied and the process is
started again, after a pause that doubles with each death in a row. When the engine says itself, the first
time, that it can't start, it isn't tried again. An engine with requests that says nothing for `step_timeout_s`
is stuck in a step: it is ended, and started again like one that died.

An engine that sleeps is a process that has ended: its memory is free, and its cache is lost. It sleeps when it is put to sleep,
until it is woken; or by itself after `idle_sleep_s` without a request, until the next one rouses it.
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
from .errors import EngineAsleep, EngineBusy, EngineDied, EngineUnavailable, RuntimeFault, fault_of
from .protocol import (
    Beams,
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
STUCK_LOOKS = 10            # times that a silence is looked at before it has lasted too long


class Generation:
    """One request's answer as it comes: an async iterator of Delta (or one Beams), then exactly one Finished, then the end.

    Iterating raises a RuntimeFault if the request failed. `cancel` may be called at any time, from the event
    loop, also after the end; nothing more comes then.
    """

    def __init__(self, request_id: str, cancel: Callable[[str], None]) -> None:
        self.request_id = request_id
        self._cancel = cancel
        self._events: asyncio.Queue[Delta | Beams | Finished | RuntimeFault | None] = asyncio.Queue()
        self._over = False

    def cancel(self) -> None:
        if not self._over:
            self._cancel(self.request_id)
            self._put(None)

    def _put(self, event: Delta | Beams | Finished | RuntimeFault | None) -> None:
        if not self._over:
            self._over = not isinstance(event, Delta | Beams)
            self._events.put_nowait(event)

    async def __aiter__(self) -> AsyncIterator[Delta | Beams | Finished]:
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
        self._settled = asyncio.Event()              # it is known whether the engine could start
        self._ended = asyncio.Event()                # the process has ended, or shall
        self._slept, self._woken = asyncio.Event(), asyncio.Event()
        self._is_to_sleep = False                    # the supervisor starts no new process until it is woken
        self._wakes_by_itself = False                # it fell asleep by itself, so the next request may wake it
        self._used_s = 0.0                           # when it last had a request, on the loop's clock
        self._silent_looks = 0                       # since the engine was last heard of

    async def start(self) -> None:
        """Start the engine; returns when it is ready. Raises EngineUnavailable if it says that it can't be."""
        self._supervisor = asyncio.create_task(self._watch())
        await self._settled.wait()
        if self.state == "failed":
            raise EngineUnavailable(self.failure or "the engine could not start")

    @property
    def takes_requests(self) -> bool:
        """Whether a request would be taken now, if it first lets the engine be roused."""
        return self.state == "ready" or (self._wakes_by_itself and self.state in ("asleep", "waking"))

    async def sleep(self) -> None:
        """End the engine process until `wake`.

        Raises EngineBusy where requests are in it, and EngineUnavailable where it isn't ready.
        """
        if self.state == "asleep":
            self._wakes_by_itself = False
            return
        if self._generations:
            raise EngineBusy(f"{len(self._generations)} requests are in the engine: drain it, or try again when they have ended")
        if self.state != "ready":
            raise EngineUnavailable(f"the engine is {self.state}: only one that is ready can be put to sleep")
        self._fall_asleep(wakes_by_itself=False)
        await self._slept.wait()

    async def wake(self) -> None:
        """Start an engine that sleeps; returns when it is ready. Raises EngineUnavailable where it can't be."""
        if self.state == "asleep":
            self._start_waking()
        if self.state == "waking":
            await self._settled.wait()
        if self.state != "ready":
            raise EngineUnavailable(f"the engine is {self.state}: " + (self.failure or "try again in a moment"))

    async def rouse(self) -> None:
        """Before a request: wake an engine that fell asleep by itself, and wait for it. Leaves any other as it is."""
        self._note_use()
        if self._wakes_by_itself and self.state in ("asleep", "waking"):
            await self.wake()

    def _fall_asleep(self, wakes_by_itself: bool) -> None:
        self.state, self._wakes_by_itself, self._is_to_sleep = "asleep", wakes_by_itself, True
        self._slept.clear()
        self._woken.clear()
        self._ended.set()

    def _start_waking(self) -> None:
        self.state = "waking"
        self._settled.clear()
        self._woken.set()

    def _note_use(self) -> None:
        self._used_s = asyncio.get_running_loop().time()

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
        self._settled.set()
        self._slept.set()
        self._fail_all(EngineUnavailable("the server is shutting down"))

    def submit(self, request: GenerationRequest) -> Generation:
        """Hand a request to the engine. Raises EngineUnavailable while there is none."""
        if self.state == "asleep":
            raise EngineAsleep("the engine was put to sleep: it takes no requests until it is woken")
        if self.state != "ready" or self._link is None:
            raise EngineUnavailable(f"the engine is {self.state}: " + (self.failure or "try again in a moment"))
        generation = Generation(request.request_id, self._cancel)
        self._generations[request.request_id] = generation
        self._note_use()
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
            self._ended = ended = asyncio.Event()
            self._link = _Link(self.config, asyncio.get_running_loop(), self._receive, ended.set)
            await self._until(ended)
            was_ready = self.state == "ready"
            if self.state == "waking":
                self._settled.set()                          # whoever waits for it hears that it failed
            if self.state not in ("failed", "asleep"):
                self.state = "restarting"
            exit_code = await asyncio.to_thread(self._link.close)
            self._link, self.stats = None, EngineStats()
            if self._is_to_sleep:
                self._slept.set()
                await self._woken.wait()
                self._is_to_sleep = False
                continue
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

    async def _until(self, ended: asyncio.Event) -> None:
        """Wait for the engine process to end; end it if it is stuck."""
        assert self._link is not None
        self._silent_looks = 0
        self._note_use()
        while not ended.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), self.config.step_timeout_s / STUCK_LOOKS)
            if self._is_tired():
                self._fall_asleep(wakes_by_itself=True)
            self._silent_looks = self._silent_looks + 1 if self._generations and self.state == "ready" else 0
            if self._silent_looks > STUCK_LOOKS:
                log.error("the engine has said nothing for %g s with %d requests in it: ending it",
                          self.config.step_timeout_s, len(self._generations))
                self._link.kill()
                await ended.wait()

    def _is_tired(self) -> bool:
        """Whether it has been without requests for as long as it may."""
        if self._generations:
            self._note_use()
        idle_s = asyncio.get_running_loop().time() - self._used_s
        return self.state == "ready" and 0 < self.config.idle_sleep_s <= idle_s

    def _receive(self, events: list[Event]) -> None:
        self._silent_looks = 0
        for event in events:
            match event:
                case Delta() | Beams():
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
                    self._note_use()
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

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()

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
