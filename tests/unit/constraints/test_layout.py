"""Tensors lie in memory as the hardware reads them."""

from typing import Any

import pytest

from idbg.constraints import BadValue
from idbg.constraints.layout import Layout, is_laid_out
from idbg.schema.graphs import Dim, Node, Sym, TensorMeta
from tests.harness.signatures import signature_of


def tensor(shape: tuple[Dim, ...], stride: tuple[Dim, ...]) -> TensorMeta:
    return TensorMeta("float32", shape, stride)


S0 = Sym("s0", hint=4)


@pytest.mark.parametrize(
    ("shape", "stride", "expected"),
    [
        ((10, 10), (10, 1), True),
        ((10, 10), (1, 10), False),
        ((), (), True),
        ((1, 5), (99, 1), True),
        ((5, 1), (1, 99), True),
        ((0, 5), (1, 7), True),
        ((4, 8), (0, 1), False),
        ((S0, 8), (8, 1), True),
        ((8, S0), (S0, 1), True),
        ((8, S0), (1, 8), False),
        ((8, Sym("u0")), (Sym("u0"), 1), None),
        ((Sym("u0"), 8), (8, 1), True),
        ((2, 2), (), None),
    ],
)
def test_contiguous_is_what_torch_says_it_is(
    shape: tuple[Dim, ...], stride: tuple[Dim, ...], expected: bool | None
) -> None:
    assert is_laid_out(tensor(shape, stride), "contiguous") is expected


def test_channels_last_is_an_order_of_four_dimensions() -> None:
    nhwc = tensor((2, 3, 4, 5), (60, 1, 15, 3))
    assert is_laid_out(nhwc, "channels_last") is True
    assert is_laid_out(nhwc, "contiguous") is False
    assert is_laid_out(tensor((3, 4), (4, 1)), "channels_last") is False
    assert is_laid_out(tensor((2, 3, 4, 5, 6), (360, 1, 90, 18, 3)), "channels_last_3d") is True


def check(rule: Layout, found: TensorMeta, op: Any = "call_function") -> list[tuple[str, str, str]]:
    node = Node(name="n", op=op, target="aten.permute.default", tensors=(found,))
    return [(finding.found, finding.wanted, finding.fix) for finding in rule.check(signature_of(node))]


def test_a_transposed_tensor_is_not_contiguous_and_the_finding_shows_its_stride() -> None:
    ((found, wanted, fix),) = check(Layout(), tensor((10, 10), (1, 10)))
    assert (found, wanted) == ("stride is (1, 10)", "contiguous")
    assert ".contiguous()" in fix


def test_an_input_that_is_not_contiguous_is_to_be_passed_so() -> None:
    ((_, _, fix),) = check(Layout(), tensor((10, 10), (1, 10)), op="placeholder")
    assert fix == "pass it through .contiguous() first"


def test_an_accelerator_that_takes_channels_last_accepts_it() -> None:
    nhwc = tensor((2, 3, 4, 5), (60, 1, 15, 3))
    assert check(Layout(formats=("contiguous", "channels_last")), nhwc) == []


def test_the_fix_names_a_format_that_the_tensor_can_have() -> None:
    ((_, _, fix),) = check(Layout(formats=("channels_last",)), tensor((2, 3, 4, 5), (60, 20, 5, 1)))
    assert "memory_format=torch.channels_last" in fix
    ((_, _, fix),) = check(Layout(formats=("channels_last",)), tensor((3, 4), (4, 1)))
    assert 'add "contiguous"' in fix


def test_no_format_at_all_is_refused() -> None:
    with pytest.raises(BadValue, match="formats is empty"):
        Layout(formats=())


def test_weights_are_laid_out_by_the_compiler_unless_the_rule_says_otherwise() -> None:
    transposed = tensor((10, 20), (1, 10))
    weight = Node(name="w", op="call_function", target="aten.permute.default", tensors=(transposed,), role="weight")
    assert list(Layout().check(signature_of(weight))) == []
    assert len(list(Layout(weights=True).check(signature_of(weight)))) == 1
