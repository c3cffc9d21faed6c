"""Whole screens of recorded sessions, as text, at every size that the layout is made for: what a change does to them is
read in the difference. `pytest tests/screen/tui/test_screens.py --snapshot-update` takes them anew: look at each.
"""

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from idbg_tui.app import IdbgApp
from tests.harness.recorded import app_of
from tests.harness.screen import settle

SIZES = ((60, 15), (80, 24), (120, 40), (200, 55), (300, 80))
PANES = {
    "1": "graph",
    "2": "source",
    "3": "node",
    "4": "findings",
    "5": "kernel_diff",
    "7": "log",
    "0": "why",
    "-": "switches",
}


def screen_text(app: IdbgApp) -> str:
    """What the screen shows, a line a row."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: "{}x{}".format(*size))
@pytest.mark.parametrize("name", ["resnet", "planted"])
async def test_the_first_screen(name: str, size: tuple[int, int], snapshot: SnapshotAssertion, tmp_path: Path) -> None:
    app = app_of(name, tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        assert screen_text(app) == snapshot


@pytest.mark.parametrize("size", [(80, 24), (160, 45)], ids=lambda size: "{}x{}".format(*size))
@pytest.mark.parametrize("key", PANES, ids=PANES.get)
async def test_a_pane_alone(key: str, size: tuple[int, int], snapshot: SnapshotAssertion, tmp_path: Path) -> None:
    app = app_of("planted" if key == "5" else "breaking", tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press(key, *(["z"] if size[0] > 110 else []))
        await settle(pilot)
        assert screen_text(app) == snapshot
