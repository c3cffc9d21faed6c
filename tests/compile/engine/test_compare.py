"""When a comparison of two tensors fails by its tolerances: by torch and by the compiled kernel alike."""

import math

import pytest
import torch

from idbg.engine.kerneldiff.tensors.compare import compare_sides, compare_tensors, relative_rmse
from idbg.schema.errors import BadInput
from idbg.views.remarks import tensor_note
from tests.harness.tensor_pairs import FLOATS, INTS, noisy


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
    assert meta.failed_by == ("type",) and "meta" in tensor_note(meta) and meta.max_abs is None
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
