"""Bodies are read strictly."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st

from gateway.api import body
from gateway.api.body import MAX_DEPTH, parse_json
from gateway.errors import InvalidRequest
from tests.support.http import CHAT, Caller, chat_body

pytestmark = pytest.mark.anyio
JSON = {"content-type": "application/json"}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(
        st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner))


@given(json_values)
def test_what_is_json_reads_as_any_other_reader_reads_it(value: object) -> None:
    assert parse_json(json.dumps(value).encode()) == json.loads(json.dumps(value))
    assert parse_json(json.dumps(value, ensure_ascii=False).encode()) == json.loads(json.dumps(value))


def test_keys_keep_their_order() -> None:
    assert list(parse_json(b'{"z": 1, "a": 2, "m": 3}')) == ["z", "a", "m"]


@pytest.mark.parametrize(("raw", "said"), [
    (b"", "character 0"),
    (b'{"model": ', "line 1 column 11 (character 10)"),
    (b'{"a": 1,}', "character 8"),
    (b'{"a": 1}\n{"b": 2}', "line 2 column 1 (character 9)"),
    (b"{'a': 1}", "character 1"),
    (b'{"a": "line\nbreak"}', "character 11"),
    (b'{"a": NaN}', "NaN"),
    (b'{"a": -Infinity}', "-Infinity"),
    (b'{"a": 1e999}', "1e999"),
    (b'{"a": ' + b"9" * 5000 + b"}", "too many digits"),
    (b'{"a": {"b": 1, "c": 2, "b": 1}}', "'b' stands twice"),
    (b'{"a": "\xff"}', "UTF-8 at byte 7"),
    (b'{"a": "\xed\xa0\x80"}', "UTF-8 at byte 7"),
    (b'\xef\xbb\xbf{"a": 1}', "character 0"),
    (b'{"a": ["x", "\\ud83d"]}', "'a[1]'"),
    (b'{"\\udc00": 1}', "key"),
    (b"[" * 100_000, f"deeper than {MAX_DEPTH}"),
    (b'{"a":' * 100_000, f"deeper than {MAX_DEPTH}"),
    (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), f"deeper than {MAX_DEPTH}"),
])
def test_what_is_not_is_refused_with_its_place(raw: bytes, said: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_json(raw)
    assert said in refused.value.message
    assert refused.value.status == 400


def test_nesting_up_to_the_limit_is_read() -> None:
    assert parse_json(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH) == json.loads("[" * MAX_DEPTH + "]" * MAX_DEPTH)


def test_a_whole_surrogate_pair_is_a_character() -> None:
    assert parse_json(b'"\\ud83d\\ude00"') == "\N{GRINNING FACE}"


@pytest.mark.parametrize("raw", [b"[]", b'"text"', b"5", b"null"])
async def test_a_body_that_is_no_object_is_refused(client: httpx.AsyncClient, raw: bytes) -> None:
    answer = await client.post(CHAT, content=raw, headers=JSON)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_json")


async def test_half_a_surrogate_pair_in_a_message_is_a_400_that_names_it(client: httpx.AsyncClient) -> None:
    raw = json.dumps(chat_body(messages=[{"role": "user", "content": "a\ud800b"}])).encode()
    answer = await client.post(CHAT, content=raw, headers=JSON)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "messages[0].content")


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
async def test_a_body_that_any_web_page_could_send_is_refused(client: httpx.AsyncClient, media_type: str) -> None:
    answer = await client.post(CHAT, content=json.dumps(chat_body()), headers={"content-type": media_type})
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize("media_type", ["application/json; charset=utf-8", "Application/JSON", "application/vnd.x+json"])
async def test_json_by_any_of_its_names_is_read(client: httpx.AsyncClient, media_type: str) -> None:
    answer = await client.post(CHAT, content=json.dumps(chat_body()), headers={"content-type": media_type})
    assert answer.status_code == 200


async def test_a_body_that_does_not_arrive_is_given_up(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "BODY_TIMEOUT_S", 0.05)
    caller = Caller(app, CHAT, chat_body())
    caller.parts[0]["more_body"] = True
    await asyncio.wait_for(caller.task, 5)
    assert caller.sent[0]["status"] == 408
    assert json.loads(caller.text)["error"]["code"] == "request_timeout"


async def test_a_body_in_many_parts_is_one_body(app: FastAPI) -> None:
    caller = Caller(app, CHAT, chat_body())
    raw = caller.parts.pop()["body"]
    caller.parts.extend({"type": "http.request", "body": raw[i:i + 1], "more_body": i + 1 < len(raw)} for i in range(len(raw)))
    await caller.task
    assert caller.sent[0]["status"] == 200


async def test_a_large_body_is_read_like_a_small_one(client: httpx.AsyncClient) -> None:
    filler = {"metadata": ["x" * 10] * 20_000}
    assert (await client.post(CHAT, json=chat_body(**filler))).status_code == 200
    raw = json.dumps(chat_body(**filler)).encode().replace(b'"model": "memory"', b'"model": "memory", "model": "memory"')
    assert (await client.post(CHAT, content=raw, headers=JSON)).json()["error"]["code"] == "invalid_json"


async def test_text_of_any_script_and_control_characters_comes_back_whole(client: httpx.AsyncClient) -> None:
    said = "\N{GRINNING FACE} ünïcödé \u2028 \x00 \x7f \ufeff 漢字"
    answer = await client.post(CHAT, json=chat_body(messages=[{"role": "user", "content": said}]))
    assert answer.json()["choices"][0]["message"]["content"] == f"You said: {said}"
