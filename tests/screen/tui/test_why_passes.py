"""Does Why show what each pass did, node by node, linked to the graphs, and what is kept for the backward?"""

from collections.abc import Callable
from pathlib import Path

from textual.pilot import Pilot

from idbg.analysis.decisions.partitioner import partition
from idbg.schema.decisions.inductor import PhaseRun
from idbg.schema.runs import Run, fold
from idbg_tui.panes.why import views
from idbg_tui.panes.why.pane import WhyPane
from idbg_tui.panes.why.views import text_of
from idbg_tui.widgets.section_rows import Look, Row
from tests.harness.recorded import app_of, log
from tests.harness.screen import WIDE, settle

RECORDED = "breaking"
WHOLE = Look(width=118, whole=True)


def recorded() -> Run:
    return fold(log(RECORDED)).runs[1]


def test_each_pass_is_told_with_its_nodes_and_each_line_of_its_diff() -> None:
    run = recorded()
    rows = views.listed("passes", run, WHOLE)
    text = [text_of(row) for row in rows]
    every = [each for phases in run.decided.of(PhaseRun).values() for phase in phases for each in phase.passes]
    assert every and views.count("passes", run) == len(every)
    for each in every:
        mine = [line for line in text if each.name in line]
        before, after = each.nodes
        wanted = f"{before:,}" if before == after else f"{before:,} → {after:,}"
        assert any(wanted in line for line in mine)
    signs = [line.strip()[:1] for line in text]
    assert signs.count("-") + signs.count("+") == sum(
        bool(row.before) + bool(row.after) for each in every for row in each.rows if row.before != row.after
    )


def test_rows_of_nodes_that_the_run_has_lead_to_them() -> None:
    run = recorded()
    for row in views.listed("passes", run, WHOLE):
        assert all(node.name in run.graphs[node.graph].by_name for node in row.nodes)
        assert (row.enter == "node") == bool(row.nodes) or row.enter == "fold"


def test_what_is_kept_and_computed_again_is_listed_with_its_bytes() -> None:
    run = recorded()
    cuts = [cut for frame in run.decided.of(PhaseRun) if (cut := partition(run, frame)) is not None]
    keys = [row.key for row in views.listed("passes", run, WHOLE)]
    for cut in cuts:
        assert all(("partition", cut.frame, held.node) in keys for held in cut.kept)
        assert all(("partition", cut.frame, "again", name) in keys for name in cut.recomputed)
    assert cuts


async def down_to(pilot: Pilot[None], pane: WhyPane, wanted: Callable[[Row], bool]) -> None:
    for _ in pane.lines.items:
        row = pane.lines.chosen
        if row is not None and wanted(row):
            return
        await pilot.press("j")
    raise AssertionError("there is no such row")


async def test_the_node_under_the_cursor_is_the_selected_one(tmp_path: Path) -> None:
    app = app_of(RECORDED, tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("0")
        pane = app.query_one(WhyPane)
        pane.choose_view("passes")
        await pilot.press("g")
        await down_to(pilot, pane, lambda row: str(row.key).startswith("('pass'"))
        await pilot.press("enter")
        await down_to(pilot, pane, lambda row: row.enter == "node")
        await settle(pilot)
        row = pane.lines.chosen
        assert row is not None and app.state.selected in row.nodes


def test_a_run_of_a_backend_without_passes_says_so() -> None:
    run = fold(log("mlp_train")).runs[1]
    assert not views.listed("passes", run, WHOLE) and "runs none of Inductor's" in views.empty("passes", run)
