"""Do the list of violations and the selected node follow each other, and is what went told and then forgotten?"""

from pathlib import Path

import pytest
from recorded import app_of
from test_app import DENY, PAD, WIDE, settle, texts

from idbg_tui.panes.violations import ViolationsPane
from idbg_tui.violation_list import Gone, Line


def rows(pane: ViolationsPane) -> list[int]:
    return [row for row, item in enumerate(pane.lines.items) if isinstance(item, Line)]


async def test_a_step_of_the_cursor_selects_the_rows_node_and_a_heading_selects_none(tmp_path: Path) -> None:
    app = app_of("mlp_train", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        pane = app.query_one(ViolationsPane)
        before = app.state.selected
        await pilot.press("4", "g")
        await settle(pilot)
        assert app.state.selected == before and pane.lines.cursor == 0
        await pilot.press("j")
        await settle(pilot)
        line = pane.lines.items[pane.lines.cursor]
        assert isinstance(line, Line) and app.state.selected == line.nodes[0]
        assert line.nodes[0].name in (app.body.panes[3].border_title or "")


async def test_the_cursor_goes_to_the_row_of_a_node_that_was_selected_elsewhere(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        lines = app.query_one(ViolationsPane).lines
        seen = set()
        for _ in range(6):
            await pilot.press("v")
            await settle(pilot)
            line = lines.items[lines.cursor]
            assert isinstance(line, Line) and app.state.selected in line.nodes
            seen.add(lines.cursor)
        assert len(seen) > 1


async def test_what_went_is_at_the_end_and_goes_at_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("idbg_tui.state.ONE_EDIT", 0.0)
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        app.session.edit_rules(PAD + DENY)
        await pilot.pause(0.3)
        app.session.edit_rules(DENY)
        await pilot.pause(0.3)
        lines = app.query_one(ViolationsPane).lines
        gone = [row for row, item in enumerate(lines.items) if isinstance(item, Gone)]
        assert gone == [len(lines.items) - 1]
        assert any("gone:" in row and "alignment" in row and ".py:" in row for row in texts(app, 4)[: len(lines.items)])
        await pilot.press("4", "g", "j")
        await settle(pilot)
        assert not any(isinstance(item, Gone) for item in lines.items)


async def test_what_went_is_forgotten_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("idbg_tui.state.ONE_EDIT", 0.0)
    monkeypatch.setattr("idbg_tui.panes.violations.TOLD", 0.2)
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        app.session.edit_rules(PAD + DENY)
        await pilot.pause(0.3)
        app.session.edit_rules(DENY)
        await pilot.pause(0.6)
        assert not any(isinstance(item, Gone) for item in app.query_one(ViolationsPane).lines.items)
