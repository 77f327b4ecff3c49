"""Keys, tenants and cache domains."""

from __future__ import annotations

import httpx
import pytest
from fastapi import FastAPI

from gateway.admission import ANONYMOUS, Admission, Tenant
from gateway.app import create_app
from gateway.settings import Settings
from tests.support.http import CHAT, chat_body, client_of
from tests.support.memory_engine import MemoryEngine

pytestmark = pytest.mark.anyio
SECRET = "a secret of sixteen bytes or more"
ALICE, ALICE_NEW, BOB = "key-of-alice", "next-key-of-alice", "key-of-bob"
LONG = [{"role": "user", "content": "the same long prompt of more than sixteen tokens " * 4}]


@pytest.fixture
def app(engine: MemoryEngine) -> FastAPI:
    keys = (f"alice:{ALICE}", f"alice:{ALICE_NEW}", f"bob:{BOB}")
    return create_app(Settings(api_keys=keys, cache_secret=SECRET), engine)


async def cached(app: FastAPI, key: str, **fields: object) -> int:
    async with client_of(app, authorization=f"Bearer {key}") as client:
        answer = await client.post(CHAT, json=chat_body(messages=LONG, **fields))
        assert answer.status_code == 200
        return answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"]


@pytest.mark.parametrize("headers", [
    {}, {"authorization": "Bearer wrong"}, {"authorization": "Bearer "}, {"authorization": ALICE},
    {"authorization": f"Basic {ALICE}"},
    {"x-api-key": "wrong"}, {"authorization": f"Bearer {ALICE}x"}, {"authorization": f"Bearer {ALICE[:-1]}"},
])
@pytest.mark.parametrize("path", [CHAT, "/v1/models", "/metrics"])
async def test_no_or_a_wrong_key_is_a_401(client: httpx.AsyncClient, headers: dict[str, str], path: str) -> None:
    sent = client.post(path, json=chat_body(), headers=headers) if path == CHAT else client.get(path, headers=headers)
    answer = await sent
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "invalid_api_key"
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("headers", [
    {"authorization": f"Bearer {ALICE}"}, {"authorization": f"bearer {BOB}"}, {"x-api-key": ALICE_NEW}])
async def test_a_right_key_is_let_in(client: httpx.AsyncClient, headers: dict[str, str]) -> None:
    assert (await client.post(CHAT, json=chat_body(), headers=headers)).status_code == 200


@pytest.mark.parametrize("path", ["/health", "/health/live", "/health/ready", "/version", "/docs", "/openapi.json"])
async def test_these_need_no_key(client: httpx.AsyncClient, path: str) -> None:
    assert (await client.get(path)).status_code == 200


async def test_without_keys_everyone_is_one_tenant(engine: MemoryEngine) -> None:
    app = create_app(Settings(cache_secret=SECRET), engine)
    async with client_of(app) as client:
        await client.post(CHAT, json=chat_body())
    assert [record.tenant for record in app.state.ledger.snapshot().recent] == [ANONYMOUS]


async def test_a_tenant_hits_its_own_prefix_and_nobody_elses(app: FastAPI) -> None:
    await cached(app, ALICE)
    assert await cached(app, ALICE) > 100
    assert await cached(app, BOB) == 0


async def test_keys_of_one_name_share_a_cache(app: FastAPI) -> None:
    await cached(app, ALICE)
    assert await cached(app, ALICE_NEW) > 100


async def test_a_salt_narrows_the_cache(app: FastAPI) -> None:
    await cached(app, ALICE)
    assert await cached(app, ALICE, cache_salt="one") == 0
    assert await cached(app, ALICE, cache_salt="one") > 100
    assert await cached(app, ALICE, cache_salt="two") == 0


async def test_a_salt_does_not_lead_into_another_tenants_cache(app: FastAPI) -> None:
    await cached(app, ALICE, cache_salt="shared")
    assert await cached(app, BOB, cache_salt="shared") == 0


async def test_a_cache_key_hint_changes_nothing(app: FastAPI) -> None:
    await cached(app, ALICE, prompt_cache_key="a")
    assert await cached(app, ALICE, prompt_cache_key="b") > 100


async def test_callers_without_a_key_do_not_wash_out_the_ledgers_last_records(app: FastAPI, client: httpx.AsyncClient) -> None:
    await cached(app, ALICE)
    for _ in range(3):
        await client.post(CHAT, json=chat_body())
    snapshot = app.state.ledger.snapshot()
    assert [record.tenant for record in snapshot.recent] == ["alice"]
    assert snapshot.requests["chat.completions", 401] == 3


def test_a_key_may_hold_colons() -> None:
    assert Admission(["a:b:c:d"], SECRET.encode()).tenant_of_key("b:c:d") == Tenant("a")


@pytest.mark.parametrize("entry", ["nokey", ":key", "name:", ""])
def test_an_entry_that_is_not_name_and_key_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match="name:key"):
        Admission([entry], SECRET.encode())


def test_the_key_itself_is_not_kept() -> None:
    admission = Admission([f"alice:{ALICE}"], SECRET.encode())
    assert ALICE not in repr(vars(admission))


def test_without_a_secret_each_gateway_has_domains_of_its_own() -> None:
    one, other = Admission([], b""), Admission([], b"")
    assert one.cache_domain(Tenant("a"), None) != other.cache_domain(Tenant("a"), None)
