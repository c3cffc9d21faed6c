"""Does a node read as one line whose columns stay put and fit?"""

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec.structs import replace as with_

from idbg.analysis.outline import ModuleHeading
from idbg.analysis.partition import HOST
from idbg.schema.code import Kernel
from idbg.schema.graphs import Node, NodeId, TensorMeta
from idbg.views.graphs import op_of, shape_of
from idbg_tui.panes.graph.columns import (
    GraphColumns,
    RowFacts,
    alike_words,
    heading_row,
    heads,
    kernel_mark,
    measure,
    node_row,
    side_mark,
)
from idbg_tui.panes.graph.rows import GraphLines
from idbg_tui.state import navigation, queries
from idbg_tui.widgets.cutting import cut_name, cut_shape
from idbg_tui.widgets.lines import StyledRow
from tests.harness.recorded import app_of, state_of
from tests.harness.rule_texts import FALL
from tests.harness.screen import SMALL, WIDE, settle, texts, until
from tests.harness.work import lines_run


def text(row: StyledRow) -> str:
    return "".join(piece for piece, _ in row)


def node(name: str = "relu_1", target: str = "aten.relu.default", op: str = "call_function") -> Node:
    tensor = TensorMeta("float32", (1, 64), (64, 1))
    return Node(name=name, op=op, target=target, tensors=(tensor,), line=143, file="m.py")  # type: ignore[arg-type]


def kernel(name: str, source: str = "text") -> Kernel:
    return Kernel(frame="0/0", part="inference", name=name, language="cpp", source=source)


@pytest.mark.parametrize(
    ("target", "op", "words"),
    [
        ("aten.convolution.default", "call_function", "convolution"),
        ("aten.add.Tensor", "call_function", "add.Tensor"),
        ("torch.nn.functional.relu", "call_function", "relu"),
        ("view", "call_method", "view"),
        ("weight", "get_attr", "get_attr"),
        ("output", "output", "output"),
    ],
)
def test_an_op_is_called_by_its_short_name(target: str, op: str, words: str) -> None:
    assert op_of(node(target=target, op=op)) == words


def test_a_shape_of_thousands_of_dimensions_is_cut_at_once() -> None:
    shown, work = lines_run(lambda: cut_shape(f"f32[{','.join(['2'] * 5000)}]", 30))
    assert shown.startswith("f32[2,2,2,") and shown.endswith(",2,2,2]") and 28 <= len(shown) <= 30
    assert work < 500  # every length was tried, from the longest down


def test_a_shape_says_how_many_more_there_are() -> None:
    tensor = TensorMeta("float32", (8,))
    two = Node(name="n", op="call_function", target="aten.var_mean.correction", tensors=(tensor, tensor))
    assert shape_of(two) == "f32[8] +1"
    assert shape_of(Node(name="n", op="output", target="output")) == ""


@pytest.mark.parametrize(
    ("kernels", "mark"),
    [
        ([], ""),
        ([kernel("cpp_fused_relu_12")], "k12"),
        ([kernel("cpp_fused_relu_1"), kernel("cpp_fused_sum_2")], "k1+"),
        ([kernel("cpp_fused_relu_1"), kernel("cpp_fused_relu_1")], "k1"),
        ([kernel("extern_kernels.mm", "")], "ext"),
    ],
)
def test_a_kernel_is_marked_by_its_number(kernels: list[Kernel], mark: str) -> None:
    assert kernel_mark(kernels) == mark


def test_a_violation_has_a_sign_and_a_word_beside_its_colour() -> None:
    row = node_row(node(), 0, RowFacts(severity="pad", words="align"), GraphColumns())
    assert ("◇ align", "pad") in [(piece.strip(), style) for piece, style in row]


def test_inputs_and_users_of_the_selected_node_are_marked_in_the_gutter() -> None:
    assert text(node_row(node(), 0, RowFacts(relation="input"), GraphColumns())).startswith(" ↑relu")
    assert text(node_row(node(), 0, RowFacts(relation="user", marked=True), GraphColumns())).startswith("▌↓")


@pytest.mark.parametrize("width", [30, 40, 60, 78, 100, 158])
def test_every_row_of_a_real_graph_fits_and_its_columns_are_in_line(width: int) -> None:
    graph = state_of("resnet").graph
    assert graph is not None
    columns = measure(graph.nodes, [3] * len(graph.nodes)).within(width)
    rows = [text(node_row(one, 3, RowFacts("", False, "reject", "align+1", "k12+"), columns)) for one in graph.nodes]
    assert max(map(len, rows)) <= width
    if columns.verdict > 2:
        assert len({row.index("✘") for row in rows}) == 1


def test_a_shape_is_never_cut_while_a_name_can_give_way() -> None:
    columns = GraphColumns(name=40, op=20, shape=20, verdict=9, kernel=4, line=5)
    narrow = columns.within(57)
    assert narrow.shape == 20 and (narrow.op, narrow.line) == (0, 0) and narrow.total == 57
    assert columns.within(80).shape == 20
    assert columns.within(80).name < 40


@pytest.mark.parametrize("width", [44, 58, 78, 118, 158])
def test_heads_stand_over_their_columns(width: int) -> None:
    columns = GraphColumns(name=40, op=20, shape=20, verdict=9, kernel=4, time=6, error=5, line=5, source=30).within(
        width
    )
    head = text(heads(columns))
    facts = RowFacts(severity="reject", words="align", kernel="k12", time="1.23ms", error="3e-02")
    row = text(node_row(with_(node(), code="y = relu(x)"), 0, facts, columns))
    assert max(len(head), len(row)) <= width
    for name, cell in (("tensor", "f32"), ("rule", "✘"), ("kern", "k12"), ("source", "y = ")):
        assert (name in head) == (cell in row) and head.find(name) == row.find(cell)
    for name, cell in (("time", "1.23ms"), ("error", "3e-02"), (" line", ":143")):
        assert (name in head) == (cell in row)
        assert name not in head or head.index(name) + len(name) == row.index(cell) + len(cell)


def test_where_names_do_not_tell_the_op_the_op_goes_last() -> None:
    dynamo = [node(f"out_{number}", "torch.conv2d") for number in range(9)]
    told = [node(f"convolution_{number}", "aten.convolution.default") for number in range(9)]
    assert measure(dynamo, [3] * 9).nameless and not measure(told, [3] * 9).nameless
    columns = GraphColumns(name=40, op=20, shape=20, verdict=9, kernel=4, line=5)
    assert (columns.within(48).op, replace(columns, nameless=True).within(48).op) == (0, 10)


def test_room_to_spare_goes_to_long_names_and_then_to_the_users_text() -> None:
    columns = GraphColumns(name=40, longest=60, op=10, shape=20, verdict=0, side=0, kernel=0, line=5, source=50)
    assert (columns.within(101).name, columns.within(101).source) == (60, 0)
    assert (columns.within(160).name, columns.within(160).source) == (60, 50)


async def test_a_kernels_time_stands_once_at_the_first_of_its_nodes(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        lines, run = app.body.query_one(GraphLines), app.state.shown
        assert run is not None
        kernel = next(kernel for kernel in run.kernels if len(kernel.nodes) > 9 and len(kernel.calls) == 1)
        navigation.choose_kernel(app.state, kernel.frame, kernel.part, kernel.name)
        indices = sorted(lines._index[name] for name in queries.marked_nodes(app.state))
        assert (
            len(indices) > 1
            and lines.graph is not None
            and lines.figures(lines.graph)._first(kernel, kernel.calls[0]) == indices[0]
        )


@pytest.mark.parametrize(
    ("width", "cut"),
    [
        (20, "f32[1,256,14,1024]"),
        (17, "f32[1,256,…,1024]"),
        (13, "f32[1,…,1024]"),
        (12, "f32[1,…]"),
        (6, "f32[…]"),
    ],
)
def test_a_shape_is_cut_between_its_numbers(width: int, cut: str) -> None:
    assert cut_shape("f32[1,256,14,1024]", width) == cut


def test_the_selected_node_or_the_heading_that_hides_it_bears_a_mark() -> None:
    assert text(node_row(node(), 0, RowFacts(selected=True), GraphColumns())).startswith(" ●relu")
    heading = ModuleHeading("layers.1", "1", "Block", 0, 10, 20, -1)
    assert text(heading_row(heading, {}, GraphColumns(24), folded=True, hides=True)).startswith(" ●▸ 1")


def test_a_folded_heading_says_how_many_nodes_and_violations_it_hides() -> None:
    heading = ModuleHeading("layers.1", "1", "Block", 1, 10, 1210, 0, twin="0")
    row = text(heading_row(heading, {"reject": 2, "pad": 1}, GraphColumns(24, 12, 16), folded=True))
    assert "▸ 1" in row and "same as 0" in row and "1,200 nodes" in row and "✘ 3" in row
    assert "▾" in text(heading_row(heading, {}, GraphColumns(24, 12, 16), folded=False))


def test_a_heading_goes_on_over_the_tensors_where_its_words_need_it_and_keeps_its_count() -> None:
    heading = ModuleHeading("layers.1", "1..11", "", 0, 0, 484, -1, "0", alike=11)
    narrow = text(heading_row(heading, {"pad": 3}, GraphColumns(16, 0, 20), folded=True))
    wide = text(heading_row(heading, {"pad": 3}, GraphColumns(30, 0, 20), folded=True))
    for row in (narrow, wide):
        assert "1..11  ×11 same as 0" in row and "484 nodes" in row
    assert narrow.index("◇") + 14 == wide.index("◇")


@pytest.mark.parametrize(
    ("alike", "twin", "differing", "words"),
    [
        (0, "", (), ""),
        (12, "", (), "Block ×12 alike"),
        (0, "0", (), "same as 0"),
        (11, "0", (), "×11 same as 0"),
        (11, "0", (7,), "×11 as 0, 1 node differs"),
        (0, "0", (7, 8), "as 0, 2 nodes differ"),
    ],
)
def test_a_heading_says_what_is_like_it(alike: int, twin: str, differing: tuple[int, ...], words: str) -> None:
    heading = ModuleHeading("layers.1", "1", "Block", 0, 0, 9, -1, twin, alike=alike, differing=differing)
    assert alike_words(heading) == words


@pytest.mark.parametrize(
    ("side", "crosses", "mark"), [(None, False, ""), (HOST, False, "host"), (0, False, "p1"), (11, True, "p12→")]
)
def test_where_a_node_runs_is_marked_with_an_arrow_where_its_value_crosses(
    side: int | None, crosses: bool, mark: str
) -> None:
    assert side_mark(side, crosses=crosses) == mark


def test_where_a_node_runs_stays_in_the_pane_of_a_small_wide_screen() -> None:
    columns = GraphColumns(name=40, op=28, shape=30, verdict=10, side=5, kernel=4, line=5)
    assert columns.within(140).line == 5
    assert (columns.within(53).side, columns.within(53).verdict, columns.within(53).line) == (5, 10, 0)
    assert columns.within(60).kernel == 4


@pytest.mark.parametrize("size", [WIDE, SMALL])
async def test_partitions_are_marked_once_something_falls_back(tmp_path: Path, size: tuple[int, int]) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        assert not any(" host" in row for row in texts(app, "graph"))
        app.session.edit_rules(FALL)
        await until(pilot, lambda: any(" host" in row for row in texts(app, "graph")))
        rows = {name: row for row in texts(app, "graph") for name in ("add_1", "relu ", "getitem") if f" {name}" in row}
        assert "p1→" in rows["add_1"] and "host" in rows["relu "]
        places = {row.index(mark) for row, mark in ((rows["add_1"], "p1→"), (rows["relu "], "host"))}
        assert len(places) == 1


async def test_the_verdict_of_a_row_is_its_severest_rule(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    pad = '[[rules]]\nkind = "alignment"\nmultiple = 24\nseverity = "pad"\n'
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        app.session.edit_rules(pad + FALL)
        await until(pilot, lambda: any("⚠ op+1" in row for row in texts(app, "graph")))


@pytest.mark.parametrize(
    ("name", "width", "shown"),
    [
        ("l_self_modules_mlp_modules_0_parameters_weight_", 16, "…mlp.0.weight"),
        ("l_self_modules_mlp_modules_0_parameters_weight_", 8, "….weight"),
        ("l_self_modules_mlp_modules_0_parameters_weight_", 60, "l_self_modules_mlp_modules_0_parameters_weight_"),
        ("l_self_modules_bn_buffers_running_mean_", 20, "…bn.running_mean"),
        ("_low_memory_max_pool_with_offsets", 20, "_low_memor…h_offsets"),
    ],
)
def test_a_name_keeps_what_differs_from_others(name: str, width: int, shown: str) -> None:
    assert cut_name(name, width) == shown


def test_a_line_has_its_file_where_files_differ_and_there_is_room() -> None:
    nodes = [
        Node(name=f"n{at}", op="call_function", target="aten.add.Tensor", file=f"/x/{at}.py", line=at + 1)
        for at in (0, 1)
    ]
    wide, narrow = (measure(nodes, [0, 0]).within(width) for width in (100, 16))
    shown = ["".join(text for text, _ in node_row(node, 0, RowFacts(), wide)) for node in nodes]
    assert ["0.py" in shown[0], "1.py" in shown[1], ":2" in shown[1]] == [True] * 3
    assert wide.file and not narrow.file and not measure(nodes[:1], [0]).file


@pytest.mark.parametrize("size", [SMALL, WIDE])
async def test_the_node_since_which_the_numbers_are_wrong_is_red_and_has_its_error(
    size: tuple[int, int], tmp_path: Path
) -> None:
    app = app_of("wrong_pass", tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        lines = app.query_one(GraphLines)
        bad = next(stage for stage in app.state.run.diff.stages if stage.bad)  # type: ignore[union-attr]
        app.state.choose(NodeId(bad.graph, bad.node))  # type: ignore[arg-type]
        app.show()
        await settle(pilot)
        rows = {name: lines.row(at, lines.line_width) for at in range(lines.row_count) if (name := _name(lines, at))}
        pieces = rows[bad.node]
        assert pieces[0] == ("✘", "reject")
        assert "reject" in {style for piece, style in pieces if piece.strip() == bad.node}
        assert any(piece.strip() == f"{bad.added:.0e}" and style == "reject" for piece, style in pieces)
        others = [row for name, row in rows.items() if name != bad.node]
        assert all(piece != "✘" for row in others for piece, _ in row[:1])
        lines.outline.folded.update(heading.key for heading in lines.outline.headings)
        lines.lay_out()
        folded = lines.row(lines.row_that_shows(lines._index[bad.node]), lines.line_width)
        assert folded[0] == ("✘", "reject")  # also of the module that hides it


def _name(lines: GraphLines, row: int) -> str:
    at = lines.node_at(row)
    return lines.graph.nodes[at].name if at is not None and lines.graph is not None else ""
