"""An op has one name at every stage."""

from typing import Any

import msgspec
import pytest

from idbg.analysis import ops
from idbg.schema.graphs import Node, TensorMeta


def call(target: str, args: str = "", *, shape: tuple[int, ...] = (), op: Any = "call_function") -> Node:
    return Node(name="n", op=op, target=target, args=args, tensors=(TensorMeta("float32", shape),) if shape else ())


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("aten.convolution.default", "convolution"),
        ("torch.ops.aten.add.Tensor", "add"),
        ("aten.relu_", "relu_"),
        ("torch.conv2d", "conv2d"),
        ("torch.nn.functional.conv2d", "conv2d"),
        ("torch._C._nn.gelu", "gelu"),
        ("torch.linalg.lu", "linalg_lu"),
        ("torch._C._linalg.linalg_lu_factor", "linalg_lu_factor"),
        ("torch.fft.rfft", "fft_rfft"),
        ("relu_", "relu_"),
        ("operator.iadd", "add_"),
        ("__iadd__", "add_"),
        ("_operator.truediv", "div"),
        ("operator.itruediv", "div_"),
        ("operator.matmul", "matmul"),
        ("torch.ops.mylib.scale", "scale"),
        ("mylib.scale.default", "scale"),
    ],
)
def test_every_spelling_has_one_short_name(target: str, name: str) -> None:
    assert ops.short_name(target) == name


@pytest.mark.parametrize(
    ("node", "own"),
    [
        (call("torch.nn.functional.relu", "x, inplace=True"), "relu_"),
        (call("torch.nn.functional.relu", "x, inplace = True"), "relu_"),
        (call("torch.nn.functional.relu", "x, True"), "relu_"),
        (call("torch.nn.functional.relu", "x, False"), "relu"),
        (call("torch.nn.functional.relu", "x, inplace = False"), "relu"),
        (call("torch.nn.functional.leaky_relu", "f(a, b), 0.1, True"), "leaky_relu_"),
        (call("torch.nn.functional.rrelu", "x, 0.1, 0.3, True, False"), "rrelu"),
        (call("torch.nn.functional.dropout", "x, 0.5, True, False"), "dropout"),
        (call("relu_", "x", op="call_method"), "relu_"),
        (call("torch.nn.functional.hardtanh", "x, 0.0, 6.0, True"), "relu6_"),
        (call("torch.nn.functional.hardtanh", "x, 0.0, 6.0, inplace=False"), "relu6"),
        (call("torch.nn.functional.hardtanh", "x, -1.0, 6.0, True"), "hardtanh_"),
        (call("torch.sum", "x, True"), "sum"),
    ],
)
def test_an_in_place_call_is_the_op_with_an_underscore(node: Node, own: str) -> None:
    assert ops.names(node)[0] == own


def test_an_in_place_op_is_called_its_plain_name_too_but_not_the_other_way_round() -> None:
    assert ops.names(call("aten.relu_.default")) == ("relu_", "relu")
    assert ops.names(call("aten.relu.default")) == ("relu",)


@pytest.mark.parametrize(
    ("rank", "transposed", "name"),
    [(3, False, "conv1d"), (4, False, "conv2d"), (5, False, "conv3d"), (4, True, "conv_transpose2d")],
)
def test_an_aten_convolution_is_the_functional_one_of_its_rank(rank: int, transposed: bool, name: str) -> None:
    args = f"x, w, None, [1, 1], [0, 0], [1, 1], {transposed}, [0, 0], 1"
    named = ops.names(call("aten.convolution.default", args, shape=(1,) * rank))
    assert {each for each in named if each[-1] == "d" and each.startswith("conv")} == {name}


@pytest.mark.parametrize("target", ["torch.conv1d", "torch.conv2d", "torch.conv3d", "torch.conv_transpose2d"])
def test_every_functional_convolution_is_a_convolution(target: str) -> None:
    assert {"convolution", "_convolution"} <= set(ops.names(call(target)))
    assert "convolution_backward" not in ops.names(call(target))


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("torch.prelu", "_prelu_kernel"),
        ("aten._prelu_kernel.default", "prelu"),
        ("torch.lu", "_lu_with_info"),
        ("torch.linalg.lu_factor", "linalg_lu_factor_ex"),
        ("torch.linalg.lu_solve", "lu_solve"),
        ("aten._softmax.default", "softmax"),
        ("torch.nn.functional.layer_norm", "native_layer_norm"),
    ],
)
def test_what_one_op_becomes_at_another_stage_is_the_same_op(target: str, name: str) -> None:
    assert name in ops.names(call(target))


def test_a_module_call_is_called_after_its_class() -> None:
    node = Node(name="n", op="call_module", target="layer1.0.conv", module_class="torch.nn.modules.conv.Conv2d")
    assert ops.names(node)[0] == "conv2d" and "convolution" in ops.names(node)


@pytest.mark.parametrize("op", ["placeholder", "get_attr", "output"])
def test_nodes_that_call_nothing_have_no_names(op: Any) -> None:
    assert ops.names(call("relu_", op=op)) == ()


@pytest.mark.parametrize(
    "node",
    [
        call("torch.nn.functional.hardtanh", "x, 0.0, 6.0, True"),
        call("torch.nn.functional.relu", "x, True"),
        call("aten.convolution.default", "x, w, None, [1], [0], [1], True, [0], 1", shape=(1, 1, 1, 1)),
    ],
)
def test_the_flags_alone_name_an_op_as_its_whole_arguments_do(node: Node) -> None:
    assert ops.names(msgspec.structs.replace(node, args=ops.flags(node))) == ops.names(node)


@pytest.mark.parametrize(
    ("target", "args", "inputs", "bound"),
    [
        ("torch.conv2d", "weight = w, input = x", "w x", "x w"),
        ("torch.conv2d", "x, bias = b, weight = w, stride = (s, 1)", "x b w s", "x w b s"),
        ("torch.conv2d", "x, w, None, (1, 1)", "x w", "x w"),
        ("torch.conv_transpose2d", "weight=w, input=x", "w x", "x w"),
        ("aten.convolution.default", "x, x, None, [1], [0], [1], False, [0], 1", "x", "x x"),
        ("aten.convolution_backward.default", "g, x, x, None, [1], [0], [1], False, [0], 1", "g x", "g x x"),
        ("aten.mm.default", "y, y", "y", "y y"),
        ("aten.mm.default", "primals_1, primals_10", "primals_1 primals_10", "primals_1 primals_10"),
        ("torch.mm", "mat2 = y, input = x", "y x", "x y"),
        ("torch.mm", "x, y, out = z", "x y z", "x y z"),
        ("torch.bmm", "mat2 = y, input = x", "y x", "x y"),
        ("torch.addmm", "input = b, mat2 = y, mat1 = x", "b y x", "b x y"),
        ("addmm_", "b, mat2 = y, mat1 = x, beta = 2", "b y x", "b x y"),
        ("torch.addmm", "x, y, x", "x y", "x y x"),
        ("torch.baddbmm", "batch2 = y, batch1 = x, input = b", "y x b", "b x y"),
        ("operator.matmul", "x, x", "x", "x x"),
        ("torch.matmul", "x2 = y, x1 = x", "y x", "x y"),
        ("torch._C._nn.linear", "bias = b, weight = w, input = x", "b w x", "x w b"),
        ("torch.scaled_dot_product_attention", "attn_mask = m, key = k, value = v, query = q", "m k v q", "q k v m"),
        ("aten._scaled_mm.default", "x, x, s, t", "x s t", "x x s t"),
        ("aten._scaled_dot_product_flash_attention.default", "q, k, k, 0.0, True", "q k", "q k k"),
        ("higher_order.flex_attention", "x, x, x, score, (8, 9, mask), 1.0, {}", "x score mask", "x x x score mask"),
        ("aten.mm.default", "x, x", "true_graph_0.x", "true_graph_0.x true_graph_0.x"),
        ("torch.mul", "other = y, input = x", "y x", "y x"),
        ("aten.mul.Tensor", "x, x", "x", "x"),
        ("aten.mm.default", "", "x y", "x y"),
    ],
)  # fmt: skip
def test_operands_are_in_the_order_of_the_parameters(target: str, args: str, inputs: str, bound: str) -> None:
    node = msgspec.structs.replace(call(target, args), inputs=tuple(inputs.split()))
    assert ops.operands(node) == tuple(bound.split())


@pytest.mark.parametrize(
    ("target", "args", "flags"),
    [
        ("torch.conv2d", "x, w, None, (1, 1), (0, 0), (2, 3)", "dilation = [2, 3]"),
        ("torch.conv2d", "x, w, dilation = 2", "dilation = [2, 2]"),
        ("torch.conv1d", "x, w, None, 1, 0, 2", "dilation = [2]"),
        ("torch.conv3d", "x, w, None, 1, 0, 1", ""),
        ("torch.conv_transpose2d", "x, w, b, (2, 2), (1, 1), (0, 0), 1, (1, 1)", ""),
        ("torch.conv_transpose2d", "x, w, b, (2, 2), (1, 1), (1, 1), 1, (2, 2)", "dilation = [2, 2]"),
        ("torch.conv_transpose2d", "x, w, output_padding = 1, dilation = 3", "dilation = [3, 3]"),
        (
            "aten.convolution.default",
            "x, w, b, [2, 2], [1, 1], [2, 2], True, [1, 1], 1",
            "transposed = True, dilation = [2, 2]",
        ),
        ("aten.cudnn_convolution.default", "x, w, [5, 5], [1, 1], [2, 2], 1, True, False, True", "dilation = [2, 2]"),
        ("aten.miopen_convolution.default", "x, w, b, [5, 5], [1, 1], [2, 2], 1, True, True", "dilation = [2, 2]"),
        ("torch.nn.functional.max_pool2d", "x, 3, 1, 0, 2", "kernel_size = [3, 3], dilation = [2, 2]"),
        ("torch.nn.functional.max_pool2d", "x, 3, dilation = 2, stride = 1", "kernel_size = [3, 3], dilation = [2, 2]"),
        ("torch.nn.functional.max_pool2d", "stride = 1, input = x, kernel_size = (2, 3)", "kernel_size = [2, 3]"),
        (
            "aten.max_pool2d_with_indices.default",
            "x, [3, 3], [1, 1], [0, 0], [2, 2]",
            "kernel_size = [3, 3], dilation = [2, 2]",
        ),
        (
            "prims._low_memory_max_pool_with_offsets.default",
            "x, [3, 3], [2, 2], [1, 1], [1, 1], False",
            "kernel_size = [3, 3]",
        ),
        ("torch.avg_pool1d", "x, 4, 2", "kernel_size = [4]"),
        ("torch._C._nn.avg_pool2d", "x, 4, 2, 1, True, 5", "kernel_size = [4, 4]"),
        ("torch.nn.functional.lp_pool2d", "x, 2, 3", "kernel_size = [3, 3]"),
        ("torch.nn.functional.lp_pool1d", "x, norm_type = 2, kernel_size = 4", "kernel_size = [4]"),
        ("torch.nn.functional.fractional_max_pool2d", "x, 3, 2, None, r", "kernel_size = [3, 3]"),
        ("torch.nn.functional.adaptive_max_pool2d", "x, 5", ""),
        ("torch.nn.functional.max_unpool2d", "x, indices, 2", ""),
        ("aten.max_pool2d_with_indices_backward.default", "g, x, [3, 3], [1, 1], [0, 0], [2, 2], False, i", ""),
    ],
)
def test_a_window_is_read_from_the_place_that_the_op_has_for_it(target: str, args: str, flags: str) -> None:
    assert ops.flags(call(target, args)) == ops.flags(call(target, flags)) == flags
