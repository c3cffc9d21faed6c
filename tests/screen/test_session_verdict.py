"""Is a session whose numbers were found wrong clean nowhere, until somebody has compared again?"""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from idbg.format.verdicts import session_words, summary_words, verdict_words
from idbg.mcp.command import Done
from idbg.mcp.tools import compare as mcp_compare
from idbg.reports.documents import SessionData, markdown
from idbg.reports.documents import json as json_document
from idbg.schema import event_log, events
from idbg.schema.diff import Comparison, DiffReport, TensorDiff
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import Graph, GraphId, NodeId
from idbg.schema.programs import Failure, Program, Target
from idbg.schema.runs import History, fold
from idbg.schema.summaries import SessionSummary
from idbg.schema.violations import Violation
from idbg.session import index
from idbg.views import compared, diagnostics
from idbg.views.session_overview import overview, view
from idbg_tui.state.state import State
from idbg_tui.status_bar.header import header

TARGET = Target(backend="inductor")
FLIPPED = replace(TARGET, options={"combo_kernels": True})
PROGRAM = Program("m.py")
CANCELLED = Failure("cancelled", "cancelled")
DYNAMO, INFERENCE = GraphId("0/0", "dynamo"), GraphId("0/0", "inference")


def run(
    number: int, target: Target = TARGET, found: str = "", failure: Failure | None = None, **asked: object
) -> list[SessionEvent]:
    """A run of the program; with `found` it was compared, and came to that."""
    comparison_ = Comparison(**asked) if found else None  # type: ignore[arg-type]
    tensor = TensorDiff(name="y", passed=found == "passed")
    report = DiffReport(test="t", reference="eager", verdict=found, mode="float64", outputs=(tensor,))  # type: ignore[arg-type]
    return [
        events.RunStarted(run=number, program=PROGRAM, target=target, comparison=comparison_),
        events.GraphCaptured(run=number, graph=Graph(INFERENCE, ())),
        *([events.Compared(run=number, report=report)] if found else []),
        events.RunEnded(run=number, verdict="clean", seconds=1.0, failure=failure),
    ]


WRONG = run(1, found="failed")


def history(*after: list[SessionEvent]) -> History:
    return fold([*WRONG, *(event for each in after for event in each)])


STAYS = {
    "another switch, not compared": [run(2, FLIPPED)],
    "another switch, compared and right": [run(2, FLIPPED, "passed")],
    "the same again, not compared": [run(2)],
    "a comparison that was cancelled": [run(2, found="passed", failure=CANCELLED)],
    "a comparison that came to no answer": [run(2, found="error")],
    "held against something else": [run(2, found="passed", reference="aot")],
}
GOES = {
    "compared again": [run(2, found="passed")],
    "compared again in another way": [run(2, found="passed", per_kernel=True, runs=3)],
    "compared again under other rules": [run(2, replace(TARGET, rules='name = "x"'), "passed"), run(3, FLIPPED)],
}


@pytest.mark.parametrize("name", STAYS)
def test_wrong_numbers_stay_the_sessions_verdict(name: str) -> None:
    found = history(*STAYS[name])
    assert found.deciding_run is not None
    assert (found.deciding_run.number, found.deciding_run.verdict) in ((1, "wrong"), (2, "failed"))
    assert session_words(found) in ("run 1: 1 of 1 tensor wrong", "failed")


@pytest.mark.parametrize("name", GOES)
def test_a_comparison_of_the_same_says_otherwise(name: str) -> None:
    found = history(*GOES[name])
    assert found.deciding_run is found.last
    assert all(each.kind != "mismatch" for each in diagnostics.of_history(found))


def told_everywhere(folder: Path, log: list[SessionEvent]) -> dict[str, str]:
    """What each surface says of a session of this log."""
    saved = folder / "s"
    saved.mkdir()
    opened = events.SessionOpened(folder="", program=PROGRAM, version="1")
    (saved / "events.jsonl").write_bytes(b"".join(event_log.encode(each) + b"\n" for each in (opened, *log)))
    (listed,) = index.sessions(folder)
    state = State(live=False)
    state.apply(log)
    found = fold(log)
    told = SessionData("s", found)
    before, after = (found.runs[number] for number in sorted(found.runs)[-2:])
    changed = json.loads(json.dumps(compared.as_json(before, after), default=str))
    return {
        "idbg list": f"{listed.verdict} {listed.looks} {summary_words(listed)}",
        "idbg show": view(overview(listed, found)).summary,
        "header": "".join(text for text, _ in header(state, 200)[1]),
        "narrow header": "".join(text for text, _ in header(state, 60)[1]),
        "markdown": markdown.render(told).decode().partition("\n")[0],
        "json": str(json.loads(json_document.render(told))["verdict"]),
        "switches": compared.summary(before, after),
        "mcp compare": mcp_compare.summarize(mcp_compare.Arguments(session="s"), Done((), changed, 0, "")).summary,
    }


def test_a_session_with_wrong_numbers_is_clean_on_no_surface(tmp_path: Path) -> None:
    for surface, said in told_everywhere(tmp_path, [*WRONG, *run(2, FLIPPED)]).items():
        assert "wrong" in said and "clean" not in said and "✔" not in said, (surface, said)


def test_what_was_not_compared_is_no_better_than_wrong_numbers() -> None:
    found = history(run(2, FLIPPED))
    before, after = found.runs[1], found.runs[2]
    verdict, said = compared.outcome(before, after)
    assert verdict == "unknown"
    assert said == "not comparable: before 1 of 1 tensor wrong, after no rule broken, numbers not compared"
    assert compared.run_words(after).endswith("combo_kernels=True: no rule broken, 1.0 s")
    right = history(run(2, FLIPPED, "passed"))
    assert compared.outcome(right.runs[1], right.runs[2]) == ("ok", "better: before 1 of 1 tensor wrong, after clean")


def test_violations_are_counted_by_stage() -> None:
    broken = [
        Violation(rule="r", severity="pad", node=NodeId(graph, "a"), found="f", wanted="w")
        for graph in (INFERENCE, DYNAMO, DYNAMO)
    ]
    (start, graph, end) = run(1)
    of_two = fold([start, graph, events.ViolationsFound(run=1, violations=tuple(broken)), end]).last
    assert of_two is not None and verdict_words(of_two) == "3 violations (dynamo 2, inference 1)"


def test_a_session_that_was_left_at_its_start_does_not_wait_for_ever(tmp_path: Path) -> None:
    saved = tmp_path / "s"
    saved.mkdir()
    opened, started = events.SessionOpened(folder="", program=PROGRAM, version="1"), run(1)[0]
    for log, said in (([opened], "no run"), ([opened, started], "not finished")):
        (saved / "events.jsonl").write_bytes(b"".join(event_log.encode(each) + b"\n" for each in log))
        (listed,) = index.sessions(tmp_path)
        assert summary_words(listed) == said


def test_a_list_says_what_is_to_be_known_before_its_verdict_is_believed() -> None:
    clean = SessionSummary(folder="/s", name="s", runs=1, verdict="clean", result="clean")
    assert summary_words(clean) == "clean, never ended"
    assert summary_words(replace(clean, live=True)) == "live: clean"
    assert summary_words(replace(clean, damaged="x")) == "clean; damaged"
    assert summary_words(replace(clean, ended=True)) == "clean"
