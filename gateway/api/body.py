"""Reads a request's body as JSON, strictly: what two readers could understand differently is refused.

Refused with 400 and the place: invalid UTF-8, invalid JSON, NaN and Infinity, numbers beyond a double, a key given
twice in one object, text with half a surrogate pair, nesting deeper than MAX_DEPTH. The order of keys is kept.
"""

from __future__ import annotations

import asyncio
import gc
import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from fastapi import Request

from gateway.errors import ApiError, ClientGone, InvalidRequest

MAX_DEPTH = 200
BODY_TIMEOUT_S = 60.0
SMALL_BODY_BYTES = 65_536
_CODE = "invalid_json"
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_JSON_TYPE = re.compile(r"application/(.+\+)?json", re.IGNORECASE)


async def read_json(request: Request) -> dict[str, Any]:
    """The body, which must be a JSON object. Raises ApiError."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip()
    if not _JSON_TYPE.fullmatch(media_type):
        # A form or plain text could be sent by any web page without the browser asking us first.
        raise ApiError(
            415, "Send the body as JSON, with the header 'content-type: application/json'.", code="unsupported_media_type")
    raw = await _read(request)
    # Reading a large body takes a part of a second, in which other streams must go on.
    value = parse_json(raw) if len(raw) <= SMALL_BODY_BYTES else await asyncio.to_thread(parse_json, raw)
    if not isinstance(value, dict):
        raise InvalidRequest("The body must be a JSON object.", code=_CODE)
    return value


async def _read(request: Request) -> bytes:
    chunks = []
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            while True:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone
                chunks.append(message.get("body", b""))
                if not message.get("more_body", False):
                    return b"".join(chunks)
    except TimeoutError:
        raise ApiError(408, f"The body did not arrive within {BODY_TIMEOUT_S:g} seconds.", code="request_timeout") from None


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Nothing that is being read is garbage, and looking for some at every thousandth container is nine tenths of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def parse_json(raw: bytes) -> Any:
    """`raw` as a JSON value. Raises InvalidRequest that says where it is none."""
    try:
        with _collector_paused():
            value = _DECODER.decode(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"The body is not valid UTF-8 at byte {error.start}.", code=_CODE) from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno} (character {error.pos})"
        raise InvalidRequest(f"The body is not valid JSON: {error.msg} at {place}.", code=_CODE) from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError:                     # Python's limit on the digits of an integer
        raise InvalidRequest("The body holds a number with too many digits.", code=_CODE) from None
    _check_depth(value)
    if _SURROGATE_ESCAPE.search(raw):
        _check_surrogates(value)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise InvalidRequest(f"The body is not valid JSON here: the key {twice[:100]!r} stands twice in one object.", code=_CODE)
    return made


def _number(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise InvalidRequest(f"The body holds the number {text[:40]}, which is too large.", code=_CODE)
    return value


def _constant(text: str) -> NoReturn:
    raise InvalidRequest(f"The body is not valid JSON: {text} is no JSON value.", code=_CODE)


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_number, parse_constant=_constant)


def _too_deep() -> InvalidRequest:
    return InvalidRequest(f"The body is nested deeper than {MAX_DEPTH} levels.", code=_CODE)


def _check_depth(value: Any) -> None:
    """Everything behind this may recurse: MAX_DEPTH keeps it far from the interpreter's own limit."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise _too_deep()
        level = [
            child
            for container in level
            for child in (container.values() if isinstance(container, dict) else container if isinstance(container, list) else ())
            if isinstance(child, dict | list)
        ]


def _check_surrogates(value: Any) -> None:
    """Half a surrogate pair is no character: no tokenizer and no UTF-8 stream can take it."""
    stack: list[tuple[str, Any]] = [("", value)]
    while stack:
        path, item = stack.pop()
        if isinstance(item, str) and not _encodable(item):
            raise InvalidRequest(f"The text at '{path}' holds half a surrogate pair, which is no character.", path or None)
        if isinstance(item, list):
            stack.extend((f"{path}[{i}]", child) for i, child in enumerate(item))
        if isinstance(item, dict):
            for key, child in item.items():
                if not _encodable(key):
                    raise InvalidRequest(f"A key at '{path}' holds half a surrogate pair, which is no character.", path or None)
                stack.append((f"{path}.{key}" if path else key, child))


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
