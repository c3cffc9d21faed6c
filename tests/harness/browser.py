"""A real Chromium without a screen, for pages that are to be clicked."""

import importlib.util
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from idbg.reports.documents import SessionData, html
from idbg.schema.runs import History

FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def why_none() -> str:
    """Why there is no browser to ask: "" where there is one."""
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed: pip install -e '.[dev]'"
    if program() is None and not own_chromium():
        return "no Chromium: apt-get install chromium, or playwright install chromium"
    return ""


def program() -> str | None:
    """The system's."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def own_chromium() -> bool:
    """Whether Playwright has downloaded its own."""
    return any((Path.home() / ".cache" / "ms-playwright").glob("chromium*"))


class Tab:
    """A page of a browser, with what it asked for and what it complained of."""

    def __init__(self, page) -> None:
        self.page = page
        self.asked: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def open(self, history: History, folder: Path, name: str = "it", address: str = "") -> "Tab":
        """The report of this session, from a file."""
        file = folder / "report.html"
        file.write_bytes(html.render(SessionData(name, history, "/sessions/it")))
        self.page.goto(file.as_uri() + (f"#{address}" if address else ""))
        return self

    def text(self, selector: str) -> str:
        """What the first such element says."""
        return self.page.locator(selector).first.inner_text()

    def count(self, selector: str) -> int:
        """How many such elements there are."""
        return self.page.locator(selector).count()


@contextmanager
def chromium() -> Iterator:
    """A browser; a test without one is skipped, with the reason."""
    if why := why_none():
        pytest.skip(why)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()
