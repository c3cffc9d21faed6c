"""docs/ says what is so: every event is in it, its examples run, and what it points at is there."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import msgspec
import pytest

import idbg
from idbg.config import settings
from idbg.reports.documents.json import schema
from idbg.schema.decisions import kinds
from idbg.schema.events import Event, SessionEvent
from tests.harness.warm import CHILDREN
from tools import pages, site

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "core" / "README.md", ROOT / "SECURITY.md", *sorted(DOCS.rglob("*.md"))]
EVENTS: tuple[type[Event], ...] = SessionEvent.__args__
TAGS = {str(event.__struct_config__.tag): event for event in EVENTS}


def rows(page: str) -> dict[str, str]:
    """The first cell of each row of a page's tables, without its backticks -> the whole row."""
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    return {match[1]: line for line in lines if (match := re.match(r"\| `(\w+)` \|", line))}


def test_the_page_of_events_has_every_event_and_no_other() -> None:
    assert rows("session-folder.md").keys() - kinds().keys() == TAGS.keys()


@pytest.mark.parametrize("tag", sorted(TAGS))
def test_an_events_row_names_each_of_its_keys(tag: str) -> None:
    keys = {field.encode_name for field in msgspec.structs.fields(TAGS[tag])} - {"at"}
    named = set(re.findall(r"`(\w+)(?:\[\])?`", rows("session-folder.md")[tag]))
    assert keys <= named


def test_the_page_of_the_api_has_every_public_name() -> None:
    text = (DOCS / "python-api.md").read_text(encoding="utf-8")
    assert [name for name in idbg.__all__ if f"`idbg.{name}" not in text] == []


def test_the_shipped_schema_of_the_json_report_is_the_one_that_the_records_give() -> None:
    assert schema.SHIPPED.read_bytes() == schema.written(), "python -m idbg.reports.documents.json.schema writes it"


@pytest.mark.usefixtures("warm")
def test_the_examples_of_the_api_run(tmp_path: Path) -> None:
    text = (DOCS / "python-api.md").read_text(encoding="utf-8")
    script = tmp_path / "examples.py"
    script.write_text("\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)), encoding="utf-8")
    environ = {**os.environ, CHILDREN: "1"}
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, env=environ)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_points_at_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    linked = [page.parent / target for target in re.findall(r"\]\((?!http)([^)#]+)", text)]
    named = [ROOT / name for name in re.findall(r"`((?:core|idbg_tui|tests|examples|docs)/[\w./]+)`", text)]
    assert [str(path) for path in (*linked, *named) if not path.exists()] == []


def test_nothing_points_at_what_is_not_in_the_repository() -> None:
    listed = subprocess.run(["git", "ls-files", "*.py", "*.md", "*.toml"], cwd=ROOT, capture_output=True, text=True)
    files = [ROOT / name for name in listed.stdout.split()]
    elsewhere = re.compile(r"\.\./shared\b|\bfound-\w+\.md\b|/work/\w")
    texts = [path for path in files if path.is_file() and path != Path(__file__)]
    assert [str(path) for path in texts if elsewhere.search(path.read_text(encoding="utf-8"))] == []


def test_the_settings_that_the_page_shows_are_settings(tmp_path: Path) -> None:
    own, project = re.findall(r"```toml\n(.*?)```", (DOCS / "settings.md").read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "settings.toml").write_text(own, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(project, encoding="utf-8")
    shown = settings.load({"IDBG_SETTINGS": str(tmp_path / "settings.toml")}, cwd=tmp_path)
    assert (shown.theme, shown.keys, shown.strict) == ("idbg-light", {"run": "ctrl+r"}, True)
    assert shown.settings == {"dynamo.recompile_limit": 4} and shown.accelerator.endswith("hardware/npu.toml")


def pointers(text: str) -> list[tuple[str, str]]:
    """(name, file) of each "`Name.method` in `path.py`" of a page."""
    return re.findall(r"`([\w.]+)` in\s+`([\w/]+\.py)`", text)


def test_each_step_of_a_key_press_is_where_the_page_says() -> None:
    told = pointers((DOCS / "one-key-press.md").read_text(encoding="utf-8"))
    assert len(told) > 20
    for name, file in told:
        text = (ROOT / file).read_text(encoding="utf-8")
        for part in name.split("."):
            assert re.search(rf"^\s*(?:async )?(?:def|class) {part}\b|^{part}\b", text, re.MULTILINE), (name, file)


def test_every_page_is_in_the_navigation() -> None:
    nav = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    named = set(re.findall(r"'([\w/-]+\.md)'", str(nav)))
    there = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} | set(site.HOMES.values())
    assert named == there


def test_what_pages_have_from_the_code_is_as_the_code_is() -> None:
    assert pages.main(["--check"]) == 0, "`python -m tools.pages` makes them anew"


def test_a_part_that_was_changed_by_hand_is_found() -> None:
    text = (DOCS / "panes" / "log.md").read_text(encoding="utf-8")
    changed = text.replace("| `G` | follow |", "| `G` | follow the end |")
    assert text != changed and pages.remade(changed) == text
