"""What a machine hears of a run is what the run holds, once each, and has the same key in another run."""

import re

import msgspec
import pytest
from msgspec.structs import replace

from idbg.reports.baseline import line
from idbg.schema import events
from idbg.schema.attribution import Maker
from idbg.schema.diff import DiffReport, FormDiff, TensorDiff
from idbg.schema.graphs import Frame
from idbg.schema.programs import Failure, Program, Target
from idbg.schema.runs import Run, fold
from idbg.views import findings
from idbg.views.blame import blamed_line
from idbg.views.diagnostics import diagnostics
from idbg.views.diff import section
from idbg.views.tree import Row
from tests.harness.recorded import log

RECORDED = ("attention", "benched", "breaking", "mlp_train", "planted", "resnet", "switched", "wrong_pass")


def runs_of(name: str) -> list[Run]:
    return list(fold(log(name)).runs.values())


@pytest.mark.parametrize("name", RECORDED)
def test_a_run_that_is_not_clean_has_something_to_tell_and_a_clean_one_no_error(name: str) -> None:
    for run in runs_of(name):
        errors = [each for each in diagnostics(run) if each.level == "error"]
        assert bool(errors) == (run.verdict in ("failed", "wrong", "empty", "violations")), run.verdict


@pytest.mark.parametrize("name", RECORDED)
def test_each_violation_and_each_break_is_counted_once(name: str) -> None:
    for run in runs_of(name):
        told = diagnostics(run)
        assert sum(each.count for each in told if each.kind == "violation") == (run.violation_count or 0)
        assert sum(each.count for each in told if each.kind == "break") == run.times_broken
        assert sum(each.count for each in told if each.kind == "recompile") == len(run.recompiles)


def test_a_finding_of_wrong_numbers_begins_with_what_made_them_wrong_and_its_figures_stand_below() -> None:
    made_by = "post_grad_custom_post_pass (tests/recordings/wrong_pass.py:10) at `mul`"
    for name, start in (("wrong_pass", made_by), ("planted", "kernel `cpp_fused__softmax__unsafe_view_add_mul_1`")):
        (found,) = [each for run in runs_of(name) for each in diagnostics(run) if each.kind == "mismatch"]
        assert found.message.startswith(f"{start} makes output out[") and found.message.endswith(" of aot wrong")
        assert found.detail.startswith("differs from eager's: ") and not re.search("[0-9]e-", found.message)
        row = findings.row(found)
        head, *below = (each.text for each in (row, *row.below))
        assert found.message in head and found.detail in below


def test_the_worst_is_first() -> None:
    (run,) = runs_of("breaking")
    levels = [each.level for each in diagnostics(run)]
    assert levels == sorted(levels, key=["error", "warning", "note"].index)
    assert len(set(levels)) > 1


def test_the_key_stays_when_lines_move_and_tells_rules_apart() -> None:
    (run,) = runs_of("attention")
    before = diagnostics(run)
    run.violations = [msgspec.structs.replace(each, line=each.line + 7) for each in run.violations]
    after = diagnostics(run)
    assert [each.key for each in after] == [each.key for each in before]
    assert [each.line for each in after] == [each.line + 7 for each in before]
    run.violations = [msgspec.structs.replace(each, severity="pad") for each in run.violations]
    assert not {each.key for each in diagnostics(run)} & {each.key for each in before}


def test_a_failure_is_told_once_however_many_heard_of_it_and_a_cancelled_run_has_not_failed() -> None:
    (run,) = runs_of("mlp_train")
    run.violations = []
    failure = Failure("torch", "LoweringException: no lowering for 0x7f01", type="LoweringException")
    run.failure = failure
    run.frame_failures = [events.FrameFailed(run=1, frame="0/0", failure=failure)]
    (told,) = diagnostics(run)
    assert (told.kind, told.rule, told.level) == ("failure", "torch", "error")
    other = msgspec.structs.replace(failure, message="LoweringException: no lowering for 0x9a42")
    run.failure, run.frame_failures = other, []
    assert [each.key for each in diagnostics(run)] == [told.key]
    run.failure = Failure("cancelled", "cancelled")
    assert diagnostics(run) == []


def test_each_recompile_is_told_what_to_do_about_its_own_guard() -> None:
    (run,) = runs_of("breaking")
    told = {each.message: each.fix for each in diagnostics(run) if each.kind == "recompile"}
    sizes = {message: fix for message, fix in told.items() if "size " in message}
    assert sizes and len(told) > len(sizes)
    assert all("size" in fix for fix in sizes.values())
    assert all("say that size" not in fix for message, fix in told.items() if message not in sizes)


def test_a_mismatch_stands_at_the_line_that_is_to_blame() -> None:
    run = fold(log("wrong_pass")).last
    assert run is not None and run.diff is not None and run.diff.first_wrong_stage is not None
    blamed = run.diff.first_wrong_stage
    assert blamed.stage == "post_grad" and blamed.line and run.diff.culprit is None
    (found,) = [each for each in diagnostics(run) if each.kind == "mismatch"]
    assert (found.file, found.line) == (blamed.file, blamed.line)
    pass_of_the_users = Maker(kind="pass", name="double", file="passes.py", line=7)
    elsewhere = replace(blamed, file="", line=0, made_by=pass_of_the_users)
    assert blamed_line(replace(run.diff, stages=(elsewhere,))) == ("passes.py", 7)
    assert blamed_line(replace(run.diff, stages=())) == ("", 0)


def test_a_mismatch_of_which_no_node_is_known_stands_where_its_function_begins() -> None:
    run = fold(log("wrong_pass")).last
    assert run is not None and run.diff is not None
    run.diff = replace(run.diff, stages=())
    (frame,) = run.frames.values()
    (found,) = [each for each in diagnostics(run) if each.kind == "mismatch"]
    assert (found.file, found.line) == (frame.file, frame.line) and frame.line

    names = {"first": 10, "second": 20}
    run.frames = {name: Frame(f"{line}/0", name, "script.py", line) for name, line in names.items()}
    wrong = next(each for each in run.diff.outputs if each.failed)
    run.diff = replace(run.diff, outputs=[replace(wrong, name=f"{name}: out") for name in ("second", "third")])
    at = {each.message.split()[1]: (each.file, each.line) for each in diagnostics(run) if each.kind == "mismatch"}
    assert at == {"second:": ("script.py", 20), "third:": ("script.py", 10)}
    run.frames["other"] = Frame("30/0", "other", "script.py", 30)
    at = {each.message.split()[1]: (each.file, each.line) for each in diagnostics(run) if each.kind == "mismatch"}
    assert at["third:"] == (run.program.path, 0), "two functions could be it: a guess is no line"
    assert line(next(each for each in diagnostics(run) if "third:" in each.message)).startswith(f"{run.program.path}: ")


def test_an_output_that_fails_by_its_form_says_how_it_differs() -> None:
    run = Run(1, Program("m.py"), Target(), 0.0, ended="wrong")
    form = FormDiff("stride", failed=True, side="eager", reference="(8, 1)", test="(1, 4)")
    output = TensorDiff(name="out", passed=False, failed_by=("layout",), form=(form,))
    run.diff = DiffReport(test="inductor", reference="eager", verdict="failed", mode="float64", outputs=(output,))
    [found] = [each for each in diagnostics(run) if each.kind == "mismatch"]
    assert found.message.endswith("differs from eager's: its strides are (1, 4), in eager (8, 1)")


def test_another_dtype_is_the_finding_and_comes_before_wrong_numbers() -> None:
    (run,) = runs_of("planted")
    assert run.diff is not None
    wrong = next(each for each in run.diff.outputs if each.failed)
    assert wrong.test is not None
    half = replace(wrong, name="half", failed_by=("dtype", *wrong.failed_by), test=replace(wrong.test, dtype="float16"))
    run.diff = replace(run.diff, outputs=(wrong, half))
    first, second = [each for each in diagnostics(run) if each.kind == "mismatch"]
    assert (first.rule, second.rule) == ("dtype", wrong.failed_by[0])
    assert first.message.startswith("output half of aot has dtype float16, wanted float32: kernel `cpp_fused_")
    shown = [row.text for row in section(run.diff).body if isinstance(row, Row)]
    assert shown[0] == "half: dtype float16, wanted float32"
