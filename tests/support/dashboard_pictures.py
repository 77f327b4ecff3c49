"""Makes the pictures in docs/dashboard.md: `python -m tests.support.dashboard_pictures [FOLDER]`.

Needs Chromium (Debian: `apt-get install chromium`) and the Python package playwright.
"""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.support.dashboard_engine import Stage, busy_quarter_of_an_hour, served

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]


def make(folder: Path) -> None:
    """dashboard-light.png and dashboard-dark.png at 1440x900."""
    _shoot(busy_quarter_of_an_hour(), folder, {f"dashboard-{theme}": (theme, 1440, 900, False) for theme in ("light", "dark")})


def make_more(folder: Path) -> None:
    """Pictures for whoever changes the page: on a phone, whole, and before the first request."""
    _shoot(busy_quarter_of_an_hour(), folder, {
        "phone-light": ("light", 390, 2600, False), "phone-dark": ("dark", 390, 844, False),
        "tall-light": ("light", 1440, 1600, False), "tablet-dark": ("dark", 900, 1400, False)})
    _shoot(Stage(), folder, {"empty-light": ("light", 1440, 900, False), "empty-phone": ("light", 390, 844, True)})


def _shoot(stage: Stage, folder: Path, wanted: dict[str, tuple[str, int, int, bool]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with served(stage.app()) as origin, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for name, (theme, width, height, whole) in wanted.items():
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=theme, reduced_motion="reduce")
            page.goto(f"{origin}/dashboard")
            page.wait_for_selector('[data-live="on"]')
            page.screenshot(path=folder / f"{name}.png", full_page=whole)
            page.close()
        browser.close()


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/images"))
    if len(sys.argv) > 1:
        make_more(Path(sys.argv[1]))
