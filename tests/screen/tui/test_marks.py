"""Does a mark lead back to its place, from any pane, and take its letter before that means anything else?"""

from pathlib import Path

import pytest
from textual import events

from tests.harness.recorded import app_of
from tests.harness.screen import SMALL, WIDE, bar, settle, until


@pytest.mark.parametrize("size", [WIDE, SMALL])
async def test_a_mark_in_the_graph_leads_back_to_its_node_from_another_pane(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        node, target = app.state.selected, app.state.target
        await pilot.press("m", "b")  # b chooses the backend elsewhere
        await pilot.press("G", "7", "apostrophe", "b")
        await settle(pilot)
        assert app.body.current == "graph" and app.state.selected == node
        assert len(app.screen_stack) == 1 and app.state.target == target


async def test_keys_that_come_at_once_are_a_mark_and_its_letter(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        node, target = app.state.selected, app.state.target
        for key in ("m", "b", "G", "7", "apostrophe", "b"):
            app.post_message(events.Key(key, key if len(key) == 1 else None))
        await until(pilot, lambda: not app.message_queue_size and not app.keys_typed._waiting)
        await settle(pilot)
        assert app.body.current == "graph" and app.state.selected == node
        assert len(app.screen_stack) == 1 and app.state.target == target


async def test_a_mark_in_a_list_leads_back_to_its_row(tmp_path: Path) -> None:
    app = app_of("planted", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("5", "G", "k", "m", "d", "g", "1")
        pane = app.body.panes["kernel_diff"]
        lines = pane.lines  # type: ignore[attr-defined]
        first = lines.chosen.key
        await pilot.press("apostrophe", "d")
        await settle(pilot)
        assert app.body.current == "kernel_diff" and lines.chosen.key != first
        assert lines.cursor >= lines.row_count - 3


async def test_a_key_that_is_no_letter_ends_it_and_means_what_it_always_does(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        cursor = app.body.panes["graph"].lines.cursor  # type: ignore[attr-defined]
        await pilot.press("m", "down")
        await settle(pilot)
        assert app.body.panes["graph"].lines.cursor == cursor + 1  # type: ignore[attr-defined]
        await pilot.press("apostrophe", "q")
        await settle(pilot)
        assert app.is_running and "there is no mark q: m q sets it" in bar(app, "footer")


async def test_two_apostrophes_go_back_and_control_i_forward(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        before = app.state.selected
        await pilot.press("i")
        await settle(pilot)
        after = app.state.selected
        assert after != before
        await pilot.press("apostrophe", "apostrophe")
        await settle(pilot)
        assert app.state.selected == before
        await pilot.press("ctrl+i")
        await settle(pilot)
        assert app.state.selected == after and app.body.current == "graph"
