"""What an operator can do with a running gateway: GET /v1/engine, and POST /v1/engine/drain, resume, sleep and wake.

Closed unless the setting `admin_key` is set, and open to that key alone: no tenant's key is an operator's.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends, Request

from gateway.admission import authorise_operator
from gateway.api.services import Services, services_of

router = APIRouter(prefix="/v1/engine", tags=["operation"], dependencies=[Depends(authorise_operator)])


@router.get("", summary="How the engine is")
async def status(request: Request) -> dict[str, Any]:
    return _status(services_of(request))


@router.post("/drain", summary="Take no new requests; those that have begun go on")
async def drain(request: Request) -> dict[str, Any]:
    services = services_of(request)
    services.drain.begin()
    return _status(services)


@router.post("/resume", summary="Take requests again")
async def resume(request: Request) -> dict[str, Any]:
    services = services_of(request)
    services.drain.end()
    return _status(services)


@router.post("/sleep", summary="End the engine process and give its memory back (409 while requests are in it)")
async def sleep(request: Request) -> dict[str, Any]:
    services = services_of(request)
    await services.engine.sleep()
    return _status(services)


@router.post("/wake", summary="Start the engine again; answers when it is ready")
async def wake(request: Request) -> dict[str, Any]:
    services = services_of(request)
    await services.engine.wake()
    return _status(services)


def _status(services: Services) -> dict[str, Any]:
    engine = services.engine
    return {
        "status": services.state, "takes_requests": services.takes_requests, "open_requests": services.drain.n_open,
        "model": engine.model.name if engine.model else None, "epoch": engine.model.epoch if engine.model else None}
