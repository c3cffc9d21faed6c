"""What a comparison of two tensors measures and when it fails: by torch and by the compiled kernel alike."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from idbg.engine.kerneldiff.tensors import native
from idbg.engine.kerneldiff.tensors.compare import compare_sides, compare_tensors, relative_rmse
from idbg.schema.diff import DECADES, TensorDiff
from idbg.schema.errors import BadInput

FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2)
INTS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.uint16, torch.uint32, torch.uint64)
SHAPES = ((), (1,), (7,), (2049,), (1, 5000), (5000, 1), (33, 70), (5, 4099), (3, 4, 65, 5), (20000, 6), (2, 70000))


@pytest.fixture(params=["torch", "compiled"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(native, "enabled", request.param == "compiled")
    if request.param == "compiled" and not native.wait():
        pytest.skip(native.problem())
    return str(request.param)


def noisy(shape: tuple[int, ...], dtype: torch.dtype, seed: int, nonfinite: bool = False) -> tuple[torch.Tensor, ...]:
    """A tensor and another one near it, in `dtype`; with `nonfinite`, some NaN and infinities on one side or both."""
    random = torch.Generator().manual_seed(seed)
    reference = torch.randn(shape, generator=random, dtype=torch.float64)
    spread = 10.0 ** torch.randint(-9, 0, shape, generator=random)
    test = reference + spread * torch.randn(shape, generator=random, dtype=torch.float64)
    reference, test = reference.to(dtype), test.to(dtype)
    if nonfinite and reference.numel() > 6:
        values = torch.tensor([math.nan, math.inf, -math.inf, 1.0], dtype=torch.float64).to(dtype)
        places = torch.randperm(reference.numel(), generator=random)[:6]
        for side in (reference, test):
            picks = torch.randint(0, 4, (6,), generator=random)
            side.view(-1)[places] = values[picks]
    return reference, test


def matrix_of(values: np.ndarray) -> np.ndarray:
    return values.reshape(-1, values.shape[-1]) if values.ndim else values.reshape(1, 1)


def obvious(reference: torch.Tensor, test: torch.Tensor, atol: float, rtol: float) -> dict[str, float]:
    """The same figures, slowly, from their definitions."""
    r, t = reference.double().numpy(), test.double().numpy()
    fine = np.isfinite(r) & np.isfinite(t)
    odd = ~fine & ~((r == t) | (np.isnan(r) & np.isnan(t)))
    with np.errstate(all="ignore"):
        d = np.where(fine, np.abs(t - r), 0.0)
        size = np.where(fine, np.abs(r), 0.0)
        count = max(int(fine.sum()), 1)
        scaled = np.where(d > 0, d / (atol + rtol * size), 0.0)
        rel = d / np.maximum(size, torch.finfo(reference.dtype).tiny)
    norms = math.sqrt((r[fine] ** 2).sum()) * math.sqrt((t[fine] ** 2).sum())
    squares = matrix_of(d**2)
    rows = squares.sum(1) / np.maximum(matrix_of(fine).sum(1), 1)
    wrong = odd.any()
    return {
        "max_abs": math.inf if wrong else d.max(),
        "mean_abs": d.sum() / count,
        "max_rel": math.inf if wrong else rel.max(),
        "mean_rel": rel.sum() / count,
        "max_scaled": math.inf if wrong else scaled.max(),
        "rmse": math.sqrt((d**2).sum() / count),
        "cosine": float((r[fine] * t[fine]).sum() / norms) if norms else math.nan,
        "mismatches": int((d > atol + rtol * size).sum() + odd.sum()),
        "row": math.sqrt(rows.max()) if squares.shape[0] <= 4096 else math.nan,
    }


def histogram_of(reference: torch.Tensor, test: torch.Tensor) -> list[int]:
    r, t = reference.double().numpy(), test.double().numpy()
    with np.errstate(all="ignore"):
        same = (r == t) | (np.isnan(r) & np.isnan(t))
        d = np.where(same, 0.0, np.abs(t - r))
    d = np.where(np.isfinite(d), d, math.inf)
    bounds = [10.0**exponent for exponent in DECADES]
    inner = [int(((d >= low) & (d < high)).sum()) for low, high in zip(bounds, [*bounds[1:], math.inf], strict=True)]
    inner[-1] += int(np.isinf(d).sum())
    return [int((d == 0).sum()), int(((d > 0) & (d < bounds[0])).sum()), *inner]


def assert_as_defined(found: TensorDiff, reference: torch.Tensor, test: torch.Tensor) -> None:
    assert found.atol is not None and found.rtol is not None
    for name, wanted in obvious(reference, test, found.atol, found.rtol).items():
        measured = found.blocks[0].rmse if name == "row" else getattr(found, name)
        if name == "mismatches":
            assert measured == wanted
        elif not math.isnan(wanted):
            # The last digit of a float32 difference may be lost
            assert measured == pytest.approx(wanted, rel=1e-5, abs=1e-300), name
    assert list(found.histogram) == histogram_of(reference, test)
    r, t = reference.double(), test.double()
    for counts, kind in ((found.nan, torch.isnan), (found.posinf, torch.isposinf), (found.neginf, torch.isneginf)):
        assert counts is not None
        assert (counts.reference, counts.test) == (int(kind(r).sum()), int(kind(t).sum()))
        assert counts.disagree == int((kind(r) != kind(t)).sum())
    if found.worst is None:
        assert found.max_abs == 0
    else:
        left, right = float(found.worst.reference), float(found.worst.test)
        assert left == pytest.approx(r[found.worst.index].item(), nan_ok=True)
        apart = abs(right - left)
        assert (apart if math.isfinite(apart) else math.inf) == pytest.approx(found.max_abs, rel=1e-6)


@pytest.mark.parametrize("nonfinite", [False, True], ids=["finite", "nonfinite"])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_every_figure_is_what_its_definition_says(dtype: torch.dtype, nonfinite: bool, way: str):
    for seed, shape in enumerate(SHAPES):
        reference, test = noisy(shape, dtype, seed, nonfinite)
        atol, rtol = (1e-3, 1e-3) if dtype.itemsize == 1 else (None, None)
        assert_as_defined(compare_tensors(reference, test, atol=atol, rtol=rtol), reference, test)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_strides_do_not_matter(dtype: torch.dtype, way: str):
    reference, test = noisy((6, 10, 8, 12), dtype, 3, nonfinite=True)
    plain = compare_tensors(reference, test)
    for change in (
        lambda value: value.to(memory_format=torch.channels_last),
        lambda value: value.transpose(0, 3).contiguous().transpose(0, 3),
        lambda value: torch.stack((value, value), -1)[..., 1],
    ):
        moved = compare_tensors(change(reference), test)
        assert moved.histogram == plain.histogram
        assert moved.worst == plain.worst
        assert [block.rows for block in moved.blocks] == [block.rows for block in plain.blocks]
        assert moved.rmse == pytest.approx(plain.rmse, rel=1e-6)


def test_broadcast_views_are_compared_without_being_made(way: str):
    row = torch.arange(1000.0)
    found = compare_tensors(row.expand(3000, 1000), row.expand(3000, 1000).clone())
    assert found.passed and found.max_abs == 0 and found.elements == 3_000_000


@pytest.mark.parametrize("dtype", FLOATS[:4], ids=str)
def test_neighbouring_floats_are_one_ulp_apart(dtype: torch.dtype, way: str):
    one = torch.tensor([1.0, -0.0, 2.0], dtype=dtype)
    bits = {8: torch.int64, 4: torch.int32, 2: torch.int16}[dtype.itemsize]
    test = one.clone()
    test[1] = 0.0
    assert compare_tensors(one, test).max_ulp == 0
    test = (one.view(bits) + torch.tensor([3, 0, 0], dtype=bits)).view(dtype)
    assert compare_tensors(one, test).max_ulp == 3
    across = torch.tensor([torch.finfo(dtype).smallest_normal, 0, 0], dtype=dtype)
    assert compare_tensors(across, -across).max_ulp == 2 * across.view(bits)[0].item()


def test_errors_too_small_and_too_large_for_float32_squares_are_measured(way: str):
    for scale in (1e-30, 1e-22, 1e25, 1e37):
        reference = torch.full((300,), scale)
        found = compare_tensors(reference, reference * 1.5, atol=0.0, rtol=0.1)
        assert found.rmse == pytest.approx(scale / 2, rel=1e-5)
        assert found.max_rel == pytest.approx(0.5, rel=1e-5)
        assert found.mismatches == 300


def test_cosine_has_nine_digits(way: str):
    random = torch.Generator().manual_seed(1)
    reference = torch.randn(3_000_000, generator=random)
    test = reference + torch.randn(3_000_000, generator=random)
    r, t = reference.double(), test.double()
    wanted = (torch.dot(r, t) / (r.norm() * t.norm())).item()
    assert compare_tensors(reference, test).cosine == pytest.approx(wanted, abs=1e-9)


def test_the_same_figures_from_both_ways():
    """Where several threads share a large tensor too."""
    if not native.wait():
        pytest.skip(native.problem())
    reference, test = noisy((700, 3001), torch.float32, 9, nonfinite=True)
    found = []
    for enabled in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(native, "enabled", enabled)
            found.append(compare_sides(reference, test, reference.double() + 1e-7))
    one, other = found
    assert one.failed_by == other.failed_by
    assert one.histogram == other.histogram
    assert one.baseline is not None and other.baseline is not None
    assert one.baseline.rmse == pytest.approx(other.baseline.rmse, rel=1e-6)
    for block, twin in zip(one.blocks, other.blocks, strict=True):
        assert (block.rows, block.columns) == (twin.rows, twin.columns)
        assert block.ratio == pytest.approx(twin.ratio, rel=1e-5)


# The verdict by tolerance


def test_equal_tensors_pass_with_all_errors_zero(way: str):
    for dtype in (*FLOATS, *INTS, torch.bool, torch.complex64, torch.complex128):
        for shape in ((), (0,), (3, 0), (4, 5)):
            value = torch.ones(shape, dtype=torch.float32).to(dtype)
            found = compare_tensors(value, value.clone())
            assert found.passed and not found.failed_by
            assert found.max_abs == (0.0 if found.elements else None)
            assert found.worst is None


def test_tolerances(way: str):
    ones = torch.ones(10)
    found = compare_tensors(ones, ones + 0.1, atol=1e-3, rtol=1e-3)
    assert found.failed_by == ("tolerance",)
    assert found.max_abs == pytest.approx(0.1, rel=1e-6)
    assert not compare_tensors(ones, ones + 1e-6, atol=1e-7, rtol=0.0).passed
    assert compare_tensors(ones, ones + 1e-6, atol=1e-5, rtol=0.0).passed
    assert compare_tensors(torch.tensor(1e6), torch.tensor(1e6 + 1)).passed
    doubles = torch.ones(3, dtype=torch.float64)
    assert not compare_tensors(doubles, doubles + 1e-9, atol=1e-12, rtol=0.0).passed
    steps = torch.ones(4, dtype=torch.bfloat16)
    assert compare_tensors(steps, steps + 2**-7).passed
    thousand = torch.zeros(1000)
    thousand[3] = 1e-3
    assert compare_tensors(torch.zeros(1000), thousand, atol=1e-4, allowed_mismatch_percent=50.0).passed
    assert not compare_tensors(torch.zeros(1000), thousand, atol=1e-4, allowed_mismatch_percent=0.05).passed


def test_defaults_are_those_of_torch_testing(way: str):
    for dtype in FLOATS[:4]:
        for size in (1e-7, 1e-6, 5e-6, 2e-5, 1e-3, 2e-2):
            reference = torch.tensor([0.0, 1.0, -3.0], dtype=torch.float64).to(dtype)
            test = (reference.double() + size).to(dtype)
            try:
                torch.testing.assert_close(test, reference)
                passes = True
            except AssertionError:
                passes = False
            assert compare_tensors(reference, test).passed == passes, (dtype, size)


def test_integers_are_exact():
    for dtype, one, other, apart in (
        (torch.int64, 2**24, 2**24 + 1, 1.0),
        (torch.int64, 2**60, 2**60 + 1, 1.0),
        (torch.int64, -(2**63), 2**63 - 1, 2.0**64),
        (torch.uint64, 2**64 - 1, 2**64 - 2, 1.0),
        (torch.uint8, 0, 255, 255.0),
        (torch.bool, True, False, 1.0),
    ):
        found = compare_tensors(torch.tensor([one, one], dtype=dtype), torch.tensor([one, other], dtype=dtype))
        assert found.failed_by == ("exact",)
        assert (found.mismatches, found.max_abs, found.max_ulp) == (1, apart, None)
        assert found.worst is not None
        assert (found.worst.index, found.worst.reference, found.worst.test) == ((1,), one, other)
    assert compare_tensors(torch.tensor([10]), torch.tensor([12]), atol=2).passed


def test_complex_numbers_are_compared_by_modulus():
    found = compare_tensors(torch.tensor([1 + 1j, 3 + 4j]), torch.tensor([1 + 2j, 3 + 4j]))
    assert found.failed_by == ("tolerance",)
    assert (found.max_abs, found.mismatches) == (1.0, 1)
    assert found.worst is not None and found.worst.test == "(1+2j)"
    conjugate = torch.tensor([1 + 1j]).conj()
    assert compare_tensors(conjugate, torch.tensor([1 - 1j])).passed
    odd = torch.tensor([complex("nan"), complex("inf")])
    assert compare_tensors(odd, odd.clone()).passed
    assert compare_tensors(odd, torch.tensor([1j, 1j])).failed_by == ("nan", "inf")


def test_nan_and_infinities(way: str):
    one, nan = torch.ones(5), torch.ones(5)
    nan[2] = math.nan
    found = compare_tensors(one, nan)
    assert found.failed_by == ("nan",)
    assert (found.mismatches, found.max_abs) == (1, math.inf)
    assert found.worst is not None and (found.worst.index, found.worst.test) == ((2,), "nan")
    assert found.nan is not None and (found.nan.reference, found.nan.test, found.nan.disagree) == (0, 1, 1)
    both = compare_tensors(nan, nan.clone())
    assert both.passed and both.nan is not None and both.nan.test == 1 and both.mismatches == 0
    assert compare_tensors(nan, nan.clone(), equal_nan=False).failed_by == ("nan",)
    infinite = torch.tensor([math.inf, -math.inf, 1.0])
    assert compare_tensors(infinite, infinite.clone()).passed
    assert compare_tensors(infinite, -infinite).failed_by == ("inf", "tolerance")


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor", "ignore:The PyTorch API of nested tensors")
def test_what_cannot_be_compared_is_a_finding():
    one = torch.ones(2, 3)
    assert compare_tensors(one, torch.ones(3, 2)).failed_by == ("shape",)
    half = compare_tensors(one, torch.ones(2, 3, dtype=torch.float16))
    assert half.failed_by == ("dtype",) and half.max_abs == 0.0
    assert compare_tensors(one.to(torch.uint64), one.to(torch.int8)).failed_by == ("dtype",)
    meta = compare_tensors(one, one.to("meta"))
    assert meta.failed_by == ("type",) and "meta" in meta.note and meta.max_abs is None
    assert compare_tensors(one.to_sparse(), one).passed
    quantized = torch.quantize_per_tensor(one, 0.1, 0, torch.qint8)
    assert compare_tensors(quantized, quantized.dequantize()).elements == 6
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    assert not compare_tensors(nested, nested).passed
    assert compare_tensors(one.requires_grad_(), torch.ones(2, 3)).passed


def test_views_that_torch_negates_or_conjugates_when_it_reads_them_are_read_so(way: str):
    x = torch.randn(4096, generator=torch.Generator().manual_seed(0))
    for view in (torch._neg_view(x), torch.complex(x, x).conj().imag, torch.complex(x[:1], x[:1]).conj().imag):
        assert view.is_neg()
        right = -x[: view.numel()]
        for one, other in ((view, right), (right, view)):
            assert compare_tensors(one, other).max_abs == 0
            assert not compare_tensors(one, -other.resolve_neg()).passed
            assert relative_rmse(one, -other.resolve_neg()) == pytest.approx(2)
    assert compare_sides(right, right, torch._neg_view(-right.double())).passed


@pytest.mark.parametrize("wrong", [-1.0, math.nan, -math.inf])
def test_a_tolerance_that_is_none_is_refused(wrong: float):
    one = torch.ones(3)
    for name in ("atol", "rtol", "allowed_mismatch_percent"):
        with pytest.raises(BadInput, match=f"{name} is {wrong}"):
            compare_tensors(one, one, **{name: wrong})  # type: ignore[arg-type]
    assert compare_tensors(one, one * 9, atol=math.inf).passed


def test_what_is_no_tensor_is_refused():
    with pytest.raises(BadInput, match="a list is not a tensor"):
        compare_tensors(torch.ones(1), [1.0])  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="a NoneType is not a tensor"):
        compare_tensors(None, torch.ones(1))  # type: ignore[arg-type]


def test_without_full_only_the_verdict_is_measured(way: str):
    reference, test = noisy((30, 40), torch.float32, 2)
    found = compare_tensors(reference, test, full=False)
    whole = compare_tensors(reference, test)
    assert (found.passed, found.failed_by, found.mismatches) == (whole.passed, whole.failed_by, whole.mismatches)
    assert found.cosine is None and found.max_ulp is None and found.histogram == () and found.blocks == ()


# The verdict by float64


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
    assert found.note.startswith("eager itself is ") and found.note.endswith(" % from float64: judged by tolerance")
    assert compare_sides(eager, exact.float(), exact).passed  # as float64 has it
    taken = compare_sides(torch.ones(4), torch.full((4,), 0.5), torch.zeros(4, dtype=torch.float64))
    assert taken.failed_by == ("tolerance",) and "not 0, as float64 is" in taken.note
    assert not compare_sides(eager, eager * 1.01, exact).passed
    assert compare_sides(eager, eager * 1.01, exact, gradient=True).passed


def test_a_sum_that_cancels_is_no_further_from_float64_than_eagers():
    random = torch.Generator().manual_seed(0)
    exact = 1e-17 * torch.randn(64, generator=random, dtype=torch.float64)
    eager, test = (1e-3 * torch.randn(2, 64, generator=random)).bfloat16()
    found = compare_sides(eager, test, exact)
    assert found.passed and not found.note
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


# The compiled kernel


@pytest.mark.slow
def test_a_corrupt_cached_kernel_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    if not native.wait():
        pytest.skip(native.problem())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for content in (None, b"", b"\x7fELF" + bytes(5000)):
        if content is not None:
            (path,) = tmp_path.glob("idbg/native/*.so")
            path.unlink()  # what is loaded stays as it is
            path.write_bytes(content)
        build = native.Build()
        build.thread.join()
        assert build.kernel is not None, build.problem
    assert [path.suffix for path in tmp_path.glob("idbg/native/*")] == [".so"]


def test_without_a_compiler_torch_does_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    build = native.Build()
    build.thread.join()
    assert build.kernel is None
    assert "C++ compiler" in build.problem
