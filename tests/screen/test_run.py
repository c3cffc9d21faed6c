"""A history is what its events tell, in whatever moment it is asked."""

from idbg.schema import events
from idbg.schema.code import Kernel, OutputCode
from idbg.schema.decisions.dynamo import GraphBreak
from idbg.schema.diff import Comparison
from idbg.schema.graphs import Frame, Graph, GraphId, Links, NodeId
from idbg.schema.programs import Failure, Program, Target
from idbg.schema.runs import Run, fold
from idbg.schema.violations import Violation
from tests.harness.recorded import log

PROGRAM, TARGET = Program("m.py"), Target()
FORWARD, POST = GraphId("0/0", "forward"), GraphId("0/0", "post_grad", "forward")
STARTED = events.RunStarted(run=1, program=PROGRAM, target=TARGET, at=5.0)


def test_a_session_without_runs_has_no_last_run() -> None:
    history = fold([events.Noted(level="info", text="hello")])
    assert history.last is None and history.worker is None


def test_a_run_holds_all_that_was_captured() -> None:
    kernel = Kernel(frame="0/0", part="forward", name="k", language="cpp")
    links = Links(FORWARD, POST, ())
    violation = Violation(rule="r", severity="reject", node=NodeId(FORWARD, "a"), found="f", wanted="w")
    run = fold(
        [
            STARTED,
            events.FrameStarted(run=1, frame=Frame("0/0", "forward")),
            events.GraphCaptured(run=1, graph=Graph(FORWARD, ())),
            events.GraphCaptured(run=1, graph=Graph(POST, ())),
            events.LinksCaptured(run=1, links=links),
            events.CodeCaptured(run=1, code=OutputCode("0/0", "forward", "text", (kernel,))),
            events.GraphBroke(run=1, graph_break=GraphBreak("print")),
            events.Recompiled(run=1, frame="0/1", reason="size"),
            events.ViolationsFound(run=1, violations=(violation,)),
            events.ViolationsFound(run=1, violations=(violation,)),
            events.OutputWritten(run=1, stream="stdout", text="hi"),
        ]
    ).last
    assert run is not None and run.started == 5.0 and run.verdict == "waiting"
    assert run.graph("0/0", "post_grad", "forward") == Graph(POST, ()) and run.graph("0/0", "joint") is None
    assert run.kernels == [kernel] and run.links == [links] and list(run.frames) == ["0/0"]
    assert len(run.violations) == 2 and len(run.breaks) == len(run.recompiles) == len(run.output) == 1


def test_phases_add_up_and_the_last_one_begun_is_the_current_one() -> None:
    run = fold(
        [
            STARTED,
            events.PhaseChanged(run=1, phase="codegen"),
            events.PhaseChanged(run=1, phase="codegen", seconds=1.0),
            events.PhaseChanged(run=1, phase="codegen", seconds=0.5),
            events.PhaseChanged(run=1, phase="compile"),
        ]
    ).last
    assert run is not None and run.phases == {"codegen": 1.5} and run.phase == "compile"


def test_the_end_sets_verdict_time_and_failure() -> None:
    failure = Failure("torch", "no")
    run = fold([STARTED, events.RunEnded(run=1, verdict="failed", seconds=2.0, failure=failure)]).last
    assert run is not None and (run.verdict, run.seconds, run.failure) == ("failed", 2.0, failure)


def test_events_go_to_the_run_they_name_and_late_ones_change_nothing_else() -> None:
    history = fold(
        [
            STARTED,
            events.RunStarted(run=2, program=PROGRAM, target=TARGET),
            events.GraphCaptured(run=1, graph=Graph(FORWARD, ())),
            events.OutputWritten(run=0, stream="stdout", text="between runs"),
            events.GraphCaptured(run=9, graph=Graph(FORWARD, ())),
        ]
    )
    assert set(history.runs) == {1, 2} and history.last is history.runs[2]
    assert len(history.runs[1].graphs) == 1 and history.runs[2].graphs == {} and history.runs[1].output == []


def test_the_worker_that_started_last_is_the_worker() -> None:
    started = [events.WorkerStarted(pid=n, torch="2.15", python="3.11", devices=(), seconds=1.0) for n in (1, 2)]
    history = fold(started)
    assert history.worker is not None and history.worker.pid == 2


def test_a_run_that_is_let_go_of_keeps_its_verdict() -> None:
    for name in ("breaking", "resnet", "wrong_pass", "planted"):
        run = fold(log(name)).last
        before = run.verdict, len(run.graphs), run.times_broken >= len(run.breaks)
        run.let_go()
        assert (run.verdict, len(run.graphs), run.times_broken >= len(run.breaks)) == before
        assert not run.kernels


def test_the_sides_of_a_comparison_are_no_recompile_of_the_programs() -> None:
    ours = events.Recompiled(run=1, frame="0/1", reason="BACKEND_MATCH: compiler=idbg inductor")
    theirs = events.Recompiled(run=1, frame="0/2", reason="size mismatch at index 0")
    compared, plain = (Run(1, Program("model.py"), Target(), 0.0, comparison) for comparison in (Comparison(), None))
    for event in (ours, theirs):
        compared.apply(event)
        plain.apply(event)
    assert (compared.recompiles, plain.recompiles) == ([theirs], [ours, theirs])
