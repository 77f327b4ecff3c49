"""The dashboard in a real browser: what a person sees, hears and can do.

Needs Debian's Chromium (`apt-get install chromium`) and the Python package playwright; without them these tests
are skipped. No browser is downloaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.dashboard_engine import Stage, busy_quarter_of_an_hour, served

CHROMIUM = Path("/usr/bin/chromium")
playwright_api = pytest.importorskip("playwright.sync_api", reason="needs the Python package playwright")
pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"needs Chromium at {CHROMIUM}: apt-get install chromium")

HOSTILE = "<img src=x onerror=window.pwned=1><script>window.pwned=1</script>"
WATCH = """
window.violations = [];
addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective + " " + event.blockedURI));
"""
# The contrast of an element's text with what is painted behind it, by WCAG's formula.
CONTRAST = """
(element) => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  let behind = element;
  while (behind && rgba(getComputedStyle(behind).backgroundColor)[3] < 255) behind = behind.parentElement;
  const style = getComputedStyle(element);
  const painted = element instanceof SVGElement ? (style.fill === "none" ? style.stroke : style.fill) : style.color;
  const [a, b] = [luminance(rgba(painted)), luminance(rgba(getComputedStyle(behind ?? document.body).backgroundColor))];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def busy() -> Iterator[str]:
    """Where a dashboard with a quarter of an hour behind it is served."""
    with served(busy_quarter_of_an_hour().app()) as origin:
        yield origin


@pytest.fixture
def open_page(browser) -> Iterator[Any]:
    """Opens a dashboard and waits until it is live; fails at the end if the page complained of anything."""
    contexts, complaints = [], []

    def opened(origin: str, *, live: bool = True, **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}} | options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(8000)
        page.on("console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.add_init_script(WATCH)
        page.goto(f"{origin}/dashboard")
        if live:
            page.wait_for_selector('[data-live="on"]')
        return page

    yield opened
    violations = [v for context in contexts for page in context.pages for v in page.evaluate("window.violations ?? []")]
    for context in contexts:
        context.close()
    assert (complaints, violations) == ([], [])


def number(page: Any, name: str) -> str:
    return page.text_content(f'[data-text="{name}"]').replace("\u202f", " ").replace("\u00a0", " ")


def wait_for_number(page: Any, name: str, text: str) -> None:
    playwright_api.expect(page.locator(f'[data-text="{name}"]')).to_have_text(text.replace(" %", "\u202f%"))


def test_the_page_shows_the_ledgers_numbers_and_complains_of_nothing(open_page):
    stage = Stage()
    stage.answer(prompt=1000, cached=0, completion=10, ttft_s=0.9, total_s=1.5)
    stage.answer(prompt=1000, cached=960, completion=10, ttft_s=0.06, total_s=0.5)
    with served(stage.app()) as origin:
        page = open_page(origin)
        totals = stage.ledger.snapshot()
        assert number(page, "token_hit_rate") == f"{totals.cached_tokens / totals.prompt_tokens:.1%}".replace("%", " %")
        assert number(page, "token_hit_of") == f"{totals.cached_tokens:,} of {totals.prompt_tokens:,} prompt tokens"
        assert number(page, "hit_p50") == "60 ms" and number(page, "miss_p50") == "900 ms"
        assert page.locator("tbody[data-list=requests] tr").count() == len(totals.recent)
        page.close()


def test_a_finished_request_shows_up_without_a_reload(open_page):
    stage = Stage()
    with served(stage.app()) as origin:
        page = open_page(origin)
        assert page.is_visible(".empty") and page.is_hidden("table.requests")
        page.evaluate("window.same = true")
        stage.answer(prompt=100, cached=0, completion=5, ttft_s=0.3, total_s=0.5)
        stage.pass_time(1)
        wait_for_number(page, "token_hit_rate", "0 %")
        page.evaluate("document.querySelector('[data-key=request-1]').sameRow = true")
        stage.answer(prompt=100, cached=96, completion=5, ttft_s=0.03, total_s=0.2, tenant="search")
        stage.pass_time(1)
        wait_for_number(page, "token_hit_rate", "48.0 %")
        assert page.is_hidden(".empty")
        rows = page.locator("tbody[data-list=requests] tr")
        assert [rows.nth(i).get_attribute("data-key") for i in range(rows.count())] == ["request-2", "request-1"]
        assert rows.nth(0).locator(".c-tenant").get_attribute("title") == "search"
        assert page.evaluate("window.same && document.querySelector('[data-key=request-1]').sameRow")
        page.close()


def test_hostile_names_run_nothing_on_first_paint_nor_live(open_page):
    stage = Stage()
    stage.engine.model = type(stage.engine.model)(HOSTILE, 1, 1, HOSTILE, "cpu", 0.0)
    stage.answer(prompt=10, cached=0, completion=1, ttft_s=0.1, total_s=0.2, tenant=HOSTILE)
    with served(stage.app()) as origin:
        page = open_page(origin)
        stage.answer(prompt=10, cached=0, completion=1, ttft_s=0.1, total_s=0.2, tenant=HOSTILE, endpoint=HOSTILE)
        stage.pass_time(1)
        page.wait_for_selector("[data-key=request-2]")
        cell = page.locator("[data-key=request-2] [data-cell=endpoint]")
        assert cell.text_content() == HOSTILE
        assert cell.evaluate("(element) => element.children.length") == 0
        assert page.evaluate("window.pwned") is None
        page.close()


def test_without_scripts_the_first_paint_has_the_numbers(open_page, busy):
    page = open_page(busy, live=False, java_script_enabled=False)
    assert page.is_visible("noscript p")
    assert number(page, "token_hit_rate").endswith(" %")
    assert page.locator("tbody[data-list=requests] tr").count() == 50
    assert page.locator(".area-cached").bounding_box()["width"] > 300
    assert page.locator(".bar-huge rect").bounding_box()["width"] > 100
    assert page.is_hidden("#theme")
    page.close()


def test_a_theme_is_chosen_by_a_button_and_remembered(open_page, busy):
    page = open_page(busy, color_scheme="light")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.click("#theme")
    assert page.text_content("#theme") == "Theme: light"
    page.click("#theme")
    dark = page.evaluate(background)
    assert page.text_content("#theme") == "Theme: dark" and dark != light
    page.reload()
    page.wait_for_selector('[data-live="on"]')
    assert page.evaluate(background) == dark


def test_without_a_choice_the_systems_theme_is_used(open_page, busy):
    background = "getComputedStyle(document.body).backgroundColor"
    assert open_page(busy, color_scheme="dark").evaluate(background) != open_page(busy, color_scheme="light").evaluate(background)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_and_marks_stand_out_from_what_is_behind_them(open_page, busy, theme):
    page = open_page(busy, color_scheme=theme, reduced_motion="reduce")
    seen = page.evaluate(f"""() => {{
      const contrast = {CONTRAST};
      const holdsText = (element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
      const seen = (element) => element.checkVisibility({{ visibilityProperty: true }});
      const texts = [...document.querySelectorAll("body *")].filter((e) => holdsText(e) && seen(e));
      const marks = ["fill-cached", "fill-used", "area-cached", "area-computed", "dots-hit", "dots-miss"]
        .map((name) => document.querySelector("." + name));
      return {{
        n: texts.length,
        texts: texts.map((e) => [e.className + ": " + e.textContent.slice(0, 30), contrast(e)]).filter(([, c]) => c < 4.5),
        marks: marks.map((e) => [e.getAttribute("class"), contrast(e)]).filter(([, c]) => c < 3),
      }};
    }}""")
    assert seen["n"] > 300
    assert (seen["texts"], seen["marks"]) == ([], [])


def test_everything_that_can_be_operated_has_a_name_and_every_reference_a_target(open_page, busy):
    page = open_page(busy)
    problems = page.evaluate("""() => {
      const all = (selector) => [...document.querySelectorAll(selector)];
      const ids = all("[id]").map((e) => e.id);
      const name = (e) => (e.getAttribute("aria-label") ?? e.textContent).trim();
      const references = ["aria-describedby", "aria-labelledby", "for"]
        .flatMap((a) => all(`[${a}]`).map((e) => e.getAttribute(a)));
      return {
        unnamed: all("button, a, summary, [tabindex='0'], [role=img]").filter((e) => !name(e)).map((e) => e.outerHTML),
        twice: ids.filter((id, i) => ids.indexOf(id) !== i),
        dangling: references.filter((id) => !ids.includes(id)),
        headless: all("table").filter((t) => !t.querySelector("th")).length,
        untitled: all("section, figure").filter((e) => !e.getAttribute("aria-labelledby")).length,
        unhidden: all("svg").filter((e) => !e.getAttribute("aria-label") && e.getAttribute("aria-hidden") !== "true").length,
        h1: all("h1").length, main: all("main").length, lang: document.documentElement.lang,
      };
    }""")
    assert problems == {
        "unnamed": [], "twice": [], "dangling": [], "headless": 0, "untitled": 0, "unhidden": 0, "h1": 1, "main": 1, "lang": "en"}


def test_a_formula_is_shown_on_focus_and_put_away_by_escape(open_page, busy):
    page = open_page(busy)
    mark = page.locator('[aria-describedby="why-token"]')
    assert page.is_hidden("#why-token")
    mark.focus()
    assert page.is_visible("#why-token") and "÷" in page.text_content("#why-token")
    page.keyboard.press("Escape")
    assert page.is_hidden("#why-token")


def test_the_arrow_keys_read_single_values_off_a_chart(open_page):
    stage = Stage()
    stage.pass_time(5)
    stage.answer(prompt=1000, cached=600, completion=10, ttft_s=0.25, total_s=1.0)
    stage.pass_time(9)
    with served(stage.app()) as origin:
        page = open_page(origin)
        page.focus('[data-chart="tokens"]')
        for _ in range(2):
            page.keyboard.press("ArrowLeft")
        assert page.text_content('[data-readout="tokens"]') == "5 s ago: 120 cached, 80 computed a second"
        page.keyboard.press("ArrowRight")
        assert page.text_content('[data-readout="tokens"]') == "0 s ago: 0 cached, 0 computed a second"
        page.focus('[data-chart="ttft"]')
        page.keyboard.press("ArrowLeft")
        assert page.text_content('[data-readout="ttft"]') == "5 s ago: hit 250 ms, miss –"
        assert page.is_hidden('[data-readout="tokens"]')
        page.close()


def test_each_chart_has_its_values_as_a_table(open_page, busy):
    page = open_page(busy)
    page.click(".card-tokens summary")
    rows = page.locator("tbody[data-list=token_minutes] tr")
    assert rows.count() == 15
    cached = sum(int(rows.nth(i).locator("[data-cell=cached]").text_content().replace(",", "")) for i in range(15))
    assert number(page, "token_chart").startswith(f"Last 15 minutes: {cached:,} prompt tokens from cache")


def test_the_overview_fits_one_screen(open_page, busy):
    page = open_page(busy)
    assert page.locator(".card-ttft").bounding_box()["y"] + page.locator(".card-ttft").bounding_box()["height"] < 900
    assert page.locator("tbody[data-list=requests] tr").first.bounding_box()["y"] < 900


def test_no_width_makes_the_page_scroll_sideways(open_page, busy):
    page = open_page(busy)
    too_wide = []
    for width in (320, 390, 600, 768, 1024, 1239, 1240, 1280, 1440, 1920):
        page.set_viewport_size({"width": width, "height": 844})
        if page.evaluate("document.documentElement.scrollWidth") > width:
            too_wide.append(width)
    assert too_wide == []


def test_nothing_moves_for_those_who_want_it_so(open_page):
    stage = Stage()
    with served(stage.app()) as origin:
        page = open_page(origin, reduced_motion="reduce")
        stage.answer(prompt=10, cached=0, completion=1, ttft_s=0.1, total_s=0.2)
        stage.pass_time(1)
        page.wait_for_selector("[data-key=request-1]")
        assert page.evaluate("document.getAnimations().length") == 0
        page.close()


def test_signing_in_and_out(open_page):
    with served(Stage(("alice:alice-key-0123456789",)).app()) as origin:
        page = open_page(origin, live=False)
        assert page.url == f"{origin}/dashboard/login"
        page.fill("#key", "alice-key-0123456789")
        page.click("text=Sign in")
        page.wait_for_selector('[data-live="on"]')
        assert page.url == f"{origin}/dashboard" and page.evaluate("document.cookie") == ""
        page.click("text=Sign out")
        page.wait_for_url(f"{origin}/dashboard/login")
        page.close()
