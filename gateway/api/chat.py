"""POST /v1/chat/completions."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from gateway.api.answer import Dialect, answer
from gateway.api.intake import Prompt, chat_prompt
from gateway.api.openapi import body_of
from gateway.api.render import ChatShape
from gateway.api.wire import ChatBody
from gateway.engine_port import Tokenizer
from runtime.protocol import ModelInfo

router = APIRouter(tags=["generation"])


async def _prompts(body: ChatBody, tokenizer: Tokenizer, model: ModelInfo) -> list[Prompt]:
    return [await chat_prompt(body, tokenizer, model)]


CHAT = Dialect("chat.completions", "chatcmpl-", ChatBody, _prompts, ChatShape)


@router.post("/v1/chat/completions", summary="The next message of a conversation", openapi_extra=body_of(
    ChatBody, messages=[{"role": "user", "content": "Name a city in France."}], max_tokens=40, temperature=0))
async def chat_completions(request: Request) -> Response:
    """Answers in one body, or in server-sent events with `stream: true`."""
    return await answer(request, CHAT)
