"""The section about a comparison has the count, the verdict and the sentence that every output shows."""

import pytest

from idbg.schema.diff import Comparison, DiffReport, Outcome, TensorDiff
from idbg.schema.programs import Program, Target
from idbg.schema.runs import Run
from idbg.views import diff
from idbg.views.tree import Verdict


def run(report: DiffReport | None = None, comparison: Comparison | None = None) -> Run:
    made = Run(1, Program("m.py"), Target("inductor"), 0.0, diff=report)
    made.comparison = comparison
    return made


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [("passed", "ok"), ("failed", "error"), ("error", "error"), ("empty", "unknown"), ("waiting", "unknown")],
)
def test_the_verdict_follows_the_comparison(outcome: Outcome, expected: Verdict) -> None:
    outputs = (TensorDiff(name="y", passed=outcome == "passed"), TensorDiff(name="z"))
    report = DiffReport(test="t", reference="eager", verdict=outcome, mode="float64", outputs=outputs)
    section = diff.view(run(report))
    assert section.verdict == expected
    assert section.count == diff.count(run(report)) == sum(each.failed for each in outputs)


def test_without_a_comparison_the_summary_says_so() -> None:
    assert diff.view(run()).summary == diff.NOT_COMPARED
    unfinished = diff.view(run(comparison=Comparison(reference="eager")))
    assert unfinished.verdict == "unknown" and "has no verdict: it did not come to its end" in unfinished.summary
