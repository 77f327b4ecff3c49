"""What holds for every answer, whatever the route: plain ASGI layers around the application.

    ResponseShell   an id and the time taken on every answer, safe headers, and an envelope for what nobody caught
    BodyLimit       no body beyond the limit is ever held in memory

Plain ASGI, not framework middleware: those stand between a stream and its client and hide the disconnect.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.errors import BodyTooLarge, internal_error, response

log = logging.getLogger("turnstile.gateway")

LINGER_S = 2.0
_SANE_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_SAFE_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    # Own scripts only, none inline: model output and tenant names are shown on pages.
    "content-security-policy": (
        "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
}


class ResponseShell:
    """Puts x-request-id, openai-processing-ms and the safe headers on every answer; a bug becomes a 500 in the envelope."""

    def __init__(self, app: ASGIApp, clock: Callable[[], float], new_id: Callable[[], str]) -> None:
        self._app = app
        self._clock = clock
        self._new_id = new_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = self._clock()
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _SANE_ID.fullmatch(given) else f"req_{self._new_id()}"
        scope.setdefault("state", {})["request_id"] = request_id
        started = False

        async def send_in_shell(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                headers["x-request-id"] = request_id
                headers["openai-processing-ms"] = str(round((self._clock() - began) * 1000))
                for name, value in _SAFE_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self._app(scope, receive, send_in_shell)
        except Exception:
            log.exception("request %s to %s failed", request_id, scope["path"])
            if started:
                raise                      # too late for a status: the server closes the connection
            await response(internal_error())(scope, receive, send_in_shell)


class BodyLimit:
    """Refuses a body longer than `limit_bytes` with 413: at once where its length is announced, else when it gets there."""

    def __init__(self, app: ASGIApp, limit_bytes: int) -> None:
        self._app = app
        self._limit_bytes = limit_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = _CountedBody(self._limit_bytes, receive, send)
        announced = Headers(scope=scope).get("content-length", "")
        if announced.isdigit() and int(announced) > self._limit_bytes:
            body.exceeded = True
            await response(self._refusal())(scope, body.receive, body.send)
            return
        await self._app(scope, body.receive, body.send)

    def _refusal(self) -> BodyTooLarge:
        return BodyTooLarge(self._limit_bytes)


class _CountedBody:
    """One request's channels. Reading past the limit raises BodyTooLarge, and the answer to that lingers."""

    def __init__(self, limit_bytes: int, receive: Receive, send: Send) -> None:
        self._limit_bytes = limit_bytes
        self._receive = receive
        self._send = send
        self._read_bytes = 0
        self.exceeded = False

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._read_bytes += len(message.get("body", b""))
            if self._read_bytes > self._limit_bytes:
                self.exceeded = True
                raise BodyTooLarge(self._limit_bytes)
        return message

    async def send(self, message: Message) -> None:
        if not self.exceeded:
            await self._send(message)
        elif message["type"] == "http.response.start":
            MutableHeaders(raw=message["headers"])["connection"] = "close"
            await self._send(message)
        elif not message.get("more_body", False):
            await self._send({**message, "more_body": True})
            await self._linger()
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _linger(self) -> None:
        """Read on for a moment and throw away: closing at once would reset the connection under the answer."""
        try:
            async with asyncio.timeout(LINGER_S):
                while (message := await self._receive())["type"] == "http.request" and message.get("more_body", False):
                    pass
        except TimeoutError:
            return
