"""Is each guard that failed known by what torch says of its failure, and are the others known not to have failed?"""

import pytest

from idbg.analysis.decisions.guards import Failures, by_source
from idbg.render.text import lines as lines_of
from idbg.schema import events
from idbg.schema.decisions.dynamo import FailedGuard, FrameGuards, Guard
from idbg.schema.graphs import Frame
from idbg.schema.runs import Run
from idbg.views import guards as report
from idbg.views.tree import referring
from tests.harness.why_states import guarded, run_of, start

TENSOR = Guard(kind="TENSOR_MATCH", source="L['x']", code=("check_tensor(L['x'], Tensor, size=[2])",))
OTHER = Guard(kind="TENSOR_MATCH", source="L['y']", code=("check_tensor(L['y'], Tensor, size=[2])",))
NUMBER = Guard(kind="EQUALS_MATCH", source="L['n']", code=("L['n'] == 3",), file="m.py", line=3)
MARKED = Guard(kind="NO_HASATTR", source="L['x']", code=("hasattr(L['x'], '_dynamo_dynamic_indices') == False",))
ALIAS = Guard(kind="NO_TENSOR_ALIASING", source="L['x']", code=("check_no_aliasing(L['x'], L['y'])",))
STATE = Guard(kind="GLOBAL_STATE", code=("___check_global_state() against {}",))
ALL = (TENSOR, OTHER, NUMBER, MARKED, ALIAS, STATE)


def _run(failed: FailedGuard) -> Run:
    happened = [
        *start(),
        events.DecisionsRecorded(run=1, decisions=(FrameGuards(frame="0/0", guards=ALL, seconds=1e-6),)),
        events.Recompiled(run=1, frame="0/1", reason=failed.text, failed=(failed,)),
    ]
    return run_of(happened)


@pytest.mark.parametrize(
    ("said", "source", "guilty"),
    [
        ("L['n'] == 3", "L['n']", NUMBER),
        ("tensor 'x' size mismatch at index 0. expected 2, actual 3", "x", TENSOR),
        ("tensor 'L['y']' dtype mismatch. expected Float, actual Int", "L['y']", OTHER),
        ("expected type of 'L['x']' to be <class 'a'>, but found <class 'b'>", "L['x']", TENSOR),
        ("hasattr(L['x'], '_dynamo_dynamic_indices') == False", "L['x']", MARKED),
        ("Duplicate tensors found: L['x'], L['y']", "L['x'], L['y']", ALIAS),
        ("GLOBAL_STATE changed: grad_mode", "grad_mode", STATE),
    ],
)
def test_a_failure_is_of_one_guard(said: str, source: str, guilty: Guard) -> None:
    run = _run(FailedGuard(text=said, code=said, source=source, against="0/0"))
    failures = Failures(run)
    assert [guard for guard in ALL if failures.of("0/0", guard) == ("0/1",)] == [guilty]
    assert not any(failures.of("0/1", guard) for guard in ALL)
    assert f"{guilty.code[0]}" in "\n".join(line for line in lines_of(report.view(run)) if "→ 0/1" in line)


def test_a_guard_is_about_its_line_and_shows_what_its_failure_compiled() -> None:
    run = _run(FailedGuard(text="L['n'] == 3", code="L['n'] == 3", against="0/0"))
    (row,) = [row for row in referring(report.view(run)) if row.refs.file]
    assert (row.refs.file, row.refs.line, row.refs.frame) == ("m.py", 3, "0/0")
    assert row.cells[-1].value == "→ 0/1"


def test_ten_thousand_are_grouped_and_shown_at_once() -> None:
    run = run_of(guarded(10_000))
    (told,) = run.decided.last(FrameGuards).values()
    assert len(by_source(told.guards)) == 2_500
    text = list(lines_of(report.view(run)))
    assert len(text) < 70 and any("and 2,450 more" in line for line in text)


def test_frames_where_none_failed_and_that_cost_little_are_folded_in_text() -> None:
    told = start()
    for number in range(20):
        name = "torch_dynamo_resume_in_f_at_7" if number % 2 else "g"
        seconds = 1e-6 * (number + 1)
        told += [
            events.FrameStarted(run=1, frame=Frame(f"{number}/0", name, "m.py", 3)),
            events.DecisionsRecorded(run=1, decisions=(FrameGuards(frame=f"{number}/0", guards=ALL, seconds=seconds),)),
        ]
    failed = FailedGuard(text="L['n'] == 3", code="L['n'] == 3", source="L['n']", against="4/0")
    run = run_of([*told, events.Recompiled(run=1, frame="4/1", reason="n", failed=(failed,))])
    frames = report.view(run).body[0].rows  # type: ignore[union-attr]
    names = [row.refs.frame for row in frames]
    assert names[:4] == ["4/0", "19/0", "18/0", "17/0"] and len(names) == 20
    assert [row.refs.frame for row in frames if row.open in ("text", "all")] == names[:4]
    assert "f, after line 7 19/0  6 guards" in "\n".join(lines_of(report.view(run)))
    assert len(report.as_json(run)) == 20  # type: ignore[arg-type]


def test_a_thousand_frames_are_still_few_lines() -> None:
    lines = list(lines_of(report.view(run_of(guarded(4_000, frames=1_000)))))
    assert len(lines) < 400 and "and 950 more" in lines[-1]


def test_what_was_never_compiled_has_none() -> None:
    assert list(lines_of(report.view(run_of(start())))) == [report.NONE]
