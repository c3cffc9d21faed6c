"""Do `k:5`, `op:` and `!reject` find kernels, ops and broken rules, in the graph and in every pane of rows?"""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from idbg.schema.code import Kernel
from idbg.views.graphs import op_of
from idbg_tui.app import IdbgApp
from idbg_tui.panes.findings.pane import FindingsPane
from idbg_tui.panes.graph.columns import is_kernel, kernel_mark
from idbg_tui.panes.graph.pane import GraphPane
from idbg_tui.panes.rules import words
from idbg_tui.widgets.search import SearchLine, pattern
from tests.harness.recorded import app_of
from tests.harness.rule_bench import Bench, told
from tests.harness.screen import WIDE, settle, texts


def kernel(name: str, source: str = "text") -> Kernel:
    return Kernel(frame="0/0", part="inference", name=name, language="cpp", source=source)


async def found(app: IdbgApp, pilot: Pilot[None], query: str) -> list[str]:
    """The names of the nodes that the graph's filter leaves."""
    await pilot.press("1", "escape", "slash", *(one if one.isalnum() else f"{one}" for one in query))
    await settle(pilot)
    lines, graph = app.body.panes["graph"].lines, app.state.graph  # type: ignore[attr-defined]
    assert graph is not None
    rows = [lines.node_at(row) for row in range(len(lines._rows))]
    await pilot.press("enter")
    return [graph.nodes[row].name for row in rows if row is not None]


async def test_the_graphs_filter_knows_kernels_ops_and_rules(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        graph, provenance = app.state.graph, app.state.provenance
        assert graph is not None and provenance is not None
        of_two = await found(app, pilot, "k:2")
        marks = [kernel_mark([kernel for kernel, _ in provenance.kernels_of(graph.node_id(name))]) for name in of_two]
        assert of_two and all("k2" in mark or "+" in mark for mark in marks)
        convolutions = [node.name for node in graph.nodes if op_of(node) == "convolution"]
        assert await found(app, pilot, "op:conv") == convolutions
        assert await found(app, pilot, "!reject") == convolutions
        assert await found(app, pilot, "!pad") == []
        assert await found(app, pilot, "op:conv layer1") == [
            node.name for node in graph.nodes if op_of(node) == "convolution" and node.module.startswith("layer1")
        ]


async def test_violations_are_searched_too(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("4", "slash", *"downsampl", "enter")
        await settle(pilot)
        lines = app.body.query_one(FindingsPane).lines
        assert "downsample" in lines.searched(lines.cursor)
        assert any("downsampl" in row for row in texts(app, "findings"))


@pytest.mark.parametrize(
    ("text", "row", "finds"),
    [
        ("k:2", "cpp_fused_add_2  div", True),
        ("k:2", "  add  k2  :12", True),
        ("k:2", "cpp_fused_add_12  f32[2]", False),
        ("op:mm", "extern_kernels.mm", True),
        ("!reject", " ✘ out 0.1", True),
        ("!reject", " ✔ out 0.1", False),
        ("!fall", " ⚠ lstm", True),
        ("!", "oh!", True),
        ("k:", "k: v", True),
        ("a.b", "a+b", False),
    ],
)
def test_the_same_words_are_looked_for_in_rows(text: str, row: str, finds: bool) -> None:
    needle = pattern(text)
    assert needle is not None and bool(needle.search(row)) == finds


def test_a_kernel_is_asked_for_by_its_number_or_a_part_of_its_name() -> None:
    assert is_kernel(kernel("cpp_fused_relu_12"), "12") and is_kernel(kernel("cpp_fused_relu_12"), "k12")
    assert is_kernel(kernel("cpp_fused_relu_12"), "relu") and not is_kernel(kernel("cpp_fused_relu_12"), "2")
    assert not is_kernel(kernel("extern_kernels.mm", ""), "1")


async def test_letters_that_come_in_one_burst_filter_by_all_of_them(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("1", "slash")
        pane, line = app.body.query_one(GraphPane), app.body.query_one(SearchLine)
        for typed in ("k", "k:", "k:5"):
            line.value = typed
        await settle(pilot)
        assert pane._filter.query == "k:5" and 0 < pane._filter.matched < 100


RULES = """
name = "npu"

[[rules]]
kind = "alignment"
name = "wide bus"
multiple = 16
severity = "pad"

[[rules]]
kind = "rank"
max = 4
severity = "fallback"

[[rules]]
kind = "dtype"
allowed = ["float32"]
"""


@pytest.mark.parametrize(
    ("typed", "rule"), [("wide", "wide bus"), ("alignm", "wide bus"), ("!fall", "rank"), ("float32", "dtype")]
)
async def test_rules_are_found_by_name_kind_severity_and_value(tmp_path: Path, typed: str, rule: str) -> None:
    bench = Bench(tmp_path)
    async with bench.app.run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        bench.disk(RULES, "npu")
        await bench.press(pilot, "slash", *typed, "enter")
        form = bench.pane.form
        assert form.chosen is not None and form.chosen.rule.name == rule
        assert form.has_focus and f"1 line with {typed}: n and N go through them" in told(bench)
        assert words.about(form.chosen.rule, "", RULES, 0)[:10] in str(bench.pane.query_one("#about").render())


async def test_a_search_of_the_rules_goes_on_and_ends_before_anything_folds(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    async with bench.app.run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        bench.disk(RULES, "npu")
        form = bench.pane.form
        await bench.press(pilot, "enter", "slash", *"tip", "enter")
        first, opened = form.cursor, set(form._opened)
        assert any(style == "match" for text, style in form.row(form.cursor, 60))
        await bench.press(pilot, "n")
        assert form.cursor != first and "tip" in form.searched(form.cursor).lower()
        await bench.press(pilot, "escape")
        assert not form._finder and form._opened == opened
        await bench.press(pilot, "slash", "z", "z", "enter")
        assert "nothing here has zz" in told(bench)
        await bench.press(pilot, "escape", "escape")
        assert form._opened != opened
