"""What a comparison of two tensors measures: each figure by its definition, by torch and by the compiled kernel."""

import math

import numpy as np
import pytest
import torch

from idbg.engine.kerneldiff.tensors import native
from idbg.engine.kerneldiff.tensors.compare import compare_sides, compare_tensors
from idbg.schema.diff import DECADES, TensorDiff
from tests.harness.tensor_pairs import FLOATS, noisy

SHAPES = ((), (1,), (7,), (2049,), (1, 5000), (5000, 1), (33, 70), (5, 4099), (3, 4, 65, 5), (20000, 6), (2, 70000))


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


def test_where_no_element_is_finite_nothing_was_measured(way: str):
    x = torch.ones(4, 5)
    diff = compare_tensors(x, x / 0)
    assert not diff.passed and (diff.rmse, diff.mean_abs, diff.mean_rel) == (None, None, None)
    sides = compare_sides(x, x / 0, x.double())
    assert not sides.passed and sides.baseline is None
