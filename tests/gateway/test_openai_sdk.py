"""The official OpenAI client against the application, in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal

import httpx
import openai
import pytest
from fastapi import FastAPI
from pydantic import BaseModel

from gateway.app import create_app
from gateway.settings import Settings
from tests.gateway.conftest import SECRET
from tests.support.http import HELLO
from tests.support.memory_engine import MemoryEngine

pytestmark = pytest.mark.anyio
KEY = "key-of-alice"


class Bike(BaseModel):
    kind: Literal["road", "city"]
    gears: int
    electric: bool


def sdk(app: FastAPI, key: str = KEY) -> openai.AsyncOpenAI:
    http = httpx.AsyncClient(transport=httpx.ASGITransport(app))
    return openai.AsyncOpenAI(base_url="http://gateway.test/v1", api_key=key, http_client=http, max_retries=0)


@pytest.fixture
def app(engine: MemoryEngine) -> FastAPI:
    return create_app(Settings(cache_secret=SECRET, api_keys=(f"alice:{KEY}",)), engine)


@pytest.fixture
async def openai_client(app: FastAPI) -> AsyncIterator[openai.AsyncOpenAI]:
    async with sdk(app) as client:
        yield client


async def test_models_are_listed_and_found(openai_client: openai.AsyncOpenAI) -> None:
    assert [model.id async for model in openai_client.models.list()] == ["memory"]
    assert (await openai_client.models.retrieve("memory")).id == "memory"


async def test_a_chat_is_answered(openai_client: openai.AsyncOpenAI) -> None:
    answer = await openai_client.chat.completions.create(model="memory", messages=HELLO)
    assert answer.choices[0].message.content == "You said: hello"
    assert answer.usage.total_tokens == 39 and answer._request_id.startswith("req_")


async def test_the_stream_helper_ends_with_usage_and_one_role(openai_client: openai.AsyncOpenAI) -> None:
    async with openai_client.chat.completions.stream(
        model="memory", messages=HELLO, stream_options={"include_usage": True}
    ) as stream:
        kinds = [event.type async for event in stream]
        final = await stream.get_final_completion()
    assert "content.delta" in kinds and not any(kind.startswith("refusal") for kind in kinds)
    assert final.choices[0].message.role == "assistant"
    assert final.usage.prompt_tokens_details.cached_tokens == 0


async def test_parse_gives_an_object_of_the_schema(openai_client: openai.AsyncOpenAI) -> None:
    answer = await openai_client.chat.completions.parse(model="memory", messages=HELLO, response_format=Bike)
    assert answer.choices[0].message.parsed == Bike(kind="road", gears=1, electric=True)


async def test_parse_of_a_cut_answer_says_that_it_was_cut(openai_client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.LengthFinishReasonError) as cut:
        await openai_client.chat.completions.parse(model="memory", messages=HELLO, response_format=Bike, max_tokens=2)
    assert cut.value.completion.usage is not None


async def test_completions_are_answered(openai_client: openai.AsyncOpenAI) -> None:
    answer = await openai_client.completions.create(model="memory", prompt="hello", logprobs=1)
    assert answer.choices[0].text == "You said: hello"
    assert len(answer.choices[0].logprobs.tokens) == 15


@pytest.mark.parametrize(("fields", "kind", "code"), [
    ({"model": "other"}, openai.NotFoundError, "model_not_found"),
    ({"temperature": 9}, openai.BadRequestError, "invalid_value"),
    ({"messages": [{"role": "user", "content": "x" * 9000}]}, openai.BadRequestError, "context_length_exceeded"),
])
async def test_errors_come_as_the_clients_own(
    openai_client: openai.AsyncOpenAI, fields: dict[str, object], kind: type[openai.APIStatusError], code: str
) -> None:
    with pytest.raises(kind) as refused:
        await openai_client.chat.completions.create(**{"model": "memory", "messages": HELLO, **fields})
    assert refused.value.code == code and refused.value.type == "invalid_request_error"


async def test_a_wrong_key_is_an_authentication_error(app: FastAPI) -> None:
    async with sdk(app, "wrong") as client:
        with pytest.raises(openai.AuthenticationError):
            await client.chat.completions.create(model="memory", messages=HELLO)


async def test_a_failure_in_mid_stream_is_raised(openai_client: openai.AsyncOpenAI, engine: MemoryEngine) -> None:
    engine.fault_after, engine.token_delay_s = 3, 0.001
    stream = await openai_client.chat.completions.create(model="memory", messages=HELLO, stream=True)
    with pytest.raises(openai.APIError, match="this row raised"):
        async for _ in stream:
            pass
