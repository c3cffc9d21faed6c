"""Does the palette take every key, also where nothing is found?"""

from pathlib import Path

import pytest
from textual.command import CommandPalette
from textual.widgets import OptionList

from tests.harness.recorded import app_of
from tests.harness.screen import until


@pytest.mark.parametrize(("typed", "key"), [("zzqqzz", "pagedown"), ("zzqqzz", "enter"), ("relu", "pageup")])
async def test_a_key_in_a_palette_that_found_nothing_or_is_still_finding_ends_nothing(
    tmp_path: Path, typed: str, key: str
) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("ctrl+p", *typed)
        await pilot.press(key)  # while it looks
        await pilot.pause(0.6)
        if typed == "zzqqzz":
            assert CommandPalette.is_open(app)  # type: ignore[arg-type]
        await pilot.press(key, key, "escape", "escape")
        await pilot.pause(0.05)
        assert not CommandPalette.is_open(app) and app.is_running  # type: ignore[arg-type]


async def test_enter_runs_what_was_typed_and_not_what_was_found_before(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("ctrl+p", *"go to kerneldiff", "enter")
        await until(pilot, lambda: app.body.current == "kernel_diff")
        assert not CommandPalette.is_open(app) and app.body.current == "kernel_diff"  # type: ignore[arg-type]


async def test_a_page_in_a_list_with_no_line_on_the_screen_ends_nothing(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("ctrl+p")
        await pilot.pause(0.3)
        await pilot.resize_terminal(20, 3)
        await pilot.press("pagedown", "pageup")
        app.screen.query_one(OptionList).display = False
        await pilot.resize_terminal(80, 24)
        await pilot.press("r", "pagedown", "pageup")
        await pilot.pause(0.3)
        assert app.is_running
