"""Does everyone who shows a run's verdict show the same one, and never green or red where nothing is known?"""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from idbg.cli.commands.run import status
from idbg.format.glyphs import VERDICT_SIGNS
from idbg.format.verdicts import process_outcome, verdict_words
from idbg.reports import json as json_report
from idbg.reports import text
from idbg.schema import events, strict_json
from idbg.schema.diff import Comparison, DiffReport, SideResult, TensorDiff
from idbg.schema.graphs import Graph, GraphId, NodeId
from idbg.schema.processes import ProcessEnd, ProcessReport
from idbg.schema.programs import Failure, Program, Target
from idbg.schema.remarks import Remark
from idbg.schema.runs import Run, fold
from idbg.schema.violations import Severity, Violation
from idbg.views.compared import outcome
from idbg.views.diff import headline

DYNAMO, INFERENCE = GraphId("0/0", "dynamo"), GraphId("0/0", "inference")
BROKEN = Failure("torch", "no kernel", type="InductorError")
REFUSED = Failure("constraints", "1 violation of the rules of mock", type="ConstraintViolation")
CANCELLED = Failure("cancelled", "cancelled")
GRAPH = events.GraphCaptured(run=1, graph=Graph(INFERENCE, ()))


def ran(*told: events.SessionEvent, failure: Failure | None = None, strict: bool = False, ended: bool = True) -> Run:
    target = Target(strict=strict)
    started = events.RunStarted(run=1, program=Program("m.py"), target=target, comparison=Comparison())
    end = [events.RunEnded(run=1, verdict="clean", seconds=1.0, failure=failure)] if ended else []
    run = fold([started, *told, *end]).last
    assert run is not None
    return run


def breaks(severity: Severity = "reject") -> events.ViolationsFound:
    broken = Violation(rule="r", severity=severity, node=NodeId(DYNAMO, "a"), found="f", wanted="w")
    return events.ViolationsFound(run=1, violations=(broken,))


def compared(word: str, *sides: SideResult, tensors: Sequence[TensorDiff] = ()) -> events.Compared:
    report = DiffReport(
        test="aot", reference="eager", verdict=word, mode="float64", sides=sides, outputs=tuple(tensors)  # type: ignore[arg-type]
    )  # fmt: skip
    return events.Compared(run=1, report=report)


def with_process(run: Run) -> Run:
    ended = ProcessEnd(signal="SIGKILL")
    verdict, said = process_outcome(ended, "compiled", "no rule broken")
    run.processes["child"] = ProcessReport(name="child", ended=ended, verdict=verdict, said=said)
    return run


def ended_with(run: Run, status: int) -> Run:
    run.exit_status = status
    return run


def swallowed(failure: Failure = BROKEN) -> events.FrameFailed:
    return events.FrameFailed(run=1, frame="0/0", failure=failure)


SIDE = SideResult("aot", failure=BROKEN)
WRONG = (TensorDiff(name="a", passed=False), TensorDiff(name="b"))
NOTES = (Remark("not observed", detail="no memory"), Remark("stages not judged", "f"), Remark("first calls"))
RIGHT = compared("passed", tensors=[TensorDiff(name="a", elements=1)])
UNOBSERVED = events.Compared(run=1, report=replace(RIGHT.report, notes=NOTES))
ONE = "1 violation (dynamo)"
STOPPED = f"stopped by the rules: {ONE}"
RUNS = {
    "clean": (ran(GRAPH, compared("passed")), "clean", "clean", 0),
    "clean, in part": (ran(GRAPH, UNOBSERVED), "clean", "clean, ⚠ kernels, some stages not judged", 0),
    "not compared": (ran(GRAPH), "compiled", "no rule broken", 0),
    "one stage breaks a rule": (ran(GRAPH, breaks("pad")), "violations", ONE, 0),
    "stopped": (ran(GRAPH, breaks(), failure=REFUSED, strict=True), "violations", STOPPED, 1),
    "failed": (ran(GRAPH, failure=BROKEN), "failed", "failed", 1),
    "swallowed": (ran(GRAPH, breaks(), swallowed()), "failed", "1 frame did not compile", 1),
    "a swallowed refusal": (ran(GRAPH, breaks(), swallowed(REFUSED), strict=True), "violations", ONE, 1),
    "nothing compiled": (ran(), "empty", "nothing was compiled", 1),
    "a side failed": (ran(GRAPH, compared("error", SIDE)), "failed", "aot failed", 1),
    "wrong numbers": (ran(GRAPH, compared("failed", tensors=WRONG)), "wrong", "1 of 2 tensors wrong", 1),
    "right numbers, a rule broken": (ran(GRAPH, breaks("pad"), compared("passed")), "violations", ONE, 0),
    "goes on": (ran(GRAPH, breaks(), compared("failed", tensors=WRONG), ended=False), "waiting", "not finished", 1),
    "cancelled": (ran(GRAPH, failure=CANCELLED), "waiting", "cancelled", 1),
    "a process was killed": (with_process(ran(GRAPH)), "failed", "child: killed by SIGKILL", 0),
    "its own status": (ended_with(ran(GRAPH), 3), "failed", "the script ended itself with status 3", 3),
}  # fmt: skip


def as_json(run: Run) -> Any:
    return json.loads(strict_json.formatted(json_report.run_report(run)))


@pytest.mark.parametrize("name", RUNS)
def test_a_run_has_the_verdict_of_its_worst_stage(name: str) -> None:
    run, word, said, exits = RUNS[name]
    assert (run.verdict, verdict_words(run), status(run)) == (word, said, exits)


@pytest.mark.parametrize("name", RUNS)
def test_the_reports_say_the_same_verdict(name: str) -> None:
    run, word, said, _ = RUNS[name]
    assert as_json(run)["verdict"] == word
    first = text.run_report(run)[0]
    assert first.startswith(VERDICT_SIGNS[run.looks])
    assert said in first or run.ended is None


def test_a_green_sign_means_that_nothing_that_was_asked_is_wrong() -> None:
    green = {name for name, (run, *_) in RUNS.items() if VERDICT_SIGNS[run.looks] == "✔"}
    assert green == {"clean", "clean, in part", "not compared"}
    assert RUNS["clean, in part"][2].endswith("not judged"), "what it could not judge is in the same line"
    assert headline(UNOBSERVED.report).startswith("✔ passed   ⚠ kernels, some stages not judged   ")


def test_only_a_run_that_was_compared_is_clean_also_where_the_worker_wrote_another_word() -> None:
    graph: list[events.SessionEvent] = [events.RunStarted(run=1, program=Program("m.py"), target=Target()), GRAPH]
    for written in ("clean", "compiled"):
        end = events.RunEnded(run=1, verdict=written, seconds=1.0)
        for told, word in (([end], "compiled"), ([end, compared("passed")], "clean")):
            run = fold([*graph, *told]).last
            assert run is not None and run.verdict == word


def test_that_only_the_later_run_was_compared_is_no_change() -> None:
    assert outcome(ran(GRAPH), ran(GRAPH, compared("passed"))).words == ""


def test_json_says_of_each_run_what_is_known_of_its_numbers() -> None:
    known = {name: as_json(run)["numbers"] for name, (run, *_) in RUNS.items()}
    answered = {name: numbers for name, numbers in known.items() if numbers != "not compared"}
    assert answered == {
        "clean": "agree",
        "clean, in part": "agree",
        "right numbers, a rule broken": "agree",
        "wrong numbers": "wrong",
        "goes on": "wrong",
    }
    apart = DiffReport(test="aot", reference="eager", verdict="waiting", mode="float64", not_comparable="other draws")
    assert as_json(ran(GRAPH, events.Compared(run=1, report=apart)))["numbers"] == "not comparable"


def test_what_a_program_swallowed_is_told_in_full() -> None:
    run = ran(GRAPH, swallowed())
    told = "\n".join(text.run_report(run))
    assert "frame 0/0 did not compile, and the program went on" in told and "no kernel" in told
    assert as_json(run)["frame_failures"][0]["error"]["message"] == "no kernel"


def test_what_the_worker_said_can_only_be_made_worse() -> None:
    run = ran(GRAPH)
    run.ended = "failed"
    assert run.verdict == "failed"
