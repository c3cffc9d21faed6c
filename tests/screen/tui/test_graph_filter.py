"""Is what a filter leaves under the cursor what is selected, and is the place given back where it found nothing?"""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from idbg_tui.app import IdbgApp
from idbg_tui.controllers.routes import MessageRoutes
from idbg_tui.messages import NodeChosen
from idbg_tui.panes.graph.rows import GraphLines
from tests.harness.recorded import app_of
from tests.harness.screen import settle

SIZE = (120, 40)


def under_cursor(app: IdbgApp) -> str:
    lines = app.body.query_one(GraphLines)
    index = lines.node_at(lines.cursor)
    assert index is not None and lines.graph is not None
    return lines.graph.nodes[index].name


def place(app: IdbgApp) -> tuple[object, ...]:
    lines = app.body.query_one(GraphLines)
    return lines.cursor, lines.scroll_offset.y, lines.row_count, app.state.selected


async def begin_at(app: IdbgApp, pilot: Pilot[None], name: str) -> None:
    await settle(pilot)
    assert app.state.graph is not None and app.state.choose(app.state.graph.node_id(name))
    app.show()
    await settle(pilot)
    await pilot.press("1")


@pytest.mark.parametrize("begin", ["permute_1", "clone"])
async def test_the_row_under_the_cursor_is_selected_however_late_the_app_hears_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begin: str
) -> None:
    """As when letters come faster than choices are taken in: each choice is held back until all is typed."""
    app = app_of("attention", tmp_path)
    late: list[NodeChosen] = []
    async with app.run_test(size=SIZE) as pilot:
        await begin_at(app, pilot, begin)
        with monkeypatch.context() as held:
            held.setattr(MessageRoutes, "on_node_chosen", lambda app, message: late.append(message))
            await pilot.press("slash", *"op:perm", "enter")
            await pilot.pause()
        for message in late:
            app.on_node_chosen(message)
        await settle(pilot)
        assert app.state.selected is not None
        assert app.state.selected.name == under_cursor(app) and under_cursor(app).startswith("permute")
        await pilot.press("escape")
        await settle(pilot)
        assert app.state.selected.name == under_cursor(app) and under_cursor(app).startswith("permute")


@pytest.mark.parametrize(
    "end",
    [("enter", "escape"), ("escape",), ("enter", "slash", "escape"), (*["backspace"] * 7, "enter")],
    ids=["found nothing", "given up", "opened again and given up", "emptied"],
)
async def test_a_filter_that_found_nothing_gives_back_the_place_before_the_filters(
    tmp_path: Path, end: tuple[str, ...]
) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("1", *"jjjjjj")
        await settle(pilot)
        before = place(app)
        await pilot.press("slash", *"k:0", "enter")
        await settle(pilot)
        assert app.state.selected is not None and app.state.selected.name == under_cursor(app)
        assert app.state.selected != before[-1]
        await pilot.press("slash", *"op:conv", *end[:1])
        await settle(pilot)
        assert app.state.selected == before[-1]  # nothing is found: nothing else is selected
        await pilot.press(*end[1:])
        await settle(pilot)
        assert place(app) == before


async def test_a_match_that_the_user_went_to_is_the_place_to_come_back_to(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("1", "slash", *"k:0", "enter", "j", "j")
        await settle(pilot)
        there = under_cursor(app)
        await pilot.press("slash", *"zzz", "enter", "escape")
        await settle(pilot)
        assert app.state.selected is not None
        assert app.state.selected.name == there == under_cursor(app)
