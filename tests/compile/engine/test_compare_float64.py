"""When two tensors that a float64 side stands beside are called wrong: by torch and by the compiled kernel alike."""

import math

import pytest
import torch

from idbg.engine.kerneldiff.tensors.compare import compare_sides, compare_tensors, relative_rmse
from idbg.views.remarks import tensor_note


def matmul(dtype: torch.dtype, depth: int = 512) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Eager, a clean test that adds up in another order, and float64."""
    random = torch.Generator().manual_seed(depth)
    left = torch.randn(500, depth, generator=random).to(dtype)
    right = torch.randn(depth, 300, generator=random).to(dtype)
    parts = [left[:, at::4].float() @ right[at::4].float() for at in range(4)]
    return left @ right, sum(parts[1:], parts[0]).to(dtype), left.double() @ right.double()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_another_order_of_adding_up_passes(dtype: torch.dtype, way: str):
    eager, test, exact = matmul(dtype)
    found = compare_sides(eager, test, exact)
    assert found.passed, (found.failed_by, found.baseline, found.blocks)
    assert found.baseline is not None and found.baseline.rmse > 0 and found.baseline.reference_rmse > 0


def last_column(test: torch.Tensor) -> None:
    test[:, -1] = 0


def tile_edge(test: torch.Tensor) -> None:
    test[64:128, 127] = test[64:128, 126]


def lost_tail(test: torch.Tensor) -> None:
    test.view(-1)[-5:] = 0


def one_nan(test: torch.Tensor) -> None:
    test[17, 3] = math.nan


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    ("fault", "rule"), [(last_column, "column"), (tile_edge, "tile"), (lost_tail, "maximum"), (one_nan, "nan")]
)
def test_a_fault_is_caught_and_named(fault, rule: str, dtype: torch.dtype, way: str):
    eager, test, exact = matmul(dtype)
    fault(test)
    assert rule in compare_sides(eager, test, exact).failed_by
    assert rule in compare_sides(eager, test, exact, full=False).failed_by


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("size", [0.03, 1e-3])
@pytest.mark.parametrize(
    ("kind", "where"),
    [
        ("row", (slice(5, 6), slice(None))),
        ("column", (slice(None), slice(69, 70))),
        ("tile", (slice(16, 32), slice(32, 48))),
    ],
)
def test_a_lost_block_of_small_values_is_caught(kind: str, where, size: float, dtype: torch.dtype, way: str):
    exact = torch.randn(96, 70, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    exact[where] *= size
    eager = exact.to(dtype)
    test = eager.clone()
    assert compare_sides(eager, test, exact).passed
    test[where] = 0
    for laid in (lambda side: side, lambda side: side.t().contiguous().t()):
        found = compare_sides(laid(eager), laid(test), laid(exact))
        assert kind in found.failed_by
        (block,) = (block for block in found.blocks if block.kind == kind)
        assert block.ratio is not None and block.ratio > 1
        rows, columns = (range(side)[part] for side, part in zip(exact.shape, where, strict=True))
        assert (block.rows, block.columns) == ((rows[0], rows[-1] + 1), (columns[0], columns[-1] + 1))


def test_a_small_block_in_which_eager_is_right_by_luck_passes():
    """Of clean gradients of resnet18 in bfloat16: noise everywhere, and once eager has none."""
    random = torch.Generator().manual_seed(0)
    exact, noise, other = torch.randn(3, 256, 64, generator=random, dtype=torch.float64)
    exact[9] *= 0.1
    noise[9] *= 0.01
    eager, test = (exact + 0.1 * noise).bfloat16(), (exact + 0.1 * other).bfloat16()
    found = compare_sides(eager, test, exact)
    assert found.passed, found.failed_by
    exact = exact[0, :].clone()
    exact[7] = 1e-3  # one element is a column by itself: of one, eager is often exact
    eager = exact.bfloat16()
    test = eager.clone()
    test[7] = 2e-3
    assert compare_sides(eager, test, exact).passed


def test_one_changed_element_in_16_million_is_caught(way: str):
    random = torch.Generator().manual_seed(0)
    exact = torch.randn(4096, 4096, generator=random, dtype=torch.float64)
    eager = exact.float()
    test = torch.nextafter(eager, torch.tensor(math.inf))
    assert compare_sides(eager, test, exact, full=False).passed
    row, column = divmod(int(torch.randint(0, exact.numel(), (), generator=random)), 4096)
    test[row, column] *= 1 + 1e-3
    assert "maximum" in compare_sides(eager, test, exact, full=False).failed_by
    found = compare_tensors(eager, test, rtol=1e-5, full=False)
    assert found.worst is not None and found.worst.index == (row, column)


def test_clean_scalars_and_tiny_outputs_pass(way: str):
    """Eager is exact by luck for some of them; losses of 200 seeds in both dtypes."""
    failed = []
    for seed in range(200):
        random = torch.Generator().manual_seed(seed)
        logits, weight = torch.randn(40, 50, generator=random), torch.randn(50, 7, generator=random)
        for dtype in (torch.float32, torch.bfloat16):
            narrow, factor = logits.to(dtype), weight.to(dtype)
            eager = (narrow @ factor).float().logsumexp(1)
            test = (narrow[:, 25:].float() @ factor[25:].float() + narrow[:, :25].float() @ factor[:25].float()).exp()
            exact = (narrow.double() @ factor.double()).logsumexp(1)
            one, other = eager.mean().to(dtype), test.sum(1).log().flip(0).mean().to(dtype)
            found = compare_sides(one, other, exact.mean())
            few = compare_sides(eager[:3].to(dtype), test.sum(1).log()[:3].to(dtype), exact[:3])
            failed += [(seed, dtype, kind.failed_by) for kind in (found, few) if not kind.passed]
    assert not failed


def test_a_wrong_scalar_is_caught(way: str):
    exact = torch.tensor(2.302585092994046, dtype=torch.float64)
    for dtype, factor in ((torch.float32, 1.001), (torch.bfloat16, 1.25)):
        eager = exact.to(dtype)
        assert "rmse" in compare_sides(eager, (eager.double() * factor).to(dtype), exact).failed_by


def scalar(value: float, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.tensor(value, dtype=dtype)


def test_a_scalar_of_which_eager_is_a_little_wrong_may_not_be_5_percent_wrong():
    low = torch.bfloat16
    for eager, test, exact in ((-39.25, -41.25, -39.36), (2.3125, 2.4375, 2.3026)):
        assert "rmse" in compare_sides(scalar(eager, low), scalar(test, low), scalar(exact)).failed_by
    loss = scalar(6.79)
    for worse, passed in ((0.0051, True), (0.05 * 6.79, False)):  # a clean resnet18 under autocast; a wrong one
        eager, test = (loss + 0.0012).float(), (loss + worse).float()  # type: ignore[assignment]
        assert compare_sides(eager, test, loss).passed is passed  # type: ignore[arg-type]
    few = torch.tensor([0.3, -0.2, 0.1, 0.4], dtype=torch.float64)
    eager, test = (few * 1.02).float(), (few * 1.11).float()  # type: ignore[assignment]
    assert not compare_sides(eager, test, few).passed  # type: ignore[arg-type]
    assert compare_sides(eager, test, few, gradient=True).passed  # type: ignore[arg-type]


# Where eager itself is far from float64


def branched() -> tuple[torch.Tensor, torch.Tensor]:
    """Eager in float32 and float64, of rounding that decides."""
    x = torch.randn(8, 8, generator=torch.Generator().manual_seed(0))
    eager, exact = ((side * 1e8 + 1) - side * 1e8 for side in (x, x.double()))
    return eager, exact


def test_where_eager_itself_is_far_from_float64_the_tolerances_decide():
    eager, exact = branched()
    assert compare_sides(eager, eager.clone(), exact).passed
    found = compare_sides(eager, torch.zeros(8, 8), exact)
    assert found.failed_by == ("tolerance", "rmse")
    note = tensor_note(found)
    assert note.startswith("eager itself is ") and note.endswith(" % from float64: judged by tolerance")
    assert compare_sides(eager, exact.float(), exact).passed  # as float64 has it
    taken = compare_sides(torch.ones(4), torch.full((4,), 0.5), torch.zeros(4, dtype=torch.float64))
    assert taken.failed_by == ("tolerance",) and "not 0, as float64 is" in tensor_note(taken)
    assert not compare_sides(eager, eager * 1.01, exact).passed
    assert compare_sides(eager, eager * 1.01, exact, gradient=True).passed


def test_a_sum_that_cancels_is_no_further_from_float64_than_eagers():
    random = torch.Generator().manual_seed(0)
    exact = 1e-17 * torch.randn(64, generator=random, dtype=torch.float64)
    eager, test = (1e-3 * torch.randn(2, 64, generator=random)).bfloat16()
    found = compare_sides(eager, test, exact)
    assert found.passed and tensor_note(found).startswith("zero but for rounding: RMS 0.000")
    assert "rmse" in compare_sides(eager, 100 * test, exact).failed_by


def test_zeros_are_wrong_however_noisy_eager_is():
    """Clean training runs in bfloat16 come to 0.5 of float64's RMS, on both sides."""
    random = torch.Generator().manual_seed(0)
    exact, noise, other = torch.randn(3, 30, 40, generator=random, dtype=torch.float64)
    eager, test = (exact + 0.5 * noise).bfloat16(), (exact + 0.5 * other).bfloat16()
    assert compare_sides(eager, test, exact).passed
    assert "rmse" in compare_sides(eager, torch.zeros_like(test), exact).failed_by


def test_an_overflow_that_eager_or_float64_has_too_is_no_fault(way: str):
    exact = torch.tensor([1e5, 1.0, 2.0], dtype=torch.float64)
    infinite = torch.tensor([math.inf, 1.0, 2.0], dtype=torch.float16)
    finite = torch.tensor([6e4, 1.0, 2.0], dtype=torch.float16)
    assert compare_sides(infinite, infinite.clone(), exact).passed
    assert compare_sides(finite, infinite, exact).passed  # float64 is beyond float16 there
    assert "inf" in compare_sides(finite, infinite, exact.clamp(max=60000)).failed_by
    nan = torch.tensor([math.nan, 1.0, 2.0], dtype=torch.float16)
    assert compare_sides(nan, finite, torch.tensor([6e4, 1.0, 2.0], dtype=torch.float64)).passed  # better than eager
    assert "nan" in compare_sides(finite, nan, exact).failed_by


def test_integers_may_differ_as_often_as_eager_does():
    exact = torch.arange(1000)
    eager, test = exact.clone(), exact.clone()
    test[0] = 5
    assert compare_sides(eager, test, exact).failed_by == ("exact",)
    eager[1:3] = 7
    assert compare_sides(eager, test, exact).passed
    test[3:20] = 0
    assert compare_sides(eager, test, exact).failed_by == ("exact",)


def test_float64_tensors_are_judged_by_tolerance():
    exact = torch.randn(100, dtype=torch.float64)
    assert compare_sides(exact, exact + 1e-12, exact).passed
    assert compare_sides(exact, exact + 1e-3, exact).failed_by == ("tolerance",)


def test_k_is_the_users():
    eager, _test, exact = matmul(torch.float32)
    worse = exact + 2 * (eager.double() - exact)
    assert compare_sides(eager, worse.float(), exact, k=3.0).passed
    large = (exact + 200 * (eager.double() - exact)).float()
    assert not compare_sides(eager, large, exact, k=3.0).passed
    assert compare_sides(eager, large, exact, k=300.0).passed


def test_relative_rmse():
    exact = torch.tensor([3.0, 4.0], dtype=torch.float64)
    assert relative_rmse(exact, exact.float()) == 0.0
    assert relative_rmse(exact, torch.tensor([3.0, 5.0])) == pytest.approx(1 / 5)
    nan = torch.tensor([3.0, math.nan])
    assert relative_rmse(exact, nan) == math.inf
    assert relative_rmse(nan, nan.clone()) == 0.0
    assert relative_rmse(torch.zeros(2), torch.ones(2)) == math.inf
    assert relative_rmse(exact, torch.ones(3)) == math.inf
    assert relative_rmse(torch.ones(0), torch.ones(0)) == 0.0
