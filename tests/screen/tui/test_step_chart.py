"""N steps of training on the screen: the sentence in the list, the chart under t, and the key that asks."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from idbg.schema.diff import Comparison, DiffReport
from idbg.schema.steps import StepDistance, TrainingSteps
from idbg_tui.panes.kernel_diff import overlays
from idbg_tui.widgets.section_rows import Look
from tests.harness.compared import report, texts
from tests.harness.recorded import app_of
from tests.harness.screen import WIDE, settle


def parting() -> TrainingSteps:
    """Five steps, the third of which parts."""
    curve = tuple(
        StepDistance(
            step=step,
            tensor="grad(fc.weight)",
            kind="gradient",
            test=1e-3 if step >= 3 else 2e-7,
            reference=1e-7,
            sensitivity=1e-8,
            allowed=1e-6,
            failed=step >= 3,
        )
        for step in range(1, 6)
    )
    return TrainingSteps(
        requested=5, verdict="failed", taken=5, parted=curve[2], where="backward", tensors=9, distances=curve
    )


def trained() -> DiffReport:
    return replace(report(), steps=parting())


def test_the_list_says_at_which_step_and_where() -> None:
    shown = texts(trained(), width=200)
    assert any("parts from eager at step 3 of 5: `grad(fc.weight)`" in one for one in shown)
    assert [one.split()[0] for one in shown[-6:-1]] == ["1", "2", "3", "4", "5"]
    assert not any("parts from" in one for one in texts(report()))


def test_the_chart_marks_the_steps_that_part_and_gives_the_figures() -> None:
    alone = replace(trained(), kernels=())
    drawn = ["".join(text for text, _ in one.draw(100)) for one in overlays.growth(alone, Look(100), 40)]
    chart, figures = "\n".join(drawn).split("relative RMSE to float64, step by step")
    assert chart.count("✘") == 3 and chart.count("●") == 2 and figures.count("✘") == 4  # with the legend's
    assert figures.count("1.0e-06") == 5 and figures.count("2.0e-07") == 2


async def test_s_asks_for_a_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Comparison] = []
    app = app_of("planted", tmp_path)

    async def press(pilot: Pilot[None]) -> None:
        await settle(pilot)
        await pilot.press("5")
        await settle(pilot)
        monkeypatch.setattr(app.session, "run", lambda *, comparison: asked.append(comparison))
        await pilot.press("ctrl+e")
        await settle(pilot)

    async with app.run_test(size=WIDE) as pilot:
        await press(pilot)
    assert [one.steps for one in asked] == [10]
