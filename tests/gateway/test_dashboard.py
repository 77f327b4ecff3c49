"""The dashboard without a browser: its numbers, its history, its event streams and who may see it."""

from __future__ import annotations

import asyncio
import json
import shlex
import subprocess
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from itertools import pairwise
from urllib.parse import urlencode

import httpx
import pytest

from gateway.dashboard import end_streams, formats
from gateway.dashboard.board import MAX_LISTENERS, Board
from gateway.dashboard.page import first_hit_command, static_files
from gateway.dashboard.sessions import COOKIE, LIFETIME_S
from tests.support.dashboard_engine import MODEL, Stage, busy_quarter_of_an_hour

ALICE, BOB = "alice:alice-key-0123456789", "bob:bob-key-0123456789"
HOSTILE = "<img src=x onerror=alert(1)>\"'`{{7*7}}</script><script>alert(1)</script>"


class Page(HTMLParser):
    """What a browser without scripts makes of the page."""

    VOID = frozenset({"meta", "link", "input", "img", "br"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.numbers: dict[str, str] = {}
        self.rows: list[dict[str, str]] = []
        self._open: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.tags.append((tag, given))
        if tag not in self.VOID:
            self._open.append((tag, given))
        if tag == "tr" and given.get("data-key", "").startswith("request-"):
            self.rows.append({"key": given["data-key"]})
        if "data-text" in given:
            self.numbers[given["data-text"]] = ""

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        given = self._open[-1][1] if self._open else {}
        inside = [tag for tag, _ in self._open]
        if "data-text" in given:
            self.numbers[given["data-text"]] += data
        elif "data-cell" in given and self.rows and "template" not in inside and self._in_requests():
            self.rows[-1][given["data-cell"]] = data

    def _in_requests(self) -> bool:
        return any(given.get("data-list") == "requests" for _, given in self._open)


def plain(text: str) -> str:
    """With ordinary spaces."""
    return text.replace(formats.SPACE, " ").replace(formats.NARROW_SPACE, " ")


async def get(stage: Stage, path: str = "/dashboard", **options: object) -> httpx.Response:
    transport = httpx.ASGITransport(app=stage.app())
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
        return await client.request(options.pop("method", "GET"), path, **options)  # type: ignore[arg-type]


def ask(stage: Stage, path: str = "/dashboard", **options: object) -> httpx.Response:
    return asyncio.run(get(stage, path, **options))


def page_of(stage: Stage) -> Page:
    answer = ask(stage)
    assert answer.status_code == 200
    return Page(answer.text)


# The page


def test_the_numbers_in_the_html_are_those_of_the_ledger_and_the_engine():
    stage = Stage()
    stage.pass_time(5)
    stage.answer(prompt=1000, cached=0, completion=10, ttft_s=0.9, total_s=1.5)
    stage.answer(prompt=1000, cached=960, completion=10, ttft_s=0.06, total_s=0.5)
    stage.answer(prompt=1000, cached=960, completion=30, ttft_s=0.04, total_s=0.5)
    stage.answer(prompt=0, cached=0, completion=0, ttft_s=None, total_s=0.01, finish="error", status=400, error="invalid_value")
    stage.pass_time(10)
    stage.hold(
        used=1000, cached=2096, running=2, waiting=5, evicted_blocks=17, expired_blocks=3, preemptions=1, recomputed_tokens=64,
        forced_tokens=321, guessed_right_tokens=45)
    shown = {name: plain(text) for name, text in page_of(stage).numbers.items()}
    expected = {
        "token_hit_rate": "64.0 %", "token_hit_of": "1,920 of 3,000 prompt tokens", "cached_tokens": "1,920",
        "request_hit_rate": "66.7 %", "request_hit_of": "2 of 3 requests",
        "hit_n": "2", "hit_p50": "40 ms", "hit_p99": "60 ms", "miss_n": "1", "miss_p50": "900 ms", "miss_p99": "900 ms",
        "ttft_ratio": "22.5×", "running": "2", "waiting": "5", "evicted": "17", "expired": "3", "preemptions": "1",
        "forced": "321", "guessed_right": "45",
        "recomputed": "64", "engine_state": "Ready", "model": "smollm2-135m-instruct", "kernels": "native", "device": "cpu",
        "context": "8,192", "uptime": "under a minute",
        "request_count": "4 requests so far, 1 of them failed or cancelled. Shown: the last 4",
        "token_chart": "Last 15 minutes: 1,920 prompt tokens from cache, 1,080 computed.",
        "ttft_chart": "Last 15 minutes: 2 hits, 1 miss.",
    }
    assert {name: shown[name] for name in expected} == expected


def test_a_request_is_a_row_with_its_cached_share():
    stage = Stage()
    stage.answer(
        prompt=1600, cached=1200, completion=33, ttft_s=0.12, total_s=0.9, tenant="search", endpoint="completions", schema=True,
        finish="length")
    (row,) = page_of(stage).rows
    assert {name: plain(text) for name, text in row.items()} == {
        "key": "request-1", "time": "12:00:00", "endpoint": "completions", "tenant": "search", "prompt": "1,600",
        "cached": "75.0 %", "output": "33", "ttft": "120 ms", "total": "900 ms", "schema": "yes", "finish": "length"}


def test_what_is_unknown_of_a_refused_request_is_not_shown_as_zero():
    stage = Stage()
    stage.answer(prompt=0, cached=0, completion=0, ttft_s=None, total_s=0.01, finish="error", status=404, error="model_not_found")
    (row,) = page_of(stage).rows
    assert (row["prompt"], row["cached"], row["ttft"], row["output"]) == ("–", "–", "–", "0")
    assert row["finish"] == "✕ model_not_found"


def test_rows_come_newest_first():
    rows = page_of(busy_quarter_of_an_hour()).rows
    assert len(rows) == 50
    assert all(int(a["key"].removeprefix("request-")) > int(b["key"].removeprefix("request-")) for a, b in pairwise(rows))


def test_the_bare_address_leads_to_the_dashboard():
    answer = ask(Stage(), "/")
    assert (answer.status_code, answer.headers["location"]) == (303, "/dashboard")


def test_before_the_first_request_rates_are_unknown_and_counts_are_zero():
    shown = page_of(Stage()).numbers
    assert [shown[name] for name in ("token_hit_rate", "request_hit_rate", "hit_p50", "prompt_rate", "ttft_ratio")] == ["–"] * 5
    assert [shown[name] for name in ("cached_tokens", "running", "waiting", "evicted", "hit_n")] == ["0"] * 5
    assert plain(shown["token_hit_of"]) == "0 of 0 prompt tokens"


def test_an_engine_that_is_still_starting_is_shown_as_such():
    stage = Stage()
    stage.engine.state, stage.engine.model = "starting", None
    shown = page_of(stage).numbers
    assert (shown["engine_state"], shown["model"], shown["kernels"]) == ("Starting", "–", "–")


def test_the_bar_of_a_tier_is_used_then_cached():
    stage = Stage()
    stage.hold(used=1024, cached=2048)
    marks = [given for _, given in page_of(stage).tags if given.get("data-cell-attributes") in ("bar", "used", "cached")][:3]
    assert marks[0]["aria-label"] == "device: 1024 used, 2048 cached, 1024 free blocks"
    assert (marks[1]["width"], marks[2]["x"], marks[2]["width"]) == ("25.00", "25.00", "50.00")


def test_hostile_names_are_text_and_nothing_else():
    stage = Stage()
    stage.engine.model = type(MODEL)(HOSTILE, 1, 1, HOSTILE, HOSTILE, 0.0)
    stage.answer(
        prompt=10, cached=0, completion=1, ttft_s=0.1, total_s=0.2, finish="error", tenant=HOSTILE, endpoint=HOSTILE,
        error=HOSTILE)
    page, reference = page_of(stage), page_of(busy_quarter_of_an_hour())
    assert page.rows[0]["endpoint"] == HOSTILE
    assert page.numbers["kernels"] == HOSTILE
    assert {tag for tag, _ in page.tags} <= {tag for tag, _ in reference.tags}
    assert sum(tag == "script" for tag, _ in page.tags) == sum(tag == "script" for tag, _ in reference.tags)


def test_the_pages_hold_no_inline_script_and_no_inline_style():
    tags = page_of(busy_quarter_of_an_hour()).tags + Page(ask(Stage((ALICE,)), "/dashboard/login").text).tags
    assert all(given.get("src") for tag, given in tags if tag == "script")
    assert not [tag for tag, _ in tags if tag == "style"]
    assert not [given for _, given in tags if "style" in given or any(name.startswith("on") for name in given)]


def test_nothing_is_loaded_from_elsewhere():
    tags = page_of(Stage()).tags
    assert all(given.get("src", given.get("href", "/")).startswith(("/", "#")) for _, given in tags)


def test_the_policy_allows_own_files_only():
    policy = dict(part.strip().split(" ", 1) for part in ask(Stage()).headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'" and policy["frame-ancestors"] == "'none'" and policy["base-uri"] == "'none'"
    assert {policy[name] for name in ("script-src", "style-src", "img-src", "connect-src", "form-action")} == {"'self'"}


def test_the_first_load_is_below_two_hundred_kilobytes():
    page = len(ask(busy_quarter_of_an_hour()).content)
    assert page + sum(len(file.content) for file in static_files().values()) < 200_000


def test_every_name_in_the_templates_is_told_to_live_pages_too():
    stage = busy_quarter_of_an_hour()
    sections = stage.board.view(None).values()
    page = page_of(stage)
    for kind, attribute in (("text", "data-text"), ("attributes", "data-attributes"), ("lists", "data-list")):
        told = [name for section in sections for name in section.get(kind, {})]
        assert {given[attribute] for _, given in page.tags if attribute in given} <= set(told)
        assert len(told) == len(set(told)), "a name of two sections would be told twice"


# The command of the empty page


@pytest.mark.parametrize("model", ["smollm2", "it's", "$(touch x) `id` \" \\ 'q'", "ünïcode – 模型"])
def test_the_first_command_is_one_request_sent_twice(model):
    command = first_hit_command("http://127.0.0.1:8000", model, with_key=True)
    spy = 'curl() { printf "%s\\0" "$@" END; }; echo() { :; }; KEY=sesame\n' + command
    said = subprocess.run(["bash", "-c", spy], capture_output=True, check=True, timeout=10).stdout.decode()
    first, second, rest = said.split("END\0")
    arguments = first.split("\0")
    assert (first, rest) == (second, "")
    assert {"http://127.0.0.1:8000/v1/chat/completions", "authorization: Bearer sesame"} < set(arguments)
    assert json.loads(arguments[arguments.index("-d") + 1])["model"] == model


@pytest.mark.parametrize("host", ["evil.example/$(id)", "a'b", "a b", "x;id"])
def test_a_strange_host_header_does_not_reach_the_command(host):
    assert shlex.split(first_hit_command(f"http://{host}", "m", with_key=False))[8] == "http://127.0.0.1:8000/v1/chat/completions"


# Files


def test_a_file_is_sent_once_and_then_only_confirmed():
    stage = Stage()
    first = ask(stage, "/dashboard/static/live.js")
    assert first.headers["content-type"].startswith("text/javascript")
    again = ask(stage, "/dashboard/static/live.js", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("name", ["nothing.js", "..%2Froutes.py", "%2e%2e/routes.py", "dashboard.html"])
def test_no_other_file_can_be_had(name):
    answer = ask(Stage(), f"/dashboard/static/{name}")
    assert answer.status_code == 404
    assert "dashboard_of" not in answer.text


# Who may look


def signed_in(stage: Stage, key: str) -> httpx.Response:
    return ask(stage, "/dashboard/login", method="POST", content=urlencode({"key": key}))


def cookie_of(answer: httpx.Response) -> dict[str, str]:
    return {"cookie": f"{COOKIE}={answer.cookies[COOKIE]}"}


def test_without_a_key_the_page_leads_to_the_form_and_the_stream_is_refused():
    stage = Stage((ALICE,))
    page, stream = ask(stage), ask(stage, "/dashboard/events")
    assert (page.status_code, page.headers["location"]) == (303, "/dashboard/login")
    assert (stream.status_code, stream.json()["error"]["code"]) == (401, "invalid_api_key")


def test_a_right_key_gives_a_cookie_that_opens_the_page_and_does_not_tell_the_key():
    stage = Stage((ALICE,))
    answer = signed_in(stage, "alice-key-0123456789")
    cookie = answer.headers["set-cookie"]
    assert answer.status_code == 303
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Path=/dashboard" in cookie
    assert "alice-key" not in cookie
    assert ask(stage, headers=cookie_of(answer)).status_code == 200


def test_a_wrong_key_gives_no_cookie():
    answer = signed_in(Stage((ALICE,)), "wrong-key-0123456789")
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
    assert "not one of the gateway" in answer.text


def test_the_key_itself_opens_the_page_for_programs():
    assert ask(Stage((ALICE,)), headers={"authorization": "Bearer alice-key-0123456789"}).status_code == 200


@pytest.mark.parametrize("damage", [
    lambda value: value[:-1] + ("0" if value[-1] != "0" else "1"),
    lambda value: "626f62" + value[value.index("."):],
    lambda value: value.replace(".", ".9", 1),
    lambda value: "", lambda value: "..", lambda value: "zz.zz.zz",
])
def test_a_forged_cookie_opens_nothing(damage):
    stage = Stage((ALICE, BOB))
    value = signed_in(stage, "alice-key-0123456789").cookies[COOKIE]
    assert ask(stage, headers={"cookie": f"{COOKIE}={damage(value)}"}).status_code == 303


def test_a_cookie_ends_after_twelve_hours():
    stage = Stage((ALICE,))
    cookie = cookie_of(signed_in(stage, "alice-key-0123456789"))
    stage.now_s += LIFETIME_S - 2
    assert ask(stage, headers=cookie).status_code == 200
    stage.now_s += 3
    assert ask(stage, headers=cookie).status_code == 303


@pytest.mark.parametrize("path", ["/dashboard/login", "/dashboard/logout"])
def test_another_site_can_sign_nobody_in_or_out(path):
    form = {"content": "key=alice-key-0123456789", "headers": {"sec-fetch-site": "cross-site"}}
    answer = ask(Stage((ALICE,)), path, method="POST", **form)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_a_large_form_is_refused():
    assert ask(Stage((ALICE,)), "/dashboard/login", method="POST", content=b"key=" + b"x" * 5000).status_code == 413


def test_a_tenant_sees_the_rows_of_its_own_requests_only():
    stage = Stage((ALICE, BOB))
    for tenant in ("alice", "bob", "alice"):
        stage.answer(prompt=10, cached=0, completion=1, ttft_s=0.1, total_s=0.2, tenant=tenant)
    rows = Page(ask(stage, headers={"authorization": "Bearer bob-key-0123456789"}).text).rows
    assert [row["tenant"] for row in rows] == ["bob"]


# In the whole gateway


def test_the_gateway_serves_its_dashboard_with_the_numbers_of_its_own_answers(app):
    async def use_twice_and_look() -> tuple[list[dict[str, int]], Page]:
        body = {"model": "memory", "messages": [{"role": "user", "content": "a prompt that is longer than two blocks of tokens"}]}
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1:8000") as client:
            usages = [(await client.post("/v1/chat/completions", json=body)).json()["usage"] for _ in range(2)]
            return usages, Page((await client.get("/dashboard")).text)

    usages, page = asyncio.run(use_twice_and_look())
    cached = [usage["prompt_tokens_details"]["cached_tokens"] for usage in usages]
    assert cached[0] == 0 < cached[1]
    assert page.numbers["token_hit_of"] == f"{sum(cached)} of {sum(usage['prompt_tokens'] for usage in usages)} prompt tokens"
    assert page.numbers["request_hit_of"] == "1 of 2 requests"


# Event streams


async def next_event(events: AsyncIterator[bytes]) -> dict[str, dict[str, object]] | str:
    said = (await anext(events)).decode()
    assert said.endswith("\n\n")
    return json.loads(said.removeprefix("data: ")) if said.startswith("data: ") else said.strip()


def quick_board(stage: Stage) -> Board:
    """A board that has been up for two seconds and tells its listeners a hundred times a second."""
    board = Board(stage.ledger, stage.engine, stage.clock, tell_s=0.01)
    stage.now_s += 2
    return board


def test_a_listener_is_told_everything_once_and_then_what_changed():
    async def listen() -> list[object]:
        stage = Stage()
        events = quick_board(stage).events(None)
        told = [await next_event(events), await next_event(events)]
        stage.now_s += 1
        stage.engine.state = "restarting"
        return [*told, await next_event(events)]

    retry, everything, change = asyncio.run(listen())
    assert retry == "retry: 2000"
    assert set(everything) == {"cache", "latency", "engine", "load", "tiers", "charts", "requests"}
    assert set(change) == {"engine"}
    assert change["engine"]["text"]["engine_state"] == "Restarting"


def test_when_nothing_changes_only_comments_are_sent():
    async def listen() -> object:
        stage = Stage()
        events = quick_board(stage).events(None)
        await next_event(events), await next_event(events)
        waiting = asyncio.create_task(next_event(events))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        stage.now_s += 16
        return await waiting

    assert asyncio.run(listen()) == ": still here"


def test_a_stream_ends_when_the_application_closes():
    async def listen() -> list[bytes]:
        stage = Stage()
        app = stage.app()
        stream = stage.board.events(None)
        told = [await anext(stream), await anext(stream)]
        end_streams(app)
        return told + [event async for event in stream]

    assert len(asyncio.run(listen())) == 2


def test_listeners_are_bounded():
    stage = Stage()
    assert all(stage.board.admit_listener() for _ in range(MAX_LISTENERS))
    answer = ask(stage, "/dashboard/events")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "too_many_listeners")
    assert "retry-after" in answer.headers


def test_a_listener_that_goes_gives_its_place_back():
    async def connect_and_go() -> tuple[int, int]:
        stage = Stage()
        gone = asyncio.Event()
        while_there: list[int] = []

        async def receive() -> dict[str, object]:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, object]) -> None:
            if message.get("body", b"").startswith(b"data: "):
                while_there.append(stage.board.listeners)
                gone.set()

        scope = {
            "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "method": "GET",
            "path": "/dashboard/events", "raw_path": b"/dashboard/events", "root_path": "", "scheme": "http",
            "query_string": b"", "headers": [], "client": None, "server": ("127.0.0.1", 8000)}
        await asyncio.wait_for(stage.app()(scope, receive, send), 5)
        return while_there[0], stage.board.listeners

    assert asyncio.run(connect_and_go()) == (1, 0)
