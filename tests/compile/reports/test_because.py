"""Every verdict says which of its criteria decided, by what sum, and why another did not."""

import json
from math import inf

import pytest
import torch

from idbg.engine.kerneldiff.tensors.compare import compare_sides, compare_tensors
from idbg.reports.diff import summary, to_json
from idbg.schema.diff import DiffReport, TensorDiff
from idbg.views.criteria import because

LOSS = torch.tensor(6.79, dtype=torch.float64)
MANY = torch.randn(40, 50, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def loss(worse: float) -> TensorDiff:
    """A loss of which eager is 0.0012 off."""
    return compare_sides((LOSS + 0.0012).float(), (LOSS + worse).float(), LOSS, name="loss")


def assert_summed(diff: TensorDiff) -> None:
    """What is allowed is the sum of what it is said to be the sum of, and the verdict is that of the criteria."""
    for each in diff.criteria:
        if each.terms:
            assert each.allowed == pytest.approx(sum(term.amount for term in each.terms))
    deciding = {each.by for each in diff.criteria if each.exceeded and not each.why_not}
    assert deciding == set(diff.failed_by) - {"nan", "inf", "dtype"}


def test_a_pass_that_is_far_beyond_tolerance_and_eager_shows_the_sum_that_allows_it():
    found = loss(0.05)
    assert found.passed and found.mismatches == 1
    told = because(found)
    assert told.startswith("RMSE 0.05 is within the 0.0577 allowed = 3 × eager's 0.0012 + 0.054 as so few elements")
    assert told.endswith("which does not decide: float64 decides")
    assert_summed(found)
    assert told in summary(DiffReport(test="t", reference="r", verdict="passed", mode="float64", outputs=(found,)))


def test_a_failure_names_the_criterion_that_it_exceeds_the_most():
    found = loss(0.34)
    assert because(found).startswith("RMSE 0.34 is 5.9 × the 0.0577 allowed = 3 × eager's 0.0012")
    assert_summed(found)
    test = MANY.float()
    test[:, 3] = 0
    lost = compare_sides(MANY.float(), test, MANY)
    assert because(lost).startswith("RMSE of the worst column ")
    assert_summed(lost)


def test_a_lost_block_of_small_values_is_held_against_its_own_size():
    exact = MANY.clone()
    exact[:, 3] *= 1e-3
    test = exact.bfloat16()
    test[:, 3] = 0
    found = compare_sides(exact.bfloat16(), test, exact)
    assert found.failed_by == ("column",) and "0.5 × the values' " in because(found)
    assert_summed(found)


def test_where_eager_is_far_from_float64_that_is_why_float64_does_not_decide():
    found = compare_sides(torch.ones(4), torch.full((4,), 0.5), torch.zeros(4, dtype=torch.float64))
    told = because(found)
    assert told.startswith("4 of 4 elements beyond tolerance (atol 1e-05, rtol 1.3e-06), none allowed")
    assert_summed(found)
    exact = 1e-17 * MANY
    found = compare_sides((MANY * 1e-3).bfloat16(), (MANY * 0.1).bfloat16(), exact)
    assert found.failed_by and "which does not decide" not in because(found)


def test_tolerances_integers_and_one_sided_nan_have_their_reasons():
    assert because(compare_tensors(MANY, MANY * 1.1)) == (
        "2,000 of 2,000 elements beyond tolerance (atol 1e-07, rtol 1e-07), none allowed"
    )
    whole = torch.arange(9)
    assert because(compare_tensors(whole, whole + 1)) == "9 of 9 elements not the same, none allowed"
    eager = whole.clone()
    eager[:2] = 0
    test = compare_sides(eager, whole + 9, whole)
    assert because(test).endswith("3 allowed = 3 × eager's 1")
    nan = MANY.clone()
    nan[0, 0] = torch.nan
    assert because(compare_tensors(MANY, nan)).startswith("NaN on one side only in 1 place")
    assert because(compare_tensors(MANY, MANY)) == ""


def test_the_sentence_and_its_data_are_in_the_json():
    found = loss(0.34)
    (told,) = json.loads(
        to_json(DiffReport(test="t", reference="r", verdict="failed", mode="float64", outputs=(found,)))
    )["outputs"]
    assert told["because"] == because(found)
    rmse = told["criteria"][0]
    assert rmse["by"] == "rmse" and rmse["measured"] > rmse["allowed"] and rmse["terms"][0]["what"] == "eager"


def test_an_infinity_that_json_has_carried_is_an_infinity_again():
    from idbg.schema.diff import sayable

    found = compare_tensors(torch.ones(3), torch.full((3,), inf))
    (told,) = sayable(DiffReport(test="t", reference="r", verdict="failed", mode="tolerance", outputs=(found,))).outputs
    text = summary(DiffReport(test="t", reference="r", verdict="failed", mode="tolerance", outputs=(told,)))
    assert "e+308" not in text and "inf" in text.splitlines()[3].split()
