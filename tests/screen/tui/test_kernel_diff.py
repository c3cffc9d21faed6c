"""The KernelDiff pane over a real comparison: one output is wrong, and the third kernel is to blame."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from idbg.format.amounts import column_figure, figure
from idbg.schema import events
from idbg.schema.diff import (
    Comparison,
    DiffReport,
    KernelError,
    SideResult,
)
from idbg.schema.programs import Failure
from idbg.views.tensors import spot
from idbg_tui.app import IdbgApp
from idbg_tui.state import queries
from idbg_tui.widgets.listing import Listing
from tests.harness.compared import report, row_of
from tests.harness.compared import texts as listed_texts
from tests.harness.node_facts import facts
from tests.harness.recorded import app_of, state_of
from tests.harness.screen import SMALL, WIDE, bar, settle, texts


def culprit() -> KernelError:
    bad = report().culprit
    assert bad is not None
    return bad


@asynccontextmanager
async def opened(folder: Path, size: tuple[int, int] = WIDE) -> AsyncIterator[tuple[IdbgApp, Pilot[None]]]:
    app = app_of("planted", folder)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("5")
        await settle(pilot)
        yield app, pilot


def listed(app: IdbgApp) -> list[str]:
    assert isinstance(app.screen, Listing)
    lines = app.screen.lines
    return [lines.text(row) for row in range(lines.row_count)]


async def test_the_verdict_the_outputs_and_the_first_bad_kernel_are_listed(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, pilot):
        await pilot.press("z")
        await settle(pilot)
        rows = texts(app, "kernel_diff")
        assert rows[0].split() == [
            "✘",
            "1",
            "tensor",
            "failed",
            "aot",
            "against",
            "eager",
            "held",
            "against",
            "float64",
        ]
        late = next(row for row in rows if '✘ out["late"]' in row)
        assert re.search(r"by rmse, maximum.*  \[\d, \d+, \d+\]   [\d.]+, wanted [\d.]+", late)
        early = next(row for row in rows if '✔ out["early"]' in row)
        assert rows.index(late) < rows.index(early)
        culprits = [row for row in rows if "✘ cpp_fused" in row]
        assert len(culprits) == 1 and "planted.py:18" in culprits[0]
        assert app.body.panes["kernel_diff"].mark == "✘"


async def test_enter_on_a_kernel_goes_to_its_source_and_its_node(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, pilot):
        bad = culprit()
        lines = app.body.panes["kernel_diff"].lines  # type: ignore[attr-defined]
        lines.place_cursor(row_of(lines, report(), bad))
        await pilot.press("enter")
        await settle(pilot)
        assert app.body.current == "source"
        assert app.state.kernel is not None and app.state.kernel.name == bad.name
        assert app.state.selected is not None and app.state.selected.name == bad.node


async def test_enter_on_an_output_shows_every_metric_and_where_the_error_lies(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, pilot):
        lines = app.body.panes["kernel_diff"].lines  # type: ignore[attr-defined]
        diff = next(one for one in report().outputs if not one.passed)
        lines.place_cursor(row_of(lines, report(), diff))
        await pilot.press("enter")
        await pilot.pause()
        rows = "\n".join(listed(app))
        assert diff.worst is not None and diff.baseline is not None
        assert f"{diff.name} f32[4,48,48] fails by: rmse, maximum, row, column, tile" in rows
        assert f"[{', '.join(map(str, diff.worst.index))}]" in rows
        assert f"{figure(diff.baseline.rmse)}, eager's {figure(diff.baseline.reference_rmse)}" in rows
        assert f"{diff.name}[1, :, :] 48 × 48" in rows
        assert rows.count("▀") > 48 * 24


async def test_only_what_failed_and_the_worst_first(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, pilot):
        await pilot.press("H")
        await settle(pilot)
        assert not any('out["early"]' in row for row in texts(app, "kernel_diff"))
        await pilot.press("H", "o")
        await settle(pilot)
        lines = app.body.panes["kernel_diff"].lines  # type: ignore[attr-defined]
        kernels = [row.key[1] for row in lines.items if isinstance(row.key, tuple) and row.key[0] == "launch"]
        errors = [report().kernels[at].error or 0.0 for at in kernels]
        assert len(errors) == 6 and errors == sorted(errors, reverse=True)
        await pilot.press("o", "o")  # of these none has an error of its own: it was recorded before there was one
        await settle(pilot)
        outputs = [row.key[1] for row in lines.items if isinstance(row.key, tuple) and row.key[0] == "output"]
        assert outputs == [0, 1]


async def test_the_chart_marks_the_bad_kernel_and_gives_the_figures(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, pilot):
        await pilot.press("C")
        await pilot.pause()
        chart, figures = "\n".join(listed(app)).split("relative RMSE, launch by launch")
        assert chart.count("✘") == 1
        assert chart.count("●") == len(report().kernels) - 1
        assert figures.count("planted.py:") == len(report().kernels)
        await pilot.press("C")
        assert not isinstance(app.screen, Listing)


async def test_c_is_left_to_cancel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled: list[str] = []
    async with opened(tmp_path) as (app, pilot):
        monkeypatch.setitem(app.actions, "cancel", lambda: cancelled.append(app.body.current))
        await pilot.press("c")
        await settle(pilot)
        assert cancelled == ["kernel_diff"]


async def test_the_chart_opens_at_its_top_and_leads_to_the_first_bad_kernel(tmp_path: Path) -> None:
    async with opened(tmp_path, SMALL) as (app, pilot):
        await pilot.press("C")
        await settle(pilot)
        assert isinstance(app.screen, Listing)
        lines = app.screen.lines
        assert lines.scroll_offset.y == 0 and lines.cursor == 0
        rows = [lines.line(y).text for y in range(lines.size.height)]
        assert any("launch by launch" in row for row in rows)
        await pilot.press("enter")
        await settle(pilot)
        assert app.state.selected is not None
        assert app.state.selected.name == culprit().node


async def test_a_filter_lists_only_what_has_the_text_and_escape_shows_all(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, pilot):
        lines = app.body.panes["kernel_diff"].lines  # type: ignore[attr-defined]
        everything = [lines.text(row) for row in range(lines.row_count)]
        await pilot.press("slash", *"early", "enter")
        await settle(pilot)
        assert 'out["early"]' in lines.searched(lines.cursor)
        rows = texts(app, "kernel_diff")
        assert not any('out["late"]' in row or "cpp_fused" in row.split("first bad")[0] for row in rows)
        assert any(row.strip() == "1 of 8 rows with early" for row in rows)
        assert "only what has early" in bar(app, "footer")
        await pilot.press("escape")
        await settle(pilot)
        assert [lines.text(row) for row in range(lines.row_count)] == everything


@pytest.mark.parametrize("size", [SMALL, (110, 32), WIDE])
async def test_figures_places_and_values_are_whole_at_every_size(tmp_path: Path, size: tuple[int, int]) -> None:
    async with opened(tmp_path, size) as (app, pilot):
        await pilot.press("z")
        await settle(pilot)
        rows = texts(app, "kernel_diff")
        assert all(len(row) <= size[0] for row in rows)
        bad = next(row for row in rows if "✘ cpp" in row)
        assert column_figure(culprit().error) in bad
        assert "planted.py:18" in bad
        late = next(diff for diff in report().outputs if not diff.passed)
        assert late.worst is not None
        await pilot.press("g")
        await settle(pilot)
        rows = texts(app, "kernel_diff")
        row = next(row for row in rows if '✘ out["late"]' in row)
        assert column_figure(late.max_abs) in row
        assert spot(late.worst) in row or any(f"worst: {spot(late.worst)}" in row for row in rows)


async def test_no_figure_of_an_output_is_cut_on_a_small_screen(tmp_path: Path) -> None:
    async with opened(tmp_path, SMALL) as (app, pilot):
        await pilot.press("slash", *"late", "enter", "enter")
        await pilot.pause()
        assert isinstance(app.screen, Listing)
        lines = app.screen.lines
        narrow = [entry.draw(lines.line_width) for entry in lines.items]
        assert all(sum(map(len, (text for text, _ in row))) <= lines.line_width for row in narrow)


def test_the_graph_and_the_node_tell_the_error_of_their_kernel() -> None:
    state = state_of("planted")
    bad = culprit()
    assert bad.graph is not None
    from idbg.schema.graphs import NodeId

    assert state.choose(NodeId(bad.graph, bad.node))
    told = [fact.text for fact in facts(state) if fact.label == "error"]
    assert any(text.startswith(column_figure(bad.error)) for text in told)


FAILURE = Failure(
    kind="torch",
    message="CppCompileError: C++ compile error\n\nCommand:\ng++ -O3\n/tmp/a.cpp:3:1: error: no such type\nnote",
    hint="look at the source",
    file="/tmp/a.cpp",
    line=3,
    traceback="Traceback\n  somewhere",
)


def failed_side() -> DiffReport:
    sides = (SideResult("eager", 0.1), SideResult("inductor", 1.0, FAILURE))
    return DiffReport(test="inductor", reference="eager", verdict="error", mode="tolerance", sides=sides)


def test_a_side_that_failed_is_told_before_anything_else_with_the_compilers_first_error() -> None:
    first, second, third, *_ = listed_texts(failed_side())
    assert (
        first.strip().startswith("✘ not compared") and "inductor failed: CppCompileError: C++ compile error" in second
    )
    assert "error: no such type" in third


async def test_enter_on_a_side_that_failed_shows_the_whole_failure(tmp_path: Path) -> None:
    async with opened(tmp_path, SMALL) as (app, pilot):
        compared = queries.compared_run(app.state)
        assert compared is not None
        compared.diff = failed_side()
        pane = app.body.panes["kernel_diff"]
        pane.show(app.state)
        await pilot.press("g", "j", "j", "enter")
        await settle(pilot)
        rows = "\n".join(listed(app))
        for line in (*FAILURE.message.split("\n"), FAILURE.hint, "/tmp/a.cpp:3", "  somewhere"):
            assert line in rows


async def test_what_one_comparison_found_is_still_there_after_the_next(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, pilot):
        first = app.state.run
        assert first is not None and first.diff is not None
        again = replace(first.diff, kernels=(), stages=(), first_bad_kernel=None)
        app._take(
            [
                events.RunStarted(run=9, program=first.program, target=first.target, comparison=Comparison()),
                events.Compared(run=9, report=again),
                events.RunEnded(run=9, verdict="wrong", seconds=1.0),
            ]
        )
        await settle(pilot)
        rows = texts(app, "kernel_diff")
        assert "run 1 was compared before, each stage and kernel: , goes back to it" in rows[1]
        assert not any("cpp_fused" in row for row in rows)
        await pilot.press("comma")
        await settle(pilot)
        lines = app.body.panes["kernel_diff"].lines  # type: ignore[attr-defined]
        rows = [lines.text(row) for row in range(lines.row_count)]
        assert "this is run 1; run 9 was compared after it" in rows[1] and queries.compared_run(app.state) is first
        assert any("cpp_fused" in row for row in rows)
        await pilot.press("comma")
        assert "no comparison before this one" in bar(app, "footer")
        await pilot.press("full_stop")
        await settle(pilot)
        assert not any("cpp_fused" in row for row in texts(app, "kernel_diff"))
        await pilot.press("comma")
        third = events.RunStarted(run=10, program=first.program, target=first.target, comparison=Comparison())
        app._take([third, events.Compared(run=10, report=again)])
        assert getattr(queries.compared_run(app.state), "number", 0) == 10  # a new one is shown
