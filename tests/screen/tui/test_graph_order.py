"""Can the nodes of a graph be sorted by each of its columns, and put under their modules again?"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from idbg.views.tree import UNSORTED
from idbg_tui.app import IdbgApp
from idbg_tui.panes.graph.columns import GraphColumns, head_at, heads
from idbg_tui.panes.graph.heads import GraphHeads
from idbg_tui.panes.graph.order import USUAL, in_order, natural
from idbg_tui.panes.graph.pane import GraphPane
from idbg_tui.panes.graph.rows import GraphLines
from idbg_tui.widgets.picker import Picker
from tests.harness.benched import with_every_launch
from tests.harness.recorded import app_of, count
from tests.harness.screen import SMALL, WIDE, bar, settle, texts, until


def names(app: IdbgApp) -> list[str]:
    """Of all rows, in their order; "" for a module's."""
    lines = app.body.query_one(GraphLines)
    assert lines.graph is not None
    at = (lines.node_at(row) for row in range(lines.row_count))
    return ["" if index is None else lines.graph.nodes[index].name for index in at]


def first_row(app: IdbgApp) -> str:
    return next(row for row in texts(app, "graph") if "\u25cf" in row)


def rendered(app: IdbgApp) -> str:
    return str(app.body.query_one(GraphHeads).render())


async def sort(pilot: Pilot[None], app: IdbgApp, name: str) -> None:
    await pilot.press("s")
    await until(pilot, lambda: isinstance(app.screen, Picker))
    await pilot.press(*("space" if letter == " " else letter for letter in name), "enter")
    await until(pilot, lambda: not isinstance(app.screen, Picker))
    await settle(pilot)


def test_numbers_in_names_are_sorted_as_numbers() -> None:
    texts = ["conv_10", "conv_2", "conv", "add", "conv_2_1"]
    assert sorted(texts, key=lambda text: natural(text) or ()) == ["add", "conv", "conv_2", "conv_2_1", "conv_10"]
    assert natural("") is None


@pytest.mark.parametrize(("direction", "order"), [("down", [2, 4, 0, 1, 3]), ("up", [0, 2, 4, 1, 3])])
def test_what_has_no_value_is_last_and_equals_are_in_the_order_of_the_program(
    direction: str, order: Sequence[int]
) -> None:
    values = {0: (1.0,), 1: None, 2: (2.0,), 3: None, 4: (2.0,)}
    assert in_order(range(5), values.__getitem__, direction) == order  # type: ignore[arg-type]


def test_the_arrow_moves_no_head_and_a_cell_belongs_to_its_column() -> None:
    columns = GraphColumns(20, 9, 9, 9, 5, 4, 6, 5, file=8, memory=9, module=8)
    plain = "".join(text for text, _ in heads(columns))
    for name in USUAL:
        at = plain.index(f" {name}") + 1
        assert [head_at(columns, x) for x in (at - 1, at, at + len(name) - 1)] == [name] * 3
        marked = "".join(text for text, _ in heads(columns.sorted_by((name, "down"))))
        if columns.sorted_by((name, "down")).module == columns.module:
            assert marked == plain[: at - 1] + "\u2193" + plain[at:]
    assert head_at(columns, len(plain) + 9) == ""
    assert not {"\u2191", "\u2193"} & set("".join(text for text, _ in heads(replace(columns, tint=1))))


@pytest.mark.parametrize("size", [WIDE, SMALL])
async def test_a_key_sorts_the_nodes_and_esc_puts_them_under_their_modules_again(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        before = names(app)
        await sort(pilot, app, "op")
        nodes = [name for name in names(app) if name]
        assert len(nodes) == len(app.state.graph.nodes) == len(names(app))  # type: ignore[union-attr]
        graph = app.state.graph
        assert graph is not None
        ops = [graph.by_name[name].target for name in nodes if graph.by_name[name].op == "call_function"]
        assert [ops[at] == ops[at - 1] for at in range(1, len(ops))].count(False) == len(set(ops)) - 1
        assert "\u2191op" in rendered(app) and "by op" in str(app.body.query_one(GraphPane).border_title)
        assert app.state.selected == graph.node_id(nodes[0])
        await pilot.press("escape")
        await settle(pilot)
        assert [name for name in names(app) if name] and "" in names(app) and set(before) <= {*nodes, ""}
        assert app.body.query_one(GraphLines).order == UNSORTED and app.state.selected == graph.node_id(nodes[0])
        assert "\u2191" not in rendered(app)


async def test_a_click_on_a_head_sorts_then_turns_round_then_is_as_it_was(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=(200, 55)) as pilot:
        await settle(pilot)
        lines, x = app.body.query_one(GraphLines), rendered(app).index("tensor") + 2
        assert app.state.graph is not None
        node = app.state.graph.by_name

        async def clicked() -> list[int]:
            await pilot.click(GraphHeads, offset=(x if lines.order == UNSORTED else rendered(app).index("tensor"), 0))
            await settle(pilot)
            return [sum(tensor.nbytes or 0 for tensor in node[name].tensors) for name in names(app) if name]

        down = await clicked()
        assert down == sorted(down, reverse=True) and "\u2193tensor" in rendered(app)
        sized = [nbytes for nbytes in await clicked() if nbytes]
        assert sized == sorted(sized) and "\u2191tensor" in rendered(app)
        await clicked()
        assert lines.order == UNSORTED and "" in names(app)


async def test_sorted_nodes_have_their_modules_beside_them_and_say_why_nothing_folds(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await sort(pilot, app, "tensor")
        assert "module" in rendered(app) and any("layer1.0" in row for row in texts(app, "graph"))
        rows = names(app)
        for key in ("f", "h", "enter"):
            await pilot.press(key)
            await settle(pilot)
            assert names(app) == rows
        await pilot.press("f")
        assert "esc puts the nodes under their modules again" in bar(app, "footer")


async def test_a_filter_and_an_order_work_together_and_esc_ends_the_filter_first(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await sort(pilot, app, "line")
        await pilot.press("slash", *"relu", "enter")
        await settle(pilot)
        found = names(app)
        assert found and all("relu" in name for name in found)
        graph = app.state.graph
        assert graph is not None
        placed = [graph.by_name[name].line for name in found if graph.by_name[name].file.endswith("resnet.py")]
        assert placed == sorted(placed)
        await pilot.press("escape")
        await settle(pilot)
        assert len(names(app)) == len(graph.nodes) and app.body.query_one(GraphLines).order[0] == "line"
        await pilot.press("escape")
        await settle(pilot)
        assert "" in names(app)


async def test_only_what_is_known_can_be_sorted_by_and_new_times_sort_again(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=(200, 55)) as pilot:
        await settle(pilot)
        lines = app.body.query_one(GraphLines)
        assert "time" not in lines.sortable and {"node", "op", "tensor", "memory", "module"} <= set(lines.sortable)
        with_every_launch(app.state)
        app.show()
        await settle(pilot)
        assert "time" in lines.sortable
        await sort(pilot, app, "time")
        graph = lines.graph
        assert graph is not None
        figures = lines.figures(graph)

        def time_of(row: int) -> float:
            at = lines.node_at(row)
            assert at is not None
            return sum(time.median_us for time in figures.times(figures.firsts(at, figures.launches(at))))

        times = [time_of(row) for row in range(lines.row_count)]
        assert times == sorted(times, reverse=True) and times[0] > times[1] > 0 and times[-1] == 0


async def test_memory_has_a_column_where_there_is_room_and_when_the_nodes_are_sorted_by_it(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        count(app.state)
        app.show()
        await settle(pilot)
        assert "memory" not in rendered(app)
        await sort(pilot, app, "memory")
        assert "\u2193memory" in rendered(app) and "MiB" in first_row(app)
        profile = app.state.costs.profile(app.state.graph)  # type: ignore[arg-type]
        lines = app.body.query_one(GraphLines)
        assert profile is not None and lines.node_at(0) == profile.live_bytes.index(max(profile.live_bytes))
