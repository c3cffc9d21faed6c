"""Names of programs are text on the screen: no markup of Textual's, nothing that a terminal obeys."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from textual.content import Content

from idbg.config.settings import Settings
from idbg.schema.errors import OutputError
from idbg.session.session import Session
from idbg_tui.app import IdbgApp
from idbg_tui.welcome.app import OfferLines, Welcome
from idbg_tui.welcome.offers import Choosable
from idbg_tui.widgets.bars import Bar
from idbg_tui.widgets.picker import Picker
from tests.harness.recorded import RECORDINGS
from tests.harness.screen import ReadyApp, settle, until

MARKUP = "[link=http://e][@click=app.quit][/nope]"
OBEYED = "\u202e\x9b2J\u2066\x85"
NAMED = MARKUP + OBEYED
# what is one of a few words of the log's own, or a file's place
KEPT = {
    "type",
    "stage",
    "part",
    "op",
    "role",
    "dtype",
    "severity",
    "verdict",
    "mode",
    "origin",
    "rules",
    "level",
    "kind",
}
KEPT |= {"how", "phase", "layout", "device", "stream", "end", "way", "answer", "language", "expr", "reference", "came"}
ALL_PANES = (
    *("1", "j", "enter", "W", "escape", "w", "escape", "M", "escape", "P", "escape", "v", "y", "f", "escape"),
    *("3", "j", "j", "enter", "2", "j", "l", "l", "l", "slash", "l", "i", "enter", "n", "escape"),
    *("4", "j", "W", "escape", "space", "enter", "5", "j", "W", "escape", "enter", "escape", "j", "enter", "escape"),
    *("6", "j", "enter", "escape", "C", "escape", "R", "7", "G", "k", "8", "j", "enter", "l", "l", "h", "h"),
    *("9", "j", "enter", "escape", "0", "j", "enter", "l", "l", "l", "l", "l", "j", "enter", "escape"),
    *("minus", "j", "right_square_bracket", "escape", "question_mark", "escape", "z", "1", "z"),
)  # fmt: skip


def renamed(value: Any, key: str = "") -> Any:
    """Every text of a log with the markup at its end: references stay what they are, as all are changed alike."""
    if isinstance(value, dict):
        return {name: renamed(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [renamed(inner, key) for inner in value]
    return value + NAMED if isinstance(value, str) and value and key not in KEPT else value


def hostile(name: str, folder: Path) -> IdbgApp:
    saved = folder / name
    saved.mkdir()
    log = [json.loads(line) for line in (RECORDINGS / f"{name}.jsonl").read_text().splitlines()]
    for event in log:
        if "graph" in event:
            event["graph"] = renamed(event["graph"]) | {"id": event["graph"]["id"]}
        for key in (
            "program",
            "code",
            "frame",
            "graph_break",
            "failure",
            "text",
            "last_output",
            "violations",
            "report",
        ):
            if isinstance(event.get(key), (dict, list)):
                event[key] = renamed(event[key])
            elif isinstance(event.get(key), str) and key == "text" and event["type"] != "rules_edited":
                event[key] += NAMED
    (saved / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in log))
    return ReadyApp(lambda: Session.open(saved), Settings())


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was taken for markup although it is a program's."""
    found: list[str] = []
    real = Content.from_markup.__func__  # type: ignore[attr-defined]

    def from_markup(cls: type[Content], /, markup: object, **variables: object) -> Content:
        if isinstance(markup, str) and "[link" in markup:
            found.append(markup)
            return Content(markup)
        return real(cls, markup, **variables)  # type: ignore[no-any-return]

    monkeypatch.setattr(Content, "from_markup", classmethod(from_markup))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["attention", "planted", "breaking", "benched", "minified", "wrong_pass"])
async def test_no_pane_takes_a_name_for_markup(
    name: str, tmp_path: Path, parsed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("idbg_tui.terminal.suspend.edit", lambda *arguments: None)  # no editor can take this screen
    app = hostile(name, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        for key in ALL_PANES:
            await pilot.press(key)
        await pilot.pause()
        assert app.is_running and not parsed


async def test_neither_do_why_the_palette_a_picker_and_the_footer(tmp_path: Path, parsed: list[str]) -> None:
    app = hostile("attention", tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("W")
        await pilot.pause()
        await pilot.press("escape", "ctrl+p", *"link")
        await pilot.pause(0.3)
        await pilot.press("down", "enter")
        app.push_screen(Picker(NAMED, [(NAMED, NAMED)], NAMED))
        await pilot.pause()
        await pilot.press("escape")
        app.bars.flash(NAMED, "error")
        await pilot.pause()
        assert app.is_running and not parsed


async def test_nor_does_the_list_of_sessions(tmp_path: Path, parsed: list[str]) -> None:
    name = MARKUP.replace("/", "")
    (tmp_path / name).mkdir()
    shutil.copy(RECORDINGS / "attention.jsonl", tmp_path / name / "events.jsonl")

    def refused(offer: Choosable) -> str:
        raise OutputError(f"cannot be opened: {NAMED}", hint=NAMED)

    app = Welcome(tmp_path, "", refused)
    async with app.run_test(size=(160, 40)) as pilot:
        lines, footer = app.query_one(OfferLines), app.query_one("#footer", Bar)
        await until(pilot, lambda: any("[link=" in lines.text(at) for at in range(len(lines.items))))
        await pilot.press(*"link", "enter")
        await until(pilot, lambda: "cannot be opened" in str(footer.render()))
        assert app.is_running and not parsed
