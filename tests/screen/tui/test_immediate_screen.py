"""A screen of which only the changed lines are made shows the same as one that is made whole."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.strip import Strip

from idbg_tui.app import IdbgApp
from idbg_tui.controllers import navigation
from idbg_tui.panes.source.pane import SourcePane
from idbg_tui.terminal.changed_output import Cell, _cells, _pieces
from idbg_tui.widgets.line_view import LineView
from tests.harness.recorded import RECORDINGS, app_of
from tests.harness.screen import settle
from tests.harness.terminal import Terminal

pytestmark = pytest.mark.usefixtures("painted")

SIZE = (120, 40)
RENAMED = Path(__file__).parents[2] / "harness" / "renamed_textual.py"
WALK = ("j", "j", "G", "4", "k", "enter", "2", "right_square_bracket", "j", "7", "k", "ctrl+u", "1", "f", "z", "z", "5")


class Painted:
    """What a terminal shows to which every update of the app is written, and how many cells each update had."""

    def __init__(self, app: IdbgApp, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows: dict[int, dict[int, Cell]] = {}
        self.sizes: list[int] = []
        self.app = app
        monkeypatch.setattr(app, "_display", lambda screen, update: self.take(update))

    def take(self, update: object) -> None:
        assert update is None or isinstance(update, LayoutUpdate | ChopsUpdate)
        size = 0
        for y, x, strip in _pieces(update) if update is not None else ():
            cells = _cells(strip, None)
            self.rows.setdefault(y, {}).update(enumerate(cells, x))
            size += len(cells)
        self.sizes.append(size)

    def is_whole(self) -> bool:
        strips: list[Strip] = self.app.screen._compositor.render_strips()
        whole = {y: dict(enumerate(_cells(strip, None))) for y, strip in enumerate(strips)}
        return self.rows == whole


async def test_changed_lines_show_what_the_whole_screen_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        painted = Painted(app, monkeypatch)
        app.screen.refresh()
        await settle(pilot)
        for key in WALK:
            await pilot.press(key)
            await settle(pilot)
            assert painted.is_whole(), key


async def test_to_go_to_another_pane_repaints_less_than_the_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        painted = Painted(app, monkeypatch)
        await pilot.press("3")
        await settle(pilot)
        assert 0 < sum(painted.sizes) < SIZE[0] * SIZE[1]


async def test_no_rule_of_the_style_sheet_is_about_the_focus_of_what_is_not_styled_when_the_focus_moves(
    tmp_path: Path,
) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        names = {name for view in app.query(LineView) for name in view._css_type_names}
        for rule in app.stylesheet.rules:
            for selectors in (each.selectors for each in rule.selector_set):
                assert not any("focus-within" in selector.pseudo_classes for selector in selectors[:-1]), rule.css
                assert selectors[-1].name not in names or "focus" not in selectors[-1].pseudo_classes, rule.css


async def test_a_pane_that_one_goes_to_has_followed_the_last_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(navigation, "FOLLOW", 60.0)
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        pane = app.body.query_one(SourcePane)
        shown: list[object] = []
        show = pane.show
        monkeypatch.setattr(pane, "show", lambda state: (shown.append(state.selected), show(state)))
        await pilot.press("j")
        await pilot.pause()
        assert not shown
        await pilot.press("2")
        await pilot.pause()
        assert shown[-1] == app.state.selected


@pytest.mark.parametrize(
    "names",
    [
        "ChopsUpdate,BORDER_CHARS",
        "_on_timer_update",
        "_regions_to_spans,_dirty_widgets,_has_focus_within,_batch_count",
        "_dirty_regions,_repaint_required,chop_ends",
    ],
)
def test_a_textual_without_private_names_gives_a_slower_screen(names: str, tmp_path: Path) -> None:
    shutil.copy(RECORDINGS / "attention.jsonl", tmp_path / "events.jsonl")
    env = {"PYTHONPATH": os.pathsep.join(sys.path), "IDBG_ASCII": "1"}
    terminal = Terminal([sys.executable, str(RENAMED), names, str(tmp_path)], cwd=tmp_path, env=env)
    try:
        terminal.until("permute_1")
        terminal.press("?")
        terminal.until("compile again")
        terminal.press("esc")
        terminal.until("n next")  # the footer of the pane below
        terminal.press("/", "a", "d", "d", "enter")
        terminal.until("11 of 97")
        terminal.press("q")
        assert terminal.wait() == 0
        assert "Traceback" not in terminal.raw.decode(errors="replace")
    finally:
        terminal.close()
