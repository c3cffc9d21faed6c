"""Do the lanes beside a graph's rows show who reads whose value, as a reader follows them with the eye?"""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from idbg.format import glyphs
from idbg.schema.graphs import Graph, Node
from idbg_tui.panes.graph.lanes import FAR, Lanes, Span
from idbg_tui.panes.graph.rows import GraphLines
from tests.harness.recorded import INFERENCE, app_of, state_of
from tests.harness.screen import SMALL, WIDE, settle, texts

UP, DOWN, LEFT, RIGHT = 1, 2, 4, 8
NONE: Span = (0, 0)


def graph_of(*inputs: Sequence[int], op: str = "call_function") -> Graph:
    """A graph whose node k reads the nodes `inputs[k]`."""
    nodes = (
        Node(name=f"n{at}", op=op, target="aten.add.Tensor", inputs=tuple(f"n{one}" for one in reads))  # type: ignore[arg-type]
        for at, reads in enumerate(inputs)
    )
    return Graph(INFERENCE, tuple(nodes))


def lanes_of(graph: Graph) -> Lanes:
    return Lanes(graph, range(len(graph.nodes)), {node.name: at for at, node in enumerate(graph.nodes)})


def picture(graph: Graph) -> list[str]:
    lanes = lanes_of(graph)
    return ["".join(text for text, _ in lanes.drawn((at, at + 1), NONE)) for at in range(len(graph.nodes))]


def makers(rows: list[str], at: int) -> set[int]:
    """The rows from which lines lead down to row `at`."""
    cells = [[glyphs.JOINTS.index(glyph) for glyph in row] for row in rows]
    column = len(rows[at]) - 1
    found = {at - 1} if cells[at][column] & UP else set()
    goes_on = bool(cells[at][column] & LEFT)
    while goes_on and column:
        column -= 1
        bits = cells[at][column]
        if not bits & RIGHT:
            continue  # the line goes on below one that passes
        goes_on = bool(bits & LEFT)
        if bits & UP:
            row = at - 1
            while cells[row][column] & UP:
                row -= 1
            found.add(row)
    return found


def test_a_residual_connection_is_a_lane_around_what_it_skips() -> None:
    assert picture(graph_of([], [0], [1], [2], [3, 0])) == ["╭╮", "││", "││", "││", "╰╯"]


def test_a_chain_needs_no_lanes() -> None:
    graph = state_of("resnet").graph
    assert graph is not None and lanes_of(graph).width > 1
    assert lanes_of(graph_of([], [0], [1], [2])).width == 0


@pytest.mark.parametrize("seed", range(30))
def test_each_node_is_joined_with_what_it_reads(seed: int) -> None:
    draw = random.Random(seed)
    reads = [sorted(draw.sample(range(max(0, at - 5), at), k=min(at, draw.choice((0, 1, 1, 2))))) for at in range(40)]
    graph = graph_of(*reads)
    rows = picture(graph)
    for at, node in enumerate(graph.nodes):
        if glyphs.MARKS["far"] not in rows[at]:  # no lane was free
            assert [f"n{one}" for one in sorted(makers(rows, at))] == list(node.inputs), (at, rows)
    assert sum(glyphs.MARKS["far"] in row for row in rows) < len(rows) // 4


def test_what_has_no_lane_is_marked_as_cut() -> None:
    reads = [[at] for at in range(FAR + 1)]
    rows = picture(graph_of([], *reads, [0, FAR + 1], [FAR + 2], [FAR + 3], [FAR + 4, FAR + 3]))
    cut = [at for at, row in enumerate(rows) if glyphs.MARKS["far"] in row]
    assert cut == [0, FAR + 2]


def test_inputs_and_outputs_have_no_lanes() -> None:
    graph = graph_of([], [0], [1], [0, 2], op="placeholder")
    assert lanes_of(graph).width == 0
    computed = graph_of([], [], [1], [1, 2], [0, 3], [4])
    ends = (replace(computed.nodes[0], op="placeholder"), *computed.nodes[1:5], replace(computed.nodes[5], op="output"))
    assert picture(Graph(INFERENCE, ends)) == ["  ", "╭╮", "││", "╰┤", " │", " ╵"]


def test_the_lanes_to_and_from_the_selected_node_stand_out() -> None:
    graph = graph_of([], [], [0], [1], [2], [3], [4, 5])
    lanes = lanes_of(graph)

    def lit(at: int, focus: Span) -> str:
        return "".join(text for text, style in lanes.drawn((at, at + 1), focus) if style == "lit lane")

    assert lit(3, (3, 4)) and lit(5, (3, 4)) and lit(1, (3, 4)) and lit(2, (3, 4))
    assert not lit(0, (3, 4)) and not lit(6, (3, 4))
    assert lanes.reach((3, 4)) == (1, 6)


async def test_a_folded_module_has_the_lanes_of_its_nodes(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("1", "f")
        await settle(pilot)
        rows = texts(app, "graph")
        assert any("▸" in row and ("╯" in row or "┤" in row) for row in rows)
        lines = app.body.query_one(GraphLines)
        assert all(len(row) >= lines.columns(100).flow for row in rows if row)


async def test_lanes_are_left_out_where_the_pane_is_narrow_and_with_a_key(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        assert any("╰" in row for row in texts(app, "graph"))
        await pilot.press("1", "vertical_line")
        await settle(pilot)
        assert not any("╰" in row for row in texts(app, "graph"))
        lines = app.body.query_one(GraphLines)
        await pilot.press("vertical_line")
        assert lines.columns(78).flow and not lines.columns(30).flow


async def test_a_step_draws_only_rows_that_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=(160, 90)) as pilot:
        await settle(pilot)
        lines, graph = app.body.query_one(GraphLines), app.state.graph
        assert graph is not None
        app.state.choose(graph.node_id("permute_1"))
        app.show()
        await settle(pilot)
        drawn: list[int] = []
        whole = GraphLines.row
        monkeypatch.setattr(GraphLines, "row", lambda self, at, width: (drawn.append(at), whole(self, at, width))[1])
        app.state.choose(graph.node_id("select_2"))
        before = dict(lines._flow_of)
        lines.show_relations(app.state)
        await pilot.pause()
        changed = {at for at, flow in before.items() if flow != lines._flow_beside(at, lines.columns(lines.line_width))}
        assert len(drawn) == len(set(drawn))
        assert changed <= set(drawn) and 2 <= len(changed) <= len(set(drawn)) <= len(changed) + 8
