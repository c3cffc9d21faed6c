"""A session's comparison ends with a report, whatever becomes of its sides."""

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from idbg.reports.diff import summary
from idbg.schema import event_log, events
from idbg.schema.diff import LARGEST, Comparison, DiffReport, ErrorMap, KernelError, SideResult, sayable
from idbg.schema.programs import Program, Target
from idbg.schema.runs import fold
from tests.harness.fake_sessions import Open, fake_sessions


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Make sessions whose program behaves as its path says (see fake_child)."""
    with fake_sessions(tmp_path / "out", Target(backend="inductor")) as make:
        yield make


@pytest.mark.parametrize("how", ["hang", "hang for good"])
def test_a_side_that_hangs_is_stopped_and_the_other_is_kept(opened: Open, how: str) -> None:
    session = opened(how)
    session.run(comparison=Comparison(seconds=0.3))
    assert session.wait(60)
    run = session.history.runs[1]
    assert run.failure is not None
    assert run.failure.message == "the side inductor took longer than 0.3 s, and was stopped"
    assert run.diff is not None
    assert (run.diff.verdict, run.diff.failure) == ("error", run.failure)
    assert [side.name for side in run.diff.sides] == ["eager", "inductor"]
    assert run.diff.sides[0] == SideResult("eager", 0.5)
    assert run.diff.sides[1].failure == run.failure


def test_what_fails_after_the_report_is_the_programs_and_no_sides() -> None:
    report = DiffReport(test="mine", reference="eager", verdict="passed", mode="float64")
    told: list[events.SessionEvent] = [
        events.RunStarted(run=1, program=Program("x.py"), target=Target()),
        events.SideStarted(run=1, side="stages"),
    ]
    assert fold(told).runs[1].side == "stages"
    assert fold([*told, events.Compared(run=1, report=report)]).runs[1].side == ""


def test_a_cancel_is_not_taken_for_a_side_that_hangs(opened: Open) -> None:
    session = opened("hang")
    session.run(comparison=Comparison(seconds=30))
    session.cancel()
    assert session.wait(60)
    assert session.history.runs[1].failure is not None
    assert session.history.runs[1].failure.kind == "cancelled"


def test_a_comparison_that_was_cancelled_is_waiting_and_not_failed(opened: Open) -> None:
    session = opened("hang")
    session.run(comparison=Comparison(seconds=30))
    deadline = time.monotonic() + 60
    while session.history.runs[1].side != "inductor" and time.monotonic() < deadline:
        time.sleep(0.01)
    session.cancel()
    assert session.wait(60)
    run = session.history.runs[1]
    assert run.diff is not None and (run.diff.verdict, run.verdict) == ("waiting", "waiting")
    assert summary(run.diff).startswith("… not finished")


def test_a_worker_that_dies_leaves_a_report_that_says_so(opened: Open) -> None:
    session = opened("segfault")
    session.run(comparison=Comparison())
    assert session.wait(60)
    diff = session.history.runs[1].diff
    assert diff is not None
    assert diff.verdict == "error"
    assert diff.failure is not None
    assert "SIGSEGV" in diff.failure.message


def test_a_run_that_is_not_compared_has_no_diff(opened: Open) -> None:
    session = opened("print")
    session.run()
    assert session.wait(60)
    assert session.history.runs[1].diff is None


def test_the_error_of_a_slice_is_asked_for_and_kept_with_the_run(opened: Open) -> None:
    session = opened("print")
    session.run(comparison=Comparison())
    session.map_errors("out[0]", (2,))
    assert session.wait(60)
    assert session.history.runs[1].maps == {"out[0]": ErrorMap("out[0]", (2,), (1, 1), ((0.5,),))}


def test_an_infinite_error_goes_through_json_as_the_largest_number() -> None:
    kernel = KernelError(frame="0/0", part="forward", name="k", observed=True, error=float("inf"))
    report = DiffReport(test="inductor", reference="eager", verdict="failed", mode="float64", kernels=(kernel,))
    event = events.Compared(run=1, report=sayable(report))
    again = event_log.decode(event_log.encode(event))
    assert isinstance(again, events.Compared)
    assert again.report.kernels[0].error == LARGEST
    assert msgspec.structs.replace(again.report, kernels=()) == msgspec.structs.replace(report, kernels=())
