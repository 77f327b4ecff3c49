"""Puts the gateway together: routes, layers, and the engine's life."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles

from gateway import __version__, dashboard, errors
from gateway.admission import Admission
from gateway.api import chat, completions, health, models, openapi, operate
from gateway.api.constraints import ConstraintChecker
from gateway.api.services import Services
from gateway.api.wire import ChatBody, CompletionBody
from gateway.drain import Drain
from gateway.engine_port import Engine
from gateway.ledger import Ledger
from gateway.limits import BodyLimit, ResponseShell
from runtime.errors import RuntimeFault

if TYPE_CHECKING:
    from gateway.settings import Settings

log = logging.getLogger("turnstile.gateway")


def create_app(
    settings: Settings,
    engine: Engine,
    *,
    clock: Callable[[], float] = time.monotonic,
    wall_clock: Callable[[], float] = time.time,
    new_id: Callable[[], str] = lambda: secrets.token_hex(12),
) -> FastAPI:
    """The gateway's application in front of `engine`.

    An engine that is still to be started is started and stopped with the application, and the application answers
    (503) while it loads; one that the caller has started stays the caller's. `app.state` has `settings`, `engine`,
    `ledger`, `admission` and `drain`.
    """
    ledger = Ledger(clock, wall_clock)
    admission = Admission(settings.api_keys, settings.cache_secret.encode(), settings.admin_key)
    drain = Drain(lambda: ledger.n_open)
    checker = ConstraintChecker()
    app = FastAPI(title="Turnstile", version=__version__, docs_url=None, redoc_url=None, lifespan=_lifespan)
    app.state.settings, app.state.engine, app.state.ledger, app.state.admission = settings, engine, ledger, admission
    app.state.drain = drain
    app.state.services = Services(settings, engine, ledger, admission, checker, drain, new_id, int(wall_clock()))
    for router in (chat.router, completions.router, models.router, health.router, operate.router, openapi.router,
                   dashboard.router, dashboard.front_door):
        app.include_router(router)
    app.mount("/static", StaticFiles(directory=openapi.STATIC), name="static")
    openapi.describe(app, [ChatBody, CompletionBody])
    errors.install(app)
    app.add_middleware(BodyLimit, limit_bytes=settings.max_body_bytes)
    app.add_middleware(ResponseShell, clock=clock, new_id=new_id)
    return app


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    services: Services = app.state.services
    ours = services.engine.state == "starting"
    starting = asyncio.create_task(_start(services.engine)) if ours else None
    try:
        yield
    finally:
        if starting is not None:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            await services.engine.stop()
        services.checker.close()


async def _start(engine: Engine) -> None:
    """The engine's state tells the routes how it went."""
    try:
        await engine.start()
    except RuntimeFault as fault:
        log.debug("the engine could not start: %s", fault)      # who serves reads engine.failure, and tells it
