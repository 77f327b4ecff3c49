"""POST /v1/completions."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from gateway.api.answer import Dialect, answer
from gateway.api.intake import completion_prompts
from gateway.api.openapi import body_of
from gateway.api.render import CompletionShape
from gateway.api.wire import CompletionBody

router = APIRouter(tags=["generation"])

COMPLETION = Dialect("completions", "cmpl-", CompletionBody, completion_prompts, CompletionShape)


@router.post("/v1/completions", summary="The continuation of a text", openapi_extra=body_of(
    CompletionBody, prompt="The capital of France is", max_tokens=10, temperature=0))
async def completions(request: Request) -> Response:
    """Continues each prompt; with several prompts the choices of the first come first."""
    return await answer(request, COMPLETION)
