"""The mock backend computes what hardware with the accelerator's number format would compute."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import idbg
from idbg.accelerators.model import ACCUMULATES, Numerics
from idbg.engine.backends.rounding import HardwareRounding

RULES = '[[rules]]\nkind = "dtype"\nallowed = ["f16", "bf16", "f32", "f64", "i64", "bool"]\n'


def rounded(values: list[float] | Tensor, compute: str, dtype: torch.dtype = torch.float32, **keys: object) -> Tensor:
    numerics = Numerics(compute=compute, **keys)  # type: ignore[arg-type]
    tensor = values if isinstance(values, Tensor) else torch.tensor(values, dtype=dtype)
    return HardwareRounding(numerics).operand(tensor)


def mocked(tmp_path: Path, table: str, *, strict: bool = True) -> Any:
    path = tmp_path / "rules.toml"
    path.write_text(f"{RULES}[numerics]\n{table}\n")
    return idbg.backend("mock", accelerator=path, strict=strict, repros=tmp_path)


def same(found: Tensor, wanted: Any) -> None:
    """Equal bit for bit, the sign of zero and NaN included."""
    wanted = wanted if isinstance(wanted, Tensor) else torch.tensor(wanted, dtype=found.dtype)
    assert found.dtype == wanted.dtype
    assert torch.equal(found.isnan(), wanted.isnan())
    plain = ~wanted.isnan()
    assert torch.equal(found[plain], wanted[plain])
    assert torch.equal(found.signbit()[plain], wanted.signbit()[plain])


class TestRounding:
    def test_bf16_has_7_bits_and_ties_go_to_even(self) -> None:
        given = [1 + 2**-9, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, 3.4e38, float("inf"), -0.0]
        same(rounded(given, "bf16"), [1, 1, 1 + 2**-6, 1 + 2**-7, float("inf"), float("inf"), -0.0])

    def test_fp16_overflows_to_inf(self) -> None:
        given = [65504, 65519, 65520, -1e6, 1 + 2**-11]
        same(rounded(given, "fp16"), [65504, 65504, float("inf"), -float("inf"), 1])

    def test_tf32_has_10_bits_in_operands_alone(self) -> None:
        given = [1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-11 + 2**-23, -1 - 2**-10, 3.4028235e38, float("inf"), float("nan")]
        wanted = [1, 1 + 2**-9, 1 + 2**-10, -1 - 2**-10, float("inf"), float("inf"), float("nan")]
        same(rounded(given, "tf32"), wanted)
        same(rounded([1 + 2**-11 + 2**-40, 1e-50], "tf32", torch.float64), torch.tensor([1 + 2**-10, 0.0]).double())
        same(HardwareRounding(Numerics(compute="tf32")).value(torch.tensor([1 + 2**-11])), [1 + 2**-11])

    def test_fp8_e4m3_saturates_at_448(self) -> None:
        given = [448, 460, 1e9, -float("inf"), float("nan"), 17, 19, 2**-9, 2**-10, -(2**-11)]
        wanted = [448, 448, 448, -448, float("nan"), 16, 20, 2**-9, 0, -0.0]
        same(rounded(given, "fp8", scale=1.0), wanted)

    def test_fp8_e5m2_saturates_at_57344(self) -> None:
        same(rounded([57344, 1e9, -float("inf"), 9, 11], "e5m2", scale=1.0), [57344, 57344, -57344, 8, 12])

    def test_int8_is_symmetric_and_ties_go_to_even(self) -> None:
        given = [0.25, 0.75, 1.25, -0.25, -0.1, 63.5, 70, -1000, float("inf")]
        same(rounded(given, "int8", scale=0.5), [0, 1, 1, 0, 0, 63.5, 63.5, -63.5, 63.5])

    def test_a_scale_of_the_tensor_makes_its_largest_value_the_largest_of_the_format(self) -> None:
        same(rounded([254, 3, 1, -5, 0], "int8"), [254, 4, 0, -4, 0])
        same(rounded([448 * 4, 4 * 17, 0], "fp8"), [448 * 4, 4 * 16, 0])
        same(rounded([0, -0.0], "fp8"), [0, -0.0])

    def test_inf_does_not_hide_the_rest_of_an_int8_tensor(self) -> None:
        same(rounded([127, float("inf"), 1, float("nan")], "int8"), [127, 127, 1, float("nan")])

    def test_denormals_of_the_format_are_flushed_with_their_sign(self) -> None:
        given = [2**-24, -(2**-24), 2**-14, 2**-14 - 2**-24, 2**-14 - 2**-30]
        same(rounded(given, "fp16"), [2**-24, -(2**-24), 2**-14, 2**-14 - 2**-24, 2**-14])
        same(rounded(given, "fp16", flush_denormals=True), [0, -0.0, 2**-14, 0, 2**-14])
        same(rounded([2**-130, -1.0], "fp32", flush_denormals=True), [0, -1])
        same(rounded([2**-7, 2**-6], "fp8", scale=1.0, flush_denormals=True), [0, 2**-6])
        kept = torch.tensor([-(2**-130), 1 + 2**-11])
        same(HardwareRounding(Numerics(compute="tf32", flush_denormals=True)).value(kept), [-0.0, 1 + 2**-11])

    def test_a_float64_value_is_rounded_once(self) -> None:
        # through float32 it would become 1 + 2^-8, a tie, and go down
        given = [1 + 2**-8 + 2**-40, 1 + 2**-8 - 2**-40, 1e-320, 1e300, float("nan")]
        wanted = [1 + 2**-7, 1, 0, float("inf"), float("nan")]
        same(rounded(given, "bf16", torch.float64), torch.tensor(wanted, dtype=torch.float64))

    @pytest.mark.parametrize("compute", ACCUMULATES)
    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
    def test_rounding_twice_changes_nothing(self, compute: str, dtype: torch.dtype) -> None:
        tensor = (torch.randn(4000) * torch.logspace(-6, 4, 4000)).to(dtype)
        once = rounded(tensor, compute)
        same(rounded(once, compute), once)
        assert once.dtype == dtype

    @pytest.mark.parametrize(
        "view", [lambda x: x.t(), lambda x: x[:, ::2], lambda x: x[1:2].expand(5, 6), lambda x: x.unfold(1, 4, 1)]
    )
    @pytest.mark.parametrize("compute", ["bf16", "int8"])
    def test_strides_stay_whatever_they_are(self, view: Callable[[Tensor], Tensor], compute: str) -> None:
        tensor = view(torch.randn(6, 6))
        found = rounded(tensor, compute)
        assert found.stride() == tensor.stride()
        same(found.contiguous(), rounded(tensor.contiguous(), compute))


def mlp() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8))


def bf16(x: Tensor) -> Tensor:
    return x.to(torch.bfloat16).to(torch.float32)


def test_float32_changes_nothing_bit_for_bit(tmp_path: Path) -> None:
    model, x = mlp(), torch.randn(16, 32)
    compiled = torch.compile(model, backend=mocked(tmp_path, 'compute = "fp32"'))
    same(compiled(x), model(x))
    compiled(x).sum().backward()
    found = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    model(x).sum().backward()
    for gradient, parameter in zip(found, model.parameters(), strict=True):
        same(gradient, parameter.grad)  # type: ignore[arg-type]


def test_bf16_is_every_op_rounded_by_hand(tmp_path: Path) -> None:
    model, x = mlp(), torch.randn(16, 32)
    compiled = torch.compile(model, backend=mocked(tmp_path, 'compute = "bf16"'))
    first, _, last = model
    hidden = bf16(torch.addmm(bf16(first.bias), bf16(x), bf16(first.weight).t())).relu()  # type: ignore[arg-type]
    same(compiled(x), bf16(torch.addmm(bf16(last.bias), hidden, bf16(last.weight).t())))  # type: ignore[arg-type]
    error = (compiled(x) - model(x)).norm() / model(x).norm()
    assert 2**-11 < error < 2**-6


def test_bf16_gradients_are_rounded_at_each_op_too(tmp_path: Path) -> None:
    weight, x, incoming = torch.randn(8, 8, requires_grad=True), torch.randn(4, 8), torch.randn(4, 8)
    function = torch.compile(lambda x, w: (x @ w).tanh(), backend=mocked(tmp_path, 'compute = "bf16"'))
    y = function(x, weight)
    (found,) = torch.autograd.grad(y, weight, incoming)
    inside = bf16(torch.ops.aten.tanh_backward(bf16(incoming), y.detach()))
    same(found, bf16(bf16(x).t() @ inside))


def resnet_block() -> nn.Module:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)

        def forward(self, x: Tensor) -> Tensor:
            return functional.relu(self.norm(self.conv(x)) + x)

    torch.manual_seed(0)
    return Block()


@pytest.mark.parametrize(
    ("table", "least", "most"),
    [
        ('compute = "bf16"', 2**-11, 2**-6),
        ('compute = "fp16"', 2**-14, 2**-9),
        ('compute = "tf32"', 2**-14, 2**-9),
        ('compute = "fp8"', 2**-7, 2**-2),
        ('compute = "e5m2"', 2**-6, 2**-1),
        ('compute = "int8"', 2**-9, 2**-3),
        ('compute = "bf16"\naccumulate = "bf16"', 2**-11, 2**-6),
        ('compute = "bf16"\naccumulate = "f64"', 2**-11, 2**-6),
        ('compute = "fp16"\naccumulate = "fp16"\nflush_denormals = true', 2**-14, 2**-9),
    ],
)
def test_a_resnet_block_trains_with_the_error_of_its_format(
    tmp_path: Path, table: str, least: float, most: float
) -> None:
    model, exact = resnet_block(), resnet_block()
    compiled = torch.compile(model, backend=mocked(tmp_path, table))
    torch.manual_seed(1)
    x = torch.randn(4, 8, 10, 10)
    found, wanted = compiled(x), exact(x)
    assert least < (found - wanted).norm() / wanted.norm() < most
    found.square().mean().backward()
    wanted.square().mean().backward()
    for mine, other in zip(model.parameters(), exact.parameters(), strict=True):
        assert least / 8 < (mine.grad - other.grad).norm() / other.grad.norm() < most * 8  # type: ignore[operator]
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    assert not torch.equal(compiled(x), found)
    assert model.norm.num_batches_tracked == 2
    assert torch.allclose(model.norm.running_var, exact.norm.running_var, rtol=0.3)  # type: ignore[arg-type]


def test_tf32_rounds_what_a_matmul_multiplies_and_nothing_else(tmp_path: Path) -> None:
    fine = 1 + 2**-11
    a, bias = torch.full((2, 2), fine), torch.full((2,), fine)
    backend = mocked(tmp_path, 'compute = "tf32"')
    same(torch.compile(lambda x: x * 1, backend=backend)(a), a)
    added: Any = torch.compile(torch.addmm, backend=backend)
    same(added(bias, a, torch.eye(2)), torch.full((2, 2), 2 + 2**-11))


def test_a_16_bit_accumulator_loses_what_a_32_bit_one_keeps(tmp_path: Path) -> None:
    ones = torch.ones(1, 8192)
    product = torch.compile(lambda a, b: a @ b.t(), backend=mocked(tmp_path, 'compute = "bf16"\naccumulate = "bf16"'))
    # from 4096 on the numbers of bf16 are 32 apart: 16 more is a tie, and goes back to the even one
    assert product(ones, ones).item() == 4096
    torch._dynamo.reset()
    product = torch.compile(lambda a, b: a @ b.t(), backend=mocked(tmp_path, 'compute = "bf16"'))
    assert product(ones, ones).item() == 8192


def test_a_convolution_adds_up_window_by_window(tmp_path: Path) -> None:
    x, weight, bias = torch.ones(1, 300, 3, 3), torch.ones(2, 300, 3, 3), torch.tensor([0.0, 8.0])
    backend = mocked(tmp_path, 'compute = "bf16"\naccumulate = "bf16"')
    found = torch.compile(functional.conv2d, backend=backend)(x, weight, bias)
    total = torch.zeros(1)
    for _ in range(300):
        total = bf16(total + 9)
    assert total.item() == 2816  # 2700, rounded once, would be 2704
    same(found, bf16(total + bias).view(1, 2, 1, 1))
    grouped = torch.compile(lambda x, w: functional.conv2d(x, w, groups=2), backend=backend)
    same(grouped(x, weight[:, :150]), torch.full((1, 2, 1, 1), 1352.0))  # 1350, rounded once


def test_accumulating_in_float64_converts_and_comes_back(tmp_path: Path) -> None:
    x = torch.randn(4, 50)
    function = torch.compile(
        lambda x: (x.sum(1), x.softmax(1), x.to(torch.float64).mean(), x.half().softmax(0), x.sum(dtype=torch.float32)),
        backend=mocked(tmp_path, 'compute = "fp16"\naccumulate = "float64"'),
    )
    total, soft, mean, half, flat = function(x)
    near = x.half().double()
    same(total, near.sum(1).half().float())
    same(soft, near.softmax(1).half().float())
    same(mean, near.mean().half().double())
    same(half, near.softmax(0).half())
    same(flat, near.sum().half().float())


def test_int8_multiplies_integers(tmp_path: Path) -> None:
    a, b = torch.tensor([[0.5, 1.26, -2.0]]), torch.tensor([[1.0], [0.5], [0.24]])
    product = torch.compile(torch.mm, backend=mocked(tmp_path, 'compute = "int8"\nscale = 0.25'))
    same(product(a, b), [[0.5]])  # 2*4 + 5*2 - 8*1 = 10 sixteenths, 2.5 quarters, to even


def test_a_slice_has_the_scale_of_its_tensor(tmp_path: Path) -> None:
    weight = torch.tensor([[127.0, 0.0], [1.4, 2.6]])
    product = torch.compile(lambda w, x: w[1:] @ x, backend=mocked(tmp_path, 'compute = "int8"'))
    same(product(weight, torch.eye(2)[:, :1]), [[1]])  # a scale for [1, 3] alone would make it 126 / 127


def test_integers_masks_and_complex_numbers_are_left_alone(tmp_path: Path) -> None:
    n, z = torch.tensor([257, 1 << 40]), torch.tensor([1 + 2**-20 + 1j])
    function = torch.compile(
        lambda n, z: (n + 1, n > 300, z * 1, n.float()), backend=mocked(tmp_path, 'compute="bf16"', strict=False)
    )
    added, mask, same_z, floats = function(n, z)
    assert added.tolist() == [258, (1 << 40) + 1] and mask.tolist() == [False, True]
    assert torch.equal(same_z, z)
    same(floats, [256, 2.0**40])


def test_tensors_of_8_bits_are_left_alone(tmp_path: Path) -> None:
    function = torch.compile(
        lambda x: x.to(torch.float8_e5m2).to(torch.float32) * 3,
        backend=mocked(tmp_path, 'compute="fp16"', strict=False),
    )
    same(function(torch.tensor([1.25, 1.3])), [3.75, 3.75])


def test_an_input_written_to_is_the_callers_own(tmp_path: Path) -> None:
    def function(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        x.view(-1).add_(y)
        return x[0], x * 2

    x, y = torch.full((2, 2), 1 + 2**-9), torch.full((4,), 2**-7)
    head, doubled = torch.compile(function, backend=mocked(tmp_path, 'compute = "bf16"'))(x, y)
    same(x, torch.full((2, 2), 1 + 2**-7))
    same(doubled, 2 * x)
    assert head.data_ptr() == x.data_ptr()


@pytest.mark.parametrize("grad", [False, True])
def test_parts_of_an_input_that_are_returned_are_its_own_memory(tmp_path: Path, *, grad: bool) -> None:
    x = torch.full((4, 3), 1 + 2**-9, requires_grad=grad)
    function = torch.compile(lambda x: (*x.chunk(2), x * x), backend=mocked(tmp_path, 'compute = "bf16"'))
    head, tail, product = function(x)
    assert (head.data_ptr(), tail.data_ptr()) == (x.data_ptr(), x[2:].data_ptr())
    same(tail.detach(), x[2:].detach())
    same(product.detach(), torch.ones(4, 3))


def test_an_input_that_is_only_read_keeps_its_values(tmp_path: Path) -> None:
    model, x = mlp(), torch.randn(4, 32)
    before = [x.clone(), *(parameter.detach().clone() for parameter in model.parameters())]
    torch.compile(model, backend=mocked(tmp_path, 'compute = "int8"'))(x).sum().backward()
    for kept, tensor in zip(before, [x, *model.parameters()], strict=True):
        same(tensor.detach(), kept)


def test_views_of_inputs_of_any_layout_go_through(tmp_path: Path) -> None:
    base = torch.randn(6, 8)
    function = torch.compile(
        lambda a, b, c: (a.t().reshape(-1) * 1, b.unflatten(1, (2, 2)) + 1, c.transpose(0, 1) * 1),
        backend=mocked(tmp_path, 'compute = "bf16"'),
    )
    flat, split, wide = function(base.t(), base[:, ::2], base[:1].expand(3, 8))
    same(flat, bf16(base).reshape(-1))
    same(split, bf16(bf16(base[:, ::2]).unflatten(1, (2, 2)) + 1))
    same(wide, bf16(base[:1].expand(3, 8)).transpose(0, 1).contiguous())


def test_sizes_may_be_symbols_and_dropout_random(tmp_path: Path) -> None:
    function = torch.compile(
        lambda x: functional.dropout(x.view(x.shape[0] * 2, -1), 0.5) / x.shape[0],
        backend=mocked(tmp_path, 'compute = "fp16"'),
        dynamic=True,
    )
    for rows in (5, 7):
        found = function(torch.ones(rows, 4, requires_grad=True))
        assert set(found.unique().tolist()) <= {0.0, torch.tensor(2 / rows).half().item()}
        found.sum().backward()


def test_attention_and_norms_train_in_low_precision(tmp_path: Path) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    x = torch.randn(2, 6, 32)
    wanted = layer(x)
    wanted.square().sum().backward()
    gradients = [parameter.grad.clone() for parameter in layer.parameters()]
    layer.zero_grad()
    found = torch.compile(layer, backend=mocked(tmp_path, 'compute = "bf16"\naccumulate = "float64"'))(x)
    found.square().sum().backward()
    assert 2**-11 < (found - wanted).norm() / wanted.norm() < 2**-5
    for parameter, gradient in zip(layer.parameters(), gradients, strict=True):
        assert parameter.grad is not None
        assert (parameter.grad - gradient).norm() < 0.1 * max(gradient.norm(), max(map(torch.norm, gradients)) / 10)


def test_the_branches_of_a_condition_are_rounded(tmp_path: Path) -> None:
    def function(x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda x: (x * x) - 1, lambda x: x - 1, (x,))

    x = torch.full((3,), 1 + 3 * 2**-7)
    found = torch.compile(function, backend=mocked(tmp_path, 'compute = "bf16"'))(x)
    same(found, bf16(bf16(x * x) - 1))
    assert not torch.equal(found, bf16(x * x - 1))


def test_without_gradients_the_inference_graph_is_rounded(tmp_path: Path) -> None:
    with torch.no_grad():
        found = torch.compile(lambda x: x / 3, backend=mocked(tmp_path, 'compute = "bf16"'))(torch.ones(2))
    same(found, bf16(torch.ones(2) / 3))


def test_numerics_refuse_nothing_and_rules_still_do(tmp_path: Path) -> None:
    backend = mocked(tmp_path, 'compute = "bf16"')
    with pytest.raises(Exception, match="complex64"):
        torch.compile(lambda z: z * 2, backend=backend)(torch.ones(2, dtype=torch.complex64))


@pytest.mark.parametrize("rows", [4, 40])
def test_tf32_rounds_what_bilinear_and_distances_multiply(tmp_path: Path, rows: int) -> None:
    torch.manual_seed(0)
    one, other, weight = torch.randn(rows, 6) + 3, torch.randn(rows, 6) + 3, torch.randn(5, 6, 6)
    backend = mocked(tmp_path, 'compute = "tf32"')
    exact = functional.bilinear(one, other, weight)
    given = torch.compile(functional.bilinear, backend=backend)(one, other, weight)
    assert 1e-5 < float((given - exact).abs().max() / exact.abs().max()) < 1e-2
    exact = torch.cdist(one, other)
    far = float((torch.compile(torch.cdist, backend=backend)(one, other) - exact).abs().max())
    assert (1e-3 < far < 1.0) if rows > 25 else far < 1e-5  # torch multiplies for more than 25 rows only
