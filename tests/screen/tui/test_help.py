"""Does the help begin with the keys of the pane that has the focus, list all others too, and filter them?"""

from pathlib import Path

import pytest

from idbg_tui import keymap
from idbg_tui.help import Help, HelpLines
from idbg_tui.palette.screen import Palette
from idbg_tui.widgets.covering import Covering
from idbg_tui.widgets.picker import Picker
from tests.harness.recorded import app_of
from tests.harness.screen import WIDE, bar, settle, until


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
        assert {f"In {pane.label}" for pane in app.body.panes.values()} <= set(groups)
        assert {entry.group for entry in keymap.KEYS} <= set(groups)


async def test_the_help_finds_a_key_of_another_pane_by_its_words(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("question_mark", *"raise")
        await pilot.pause()
        rows = app.screen.query_one(HelpLines).items
        assert rows == ["In Rules", ("In Rules", "+ ^↑", "raise the value")]


@pytest.mark.parametrize("key", ["M", "!", "p"])
async def test_the_help_opens_over_a_list_with_its_keys_first_and_leads_back(tmp_path: Path, key: str) -> None:
    app = app_of("breaking", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("1", key)
        await until(pilot, lambda: isinstance(app.screen, Covering))
        under = app.screen
        assert bar(app, "footer").split() == ["esc", "closes", "?", "help", "^p"]
        await pilot.press("v")  # a key of the panes
        await settle(pilot)
        assert bar(app, "footer").startswith("v is no key of this list: esc closes it") and app.screen is under
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, Help))
        assert isinstance(app.screen, Help)
        entries = app.screen._help_lines._entries
        assert entries[0][0] == "In this list" and entries[0][2] == "close" and "esc" in entries[0][1].split()
        await pilot.press("f1")
        assert len(app.screen_stack) == 3, "not another one over it"
        await pilot.press("escape")
        assert app.screen is under


async def test_the_palette_takes_the_place_of_a_list_and_the_help_opens_over_a_choice(tmp_path: Path) -> None:
    app = app_of("breaking", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("M")
        await until(pilot, lambda: isinstance(app.screen, Covering))
        await pilot.press("ctrl+p")
        await until(pilot, lambda: isinstance(app.screen, Palette))
        assert len(app.screen_stack) == 2
        await pilot.press("escape", "a")
        await until(pilot, lambda: isinstance(app.screen, Picker))
        assert bar(app, "footer").endswith("f1 help ^p")
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, Help))
        await pilot.press("escape")
        assert isinstance(app.screen, Picker)


async def test_a_count_is_found_in_the_help_and_the_palette(tmp_path: Path) -> None:
    app = app_of("breaking", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("question_mark", *"count")
        await settle(pilot)
        assert isinstance(app.screen, Help)
        assert any(":42" in row[1] for row in app.screen._help_lines.items if not isinstance(row, str))
        await pilot.press("escape", "colon", *"count")
        await settle(pilot)
        assert isinstance(app.screen, Palette)
        assert any(":42 goes to row 42 (a count)" in command.title for command in app.screen._listed.items)
