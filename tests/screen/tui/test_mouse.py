"""Do the names on the screen answer a click: tabs, stages, views?"""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from idbg_tui.app import IdbgApp
from idbg_tui.panes.base import PaneId
from tests.harness.recorded import app_of
from tests.harness.screen import SMALL, WIDE, settle


async def click_on(app: IdbgApp, pilot: Pilot[None], words: str) -> None:
    """Click where the words are on the screen, the first of them."""
    for y, strip in enumerate(app.screen._compositor.render_strips()):
        if y and (x := strip.text.find(words)) >= 0:  # below the header
            await pilot.click(offset=(x + 1, y))
            await settle(pilot)
            return
    pytest.fail(f"{words} is not on the screen")


TABS: dict[str, PaneId] = {"7 Log": "log", "6 Bench": "benchmarks", "0 Why": "why"}
LETTERS: dict[str, PaneId] = {"7Log": "log", "6Ben": "benchmarks", "0Why": "why"}


@pytest.mark.parametrize(("size", "tabs"), [(WIDE, TABS), (SMALL, LETTERS)])
async def test_a_click_on_a_tab_goes_to_its_pane(
    tmp_path: Path, size: tuple[int, int], tabs: dict[str, PaneId]
) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        for words, pane in tabs.items():
            await click_on(app, pilot, words)
            assert app.body.current == pane and app.body.panes[pane].focus_target().has_focus, words
            await pilot.press("1")
            await settle(pilot)
            assert app.body.current == "graph"


async def test_a_click_on_a_stage_shows_it(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        for name, stage in ((" post-grad ", "post_grad"), (" dynamo ", "dynamo"), (" inference ", "inference")):
            await click_on(app, pilot, name)
            assert app.state.graph_id is not None and app.state.graph_id.stage == stage


VIEWS: dict[PaneId, tuple[str, str, str]] = {
    "source": ("2", " wrapper ", "_view"),
    "why": ("0", "guards", "view"),
    "switches": ("minus", " two runs ", "view"),
    "rules": ("8", " relax ", "view"),
}
"""Of each pane its key, a name on the screen, and where the view is."""


async def test_a_click_on_a_view_shows_it(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        for pane, (key, words, view) in VIEWS.items():
            await pilot.press(key, "1")
            await settle(pilot)
            shown = app.body.panes[pane]
            before = getattr(shown, view)
            await click_on(app, pilot, words)
            assert app.body.current == pane and getattr(shown, view) != before, words
            assert getattr(shown, view) in shown.views
