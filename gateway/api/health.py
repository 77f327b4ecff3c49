"""GET /health, /health/live, /health/ready, /version and /metrics."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, PlainTextResponse

from gateway import __version__, metrics
from gateway.admission import authorise
from gateway.api.services import services_of
from gateway.errors import RETRY_AFTER_S

router = APIRouter(tags=["operation"])
_OPEN: dict[str, Any] = {"security": []}       # these tell nothing of anyone's requests and need no key


@router.head("/health/live", include_in_schema=False)
@router.get("/health/live", summary="Whether the gateway answers", openapi_extra=_OPEN)
async def live() -> dict[str, str]:
    return {"status": "live"}


@router.head("/health/ready", include_in_schema=False)
@router.head("/health", include_in_schema=False)
@router.get("/health/ready", summary="Whether requests are taken (503 while they are not)", openapi_extra=_OPEN)
@router.get("/health", summary="As /health/ready", openapi_extra=_OPEN)
async def ready(request: Request) -> JSONResponse:
    services = services_of(request)
    model = services.engine.model
    told = {"status": services.state, "model": model.name if model else None}
    if services.takes_requests:
        return JSONResponse(told)
    return JSONResponse(told, status_code=503, headers={"retry-after": str(RETRY_AFTER_S)})


@router.get("/version", summary="The gateway's version", openapi_extra=_OPEN)
async def version() -> dict[str, Any]:
    return {"name": "turnstile", "version": __version__}


@router.get("/metrics", summary="Numbers for Prometheus", dependencies=[Depends(authorise)])
async def prometheus(request: Request) -> PlainTextResponse:
    services = services_of(request)
    engine = services.engine
    text = metrics.render(services.ledger.snapshot(), engine.stats, engine.state, engine.model, __version__)
    return PlainTextResponse(text, media_type=metrics.CONTENT_TYPE)
