"""Stages of other compilers in the fold of a session's events."""

from idbg.schema import events
from idbg.schema.code import CompilerStage
from idbg.schema.event_log import decode, encode
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import Frame
from idbg.schema.programs import Program, Target
from idbg.schema.runs import Run, fold

BEGIN = events.RunStarted(run=1, program=Program(path="net.py"), target=Target())


def stage(name: str, frame: str = "0/0", text: str = "func @main") -> events.StageCaptured:
    made = CompilerStage(frame=frame, compiler="iree", name=name, language="mlir", text=text, origin="dump")
    return events.StageCaptured(run=1, stage=made)


def names(*log: SessionEvent) -> list[str]:
    run = fold([BEGIN, *log]).runs[1]
    return [each.name for each in run.stages.values()]


def test_stages_are_in_the_order_in_which_they_came() -> None:
    assert names(stage("input"), stage("flow"), stage("vm")) == ["input", "flow", "vm"]


def test_a_stage_replaces_the_one_with_its_key() -> None:
    run = fold([BEGIN, stage("input"), stage("flow"), stage("input", text="again")]).runs[1]
    assert [(each.name, each.text) for each in run.stages.values()] == [("input", "again"), ("flow", "func @main")]


def test_a_frame_that_is_traced_anew_has_lost_its_stages() -> None:
    first = events.FrameStarted(run=1, frame=Frame("0/0", "forward"))
    assert names(first, stage("input"), stage("flow", frame="1/0"), first) == ["flow"]


def test_a_run_that_is_let_go_has_no_stages() -> None:
    run: Run = fold([BEGIN, stage("input")]).runs[1]
    run.let_go()
    assert not run.stages


def test_a_stage_is_read_again_as_it_was_written() -> None:
    assert decode(encode(stage("input"))) is not None
    assert fold([BEGIN, decode(encode(stage("input"))) or BEGIN]).runs[1].stages == {
        ("0/0", "", "iree", "input"): stage("input").stage
    }
