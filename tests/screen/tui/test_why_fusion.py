"""Does Why show each kernel's nodes and reasons, and is "why are these not one?" answered for any two?"""

from pathlib import Path

import pytest
from textual.containers import Vertical
from textual.pilot import Pilot

from idbg.analysis.decisions.fusion import fusions
from idbg.schema.decisions.inductor import FusionLog
from idbg.schema.graphs import GraphId
from idbg.schema.runs import Run, fold
from idbg.views import fusion as report
from idbg_tui.app import IdbgApp
from idbg_tui.panes.why import views
from idbg_tui.panes.why.pane import WhyPane
from idbg_tui.panes.why.views import text_of
from idbg_tui.widgets.listing import Listing
from idbg_tui.widgets.picker import Picker
from idbg_tui.widgets.section_rows import Look
from tests.harness.decided import has
from tests.harness.node_facts import facts
from tests.harness.recorded import app_of, log, state_of
from tests.harness.screen import SMALL, WIDE, bar, settle, until

RECORDED = "switched"
WHOLE = Look(width=400, whole=True)


def recorded(number: int = 1) -> Run:
    return fold(log(RECORDED)).runs[number]


def answer(app: IdbgApp) -> str:
    assert isinstance(app.screen, Listing)
    lines = app.screen.lines
    return "\n".join(lines.text(index) for index in range(len(lines.items)))


async def opened(pilot: Pilot[None], app: IdbgApp) -> WhyPane:
    await settle(pilot)
    await pilot.press("0")
    pane = app.query_one(WhyPane)
    pane.choose_view("fusion")
    await pilot.press("g")
    await settle(pilot)
    return pane


def test_every_kernel_its_nodes_and_every_refusal_is_there() -> None:
    run = recorded()
    rows = views.listed("fusion", run, WHOLE)
    kernels = {row.kernel for row in rows if row.kernel is not None}
    assert kernels == {(kernel.frame, kernel.part, kernel.name) for kernel in run.kernels}
    listed = {node.name for row in rows for node in row.nodes}
    assert listed >= {name for kernel in run.kernels for name in kernel.nodes}
    text = [text_of(row).strip() for row in rows]
    for found in fusions(run):
        for numbers in report.by_kernel(found).values():
            for line in report.tried_lines(found, numbers):
                assert any(line[:80] in said for said in text)
    assert views.count("fusion", run) > 0


def test_loops_of_one_kernel_are_no_other_kernel_that_it_is_not_fused_with() -> None:
    within = 0
    for run in (recorded(1), recorded(2)):
        for found in fusions(run):
            for name, numbers in report.by_kernel(found).items():
                lines = report.tried_lines(found, numbers)
                own = [line for line in lines if line.startswith("separate loops in this kernel for ")]
                within += len(own)
                assert not any(f"in {name}:" in line for line in lines)
                refusals = {each for number in numbers for each in found.refused.get(number, ())}
                assert bool(own) == any({each.one, each.other} <= set(numbers) for each in refusals)
    assert within


def test_what_was_found_in_a_cache_says_that_nobody_was_asked_and_what_does() -> None:
    found = fold(event for event in log(RECORDED) if not has(event, FusionLog)).runs[1]
    text = "\n".join(text_of(row) for row in views.listed("fusion", found, WHOLE))
    assert report.NOT_RECORDED in text and "not fused with " not in text.partition("\n")[2]
    assert all(kernel.name in text for kernel in found.kernels)


@pytest.mark.parametrize("size", [WIDE, SMALL])
async def test_a_mark_and_then_another_row_say_why_they_are_not_one(size: tuple[int, int], tmp_path: Path) -> None:
    app = app_of(RECORDED, tmp_path)
    async with app.run_test(size=size) as pilot:
        pane = await opened(pilot, app)
        rows = [at for at, row in enumerate(pane.lines.items) if row.kernel is not None]
        pane.lines.go(rows[0])
        await pilot.press("J")
        await settle(pilot)
        assert "is marked" in bar(app, "footer")
        pane.lines.go(rows[1])
        await pilot.press("J")
        await until(pilot, lambda: isinstance(app.screen, Listing))
        run = app.state.shown
        assert run is not None
        names = [
            kernel.name
            for row in rows[:2]
            for kernel in run.kernels
            if (k := pane.lines.items[row].kernel) and kernel.name == k[2]
        ]
        wanted = report.pair_lines(run, *names)
        assert all(name in answer(app) for name in names) and wanted[1][:40] in answer(app)


async def test_w_asks_of_the_selected_node_and_one_that_is_picked(tmp_path: Path) -> None:
    app = app_of(RECORDED, tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("1", "w")
        await until(pilot, lambda: isinstance(app.screen, Picker))
        await pilot.press(*"softmax", "enter")
        await until(pilot, lambda: isinstance(app.screen, Listing))
        assert app.state.selected is not None and app.state.selected.name in answer(app)
        assert "softmax" in answer(app)
        fused = "computed in" in answer(app) or "in one kernel" in answer(app)
        title = str(app.screen.query_one(Vertical).border_title)
        assert title == ("These are in one kernel" if fused else "Why are these not fused?")
        await pilot.press("escape")
        assert not isinstance(app.screen, Listing)


async def test_J_on_a_row_of_neither_says_what_it_is_for(tmp_path: Path) -> None:
    app = app_of(RECORDED, tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await opened(pilot, app)
        await pilot.press("J")
        await settle(pilot)
        assert "J marks a node or a kernel" in bar(app, "footer")


def test_a_node_that_several_kernels_or_loops_compute_says_so_in_its_facts() -> None:
    state = state_of(RECORDED)
    run = state.shown
    assert run is not None
    again = {name for found in fusions(run) for name in found.recomputed()}
    assert again
    graph = run.graphs[GraphId("0/0", "post_grad", "inference")]
    for node in graph.nodes:
        assert state.choose(graph.node_id(node.name))
        assert any(fact.label == "computed" for fact in facts(state)) == (node.name in again)
