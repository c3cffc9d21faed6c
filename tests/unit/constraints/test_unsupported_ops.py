"""Operations that the hardware cannot run are found at every stage."""

from typing import Any

import pytest

from idbg.accelerators import registry
from idbg.accelerators.parse import parse
from idbg.constraints import NodeSignature
from idbg.constraints.unsupported_ops import UnsupportedOps
from idbg.schema.graphs import Node, TensorMeta
from tests.harness.signatures import signature_of


def call(target: str, args: str = "", op: Any = "call_function") -> NodeSignature:
    tensors = (TensorMeta("float32", (1, 3, 8, 8)),)
    return signature_of(Node(name="n", op=op, target=target, args=args, tensors=tensors))


def denied(deny: tuple[str, ...], node: NodeSignature) -> bool:
    return bool(list(UnsupportedOps(deny=deny).check(node)))


CONVOLUTION = "x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1"


@pytest.mark.parametrize(
    ("glob", "node"),
    [
        ("convolution", call("torch.conv2d")),
        ("convolution", call("aten.convolution.default", CONVOLUTION)),
        ("conv2d", call("aten.convolution.default", CONVOLUTION)),
        ("conv*", call("aten.convolution.default", CONVOLUTION)),
        ("aten.convolution.default", call("torch.conv2d")),
        ("torch.nn.functional.conv2d", call("torch.conv2d")),
        ("aten.sin.default", call("torch.sin")),
        ("aten.sin", call("aten.sin.default")),
        ("aten.sin.default", call("sin", op="call_method")),
        ("aten.sum.dim_IntList", call("aten.sum.dim_IntList")),
        ("aten.linalg_*", call("torch.linalg.lu")),
        ("torch.nn.functional.*", call("torch.nn.functional.relu")),
        ("relu_", call("torch.nn.functional.relu", "x, inplace = True")),
        ("relu", call("aten.relu_.default")),
        ("kthvalue", call("kthvalue", op="call_method")),
        ("prelu", call("torch.prelu")),
        ("linalg_lu", call("torch.linalg.lu")),
        ("add_", call("operator.iadd")),
    ],
)
def test_an_op_is_the_same_op_however_it_is_spelled(glob: str, node: NodeSignature) -> None:
    assert denied((glob,), node)


@pytest.mark.parametrize(
    ("glob", "node"),
    [
        ("relu_", call("torch.nn.functional.relu", "x")),
        ("relu_", call("aten.relu.default")),
        ("conv1d", call("aten.convolution.default", CONVOLUTION)),
        ("conv_transpose2d", call("aten.convolution.default", CONVOLUTION)),
        ("convolution", call("aten.convolution_backward.default")),
        ("aten.sum.default", call("aten.sum.dim_IntList")),
        ("sin", call("torch.sinh")),
        ("x", call("x", op="placeholder")),
        ("relu_", call("relu_", op="get_attr")),
    ],
)
def test_other_ops_are_left_alone(glob: str, node: NodeSignature) -> None:
    assert not denied((glob,), node)


def test_the_finding_names_the_op_and_what_denied_it() -> None:
    (finding,) = UnsupportedOps(deny=("cos", "convolution")).check(call("torch.conv2d"))
    assert finding.found == "conv2d is denied (as convolution)"
    (finding,) = UnsupportedOps(deny=("cos",)).check(call("aten.cos.default"))
    assert finding.found == "cos is denied"


def test_an_op_that_only_its_in_place_form_is_denied_of_has_the_other_form_as_its_fix() -> None:
    (finding,) = UnsupportedOps(deny=("relu_",)).check(call("relu_", op="call_method"))
    assert finding.fix.endswith(": relu")
    (finding,) = UnsupportedOps(deny=("relu",)).check(call("relu_", op="call_method"))
    assert ": relu" not in finding.fix


def test_nothing_is_denied_by_an_empty_list() -> None:
    assert not denied((), call("torch.conv2d"))


@pytest.mark.parametrize(
    "node",
    [
        call("torch.conv2d"),
        call("torch.conv_transpose1d"),
        call("aten.convolution_backward.default"),
        call("torch._C._linalg.linalg_lu"),
        call("torch.linalg.lu_factor"),
        call("torch._lu_with_info"),
        call("torch.lu_unpack"),
        call("torch.nn.functional.silu", "x, inplace=True"),
        call("selu_", op="call_method"),
        call("torch._C._nn.gelu_"),
        call("torch.prelu"),
        call("kthvalue", op="call_method"),
        call("aten.value_selecting_reduction_backward.default"),
    ],
)
def test_the_mock_accelerator_denies_its_list_at_every_stage(node: NodeSignature) -> None:
    text, _ = registry.find("mock")
    (rule,) = [rule for rule in parse(text).rules if isinstance(rule, UnsupportedOps)]
    assert list(rule.check(node))
