"""The dashboard's routes. Including `router` is all an application needs: it brings its own lifespan.

Reads `app.state.ledger`, `app.state.engine` and, where there is one, `app.state.admission`. Where API keys are
set, every page but the sign-in form and the static files asks for one.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from urllib.parse import parse_qs

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from gateway.admission import Admission, authorise
from gateway.dashboard.board import MAX_LISTENERS, Board
from gateway.dashboard.page import Pages, StaticFile, first_hit_command, static_files
from gateway.dashboard.series import close_steps_forever
from gateway.dashboard.sessions import COOKIE, LIFETIME_S, Sessions
from gateway.errors import ApiError, Unauthorised
from gateway.ledger import Ledger

MAX_FORM_BYTES = 4096
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "cache-control": "no-store",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class Dashboard:
    """What the routes of one application share."""

    board: Board
    sessions: Sessions
    pages: Pages
    files: dict[str, StaticFile]


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks at the page. `tenant` None: a gateway without keys, where everything is everyone's."""

    tenant: str | None
    by_cookie: bool = False


def dashboard_of(app: FastAPI) -> Dashboard:
    """The application's dashboard, made at the first call."""
    made: Dashboard | None = getattr(app.state, "dashboard", None)
    if made is None:
        ledger: Ledger = app.state.ledger
        made = app.state.dashboard = Dashboard(
            Board(ledger, app.state.engine, ledger.clock),
            Sessions(secrets.token_bytes(32), ledger.wall_clock), Pages(), static_files())
    return made


def end_streams(app: FastAPI) -> None:
    """End all event streams and admit no more. A server calls this when it begins to shut down: it would wait for them."""
    dashboard_of(app).board.close()


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Keeps the history while the application runs; at its end, ends all event streams."""
    board = dashboard_of(app).board
    history = asyncio.create_task(close_steps_forever(board.close_step))
    try:
        yield
    finally:
        board.close()
        history.cancel()
        with suppress(asyncio.CancelledError):
            await history


router = APIRouter(prefix="/dashboard", include_in_schema=False, lifespan=lifespan)
front_door = APIRouter(include_in_schema=False)


@front_door.get("/")
async def enter(request: Request) -> Response:
    """Whoever types the bare address wants to see something."""
    return RedirectResponse(_base(request), status_code=303)


@router.get("")
async def show(request: Request) -> Response:
    """The page, with the numbers of this moment in it."""
    viewer = _viewer(request)
    if viewer is None:
        return RedirectResponse(f"{_base(request)}/login", status_code=303, headers=HEADERS)
    dashboard, engine = dashboard_of(request.app), request.app.state.engine
    command = first_hit_command(
        str(request.base_url).rstrip("/"), engine.model.name if engine.model else "MODEL", with_key=viewer.tenant is not None)
    page = dashboard.pages.dashboard(
        dashboard.board.view(viewer.tenant), _base(request), command, signed_in=viewer.by_cookie)
    return HTMLResponse(page, headers=HEADERS)


@router.get("/events")
async def events(request: Request) -> Response:
    """Server-sent events: the sections of the page that changed, at most once a second."""
    viewer = _viewer(request)
    if viewer is None:
        raise Unauthorised("Sign in at /dashboard/login, or send the header 'Authorization: Bearer YOUR_KEY'.")
    board = dashboard_of(request.app).board
    if not board.admit_listener():
        raise ApiError(
            503, f"All {MAX_LISTENERS} places for live dashboards are taken. Close one, or reload the page for new numbers.",
            code="too_many_listeners")
    return EventStream(board, viewer.tenant)


class EventStream(StreamingResponse):
    """Holds a listener's place until the stream has ended, whichever side ended it."""

    def __init__(self, board: Board, tenant: str | None) -> None:
        headers = HEADERS | {"x-accel-buffering": "no"}
        super().__init__(board.events(tenant), media_type="text/event-stream", headers=headers)
        self._board = board

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._board.dismiss_listener()


@router.get("/static/{name}")
async def static(request: Request, name: str) -> Response:
    """A file of the page; the browser asks again each time and is told if nothing changed."""
    file = dashboard_of(request.app).files.get(name)
    if file is None:
        raise ApiError(404, "The dashboard has no file of this name.", code="unknown_url")
    headers = HEADERS | {"cache-control": "no-cache", "etag": file.etag}
    if request.headers.get("if-none-match") == file.etag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)


@router.get("/login")
async def login_form(request: Request) -> Response:
    if _viewer(request) is not None:
        return RedirectResponse(_base(request), status_code=303, headers=HEADERS)
    return HTMLResponse(dashboard_of(request.app).pages.login(_base(request)), headers=HEADERS)


@router.post("/login")
async def login(request: Request) -> Response:
    """Exchange an API key for a session cookie that scripts can't read and other sites can't send."""
    _refuse_other_sites(request)
    dashboard, base = dashboard_of(request.app), _base(request)
    admission: Admission | None = getattr(request.app.state, "admission", None)
    if admission is None or admission.open:
        return RedirectResponse(base, status_code=303, headers=HEADERS)
    tenant = admission.tenant_of_key(await _form_key(request))
    if tenant is None:
        page = dashboard.pages.login(base, "This is not one of the gateway's API keys.")
        return HTMLResponse(page, status_code=401, headers=HEADERS)
    answer = RedirectResponse(base, status_code=303, headers=HEADERS)
    answer.set_cookie(
        COOKIE, dashboard.sessions.issue(tenant.name), max_age=LIFETIME_S, path=base,
        httponly=True, samesite="strict", secure=request.url.scheme == "https")
    return answer


@router.post("/logout")
async def logout(request: Request) -> Response:
    _refuse_other_sites(request)
    base = _base(request)
    answer = RedirectResponse(f"{base}/login", status_code=303, headers=HEADERS)
    answer.delete_cookie(COOKIE, path=base, httponly=True, samesite="strict")
    return answer


def _viewer(request: Request) -> Viewer | None:
    """Who asks; None: a key is needed and none was shown."""
    admission: Admission | None = getattr(request.app.state, "admission", None)
    if admission is None or admission.open:
        return Viewer(None)
    tenant = dashboard_of(request.app).sessions.tenant(request.cookies.get(COOKIE))
    if tenant is not None:
        return Viewer(tenant, by_cookie=True)
    try:
        return Viewer(authorise(request).name)
    except Unauthorised:
        return None


def _base(request: Request) -> str:
    return f"{request.scope.get('root_path', '')}/dashboard"


def _refuse_other_sites(request: Request) -> None:
    """A form on another site must not sign anyone in or out."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise ApiError(403, "This form can only be sent from the dashboard itself.", code="cross_site_request")


async def _form_key(request: Request) -> str:
    """The field `key` of a small URL-encoded form; "" if there is none."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_FORM_BYTES:
            raise ApiError(413, f"The sign-in form takes {MAX_FORM_BYTES} bytes at most.", code="request_too_large")
    return parse_qs(body.decode("utf-8", "replace")).get("key", [""])[0].strip()
