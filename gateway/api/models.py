"""GET /v1/models and /v1/models/{id}."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends, Request

from gateway.admission import authorise
from gateway.api.services import Services, services_of
from runtime.protocol import ModelInfo

router = APIRouter(tags=["models"], dependencies=[Depends(authorise)])


def _model(services: Services, model: ModelInfo) -> dict[str, Any]:
    return {
        "id": model.name, "object": "model", "created": services.started_s, "owned_by": "turnstile",
        "max_model_len": model.context_tokens,
    }


@router.get("/v1/models", summary="The models that are served")
async def list_models(request: Request) -> dict[str, Any]:
    services = services_of(request)
    model, _ = services.model()
    return {"object": "list", "data": [_model(services, model)]}


@router.get("/v1/models/{model_id:path}", summary="One model")
async def get_model(model_id: str, request: Request) -> dict[str, Any]:
    services = services_of(request)
    model, _ = services.model_named(model_id)
    return _model(services, model)
