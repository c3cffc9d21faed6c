"""Is the site whole: built with no link that leads nowhere, and read without a network?"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tools import site

pytest.importorskip("zensical", reason="builds the site; it comes with .[dev]")
DOCS = Path(__file__).parents[2] / "docs"


class Found(HTMLParser):
    """What a page fetches, shows or leads to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        has = dict(attrs)
        if tag == "a" and (href := has.get("href")):
            self.links.append(href)
        elif tag in ("script", "img", "iframe") and (src := has.get("src")):
            self.fetched.append(src)
        elif tag == "link" and has.get("rel") in ("stylesheet", "icon", "preload", "modulepreload"):
            self.fetched.append(has.get("href") or "")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The site."""
    folder = tmp_path_factory.mktemp("built") / "site"
    assert site.main([str(folder)]) == 0
    yield folder
    shutil.rmtree(folder)


def test_a_link_that_leads_nowhere_fails_the_build(tmp_path: Path) -> None:
    site.assemble(tmp_path)
    start = tmp_path / "docs" / "index.md"
    start.write_text(start.read_text(encoding="utf-8") + "\n[gone](panes/gone.md)\n", encoding="utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0 and "page does not exist" in re.sub(r"\x1b\[[0-9;]*m", "", done.stderr)


def test_each_page_is_there(built: Path) -> None:
    names = [str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")] + [*site.HOMES.values()]
    assert [name for name in names if not (built / name).with_suffix(".html").is_file()] == []


def test_nothing_is_fetched_from_elsewhere_and_all_that_is_shown_is_there(built: Path) -> None:
    for page in built.rglob("*.html"):
        found = Found(page)
        assert [name for name in found.fetched if re.match(r"(?:https?:)?//", name)] == []
        if page.name == "404.html":  # it is shown at any address: its links begin at the site's root
            continue
        local = [re.sub(r"[#?].*", "", name) for name in (*found.fetched, *found.links) if ":" not in name]
        assert [name for name in local if name and not (page.parent / name).exists()] == [], page.name
