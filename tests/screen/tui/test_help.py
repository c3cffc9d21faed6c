"""Does the help begin with the keys of the pane that has the focus, list all others too, and filter them?"""

from pathlib import Path

import pytest

from idbg_tui import keymap
from idbg_tui.help import Help, HelpLines
from tests.harness.recorded import app_of
from tests.harness.screen import WIDE, settle


@pytest.mark.parametrize(("key", "group", "own"), [("1", "In Graph", "filter the nodes"), ("5", "In KernelDiff", "D")])
async def test_the_focused_panes_keys_come_first_and_then_all_others(
    tmp_path: Path, key: str, group: str, own: str
) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press(key, "question_mark")
        assert isinstance(app.screen, Help)
        rows = app.screen.query_one(HelpLines).items
        groups = [row for row in rows if isinstance(row, str) and row]
        first = [row for row in rows if row[:1] == (group,)]
        assert groups[0] == group and groups[1] == "Moving" and groups.count(group) == 1
        assert own in {row[1] for row in first} | {row[2] for row in first}
        assert {f"In {pane.LABEL}" for pane in app.body.panes.values()} <= set(groups)
        assert {entry.group for entry in keymap.KEYS} <= set(groups)


async def test_the_help_finds_a_key_of_another_pane_by_its_words(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("question_mark", *"raise")
        await pilot.pause()
        rows = app.screen.query_one(HelpLines).items
        assert rows == ["In Rules", ("In Rules", "+ ^↑", "raise the value")]
