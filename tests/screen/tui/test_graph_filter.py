"""Is what a filter leaves under the cursor what is selected, and is the place given back where it found nothing?"""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from idbg.analysis.neighbours import distances
from idbg_tui.app import IdbgApp
from idbg_tui.controllers.routes import MessageRoutes
from idbg_tui.messages import NodeChosen
from idbg_tui.panes.graph.rows import GraphLines
from tests.harness.recorded import app_of
from tests.harness.screen import settle, texts

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


async def test_matches_stand_under_the_path_of_their_module(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=(160, 60)) as pilot:
        await begin_at(app, pilot, "convolution")
        await pilot.press("slash", *"op:relu", "enter")
        await settle(pilot)
        rows = [row for row in texts(app, "graph") if row]
        assert any("layer1.0" in row and "2 of 33 nodes" in row for row in rows)
        paths = {row.split()[0] for row in rows if " of " in row and " nodes" in row}
        assert {"layer1.0", "layer1.1", "layer4.1"} <= paths
        lines = app.body.query_one(GraphLines)
        assert lines.graph is not None
        for at in range(lines.row_count):
            index, heading = lines.node_at(at), lines.heading_of(at)
            if index is not None and heading is not None:
                assert lines.graph.nodes[index].module.startswith(lines.outline.headings[heading].path)


async def test_n_goes_to_matches_and_over_the_paths(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await begin_at(app, pilot, "relu")
        await pilot.press("slash", *"op:relu", "enter")
        for _ in range(4):
            await pilot.press("n")
            await settle(pilot)
            assert under_cursor(app).startswith("relu")
        assert under_cursor(app) == "relu_4"


async def test_a_path_among_the_matches_is_the_module(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await begin_at(app, pilot, "relu_1")
        await pilot.press("slash", *"op:relu", "enter", "k")
        await settle(pilot)
        assert app.state.heading is not None and app.state.heading.path == "layer1.0"
        await pilot.press("escape")
        await settle(pilot)
        assert not any(" of 33 nodes" in row for row in texts(app, "graph"))


async def test_the_neighbourhood_is_what_is_two_steps_around_a_node_and_moves_with_it(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await begin_at(app, pilot, "select_1")
        graph = app.state.graph
        assert graph is not None
        await pilot.press("at")
        await settle(pilot)
        lines = app.body.query_one(GraphLines)

        def shown() -> set[str]:
            found = [lines.node_at(row) for row in range(lines.row_count)]
            return {graph.nodes[index].name for index in found if index is not None}

        assert under_cursor(app) == "select_1"
        assert shown() == {name for name, far in distances(graph, "select_1", 2).items() if far <= 2}
        assert "permute_1" in shown() and "select_2" in shown() and "var_mean" not in shown()
        assert "near:select_1" in str(app.body.panes["graph"].border_title)
        for _ in range(3):
            await pilot.press("i")
            await settle(pilot)
        assert under_cursor(app) in shown() and shown() < set(graph.by_name)
        await pilot.press("escape")
        await settle(pilot)
        assert "var_mean" in shown()
