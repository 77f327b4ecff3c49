"""The API's description, and a page that shows it with no other server's help."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import httpx
import jsonschema
import pytest

from gateway.api.openapi import STATIC
from tests.support.http import HELLO, chat_body

pytestmark = pytest.mark.anyio
VENDORED = STATIC / "vendor" / "swagger-ui"


async def test_the_page_and_all_that_it_loads_come_from_here(client: httpx.AsyncClient) -> None:
    page = (await client.get("/docs")).text
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert len(loaded) >= 4
    for address in loaded:
        assert address.startswith("/") and not address.startswith("//")
        assert (await client.get(address)).status_code == 200, address
    assert not re.search(r"<script(?![^>]*src=)", page)


async def test_the_description_names_every_route_of_the_api(client: httpx.AsyncClient) -> None:
    paths = (await client.get("/openapi.json")).json()["paths"]
    assert set(paths) == {
        "/v1/chat/completions", "/v1/completions", "/v1/models", "/v1/models/{model_id}",
        "/health", "/health/live", "/health/ready", "/version", "/metrics",
        "/v1/engine", "/v1/engine/drain", "/v1/engine/resume", "/v1/engine/sleep", "/v1/engine/wake"}


async def test_it_says_which_routes_need_no_key(client: httpx.AsyncClient) -> None:
    description = (await client.get("/openapi.json")).json()
    assert description["security"] == [{"key": []}]
    assert {path for path, verbs in description["paths"].items() if verbs.get("get", {}).get("security") == []} == {
        "/health", "/health/live", "/health/ready", "/version"}


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
async def test_the_example_of_a_body_can_be_sent_as_it_stands_but_for_the_model(client: httpx.AsyncClient, path: str) -> None:
    operation = (await client.get("/openapi.json")).json()["paths"][path]["post"]
    example = operation["requestBody"]["content"]["application/json"]["example"]
    assert example["model"] == "smollm2-135m-instruct"
    assert (await client.post(path, json={**example, "model": "memory"})).status_code == 200


async def test_every_reference_in_the_description_leads_somewhere(client: httpx.AsyncClient) -> None:
    answer = await client.get("/openapi.json")
    schemas = answer.json()["components"]["schemas"]
    references = set(re.findall(r'"#/components/schemas/([^"]+)"', answer.text))
    assert {"ChatBody", "CompletionBody", "Error"} <= references <= set(schemas)


@pytest.mark.parametrize(("body", "valid"), [
    (chat_body(temperature=0.5, stop=["a"], response_format={"type": "json_object"}), True),
    ({"messages": HELLO}, False),
    (chat_body(temperature="hot"), False),
    (chat_body(response_format={"type": "xml"}), False),
])
async def test_the_described_body_is_the_one_that_is_taken(
    client: httpx.AsyncClient, body: dict[str, object], valid: bool
) -> None:
    description = (await client.get("/openapi.json")).json()
    schema = {"$ref": "#/components/schemas/ChatBody", "components": description["components"]}
    assert jsonschema.Draft202012Validator(schema).is_valid(body) == valid
    assert ((await client.post("/v1/chat/completions", json=body)).status_code == 200) == valid


def test_vendored_files_are_those_that_were_checked_in() -> None:
    lines = (VENDORED / "SHA256SUMS").read_text().splitlines()
    assert len(lines) == 6
    for line in lines:
        digest, name = line.split()
        assert hashlib.sha256((VENDORED / name).read_bytes()).hexdigest() == digest, name


def test_vendored_files_have_their_licence_and_version() -> None:
    assert "Apache License" in (VENDORED / "LICENSE").read_text()
    assert re.search(r"swagger-ui-dist \d+\.\d+\.\d+", Path(VENDORED / "VERSION").read_text())
