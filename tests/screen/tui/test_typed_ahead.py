"""Keys that arrive together are answered one after the other, each by what the one before has put there."""

from pathlib import Path

from textual import events
from textual.pilot import Pilot

from idbg_tui.app import IdbgApp
from idbg_tui.panes.rules.pane import RulesPane
from idbg_tui.widgets.picker import Choices
from tests.harness.recorded import app_of
from tests.harness.screen import SMALL, WIDE, settle, until


def burst(app: IdbgApp, *keys: str) -> None:
    """Keys as a terminal's reader posts them: all of them before the first is looked at."""
    for key in keys:
        app.post_message(events.Key(key, key if len(key) == 1 else None))


def rules(app: IdbgApp) -> RulesPane:
    pane = app.body.panes["rules"]
    assert isinstance(pane, RulesPane)
    return pane


async def at_rest(pilot: Pilot[None], app: IdbgApp) -> None:
    """Wait until the keys were looked at, and what they led to is done."""
    await until(pilot, lambda: not app.message_queue_size and not app.keys_typed._waiting)
    await settle(pilot)


async def test_a_key_after_that_of_a_pane_goes_to_that_pane(tmp_path: Path) -> None:
    for size in (WIDE, SMALL):
        folder = tmp_path / str(size[0])
        folder.mkdir()
        app = app_of("attention", folder)
        async with app.run_test(size=size) as pilot:
            await settle(pilot)
            await pilot.press("8")
            await settle(pilot)
            before = rules(app).document.text
            burst(app, "8", "1", "D")
            await at_rest(pilot, app)
            assert app.body.current == "graph" and app.focused is app.body.panes["graph"].focus_target()
            assert rules(app).document.text == before


async def test_text_after_the_key_that_asks_for_it_stands_in_its_line(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        target = app.state.target
        burst(app, "slash", *"bads", "enter", "7", "slash", *"graph")
        await until(pilot, lambda: app.body.current == "log" and getattr(app.focused, "value", "") == "graph")
        assert app.state.target == target  # b, a, d and s are keys too, but were text
        burst(app, "escape", "1", "ctrl+p", *"go to log")
        await until(pilot, lambda: getattr(app.focused, "value", "") == "go to log")


async def test_letters_after_the_key_of_a_list_make_it_shorter(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        burst(app, "a", *"tpu")
        await until(pilot, lambda: getattr(app.focused, "value", "") == "tpu")
        assert next(name for name, _ in app.screen.query_one(Choices).items) == "tpu"


async def test_nobody_waits_for_ever_for_a_widget_that_is_gone(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        app.keys_typed._go_up = lambda *_: None  # type: ignore[method-assign,assignment]
        burst(app, "7", "1")
        await until(pilot, lambda: app.body.current == "graph" and not app.keys_typed._waiting)
