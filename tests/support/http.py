"""Talking to an application without a network: by httpx, or message by message."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
from fastapi import FastAPI

CHAT = "/v1/chat/completions"
HELLO = [{"role": "user", "content": "hello"}]


def client_of(app: FastAPI, **headers: str) -> httpx.AsyncClient:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway.test", headers=named)


def chat_body(**fields: Any) -> dict[str, Any]:
    return {"model": "memory", "messages": HELLO, **fields}


def events(text: str) -> list[Any]:
    """The data of a stream's events in order; "[DONE]" stays a text."""
    found = []
    for block in text.split("\n\n"):
        if block and not block.startswith(":"):
            assert block.startswith("data: ") and "\n" not in block, block
            data = block.removeprefix("data: ")
            found.append(data if data == "[DONE]" else json.loads(data))
    return found


class Caller:
    """One request of raw ASGI messages, whose caller can hang up at any moment, or stop reading."""

    def __init__(self, app: FastAPI, path: str, body: dict[str, Any]) -> None:
        raw = json.dumps(body).encode()
        self.sent: list[dict[str, Any]] = []
        self.gone = asyncio.Event()
        self.reads = asyncio.Event()
        self.reads.set()
        self.parts = [{"type": "http.request", "body": raw, "more_body": False}]
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
            "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
            "headers": [(b"content-type", b"application/json"), (b"content-length", str(len(raw)).encode())],
            "client": ("test", 1), "server": ("gateway.test", 80),
        }
        self.task = asyncio.create_task(app(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        if self.parts:
            return self.parts.pop(0)
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        await self.reads.wait()
        self.sent.append(message)

    @property
    def text(self) -> str:
        return b"".join(message.get("body", b"") for message in self.sent).decode()

    def hang_up(self) -> None:
        self.gone.set()


async def until(condition: Any, within_s: float = 5.0) -> None:
    """Wait until `condition()` holds."""
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(0.002)
