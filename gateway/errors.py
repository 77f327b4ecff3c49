"""Every error that leaves the gateway, in OpenAI's envelope.

    {"error": {"message": ..., "type": ..., "param": ..., "code": ...}}

    ApiError            an error with its HTTP status; subclasses name the common ones
    of_fault            the ApiError of a fault that the runtime reports
    of_validation       the ApiError of a body that does not fit its wire model
    install             makes an application answer with nothing else

All four keys are always there. `message` says what, where and what to do; of the caller's text it repeats a name at most.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from runtime.errors import RuntimeFault

RETRY_AFTER_S = 2
MAX_MESSAGE_CHARACTERS = 2000
# What SDKs would repeat in vain: the same request would fail the same way.
_DETERMINISTIC_CODES = frozenset({"internal_error", "request_faulted", "model_unreadable", "request_timeout"})
_TYPES = {401: "invalid_request_error", 403: "permission_error", 408: "timeout", 429: "requests", 504: "timeout"}


class ApiError(Exception):
    """An answer other than 2xx. `headers` are sent with it."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        type: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message if len(message) <= MAX_MESSAGE_CHARACTERS else message[:MAX_MESSAGE_CHARACTERS] + " …"
        self.code = code
        self.param = param
        self.type = type or _TYPES.get(status) or ("server_error" if status >= 500 else "invalid_request_error")
        self.headers = {**_retry_headers(status, code), **(headers or {})}


class InvalidRequest(ApiError):
    """400: the body says something that can't be done."""

    def __init__(self, message: str, param: str | None = None, code: str | None = "invalid_value") -> None:
        super().__init__(400, message, code=code, param=param)


class Unsupported(InvalidRequest):
    """400: a known parameter that this server can't honour and must not ignore."""

    def __init__(self, param: str, why: str) -> None:
        super().__init__(f"Unsupported parameter: '{param}'. {why}", param, "unsupported_parameter")


class Unauthorised(ApiError):
    def __init__(self, message: str) -> None:
        super().__init__(401, message, code="invalid_api_key", headers={"www-authenticate": "Bearer"})


class OperatorOnly(ApiError):
    """403: what only an operator may do, on a gateway that knows none."""

    def __init__(self) -> None:
        super().__init__(403, "This is for the operator, and no admin_key is set: start the server with one.", code="no_operator")


class ModelNotFound(ApiError):
    def __init__(self, wanted: str, served: str) -> None:
        shown = wanted if len(wanted) <= 100 else wanted[:100] + "…"
        super().__init__(
            404, f"The model '{shown}' does not exist here. This server serves '{served}'.",
            code="model_not_found", param="model")


class BodyTooLarge(ApiError):
    def __init__(self, limit_bytes: int) -> None:
        super().__init__(
            413, f"The request body is larger than the {limit_bytes} bytes that this server takes (setting max_body_bytes).",
            code="request_too_large")


class RequestTimeout(ApiError):
    def __init__(self, limit_s: float) -> None:
        super().__init__(
            504, f"The answer was not complete after {limit_s:g} seconds (setting request_timeout_s) and was given up.",
            code="request_timeout")


class Draining(ApiError):
    """503: the gateway is about to end, or an operator keeps it from taking requests."""

    def __init__(self) -> None:
        super().__init__(503, "This server takes no new requests: it finishes those it has. Send the request to another one, "
                              "or again in a moment.", code="draining")


class ClientGone(ApiError):
    """The caller hung up. Nobody reads this answer; the ledger does."""

    def __init__(self) -> None:
        super().__init__(499, "The client closed the connection before the answer was complete.", code="client_closed_request")


def _retry_headers(status: int, code: str | None) -> dict[str, str]:
    if code in _DETERMINISTIC_CODES:
        return {"x-should-retry": "false"}
    return {"retry-after": str(RETRY_AFTER_S)} if status in (502, 503) else {}


def of_fault(fault: RuntimeFault) -> ApiError:
    return ApiError(fault.status, str(fault), code=fault.code, param=fault.param)


def internal_error() -> ApiError:
    """What the caller learns of a bug: nothing but that it is ours."""
    message = "The server met an error of its own. The log names it by this answer's x-request-id."
    return ApiError(500, message, code="internal_error")


def envelope(error: ApiError) -> dict[str, Any]:
    return {"error": {"message": error.message, "type": error.type, "param": error.param, "code": error.code}}


def response(error: ApiError) -> JSONResponse:
    return JSONResponse(envelope(error), status_code=error.status, headers=error.headers)


_UNION_BRANCH = re.compile(r"str|int|float|bool|dict|none|constrained-\w+|.*\[.*|[A-Z]\w*")
_CODES = {"missing": "missing_required_parameter", "extra_forbidden": "unknown_parameter"}


def of_validation(error: ValidationError | RequestValidationError) -> ApiError:
    """The error that lies deepest in the body, named by its path there: `messages[0].role`."""
    problems: Sequence[Any] = (
        error.errors(include_url=False, include_input=False, include_context=False)
        if isinstance(error, ValidationError) else error.errors())
    # Of a union each branch complains; the branch whose type did fit has the better complaint.
    worst = max(problems, key=lambda problem: (len(problem["loc"]), not problem["type"].endswith("_type")))
    param = _path(worst["loc"]) or None
    code = _CODES.get(worst["type"], "invalid_type" if worst["type"].endswith("_type") else "invalid_value")
    if code == "missing_required_parameter":
        return InvalidRequest(f"Missing required parameter: '{param}'.", param, code)
    if code == "unknown_parameter":
        return InvalidRequest(f"Unknown parameter: '{param}'.", param, code)
    said = [worst["msg"]]
    if code == "invalid_type":
        said += [p["msg"] for p in problems if len(p["loc"]) == len(worst["loc"]) and _path(p["loc"]) == (param or "")]
    return InvalidRequest(f"Invalid value for '{param or 'body'}': {'; or: '.join(dict.fromkeys(said))}.", param, code)


def _path(loc: Sequence[int | str]) -> str:
    """pydantic's location without the names of the union's branches that it tried."""
    path = ""
    for part in loc:
        if isinstance(part, int):
            path += f"[{part}]"
        elif not _UNION_BRANCH.fullmatch(part) and part != "body":
            path += f".{part}" if path else part
    return path[:200]


def install(app: FastAPI) -> None:
    """Answer all errors of `app` in the envelope, the framework's own included."""

    async def api_error(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, ApiError)
        return response(error)

    async def fault(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RuntimeFault)
        return response(of_fault(error))

    async def validation(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return response(of_validation(error))

    async def http(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        return response(_of_http(request, error))

    app.add_exception_handler(ApiError, api_error)
    app.add_exception_handler(RuntimeFault, fault)
    app.add_exception_handler(RequestValidationError, validation)
    app.add_exception_handler(HTTPException, http)


def _of_http(request: Request, error: HTTPException) -> ApiError:
    path = request.url.path[:200]
    if error.status_code == 404:
        message = f"Unknown request URL: {request.method} {path}. See /docs."
        return ApiError(404, message, code="unknown_url", headers=error.headers)
    if error.status_code == 405:
        message = f"Not allowed to {request.method} on {path}."
        return ApiError(405, message, code="method_not_allowed", headers=error.headers)
    return ApiError(error.status_code, str(error.detail), headers=error.headers)
