"""A comparison's report reads at a glance, and its JSON is strict and complete."""

import json
import subprocess
import sys
from math import inf, nan
from typing import Any

import msgspec

from idbg.render.text import text
from idbg.reports.diff import SHOWN, summary, to_json
from idbg.schema import events
from idbg.schema.diff import Baseline, Block, Counts, DiffReport, KernelError, SideResult, TensorDiff, Variance, Worst
from idbg.schema.graphs import GraphId, TensorMeta
from idbg.schema.programs import Failure
from idbg.schema.steps import TrainingSteps
from idbg.views.diff import LINE_LENGTH, view
from tests.harness.framed import PRINT, run_of

META = TensorMeta("float32", (4, 8), (8, 1), "cpu")
BAD = TensorDiff(
    name='out["a/b"]',
    passed=False,
    failed_by=("nan", "column"),
    reference=META,
    test=META,
    elements=32,
    max_abs=inf,
    mean_abs=nan,
    mismatches=3,
    worst=Worst((1, 7), 0.5, "nan"),
    nan=Counts(0, 1, 1),
    blocks=(Block("column", (0, 4), (7, 8), 0.25, inf),),
    baseline=Baseline(1e-3, 2e-3, 1e-7, 2e-7),
)
GOOD = TensorDiff(name="out[1]", reference=META, test=META, elements=32, max_abs=0.0)
KERNELS = (
    KernelError(frame="0/0", part="inference", name="fused_0", observed=True, error=1e-7, input_error=0.0),
    KernelError(
        frame="0/0",
        part="inference",
        name="fused_1",
        graph=GraphId("0/0", "post_grad", "inference"),
        nodes=("mul", "relu"),
        file="model.py",
        line=7,
        observed=True,
        error=0.5,
        input_error=1e-7,
        bad=True,
    ),
)


def report(**given: Any) -> DiffReport:
    base: dict[str, Any] = {"test": "inductor", "reference": "eager", "verdict": "failed", "mode": "float64"}
    return DiffReport(**base | given)


def decoded(told: DiffReport) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"not strict JSON: {constant}")

    return json.loads(to_json(told), parse_constant=refuse)  # type: ignore[no-any-return]


def test_verdict_39_json_is_strict_and_figures_that_are_not_finite_are_text() -> None:
    output = decoded(report(outputs=(BAD,)))["outputs"][0]
    assert (output["max_abs"], output["mean_abs"], output["blocks"][0]["ratio"]) == ("inf", "nan", "inf")
    assert output["max_ulp"] is None, "what was not measured is null"
    assert output["worst"] == {"index": [1, 7], "reference": 0.5, "test": "nan"}
    assert output["name"] == 'out["a/b"]'


def test_the_json_has_the_keys_of_the_issue_and_every_field_of_the_records() -> None:
    told = decoded(report(outputs=(BAD,), gradients=(GOOD,), kernels=KERNELS, first_bad_kernel=1))
    assert told["schema"] == "idbg.diff/1" and told["verdict"] == "failed" and told["first_bad_kernel"] == 1
    for diff in (*told["outputs"], *told["gradients"]):
        assert set(diff) == {field.name for field in msgspec.structs.fields(TensorDiff)} | {"because"}
    assert {"name", "nodes", "file", "line", "error", "input_error", "observed"} <= set(told["kernels"][1])
    assert told["kernels"][1]["nodes"] == ["mul", "relu"]


def test_records_keep_all_their_keys_also_where_nothing_is_known() -> None:
    failure = Failure(kind="user", message="no")
    (side,) = decoded(report(sides=(SideResult("eager", 1.0, failure),)))["sides"]
    assert set(side["failure"]) == {field.name for field in msgspec.structs.fields(Failure)}
    (variance,) = decoded(report(variance=(Variance("out", 3, 0.5, 2),)))["variance"]
    assert variance == {"name": "out", "runs": 3, "max_abs": 0.5, "differing": 2, "deterministic": False}


def test_the_summary_says_what_failed_by_which_rule_and_where() -> None:
    text = summary(report(outputs=(BAD, GOOD), kernels=KERNELS, first_bad_kernel=1))
    first, *rest = text.splitlines()
    assert first == "✘ 1 tensor failed   inductor against eager   held against float64"
    assert "2 outputs, 1 failed" in rest
    assert any('out["a/b"]' in line and "f32[4,8]" in line and "by nan, column" in line for line in rest)
    assert "[1, 7]: nan, wanted 0.5" in text and "worst column: column 7: RMSE 0.25" in text
    assert "the first bad kernel: fused_1 (model.py:7)" in text and "2 kernel launches, 2 observed" in text


def test_the_summary_of_a_pass_is_short_and_says_how_it_was_judged() -> None:
    told = report(verdict="passed", mode="tolerance", float64_missing="float8 has none", outputs=(GOOD,))
    assert summary(told).splitlines() == [
        "✔ passed   inductor against eager   by tolerance (float64: float8 has none)",
        "1 output, 0 failed",
        "output                max |d|       RMSE  × eager's  decided  worst at  computed, wanted",
        "✔ out[1]  f32[4,8]          0          -          -           equal",
    ]


def test_a_side_that_failed_is_told_with_its_reason() -> None:
    failure = Failure(kind="torch", message="no kernel for sort", hint="use another", file="m.py", line=3)
    told = summary(report(verdict="error", sides=(SideResult("eager", 0.1), SideResult("inductor", 2.0, failure))))
    assert told.startswith("✘ not compared") and "inductor failed: no kernel for sort (m.py:3)" in told
    assert "use another" in told
    assert summary(report(verdict="error", sides=(SideResult("eager", 0.1),))).startswith("✘ not finished")


COMPILER = """C++ compile error

Command:
g++ main.cpp {flags}

Output:
main.cpp:3:32: error: 'flot' does not name a type
{notes}
main.cpp:9:1: error: another
"""


def test_of_a_compilers_output_the_first_line_and_the_first_error_are_told_and_where_the_rest_is() -> None:
    long = COMPILER.format(flags="-I /a/folder " * 500, notes="note: candidate\n" * 1000)
    failure = Failure(kind="torch", message=long, hint="a repro shows it alone", file="m.py", line=3)
    told = report(verdict="error", sides=(SideResult("inductor", 2.0, failure),), notes=(f"not observed: {long}",))
    text = summary(told)
    assert text.splitlines()[1:5] == [
        "inductor failed: C++ compile error (m.py:3)",
        "  main.cpp:3:32: error: 'flot' does not name a type",
        "  … and 1,004 lines more: --json has all of it, and so has the session's events.jsonl",
        "  a repro shows it alone",
    ]
    assert "note: not observed: C++ compile error" in text.splitlines() and len(text) < 1000
    assert decoded(told)["sides"][0]["failure"]["message"] == long


def test_a_message_of_a_few_lines_is_told_whole_and_a_line_without_end_is_cut() -> None:
    def told(message: str) -> list[str]:
        side = SideResult("eager", None, Failure(kind="user", message=message))
        return summary(report(verdict="error", sides=(side,))).splitlines()[1:]

    assert told("one\n\n  two\nthree") == ["eager failed: one", "  two", "  three"]
    first, cut = told("x" * 5000)
    assert len(first) < LINE_LENGTH + 30 and first.endswith("…") and "--json has all of it" in cut
    assert told("a\nb\nc\nd\ne")[-2:] == [
        "  d",
        "  … and 1 line more: --json has all of it, and so has the session's events.jsonl",
    ]


def test_what_ended_the_run_beside_its_sides_is_told_once() -> None:
    failure = Failure(kind="worker", message="the worker was killed by SIGSEGV")
    sides = (SideResult("eager", 0.1),)
    assert "it did not come to its end: the worker was" in summary(
        report(verdict="error", sides=sides, failure=failure)
    )
    sides += (SideResult("inductor", failure=failure),)  # type: ignore[assignment]
    assert summary(report(verdict="error", sides=sides, failure=failure)).count("SIGSEGV") == 1
    placed = msgspec.structs.replace(failure, file="model.py", line=7)
    assert "inductor failed: the worker was killed by SIGSEGV (model.py:7)\n" in summary(
        report(verdict="error", sides=sides, failure=placed, outputs=(GOOD,))
    )


def test_where_no_tensor_was_compared_the_reason_stands_once_and_nothing_names_a_fold() -> None:
    pending = msgspec.structs.replace(GOOD, passed=False, failed_by=(), note="not compared: inductor failed")
    assert "every figure" not in summary(report(outputs=(BAD,))) and "every figure" not in summary(
        report(verdict="error", outputs=(pending, pending))
    )


def test_that_nothing_was_compared_is_no_silent_pass() -> None:
    first, second = summary(report(verdict="passed")).splitlines()
    assert first == "⚠ nothing was compared   inductor against eager"
    assert "neither side gave a tensor" in second
    empty = msgspec.structs.replace(GOOD, elements=0)
    assert "only shapes and dtypes were compared" in summary(report(verdict="passed", outputs=(empty,)))
    assert "only shapes" not in summary(report(verdict="passed", outputs=(empty, GOOD)))


def test_where_nothing_was_compiled_the_graph_break_that_is_why_is_named() -> None:
    run = run_of(events.GraphBroke(run=1, graph_break=PRINT))
    run.diff = report(verdict="empty", outputs=(GOOD,))
    assert "graph break at /home/me/m.py:5: Failed to trace builtin operator" in text(view(run), SHOWN)
    run.diff = report(verdict="passed", outputs=(GOOD,))
    assert "graph break" not in text(view(run), SHOWN)


def test_launches_of_several_frames_have_their_frame() -> None:
    one, other = KERNELS[0], msgspec.structs.replace(KERNELS[1], frame="1/0")
    assert "  frame  " not in summary(report(kernels=KERNELS))
    lines = summary(report(kernels=(one, other))).splitlines()
    heads, first, second = next((lines[at : at + 3] for at, line in enumerate(lines) if "  frame  " in line), [""] * 3)
    assert "kernel launch" in heads and " 0/0 " in first and " 1/0 " in second


def unseen(name: str, reason: str = "its graph was not called") -> KernelError:
    return KernelError(frame="0/0", part="inference", name=name, reason=reason)


def test_kernels_that_were_not_observed_are_named_by_their_reason_and_are_no_proof_of_a_pass() -> None:
    kernels = (
        *(KERNELS[0], KERNELS[0], unseen("rand", "it draws random numbers")),
        *(unseen(name) for name in ("add", "mul", "mul", "exp", "sin")),
    )
    text = summary(report(verdict="passed", outputs=(GOOD,), kernels=kernels))
    assert text.splitlines()[4:8] == [
        "8 kernel launches; none of the 2 observed is worse than its inputs; not observed: 6",
        "  not observed:",
        "    5 × add, mul, exp, +1: its graph was not called",
        "    1 × rand: it draws random numbers",
    ]


def test_none_and_all_observed_are_said_in_their_own_words() -> None:
    assert "none is worse than its inputs" in summary(report(kernels=(KERNELS[0],) * 2))
    assert "2 kernel launches; none of the 1 observed is worse than its inputs; not observed: 1" in summary(
        report(kernels=(KERNELS[0], unseen("add")))
    )
    assert "1 kernel launch, none observed" in summary(report(kernels=(unseen("add"),)))


def test_many_reasons_are_cut_and_counted() -> None:
    kernels = tuple(unseen(f"k{number}", f"reason {number}") for number in range(SHOWN + 3))
    lines = summary(report(kernels=kernels)).splitlines()
    assert "    and 3 more" in lines and f"    1 × k{SHOWN}: reason {SHOWN}" not in lines


def test_where_outputs_are_wrong_and_no_observed_kernel_is_bad_the_others_are_suspects() -> None:
    some = summary(report(outputs=(BAD,), kernels=(KERNELS[0], unseen("add"))))
    assert "nothing that was looked at is wrong: suspect 1 kernel not observed" in some
    assert "what they stand for may be wrong itself" in summary(report(outputs=(BAD,), kernels=KERNELS[:1]))
    blamed = summary(report(outputs=(BAD,), kernels=(*KERNELS, unseen("add")), first_bad_kernel=1))
    assert "suspect" not in blamed and "1 × add: its graph was not called" in blamed
    missing = msgspec.structs.replace(BAD, failed_by=("missing",))
    assert "may be wrong itself" not in summary(report(outputs=(missing,), kernels=KERNELS[:1]))


def test_a_node_that_was_bisected_is_not_called_a_kernel() -> None:
    found = msgspec.structs.replace(
        KERNELS[1], name="relu", part="", graph=GraphId("0/0", "dynamo"), nodes=("relu",), reason="bisected, ..."
    )
    text = summary(report(outputs=(BAD,), kernels=(found,), first_bad_kernel=0))
    at = text.splitlines().index("  ✘ the first bad node (bisected): relu (model.py:7)")
    assert text.splitlines()[at + 1] == "    relative error 0.5, of its inputs 1e-07"
    assert "kernel" not in text


def test_an_error_is_told_by_itself_and_with_what_came_before() -> None:
    passed_on = msgspec.structs.replace(KERNELS[1], name="fused_2", bad=False, isolated=1e-7, error=0.75)
    guilty = msgspec.structs.replace(KERNELS[1], isolated=0.25, isolated_eager=1e-7, node="relu")
    told = report(kernels=(KERNELS[0], guilty, passed_on), first_bad_kernel=1)
    text = summary(told)
    assert "relative error 0.25 by itself, given exact inputs (eager's 1e-07); computes mul, relu" in text
    assert "with what came before 0.5, of its inputs 1e-07" in text
    assert "the largest error by itself: 0.25 of fused_1 (relu); with what came before: 0.75 of fused_2" in text
    assert decoded(told)["kernels"][1]["isolated"] == 0.25


def test_what_is_not_sure_of_the_first_bad_kernel_is_told() -> None:
    unsure = msgspec.structs.replace(KERNELS[1], reason="its input buf0 could not be compared")
    assert "its input buf0 could not be compared" in summary(report(kernels=(unsure,), first_bad_kernel=0))


def test_many_failures_are_cut_and_counted() -> None:
    text = summary(report(outputs=(BAD,) * (SHOWN + 5)))
    assert "and 5 more" in text


def test_what_is_not_deterministic_is_named() -> None:
    text = summary(report(variance=(Variance("out", 3, 0.5, 2), Variance("out[1]", 3, 0.0, 0))))
    assert "out is not the same in 3 runs: 2 elements differ, by up to 0.5" in text and "out[1] is" not in text
    assert "the same in all of 3 runs" in summary(report(variance=(Variance("out", 3, 0.0, 0),)))


def test_no_torch_is_imported() -> None:
    code = "import sys, idbg.reports.diff; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_training_in_json_says_its_sentence() -> None:
    steps = TrainingSteps(requested=3, verdict="passed", taken=3)
    report = DiffReport(test="inductor", reference="eager", verdict="passed", mode="float64", steps=steps)
    told = json.loads(to_json(report))["steps"]
    assert told["said"] == "inductor and eager train alike for 3 steps" and told["parted"] is None
    assert "train alike for 3 steps" in summary(report)
