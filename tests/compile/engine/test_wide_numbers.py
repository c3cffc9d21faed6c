"""Figures are right where numbers are hard: squares beyond float64, complex infinities, dtypes that hold one another's
values only in a third, sums that cancel.
"""

from math import inf, isclose, nan

import pytest
import torch

from idbg.engine.kerneldiff.kernels.verdict import measured, rms
from idbg.engine.kerneldiff.stages.chain import _near
from idbg.engine.kerneldiff.tensors import native
from idbg.engine.kerneldiff.tensors.compare import compare_sides, compare_tensors, relative_rmse


@pytest.fixture(params=["torch", "compiled"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "enabled", request.param == "compiled")
    if request.param == "compiled" and not native.wait():
        pytest.skip(native.problem())


VALUES = torch.randn(300, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize("size", [1e-300, 1e-170, 1e-100, 1e160, 1e300])
@pytest.mark.parametrize("error", [1e-3, 1e-9])
def test_figures_scale_with_the_numbers_also_where_their_squares_do_not(size: float, error: float, dtype: torch.dtype):
    usual, found = (
        compare_sides(reference, reference * (1 + error), reference)
        for reference in (VALUES.to(dtype), VALUES.to(dtype) * size)
    )
    assert found.rmse == pytest.approx(usual.rmse * size, rel=1e-6)  # type: ignore[operator]
    assert found.cosine == pytest.approx(1)
    assert found.baseline.rmse == pytest.approx(usual.baseline.rmse * size, rel=1e-6)
    for one, other in zip(found.blocks, usual.blocks, strict=True):
        assert (one.rows, one.columns) == (other.rows, other.columns)
        assert one.rmse == pytest.approx(other.rmse * size, rel=1e-6)
    reference = VALUES.to(dtype) * size
    assert relative_rmse(reference, reference * (1 + error)) == pytest.approx(error, rel=1e-6)
    assert compare_tensors(reference, -reference).cosine == pytest.approx(-1)
    plain, scaled = (compare_tensors(each, each * (1 + error)).blocks for each in (VALUES.to(dtype), reference))
    assert [block.rmse for block in scaled] == pytest.approx([block.rmse * size for block in plain])


def test_errors_far_below_their_numbers_and_zeros_have_figures_too():
    one = torch.ones(4, dtype=torch.float64)
    assert compare_tensors(one * 0, one * 1e-200).rmse == pytest.approx(1e-200)
    assert compare_tensors(one * 0, one * 0).cosine is None
    huge = torch.tensor([1e200, 1.0, 2.0], dtype=torch.float64)
    moved = huge + torch.tensor([0, 1e-3, 0], dtype=torch.float64)
    assert compare_tensors(huge, moved).rmse == pytest.approx(1e-3 / 3**0.5)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_both_parts_of_a_complex_infinity_count(dtype: torch.dtype):
    def two(*parts: float) -> torch.Tensor:
        return torch.tensor([complex(*parts), 1], dtype=dtype)

    for one, other in (((inf, 0), (-inf, 0)), ((inf, 1), (inf, 5)), ((inf, inf), (inf, -inf)), ((0, inf), (inf, 0))):
        found = compare_tensors(two(*one), two(*other))
        assert found.failed_by == ("inf",) and found.mismatches == 1 and found.max_abs == inf
        exact = two(*one).to(torch.complex128)
        assert compare_sides(two(*one), two(*other), exact).failed_by[0] == "inf"
        if dtype == torch.complex64:
            assert compare_sides(two(*one), two(*other), two(*other).to(torch.complex128)).passed, "as float64 has it"
    for same in ((inf, 1), (-inf, -inf), (nan, 1), (inf, nan)):
        assert compare_tensors(two(*same), two(*same)).passed
    assert compare_tensors(two(inf, 1), two(inf, 1 + 1e-9)).passed, "within tolerance"
    assert compare_tensors(two(inf, 1), two(nan, 1)).failed_by == ("nan",)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.complex64], ids=str)
def test_a_float_against_wide_integers_has_no_infinities(dtype: torch.dtype):
    whole = torch.tensor([1, 100_000, 2**53])
    found = compare_tensors(torch.ones(3).to(dtype), whole)
    assert found.failed_by == ("dtype", "tolerance")
    assert found.posinf is not None and found.posinf.test == 0
    assert found.max_abs == 2.0**53 - 1 and found.max_ulp is None
    assert compare_tensors(whole, whole.to(torch.float32)).mismatches == 0
    assert compare_tensors(torch.tensor([True]), torch.ones(1).to(dtype)).failed_by == ("dtype",)


def test_a_scalar_that_cancels_to_nothing_may_be_as_far_off_as_eager_by_bad_luck():
    """Of layer_norm(x).mean(): nothing is left but rounding, and 1.6 % of nothing is no bound."""
    exact = torch.tensor(1e-18, dtype=torch.float64)
    assert compare_sides(torch.tensor(2e-10), torch.tensor(2.3e-9), exact).passed
    assert not compare_sides(torch.tensor(2e-10), torch.tensor(2.3e-6), exact).passed


@pytest.mark.parametrize("size", [3e307, 1e308, 1.7e308])
def test_means_of_the_largest_numbers_of_float64_are_numbers(size: float):
    reference = torch.full((1000,), size, dtype=torch.float64)
    diff = compare_tensors(reference, reference * 0.5)
    assert diff.mean_abs == pytest.approx(size / 2) and diff.rmse == pytest.approx(size / 2)
    assert diff.max_abs == pytest.approx(size / 2) and diff.mean_rel == pytest.approx(0.5)


@pytest.mark.parametrize("size", [1e200, 1.7e308])
def test_the_error_of_a_stage_is_one_half_where_squares_overflow(size: float) -> None:
    exact = torch.full((40,), size, dtype=torch.float64)
    error = measured(exact, exact * 0.5)
    assert isclose(error.rmse, 0.5, rel_tol=1e-9) and isclose(error.maximum, 0.5, rel_tol=1e-9)
    assert isclose(rms(exact), size, rel_tol=1e-9)
    assert measured(exact, torch.full_like(exact, inf)).rmse == inf
    assert _near(exact, exact * 0.5) is None, "a norm that overflows says nothing of how near they are"


def test_where_float64_is_at_the_end_of_its_range_eager_decides() -> None:
    """An error of 1.8e308 times a factor is infinite, and a share of it is no number."""
    exact = torch.full((16, 8), torch.finfo(torch.float64).max, dtype=torch.float64)
    exact[::2] *= -1
    eager = exact.clamp(-3e38, 3e38).float()
    assert compare_sides(eager, eager, exact).passed
    lost, wrong = eager.clone(), eager.clone()
    lost[3, 4], wrong[3, 4] = nan, 0
    assert compare_sides(eager, lost, exact).failed_by == ("nan",)
    assert compare_sides(eager, wrong, exact).failed_by == ("tolerance",)
