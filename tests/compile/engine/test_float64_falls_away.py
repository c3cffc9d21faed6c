"""What is still held against float64: ops that torch has no float64 kernel for, and ill-conditioned random programs."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from idbg import KernelDiff
from idbg.engine.kerneldiff.float64.mode import Float64, NotInFloat64
from idbg.engine.kerneldiff.sides.run import eager_draws
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.program.load import Workload

ENDS = torch.tensor([8, 16, 24, 30], dtype=torch.int32)  # the last rows are in no group
Shapes = tuple[tuple[int, ...], tuple[int, ...]]


@pytest.mark.parametrize(
    "shapes",
    [((32, 32), (4, 32, 48)), ((4, 16, 32), (32, 32)), ((16, 32), (32, 48)), ((4, 16, 32), (4, 32, 48))],
    ids=["rows", "columns", "summed", "batched"],
)
def test_a_grouped_product_in_float64_is_the_groups_products(shapes: Shapes) -> None:
    torch.manual_seed(0)
    one, other = (torch.randn(shape).bfloat16() for shape in shapes)
    offs = None if len(shapes[0]) == len(shapes[1]) == 3 else ENDS
    own = F.grouped_mm(one, other, offs=offs)
    with Float64(torch.bfloat16):
        exact = F.grouped_mm(one, other, offs=offs)
    assert exact.dtype == torch.float64 and exact.shape == own.shape
    if shapes[0] == (32, 32):
        own, exact = own[:30], exact[:30]
    if shapes[1] == (32, 32):
        own, exact = own[:, :30], exact[:, :30]
    assert torch.allclose(own.double(), exact, rtol=1e-2, atol=2e-2)
    assert not torch.equal(own.double(), exact)  # it is no cast of eager's


def test_a_grouped_product_in_bfloat16_is_held_against_float64() -> None:
    def experts(x: Tensor, w: Tensor, ends: Tensor) -> Tensor:
        return (F.silu(F.grouped_mm(x, w, offs=ends)) * 1.1).softmax(-1)

    torch.manual_seed(0)
    x, w = torch.randn(32, 32).bfloat16(), torch.randn(4, 32, 48).bfloat16()
    ends = torch.tensor([8, 16, 24, 32], dtype=torch.int32)
    report = KernelDiff(experts, (x, w, ends)).compare()
    assert report.mode == "float64" and report.passed, report.summary()


def test_an_op_that_torch_can_decompose_runs_in_float64() -> None:
    library = torch.library.Library("idbg_wide", "DEF")
    library.define("halved(Tensor x) -> Tensor")

    def only_float32(x: Tensor) -> Tensor:
        if x.dtype == torch.float64:
            raise RuntimeError("not implemented for 'Double'")
        return x / 2

    library.impl("halved", only_float32, "CPU")
    op = torch.ops.idbg_wide.halved.default
    with Float64(), pytest.raises(RuntimeError, match="not implemented for 'Double'"):
        op(torch.ones(2))
    torch._decomp.register_decomposition(op)(lambda x: x * 0.5)
    try:
        with Float64():
            halved = op(torch.ones(2))
        assert halved.dtype == torch.float64
    finally:
        torch._decomp.decomposition_table.pop(op)


def ill_conditioned(x: Tensor) -> Tensor:
    """Differences of large numbers are all that is left: rounding decides, with or without the dropout."""
    return F.layer_norm(F.dropout(x, 0.5, True) + 1e4, (64,), eps=1e-12)


def test_an_ill_conditioned_program_is_not_taken_for_other_random_numbers() -> None:
    torch.manual_seed(0)
    x = torch.randn(16, 64) * 2.5e-4
    report = KernelDiff(ill_conditioned, x).compare()
    baseline = report.outputs[0].baseline
    assert baseline is not None and baseline.reference_rmse > 0.5  # as far from float64 as other numbers would be
    assert report.mode == "float64" and not report.float64_missing and report.passed, report.summary()


def drawing(function: Callable[[Tensor], Tensor], x: Tensor) -> Subject:
    return Subject(Workload(function, (x,), {}))


def test_draws_are_the_same_where_op_and_place_are() -> None:
    x = torch.ones(8)
    both = [eager_draws(drawing(ill_conditioned, torch.ones(2, 64))) for _ in range(2)]
    assert both[0] and both[0] == both[1]
    uniform = eager_draws(drawing(lambda x: torch.rand_like(x) + torch.rand(3)[0], x))
    assert uniform is not None and len(set(uniform)) == 2
    assert uniform != eager_draws(drawing(lambda x: torch.rand(3)[0] + torch.rand_like(x), x))
    assert eager_draws(drawing(lambda x: x @ x.view(3), x)) is None


def test_reading_bits_is_still_refused() -> None:
    with pytest.raises(NotInFloat64), Float64():
        torch.ones(2).view(torch.int32)


class NanGradient(torch.autograd.Function):
    """Its value is right, and its gradient NaN."""

    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: object, *gradients: Tensor) -> Tensor:
        return gradients[0] * float("nan")


def test_infinities_are_replaced_by_the_limits_of_the_programs_dtype_in_float64_too() -> None:
    for dtype in (torch.float32, torch.bfloat16):
        infinite = torch.tensor([float("inf"), -float("inf"), 1.0], dtype=dtype)
        with Float64(dtype, [infinite]):
            replaced = torch.nan_to_num(infinite), torch.nan_to_num(infinite, 0.0, neginf=-5.0)
        limit = torch.finfo(dtype).max
        assert [each.tolist() for each in replaced] == [[limit, -limit, 1.0], [limit, -5.0, 1.0]]


def test_a_nan_in_compiled_gradients_is_found_beside_replaced_infinities() -> None:
    def backend(gm: torch.fx.GraphModule, _: object) -> Callable[..., Any]:
        return lambda *arguments: gm(*map(NanGradient.apply, arguments))

    def model(x: Tensor) -> Tensor:
        return torch.nan_to_num(x.masked_fill(x < 0, float("inf")))

    def loss(out: Tensor) -> Tensor:
        return out.clamp(-2, 2).sum()

    x = torch.randn(16, 8, requires_grad=True)
    right = KernelDiff(model, x, loss=loss, test="aot_eager").compare()
    assert right.passed and right.mode == "float64", right.summary()
    wrong = KernelDiff(model, x, loss=loss, test=backend).compare()
    assert [(diff.name, diff.failed_by) for diff in (*wrong.outputs, *wrong.gradients) if diff.failed] == [
        ("grad(args[0])", ("nan",))
    ]
