"""NaN and infinity origins: in eager by op, operands and line, forward and backward; in the compiled
program alone by launch and node; and of one that was given, that it is not born at all.
"""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._inductor.async_compile import AsyncCompile

from idbg import KernelDiff
from idbg.reports.diff import ReadableReport
from idbg.views.faults import nan_origin_lines, nan_origin_sentence
from idbg.views.remarks import sentence

pytestmark = pytest.mark.usefixtures("seeded")

DEVICES = [
    "cpu",
    pytest.param(
        "cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")]
    ),
]
Model = Callable[..., Any]


def searched(model: Model, *args: Tensor, test: str = "eager", **how: Any) -> ReadableReport:
    return KernelDiff(model, args, test=test, nan=True, **how).compare()


def line_of(function: Model, mark: str) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(at for at, line in enumerate(lines) if mark in line)


def log_of_negative(x: Tensor) -> Tensor:
    y = x - 1.2
    return (y.log() * 2).sum(-1)  # born


def zero_by_zero(x: Tensor) -> Tensor:
    y = x * 0
    z = y + 1
    return y / (z - 1)  # born


def root_of_negative(x: Tensor) -> Tensor:
    return F.layer_norm((x - 2).sqrt(), x.shape[-1:])  # born


def infinities_cancel(x: Tensor) -> Tensor:
    y = x * 1e38
    y = y * 1e3
    return y - y  # born


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("model", "said"),
    [
        (log_of_negative, "log of -0.2 in float32"),
        (zero_by_zero, "0 / 0 in float32"),
        (root_of_negative, "sqrt of -1 in float32"),
        (infinities_cancel, "inf - inf in float32, out of an infinity"),
    ],
)
def test_a_nan_of_the_forward_is_told_with_its_op_its_operands_and_its_line(
    model: Model, said: str, device: str
) -> None:
    report = searched(model, torch.ones(4, 8, device=device))
    assert report.passed and report.births is not None
    birth = next(birth for birth in report.births if birth.what == "nan")
    assert (birth.side, birth.phase) == ("eager", "forward")
    assert (birth.file, birth.line) == (__file__, line_of(model, "# born"))
    assert said in nan_origin_sentence(birth) and f"{Path(__file__).name}:{birth.line}" in nan_origin_sentence(birth)
    assert nan_origin_sentence(birth) in report.summary() and '"births": [' in report.to_json()


def root_at_zero(x: Tensor) -> Tensor:
    y = x - x.detach()
    return (y.sqrt() * 3).sum()  # born


def norm_at_zero(x: Tensor) -> Tensor:
    y = (x - x.detach()) ** 2
    return y.sum(-1).sqrt().sum()  # born


def power_at_zero(x: Tensor) -> Tensor:
    y = x * 0
    return (y**0.5).sum()  # born


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("model", [root_at_zero, norm_at_zero, power_at_zero])
def test_one_of_the_backward_is_told_with_the_line_of_its_forward(model: Model, device: str) -> None:
    report = searched(model, torch.ones(4, 8, device=device), backward=True)
    assert report.births, report.summary()
    first = report.births[0]
    assert (first.side, first.phase, first.what) == ("eager", "backward", "inf")
    assert (first.file, first.line) == (__file__, line_of(model, "# born"))
    assert first.node in ("sqrt", "pow") and f"in the backward of {first.node} at" in nan_origin_sentence(first)


def test_a_nan_is_out_of_an_infinity_only_where_its_own_operands_are() -> None:
    """Where the root is -1 it is NaN already: that is no operand of the zero's."""
    x = torch.linspace(-1, 1, 9)
    report = searched(lambda x: torch.where(x > 0, x.sqrt(), 0.0).sum(), x, backward=True)
    said = [nan_origin_sentence(birth) for birth in report.births or () if birth.phase == "backward"]
    assert any("in the backward of sqrt" in each and "0 / 0 in float32 (1 of 9 elements)" in each for each in said)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("dtype", "number"), [(torch.float16, 20.0), (torch.bfloat16, 96.0), (torch.float32, 95.3)])
def test_an_overflow_is_told_with_what_overflowed(dtype: torch.dtype, number: float, device: str) -> None:
    def model(x: Tensor) -> Tensor:
        return x.exp() + 1  # born

    (birth,) = searched(model, torch.full((4, 8), number, dtype=dtype, device=device)).births or ()
    assert nan_origin_sentence(birth).endswith(f"exp of {number:g} in {str(dtype).split('.')[1]} (32 of 32 elements)")
    assert (birth.what, birth.count, birth.elements, birth.line) == ("inf", 32, 32, line_of(model, "# born"))


def test_a_sum_and_a_product_that_overflow_tell_how_large_their_operands_are() -> None:
    def model(x: Tensor, w: Tensor) -> Tensor:
        return x @ w  # born

    x, w = torch.full((4, 64), 300.0).half(), torch.full((64, 4), 250.0).half()
    (birth,) = searched(model, x, w).births or ()
    assert birth.what == "inf" and birth.operands == "|self| up to 300, |mat2| up to 250"
    (birth,) = searched(lambda x: x.sum(), torch.full((4, 64), 6e4).half()).births or ()
    assert "sum, |self| up to 6e+04, in float16" in nan_origin_sentence(birth)


def test_a_cast_that_overflows_is_told_with_the_number() -> None:
    (birth,) = searched(lambda x: x.half() * 2, torch.full((3,), 7e4)).births or ()
    assert "a cast of 7e+04 in float16" in nan_origin_sentence(birth)


def in_a_branch(x: Tensor) -> Any:
    return torch.cond(x.sum() > 0, lambda x: (x - 5).log(), lambda x: x.cos(), (x,))  # born


class Divides(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return gradients[0] / (x - x)


def divides(x: Tensor) -> Tensor:
    return Divides.apply(x).sum()  # born


def in_place(x: Tensor) -> Tensor:
    return x.clone().sub_(2).log_().mul_(2)  # born


@pytest.mark.parametrize(
    ("model", "said"),
    [(in_a_branch, "log of -4"), (in_place, "log_ of -1"), (divides, "in the backward of divides at")],
)
def test_branches_ops_in_place_and_gradients_of_the_programs_own_are_looked_at(model: Model, said: str) -> None:
    report = searched(model, torch.ones(4), backward=model is divides)
    assert any(said in nan_origin_sentence(birth) for birth in report.births or ()), (report.births, report.notes)
    assert (report.births or ())[0].line == line_of(model, "# born")
    assert not any("ended early" in sentence(note) for note in report.notes)


def test_a_search_that_ends_early_is_said() -> None:
    def model(x: Tensor) -> Tensor:
        raise ValueError("nothing doing")

    assert any("ended early: nothing doing" in sentence(note) for note in searched(model, torch.ones(4)).notes)


@pytest.mark.parametrize("number", [torch.nan, torch.inf])
def test_what_is_given_is_not_born(number: float) -> None:
    x = torch.ones(4, 8)
    x[1, 3] = number
    report = searched(lambda x: (x * 2).relu(), x)
    (birth,) = report.births or ()
    assert (birth.phase, birth.name, birth.index, birth.count) == ("given", "args[0]", (1, 3), 1)
    assert "is in args[0] before anything runs: it is not born in the program" in report.summary()


def test_a_weight_that_is_nan_is_named() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
    with torch.no_grad():
        model.get_parameter("1.weight")[2, 2] = torch.nan
    (birth,) = searched(model, torch.ones(2, 8)).births or ()
    assert (birth.phase, birth.name) == ("given", "1.weight")


def masked(x: Tensor) -> Tensor:
    scores = x @ x.T
    mask = torch.ones(len(x), len(x), dtype=torch.bool, device=x.device).triu(1)
    return scores.masked_fill(mask, -torch.inf).softmax(-1) @ x


def filled(x: Tensor) -> Tensor:
    return torch.full_like(x, -torch.inf).maximum(x) + torch.empty_like(x).fill_(1)


@pytest.mark.parametrize("model", [masked, filled, torch.sin])
def test_an_infinity_that_the_program_asks_for_is_no_birth(model: Model) -> None:
    report = searched(model, torch.randn(8, 8))
    assert report.births == () and "no NaN and no infinity is born in eager" in report.summary()


def test_nobody_searches_unasked_where_the_numbers_agree() -> None:
    report = KernelDiff(log_of_negative, torch.ones(4, 8), test="eager", per_kernel=True).compare()
    assert report.births is None and list(nan_origin_lines(report)) == []


def in_the_kernel(monkeypatch: pytest.MonkeyPatch, mark: str, c: str, python: str) -> None:
    """From here on the last store of each kernel whose source has the mark is of this number."""
    cpp, triton = AsyncCompile.cpp_pybinding, AsyncCompile.triton

    def planted_cpp(self: AsyncCompile, types: list[str], source: str) -> Any:
        if mark in source:
            pointer, end = re.findall(r"\w*out_ptr\d+", source)[0], source.rindex("}")
            source = f"{source[:end]}{pointer}[5] = {c};\n{source[end:]}"
        return cpp(self, types, source)

    def planted_triton(self: AsyncCompile, kernel_name: str, source_code: str, device_str: str = "cuda") -> Any:
        if mark in source_code:
            source_code = re.sub(r"(tl\.store\(.*?, )(tmp\d+)(, .*\))", rf"\1\2 * {python}\3", source_code)
        return triton(self, kernel_name, source_code, device_str)

    monkeypatch.setattr(AsyncCompile, "cpp_pybinding", planted_cpp)
    monkeypatch.setattr(AsyncCompile, "triton", planted_triton)


def two_kernels(x: Tensor, w: Tensor) -> Tensor:
    y = x.sin() + 1  # made
    return (y @ w).cos()


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("what", "c", "python"),
    [("nan", "NAN", 'float("nan")'), ("inf", "INFINITY", 'float("inf")'), ("inf", "-INFINITY", 'float("-inf")')],
)
def test_what_only_the_compiled_program_has_is_told_with_its_first_launch(
    what: str, c: str, python: str, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_the_kernel(monkeypatch, "sin(", c, python)
    x, w = torch.rand(32, 64, device=device) + 0.1, torch.rand(64, 16, device=device)
    report = searched(two_kernels, x, w, test="inductor")
    assert report.verdict == "failed" and report.births, report.summary()
    first = report.births[0]
    assert (first.side, first.what) == ("compiled", what)
    assert "sin" in first.kernel and first.node in next(k for k in report.kernels if k.name == first.kernel).nodes
    assert (first.file, first.line) == (__file__, line_of(two_kernels, "# made"))
    assert "appears in the compiled program alone: first in" in report.summary()


@pytest.mark.slow
def test_an_output_that_fails_by_nan_is_searched_unasked_where_kernels_are(monkeypatch: pytest.MonkeyPatch) -> None:
    in_the_kernel(monkeypatch, "cos(", "NAN", 'float("nan")')
    inputs = torch.rand(32, 64), torch.rand(64, 16)
    report = KernelDiff(two_kernels, inputs, per_kernel=True).compare()
    assert [birth.side for birth in report.births or ()] == ["compiled"]
    assert "cos" in report.births[0].kernel and report.births[0].phase == "forward"


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
def test_one_of_the_compiled_backward_alone_is_told_so(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def model(x: Tensor) -> Tensor:
        return (x * 2).sin()  # made

    in_the_kernel(monkeypatch, "cos(", "NAN", 'float("nan")')
    report = searched(model, torch.rand(32, 64, device=device), test="inductor", backward=True)
    first = (report.births or ())[0]
    assert (first.side, first.what, first.phase, first.part) == ("compiled", "nan", "backward", "backward")
    assert first.line == line_of(model, "# made")


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
def test_what_both_have_is_eagers_and_no_kernel_is_accused(device: str) -> None:
    report = searched(log_of_negative, torch.rand(4, 8, device=device), test="inductor")
    assert report.passed and {birth.side for birth in report.births or ()} == {"eager"}
    assert "the kernels that were observed make none that eager has not" in report.summary()
