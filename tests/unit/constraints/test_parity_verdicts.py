"""The verdicts that the earlier system has, on records: which graphs does a rule reject, and what does it name?

The same verdicts through torch.compile are in tests/compile/engine.
"""

from typing import Any

import pytest

from idbg.accelerators.model import Accelerator
from idbg.accelerators.parse import parse
from idbg.accelerators.registry import find
from idbg.constraints import Constraint, check
from idbg.constraints.alignment import Alignment
from idbg.constraints.dtype import Dtype
from idbg.constraints.layout import Layout
from idbg.constraints.memory import Memory
from idbg.constraints.unsupported_ops import UnsupportedOps
from idbg.schema.graphs import Dim, Graph, GraphId, Node, Sym, TensorMeta


def strides(shape: tuple[Dim, ...]) -> tuple[int, ...]:
    found, step = [], 1
    for dim in reversed(shape):
        found.append(step)
        step *= dim if isinstance(dim, int) else dim.hint or 1
    return tuple(reversed(found))


def tensor(dtype: str, *shape: Dim) -> TensorMeta:
    return TensorMeta(dtype, shape, strides(shape), "cpu")


def graph(first: TensorMeta, *calls: tuple[str, TensorMeta]) -> Graph:
    nodes = [Node(name="x", op="placeholder", target="L_x_", role="input", tensors=(first,))]
    for number, (target, value) in enumerate(calls):
        op: Any = "call_function" if "." in target else "call_method"
        nodes.append(Node(name=f"call_{number}", op=op, target=target, inputs=(nodes[-1].name,), tensors=(value,)))
    return Graph(GraphId("0/0", "forward"), tuple(nodes))


def messages(found: Graph, *rules: Constraint) -> list[str]:
    return [str(violation) for violation in check(found, Accelerator(rules=rules))]


F32_10 = tensor("float32", 10)
TIMES_2 = graph(F32_10, ("aten.mul.Tensor", F32_10))


def square(size: int, target: str, dtype: str = "float32") -> Graph:
    return graph(tensor(dtype, size, size), (target, tensor(dtype, size, size)))


def test_1_a_size_that_is_not_aligned_is_rejected_by_alignment_and_dimension() -> None:
    assert "alignment: call_0 [forward] dim 0 is 10, wanted a multiple of 16" in messages(
        TIMES_2, Alignment(multiple=16)
    )


def test_3_ten_is_no_multiple_of_eight_and_sixteen_is() -> None:
    assert messages(square(10, "aten.add.Tensor"), Alignment(multiple=8))
    assert not messages(square(16, "aten.add.Tensor"), Alignment(multiple=8))


def test_4_a_transposed_tensor_is_rejected_as_not_contiguous() -> None:
    view = TensorMeta("float32", (10, 10), (1, 10), "cpu")
    found = messages(graph(tensor("float32", 10, 10), ("transpose", view), ("operator.add", view)), Layout())
    assert len(found) == 2 and all("contiguous" in message for message in found)


def test_5_float64_is_rejected_by_the_default_accelerator() -> None:
    found = check(square(8, "aten.add.Tensor", "float64"), parse(find("mock")[0]))
    assert {violation.rule for violation in found} == {"dtype"}


def test_6_a_tensor_over_the_limit_is_rejected_with_its_bytes() -> None:
    found = messages(square(100, "aten.add.Tensor"), Memory(max_bytes=1024))
    assert "40000 bytes" in found[0] and "1024 bytes" in found[0]


def test_7_the_default_accelerator_accepts_an_addition() -> None:
    assert check(square(10, "aten.add.Tensor"), parse(find("mock")[0])) == []


def test_8_float64_is_rejected_where_only_float32_is_allowed() -> None:
    value = tensor("float64", 4, 4)
    found = messages(
        graph(value, ("aten.sin.default", value), ("aten.cos.default", value)), Dtype(allowed=("float32",))
    )
    assert len(found) == 3


def test_10_three_is_no_multiple_of_eight() -> None:
    assert messages(square(3, "aten.sin.default"), Alignment(multiple=8))


@pytest.mark.parametrize("target", ["torch.sin", "aten.sin.default", "sin"])
def test_12_an_aten_overload_denies_the_op_at_every_stage(target: str) -> None:
    assert messages(square(4, target), UnsupportedOps(deny=("aten.sin.default",)))


def test_13_a_tensor_of_64_kib_is_rejected_under_1024_bytes() -> None:
    assert "65536 bytes" in messages(square(128, "aten.sin.default"), Memory(max_bytes=1024))[0]


def test_14_every_rule_that_is_broken_is_named() -> None:
    value = tensor("float64", 3, 3)
    broken = graph(value, ("aten.add.Tensor", value), ("aten.cos.default", value))
    rules = (Dtype(allowed=("float32",)), Alignment(multiple=4), UnsupportedOps(deny=("cos",)))
    assert {violation.rule for violation in check(broken, Accelerator(rules=rules))} == {
        "dtype",
        "alignment",
        "unsupported_ops",
    }


@pytest.mark.parametrize("target", ["torch.conv2d", "aten.convolution.default"])
def test_31_a_convolution_is_denied_at_every_stage(target: str) -> None:
    image = tensor("float32", 1, 3, 8, 8)
    found = check(graph(image, (target, image)), parse(find("mock")[0]))
    assert [(violation.rule, violation.node.name) for violation in found] == [("unsupported_ops", "call_0")]


def test_43_no_constraints_are_no_checks() -> None:
    assert messages(square(3, "torch.conv2d", "complex64")) == []


def test_44_a_dynamic_size_is_checked_at_its_hint_and_says_so() -> None:
    (message,) = messages(graph(tensor("float32", Sym("s0", hint=10))), Alignment(multiple=16))
    assert "dim 0 is s0 (hint 10)" in message


def test_45_channels_last_is_accepted_where_the_accelerator_takes_it() -> None:
    image = TensorMeta("float32", (2, 3, 4, 5), (60, 1, 15, 3), "cpu")
    assert messages(graph(image), Layout())
    assert not messages(graph(image), Layout(formats=("contiguous", "channels_last")))


def test_48_dtypes_are_strings_wherever_dtypes_are_named() -> None:
    assert not messages(TIMES_2, Dtype(allowed=("torch.float32",))) and not messages(TIMES_2, Dtype(allowed=("f32",)))
