"""While the sides of a comparison run, is nothing red or green that may yet turn?"""

from pathlib import Path

from idbg.schema import events
from idbg.schema.diff import Baseline, Comparison, Criterion, DiffReport, SideResult, TensorDiff, Term
from idbg.schema.events import SessionEvent
from idbg.schema.programs import Failure, Program, Target
from idbg_tui.panes.kernel_diff.pane import KernelDiffPane
from idbg_tui.panes.kernel_diff.tensor import tensor_lines
from idbg_tui.state.state import State
from idbg_tui.status_bar.header import header
from idbg_tui.widgets.lines import Lines
from idbg_tui.widgets.section_rows import Look
from tests.harness.compared import rows, texts
from tests.harness.pane_host import Host
from tests.harness.recorded import chain

STARTED = events.RunStarted(run=1, program=Program("m.py"), target=Target("aot"), comparison=Comparison())
EAGER, AOT = SideResult("eager", 0.1), SideResult("aot", 0.2)
LATE = TensorDiff(name="grad(w)", passed=False, judged=False, elements=4, max_abs=0.5, note="aot gave nothing yet")
PASSED = TensorDiff(
    name="loss",
    elements=1,
    max_abs=1e-6,
    rmse=1e-6,
    mismatches=1,
    mismatch_percent=100.0,
    atol=1e-5,
    rtol=1.3e-6,
    baseline=Baseline(5.21e-6, 5.21e-6, 1e-7, 1e-7),
    criteria=(
        Criterion("rmse", 5.21e-6, 2.47e-5, (Term("few", 2.4e-5), Term("eager", 7e-7, 3.0))),
        Criterion("tolerance", 1, 0, why_not="float64 decides"),
    ),
)
FAILED = TensorDiff(
    name="out",
    passed=False,
    failed_by=("maximum", "rmse"),
    elements=8,
    max_abs=1.0,
    criteria=(Criterion("maximum", 2.0, 1.0), Criterion("rmse", 4.0, 1.0)),
)


def so_far(*sides: SideResult, verdict: str = "waiting", outputs: tuple[TensorDiff, ...] = (LATE,)) -> events.Compared:
    report = DiffReport(
        test="aot", reference="eager", verdict=verdict, mode="tolerance", sides=sides, outputs=outputs  # type: ignore[arg-type]
    )  # fmt: skip
    return events.Compared(run=1, report=report)


def state_of(*told: SessionEvent) -> State:
    state = State()
    state.apply([STARTED, events.GraphCaptured(run=1, graph=chain(2)), *told])
    return state


async def shown(state: State) -> tuple[KernelDiffPane, list[tuple[str, str]]]:
    """The pane, and every piece that its rows are made of, with its style."""
    pane = KernelDiffPane()
    async with Host(pane, state).run_test(size=(120, 20)) as pilot:
        await pilot.pause()
        lines = pane.query_one(Lines)
        return pane, [piece for index in range(lines.row_count) for piece in lines.row(index, 118)]


async def test_a_side_that_runs_is_waited_for_and_nothing_has_failed() -> None:
    pane, pieces = await shown(state_of(so_far(EAGER)))
    text = "".join(text for text, _ in pieces)
    assert "waiting for aot   aot against eager" in text and "1 output, waiting" in text
    assert "failed" not in text and "could not" not in text
    assert pane.mark == "…"
    assert {"reject", "fallback", "clean"}.isdisjoint(style for _, style in pieces)


async def test_when_both_have_run_float64_is_waited_for() -> None:
    pane, pieces = await shown(state_of(so_far(EAGER, AOT)))
    assert "waiting for float64" in "".join(text for text, _ in pieces) and pane.mark == "…"


async def test_a_side_that_failed_is_red_at_once() -> None:
    broken = SideResult("aot", 0.2, Failure("torch", "no", type="ImportError"))
    pane, pieces = await shown(state_of(so_far(EAGER, broken, verdict="error")))
    told = "".join(text for text, _ in pieces)
    assert "aot failed: no" in told and "1 output, not compared" in told and pane.mark == "✘"


def test_a_comparison_that_was_stopped_says_so_and_is_not_called_failed() -> None:
    stopped = Failure("cancelled", "cancelled")
    report = DiffReport(test="aot", reference="eager", verdict="waiting", mode="float64", failure=stopped)
    assert [text.strip() for text in texts(report)] == [
        "… not finished   aot against eager",
        "it did not come to its end: cancelled",
    ]
    assert not any(style == "reject" for row in rows(report) for _, style in row.draw(100))


def test_the_header_says_what_a_failed_side_came_to() -> None:
    broken = SideResult("aot", 0.2, Failure("torch", "no such file", type="ImportError"))
    ended = events.RunEnded(run=1, verdict="clean", seconds=1.0)
    state = state_of(so_far(EAGER, broken, verdict="error"), ended)
    said = "".join(text for text, _ in header(state, 160)[1])
    assert said.startswith("✘ aot failed") and "ImportError: no such file" in said and "clean" not in said


def test_the_header_says_that_numbers_are_wrong() -> None:
    ended = events.RunEnded(run=1, verdict="clean", seconds=1.0)
    state = state_of(so_far(EAGER, AOT, verdict="failed", outputs=(FAILED, PASSED)), ended)
    assert "".join(text for text, _ in header(state, 160)[1]).startswith("✘ 1 of 2 tensors wrong")


def test_a_row_says_which_criterion_decided_and_by_how_much() -> None:
    shown = texts(so_far(EAGER, AOT, verdict="failed", outputs=(FAILED, PASSED)).report, width=150)
    assert any("✘ out" in row and row.endswith("by rmse (4 × allowed), maximum") for row in shown)
    assert any("✔ loss" in row and "rmse 0.211 × allowed" in row for row in shown)


def test_an_output_looked_into_says_the_sum_that_it_is_allowed_and_what_does_not_decide() -> None:
    rows = ["".join(text for text, _ in entry.draw(150)) for entry in tensor_lines(PASSED, None, Look(150))]
    told = " ".join(rows[:4])
    assert "loss" in told and "passes" in told
    assert "RMSE 5.21e-06 is within the 2.47e-05 allowed" in told and "× eager's" in told
    assert "which does not decide: float64 decides" in told


def test_an_output_that_waits_says_so_and_no_more(tmp_path: Path) -> None:
    first = tensor_lines(LATE, None, Look(100))[0].draw(100)
    assert "no verdict (yet)" in first[0][0] and first[0][1] == "dim"
