"""Do the names on the screen answer a click: tabs, stages, views?"""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from idbg_tui.app import IdbgApp
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


@pytest.mark.parametrize("size", [WIDE, SMALL])
@pytest.mark.parametrize(("words", "pane"), [("7 Log", "log"), ("6 Bench", "benchmarks"), ("0 Why", "why")])
async def test_a_click_on_a_tab_goes_to_its_pane(tmp_path: Path, size: tuple[int, int], words: str, pane: str) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await click_on(app, pilot, words)
        assert app.body.current == pane and app.body.panes[pane].focus_target().has_focus  # type: ignore[index]


async def test_a_click_on_a_stage_shows_it(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        for name, stage in ((" post-grad ", "post_grad"), (" dynamo ", "dynamo"), (" inference ", "inference")):
            await click_on(app, pilot, name)
            assert app.state.graph_id is not None and app.state.graph_id.stage == stage


@pytest.mark.parametrize(
    ("keys", "words", "pane", "view"),
    [
        ("2", " wrapper ", "source", "_view"),
        ("0", "guards", "why", "view"),
        ("-", " two runs ", "switches", "view"),
        ("8", " relax ", "rules", "view"),
    ],
)
async def test_a_click_on_a_view_shows_it(tmp_path: Path, keys: str, words: str, pane: str, view: str) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("minus" if keys == "-" else keys, "1")
        await settle(pilot)
        before = getattr(app.body.panes[pane], view)  # type: ignore[index]
        await click_on(app, pilot, words)
        shown = app.body.panes[pane]  # type: ignore[index]
        assert app.body.current == pane and getattr(shown, view) != before
        assert getattr(shown, view) in shown.views
