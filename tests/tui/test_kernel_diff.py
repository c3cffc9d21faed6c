"""The KernelDiff pane over a real comparison: one output is wrong, and the third kernel is to blame."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from recorded import app_of, state_of
from test_app import SMALL, WIDE, settle, texts
from textual.pilot import Pilot

from idbg.diff import LARGEST, DiffReport, ErrorMap, KernelError, SideResult, TensorDiff
from idbg.records import Failure
from idbg_tui import diff_chart, diff_list, diff_view, facts, heat
from idbg_tui.app import IdbgApp
from idbg_tui.diff_list import Told, figure, items, level
from idbg_tui.listing import Listing
from idbg_tui.signs import LEVELS


def report() -> DiffReport:
    compared = state_of("planted").compared
    assert compared is not None and compared.diff is not None
    return compared.diff


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
        rows = texts(app, 5)
        assert rows[0].startswith(" ✘ aot does not agree with eager, against float64")
        assert any(row.startswith(' ✘ out["late"]') and "rmse, maximum" in row for row in rows)
        assert any(row.startswith(' ✔ out["early"]') for row in rows)
        culprits = [row for row in rows if row.startswith(" ✘ cpp_fused")]
        assert len(culprits) == 1 and "planted.py:18" in culprits[0]
        assert app.body.panes[5].mark == "✘"


async def test_enter_on_a_kernel_goes_to_its_source_and_its_node(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, pilot):
        bad = report().kernels[report().first_bad_kernel or 0]
        lines = app.body.panes[5].lines  # type: ignore[attr-defined]
        lines.place_cursor(lines.items.index(bad))
        await pilot.press("enter")
        await settle(pilot)
        assert app.body.current == 2
        assert app.state.kernel is not None and app.state.kernel.name == bad.name
        assert app.state.selected is not None and app.state.selected.name == bad.node


async def test_enter_on_an_output_shows_every_metric_and_where_the_error_lies(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, pilot):
        lines = app.body.panes[5].lines  # type: ignore[attr-defined]
        diff = next(one for one in report().outputs if not one.passed)
        lines.place_cursor(lines.items.index(diff))
        await pilot.press("enter")
        await pilot.pause()
        rows = "\n".join(listed(app))
        assert diff.worst is not None and diff.baseline is not None
        assert f"{diff.name} f32[4,48,48] fails by: rmse, maximum, row, column, tile" in rows
        assert f"[{', '.join(map(str, diff.worst.index))}]" in rows
        assert f"{figure(diff.baseline.rmse)}, eager's {figure(diff.baseline.eager_rmse)}" in rows
        assert f"{diff.name}[1, :, :] 48 × 48" in rows
        assert rows.count("▀") > 48 * 24


async def test_only_what_failed_and_the_worst_first(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, pilot):
        await pilot.press("f")
        await settle(pilot)
        assert not any('out["early"]' in row for row in texts(app, 5))
        await pilot.press("f", "o")
        await settle(pilot)
        rows = [row for row in items(report(), worst_first=True) if isinstance(row, KernelError)]
        errors = [row.error or 0.0 for row in rows]
        assert errors == sorted(errors, reverse=True)


async def test_the_chart_marks_the_bad_kernel_and_gives_the_figures(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, pilot):
        await pilot.press("c")
        await pilot.pause()
        chart, figures = "\n".join(listed(app)).split("relative RMSE of each kernel")
        assert chart.count("✘") == 1
        assert chart.count("●") == len(report().kernels) - 1
        assert figures.count("planted.py:") == len(report().kernels)
        await pilot.press("c")
        assert not isinstance(app.screen, Listing)


async def test_a_search_finds_an_output(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, pilot):
        await pilot.press("slash", *"early", "enter")
        await settle(pilot)
        lines = app.body.panes[5].lines  # type: ignore[attr-defined]
        assert 'out["early"]' in lines.searched(lines.cursor)


async def test_all_of_it_fits_a_small_screen(tmp_path: Path) -> None:
    async with opened(tmp_path, SMALL) as (app, _):
        rows = texts(app, 5)
        assert all(len(row) <= 80 for row in rows)
        culprit = next(row for row in rows if row.startswith(" ✘ cpp"))
        assert figure(report().kernels[report().first_bad_kernel or 0].error) in culprit


def test_the_graph_and_the_node_tell_the_error_of_their_kernel() -> None:
    state = state_of("planted")
    bad = report().kernels[report().first_bad_kernel or 0]
    assert bad.graph is not None
    from idbg.records import NodeId

    assert state.choose(NodeId(bad.graph, bad.node))
    told = [fact.text for fact in facts.facts(state) if fact.label == "error"]
    assert any(text.startswith(figure(bad.error)) for text in told)


def test_a_side_that_failed_is_told_before_anything_else() -> None:
    sides = (SideResult("eager", 0.1), SideResult("inductor", 1.0, Failure(kind="torch", message="no lowering\nmore")))
    told = items(DiffReport(test="inductor", reference="eager", verdict="error", mode="tolerance", sides=sides))
    assert [one.text for one in told if isinstance(one, Told)][1] == "   inductor failed: no lowering"


def test_a_tensor_without_figures_says_what_is_wrong() -> None:
    diff = TensorDiff(name="out[1]", passed=False, failed_by=("missing",), note="only the reference has it")
    row = "".join(text for text, _ in diff_list.tensor_row(diff, 120, 10))
    assert "missing: only the reference has it" in row
    assert diff_list.badness(diff) == float("inf")


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0.0, "0"), (1e-7, "1.0e-07"), (0.12345, "0.123"), (LARGEST, "inf"), (float("nan"), "nan")],
)
def test_a_figure_is_short_and_none_is_no_number(value: float | None, text: str) -> None:
    assert figure(value) == text


def test_the_growth_bar_has_a_step_for_each_part_of_the_range() -> None:
    assert level(None) == " "
    assert (level(0.0), level(1e-9), level(1.0), level(LARGEST)) == (LEVELS[0], LEVELS[0], LEVELS[-1], LEVELS[-1])


def test_the_histogram_counts_every_element() -> None:
    diff = report().outputs[0]
    assert sum(diff.histogram) == diff.elements
    rows = ["".join(text for text, _ in entry.draw(200)) for entry in diff_view.entries(diff, 200)]
    bars = rows[rows.index(next(row for row in rows if "|test - reference|" in row)) + 1 :]
    assert sum(int(row.split("─")[0].split()[-1].replace(",", "")) for row in bars) == diff.elements


def test_a_map_is_hot_where_the_error_is_and_plain_without_colours() -> None:
    found = ErrorMap("out", (), (3, 2), ((0.0, 1e-3), (1e-9, LARGEST), (0.5, 0.0)))
    rows = [entry.draw(100) for entry in heat.entries(found, 100)]
    cells = [style for _, style in rows[1][1:]]
    assert cells[0].endswith(heat.RAMP[0]) and cells[1].endswith("#ffffff")
    assert rows[2][1][1].startswith(heat.RAMP[-1])
    plain = ["".join(text for text, _ in entry.draw(100)) for entry in heat.entries(found, 100, colours=False)]
    assert plain[1:4] == [f"  {LEVELS[4]}", f" {LEVELS[0]}!", f" {LEVELS[-1]} "]


def test_a_map_without_errors_says_so() -> None:
    rows = [entry.draw(100) for entry in heat.entries(ErrorMap("out", (), (1, 2), ((0.0, 0.0),)), 100)]
    assert "every element of this slice is equal" in rows[-1][0][0]


def test_a_chart_without_kernels_names_the_key_that_observes_them() -> None:
    empty = DiffReport(test="aot", reference="eager", verdict="passed", mode="float64")
    assert "D compares every kernel" in diff_chart.entries(empty, 100)[0].draw(100)[0][0]
