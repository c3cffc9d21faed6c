"""Does the pane "Why" have its place, its views, and a sentence where there is nothing to list?"""

from pathlib import Path

import pytest

from idbg_tui.layout import TabLine
from idbg_tui.panes.why.pane import WhyPane
from idbg_tui.panes.why.views import VIEWS
from tests.harness.recorded import app_of
from tests.harness.screen import SMALL, WIDE, settle, texts


@pytest.mark.parametrize("size", [WIDE, SMALL, (120, 40)])
async def test_0_goes_there_and_brackets_go_through_the_views(size: tuple[int, int], tmp_path: Path) -> None:
    app = app_of("mlp_train", tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("0")
        await settle(pilot)
        pane = app.query_one(WhyPane)
        assert app.body.current == "why" and pane.display and pane.heading().plain.startswith("0 Why")
        seen = [pane.view]
        for _ in VIEWS[1:]:
            await pilot.press("]")
            seen.append(pane.view)
        assert tuple(seen) == VIEWS
        await pilot.press("]", "[")
        assert pane.view == VIEWS[-1]


async def test_every_pane_is_named_in_80_columns(tmp_path: Path) -> None:
    app = app_of("breaking", tmp_path)
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        await pilot.press("0")
        await settle(pilot)
        line = app.query_one(TabLine).render().plain
        assert all(name in line for name in ("1Gra", "4 Find 14", "9Rep", "0 Why 3", "-Swi")) and len(line) <= 78


async def test_a_view_with_nothing_to_list_says_so_in_one_line(tmp_path: Path) -> None:
    app = app_of("mlp_train", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("0", "]")
        pane = app.query_one(WhyPane)
        rows = [row for row in texts(app, "why") if row.strip()]
        assert len(rows) == 1 and pane.lines.empty in rows[0] and not pane.lines.items
