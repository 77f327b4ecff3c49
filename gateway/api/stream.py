"""Server-sent events: the one writer of streams, and the response that sends them.

What SDKs rely on, and `ChunkWriter` keeps for every endpoint:

    the role comes once a choice, in its first chunk
    id, object, created and model are the same in all chunks
    every choice has a finish_reason, null until its last chunk, and nothing of a choice follows that
    with include_usage every chunk has usage, null but in one last chunk, whose choices are []
    [DONE] comes last; after an error event there is no [DONE]
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.background import BackgroundTask
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gateway import errors
from gateway.api.render import Head, Json, Shape, usage
from gateway.api.run import Run, Step, while_connected
from gateway.ledger import Account
from runtime.errors import EngineUnavailable, RuntimeFault
from runtime.protocol import Delta, Usage

log = logging.getLogger("turnstile.gateway")

KEEP_ALIVE_S = 15.0
LAST_WORD_S = 5.0                      # for the error event to a client that may not be reading
DONE = b"data: [DONE]\n\n"
PING = b": ping\n\n"
HEADERS = {"cache-control": "no-cache, no-transform", "x-accel-buffering": "no"}


def event(value: Json) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


class ChunkWriter:
    """Makes the bytes of one stream, in order. Breaking its order is a bug of the caller."""

    def __init__(self, head: Head, shape: Shape, include_usage: bool, at_the_end: Json | None = None) -> None:
        """`at_the_end` is said beside the last chunk of each choice."""
        self._shape = shape
        self._at_the_end = at_the_end or {}
        self._chunk = head.object(shape.chunk_kind)
        self._usage: Json = {"usage": None} if include_usage else {}
        self._begun: set[int] = set()
        self._ended: set[int] = set()
        self.closed = False

    def step(self, index: int, happened: Delta | Any) -> bytes:
        """A delta or the end of choice `index`. Empty where there is nothing to show."""
        assert not self.closed and index not in self._ended
        opening = self._opening(index)
        if isinstance(happened, Delta):
            if not happened.text and not happened.logprobs:
                return opening
            return opening + self._event(self._shape.piece(index, happened.text, happened.logprobs))
        self._ended.add(index)
        return opening + self._event(self._shape.ending(index, happened.reason), self._at_the_end)

    def closing(self, counted: Usage) -> bytes:
        assert not self.closed and self._begun == self._ended
        self.closed = True
        last = event({**self._chunk, "choices": [], "usage": usage(counted)}) if self._usage else b""
        return last + DONE

    def failing(self, error: errors.ApiError) -> bytes:
        assert not self.closed
        self.closed = True
        return event(errors.envelope(error))

    def _opening(self, index: int) -> bytes:
        if index in self._begun:
            return b""
        self._begun.add(index)
        choice = self._shape.opening(index)
        return b"" if choice is None else self._event(choice)

    def _event(self, choice: Json, beside: Json | None = None) -> bytes:
        return event({**self._chunk, "choices": [choice], **self._usage, **(beside or {})})


class EventStream(Response):
    """Sends a run's events as they come. Owns the run and the account: both are closed when it ends, whichever way."""

    media_type = "text/event-stream"

    def __init__(
        self, run: Run, first: Sequence[Step], writer: ChunkWriter, account: Account, *,
        sequences_per_prompt: int, deadline: float, timeout_s: float, headers: Mapping[str, str],
        keep_alive_s: float = KEEP_ALIVE_S,
    ) -> None:
        """`first`: steps already taken; `deadline`: on the event loop's clock."""
        self.status_code = 200
        self.background: BackgroundTask | None = None
        self.body = b""
        self.init_headers({**HEADERS, **headers})
        del self.headers["content-length"]
        self._run, self._first, self._writer, self._account = run, first, writer, account
        self._sequences_per_prompt = sequences_per_prompt
        self._deadline, self._timeout_s, self._keep_alive_s = deadline, timeout_s, keep_alive_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        account = self._account
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async with asyncio.timeout_at(self._deadline):
                await while_connected(receive, self._write(send))
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            first = self._run.finished[0]
            account.close(200, first.reason, usage=self._run.usage(self._sequences_per_prompt), queue_s=first.queue_s)
        except errors.ClientGone as gone:
            account.close(gone.status, "cancelled", error=gone.code)
        except TimeoutError:
            await self._fail(send, errors.RequestTimeout(self._timeout_s))
        except OSError:                    # a server that tells of a hang-up by raising
            account.close(499, "cancelled", error="client_closed_request")
        except RuntimeFault as fault:
            await self._fail(send, errors.of_fault(fault))
        except asyncio.CancelledError:     # the server stops, and has waited long enough
            account.close(499, "cancelled", error="server_stopped")
            await self._fail(send, errors.of_fault(EngineUnavailable("the server is shutting down: send the request again")))
            raise
        except Exception:
            log.exception("the stream of %s failed", account.request_id)
            await self._fail(send, errors.internal_error())
        finally:
            await self._run.close()
            account.close(499, "cancelled", error="server_stopped")

    async def _write(self, send: Send) -> None:
        steps = self._first
        while steps:
            data = b"".join([self._written(step) for step in steps])
            if data:
                await send({"type": "http.response.body", "body": data, "more_body": True})
            steps = await self._next_steps(send)
        data = self._writer.closing(self._run.usage(self._sequences_per_prompt))
        await send({"type": "http.response.body", "body": data, "more_body": True})

    def _written(self, step: Step) -> bytes:
        index, happened = step
        if isinstance(happened, Delta):
            self._account.completion_tokens += len(happened.token_ids)
        return self._writer.step(index, happened)

    async def _next_steps(self, send: Send) -> Sequence[Step]:
        """The run's next steps, with a comment to the client whenever it has been silent for long."""
        while True:
            try:
                async with asyncio.timeout(self._keep_alive_s):
                    return await self._run.take()
            except TimeoutError:
                await send({"type": "http.response.body", "body": PING, "more_body": True})

    async def _fail(self, send: Send, error: errors.ApiError) -> None:
        """One error event, then the end without [DONE]."""
        self._account.close(200, "error", error=error.code)
        if self._writer.closed:            # the answer was complete, its last bytes were not taken
            return
        try:
            async with asyncio.timeout(LAST_WORD_S):
                await send({"type": "http.response.body", "body": self._writer.failing(error), "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except (TimeoutError, OSError):
            log.info("the client of %s did not take its error", self._account.request_id)
