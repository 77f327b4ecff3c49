"""The API's description and the page that shows it, from this server alone: no file comes from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import FileResponse
from pydantic import BaseModel

from gateway import __version__
from gateway.model_sources import EMBEDDED

STATIC = Path(__file__).parent.parent / "static"
router = APIRouter(include_in_schema=False)
_REF = "#/components/schemas/{model}"
_ERROR_SCHEMA = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
        }
    },
}


def body_of(model: type[BaseModel], **example: Any) -> dict[str, Any]:
    """A route's description of a body that it reads by itself, with a body of the embedded model to try."""
    error = {"content": {"application/json": {"schema": {"$ref": _REF.format(model="Error")}}}}
    schema = {"$ref": _REF.format(model=model.__name__)}
    body = {"content": {"application/json": {"schema": schema, "example": {"model": EMBEDDED.name, **example}}}}
    return {
        "requestBody": {"required": True, **body},
        "responses": {
            "400": {"description": "The body says something that can't be done; `param` names the place", **error},
            "503": {"description": "The engine is not ready, or its queue is full; see retry-after", **error},
        },
    }


def describe(app: FastAPI, bodies: list[type[BaseModel]]) -> None:
    """Let `app.openapi()` describe `bodies`, which its routes read by themselves."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(title="Turnstile", version=__version__, routes=app.routes,
                               description="Structured, cached text generation in OpenAI's protocol.")
            schemas = made.setdefault("components", {}).setdefault("schemas", {})
            schemas["Error"] = _ERROR_SCHEMA
            for body in bodies:
                schema = body.model_json_schema(ref_template=_REF)
                schemas.update(schema.pop("$defs", {}))
                schemas[body.__name__] = schema
            made["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
            made["security"] = [{"key": []}]
            app.openapi_schema = made
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


@router.get("/docs")
async def docs() -> FileResponse:
    return FileResponse(STATIC / "docs.html", media_type="text/html")
