"""A comparison's report reads at a glance, and its JSON is strict and complete."""

import json
import subprocess
import sys
from math import inf, nan
from typing import Any

import msgspec

from idbg.diff import Baseline, Block, Counts, DiffReport, KernelError, SideResult, TensorDiff, Variance, Worst
from idbg.records import Failure, GraphId, TensorMeta
from idbg.reports.diff import FAILED_SHOWN, summary, to_json

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
        assert set(diff) == {field.name for field in msgspec.structs.fields(TensorDiff)}
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
    assert "  2 outputs, 1 failed" in rest
    assert any('out["a/b"]' in line and "f32[4,8]" in line and "by nan, column" in line for line in rest)
    assert "worst at [1, 7]: reference 0.5, test nan" in text
    assert "worst column: [0:4, 7:8]" in text and "RMSE 0.001 (the reference's 1e-07)" in text
    assert "the first bad kernel: fused_1 (model.py:7)" in text and "2 kernel launches, 2 observed" in text


def test_the_summary_of_a_pass_is_short_and_says_how_it_was_judged() -> None:
    told = report(verdict="passed", mode="tolerance", float64="float8 has none", outputs=(GOOD,))
    assert summary(told).splitlines() == [
        "✔ passed   inductor against eager   by tolerance (float64: float8 has none)",
        "",
        "  1 output, 0 failed",
        "  ✔ out[1]   f32[4,8]   max |d| 0",
    ]


def test_a_side_that_failed_is_told_with_its_reason() -> None:
    failure = Failure(kind="torch", message="no kernel for sort", hint="use another", file="m.py", line=3)
    told = summary(report(verdict="error", sides=(SideResult("eager", 0.1), SideResult("inductor", 2.0, failure))))
    assert told.startswith("✘ not compared") and "inductor failed: no kernel for sort (m.py:3)" in told
    assert "use another" in told
    assert summary(report(verdict="error", sides=(SideResult("eager", 0.1),))).startswith("✘ not finished")


def test_many_failures_are_cut_and_counted() -> None:
    text = summary(report(outputs=(BAD,) * (FAILED_SHOWN + 5)))
    assert "… and 5 outputs more that failed" in text


def test_what_is_not_deterministic_is_named() -> None:
    text = summary(report(variance=(Variance("out", 3, 0.5, 2), Variance("out[1]", 3, 0.0, 0))))
    assert "out is not the same in 3 runs: 2 elements differ, by up to 0.5" in text and "out[1] is" not in text
    assert "the same in all of 3 runs" in summary(report(variance=(Variance("out", 3, 0.0, 0),)))


def test_no_torch_is_imported() -> None:
    code = "import sys, idbg.reports.diff; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
