"""One API request in the engine: its sequences as one series of events, ended together."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from starlette.types import Receive

from gateway.engine_port import Engine, Generation
from gateway.errors import ClientGone
from runtime.errors import EngineDied
from runtime.protocol import Beams, Delta, Finished, GenerationRequest, Usage

T = TypeVar("T")
Step = tuple[int, Delta | Beams | Finished]    # the sequence's index, and what became of it


class Run:
    """Made by submitting; the owner must `close` it, which cancels what has not ended. Works on the event loop only."""

    def __init__(self, engine: Engine, requests: Sequence[GenerationRequest]) -> None:
        """Raises RuntimeFault, and leaves nothing in the engine, where one of the requests can't be taken."""
        self._generations: list[Generation] = []
        try:
            for request in requests:
                self._generations.append(engine.submit(request))
        except BaseException:
            self._cancel_all()
            raise
        self._steps: asyncio.Queue[Step | Exception] = asyncio.Queue()
        self._fault: Exception | None = None
        self.finished: dict[int, Finished] = {}
        self._pumps = [asyncio.create_task(self._pump(i, generation)) for i, generation in enumerate(self._generations)]

    async def take(self) -> list[Step]:
        """Everything that has come since the last call, at least one step; [] once all sequences have ended.

        Raises the RuntimeFault of a sequence that failed, after the steps that came before it.
        """
        if self._fault is not None:
            raise self._fault
        if len(self.finished) == len(self._generations):
            return []
        waiting = [await self._steps.get()]
        while not self._steps.empty():
            waiting.append(self._steps.get_nowait())
        return self._up_to_fault(waiting)

    def _up_to_fault(self, waiting: list[Step | Exception]) -> list[Step]:
        taken: list[Step] = []
        for item in waiting:
            if isinstance(item, Exception):
                if not taken:
                    raise item
                self._fault = item
                break
            taken.append(item)
            if isinstance(item[1], Finished):
                self.finished[item[0]] = item[1]
        return taken

    async def _pump(self, index: int, generation: Generation) -> None:
        try:
            async for event in generation:
                self._steps.put_nowait((index, event))
                if isinstance(event, Finished):
                    return
            self._steps.put_nowait(EngineDied("The engine ended this request without a result: send it again."))
        except Exception as error:
            self._steps.put_nowait(error)

    def usage(self, sequences_per_prompt: int) -> Usage:
        """Of all sequences together, once they have ended. A prompt counts once, as its first sequence read it."""
        firsts = [f.usage for i, f in self.finished.items() if i % sequences_per_prompt == 0]
        everyone = [f.usage for f in self.finished.values()]
        return Usage(
            prompt_tokens=sum(u.prompt_tokens for u in firsts),
            cached_tokens=sum(u.cached_tokens for u in firsts),
            computed_tokens=sum(u.computed_tokens for u in firsts),
            completion_tokens=sum(u.completion_tokens for u in everyone),
            recomputed_tokens=sum(u.recomputed_tokens for u in everyone),
            forced_tokens=sum(u.forced_tokens for u in everyone))

    async def close(self) -> None:
        """Cancel what has not ended. Idempotent."""
        self._cancel_all()
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    def _cancel_all(self) -> None:
        for generation in self._generations:
            generation.cancel()


async def while_connected(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`. Raises ClientGone, with `work` cancelled, where the caller hangs up before it is there."""
    working = asyncio.ensure_future(work)
    listening = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait({working, listening}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientGone
    finally:
        for task in (working, listening):
            task.cancel()
        await asyncio.gather(working, listening, return_exceptions=True)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
