"""Count the floating-point operations of a node from its tensors' shapes.

The count is that of torch.utils.flop_counter (2 for each multiply-add): matrix products, convolutions and attention,
forward and backward. All else is 0 there and here: elementwise ops and reductions, and also products with a vector (mv,
dot), integer and fused ones (_int_mm, mkldnn's). Only addmm_ and baddbmm_, which are free there, count as what they do.
"""

import re
from collections.abc import Callable, Sequence
from math import prod

from idbg.analysis.ops import short_name
from idbg.schema.graphs import TensorMeta, hint_of

_Shape = tuple[int, ...]
_Count = Callable[[list[_Shape], list[_Shape], str], int | None]

# Made of products by torch itself, of which the shapes here do not tell
_UNCOUNTED = frozenset(
    (
        *("einsum", "tensordot", "inner", "chain_matmul", "linalg_multi_dot", "linalg_matrix_power", "matrix_power"),
        *("cov", "corrcoef", "svd_lowrank", "pca_lowrank", "multi_head_attention_forward", "varlen_attn"),
        *("lstm", "gru", "rnn_tanh", "rnn_relu", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"),
        *("_flash_attention_forward", "_flash_attention_backward"),
        *("_efficient_attention_forward", "_efficient_attention_backward"),
    )
)
_TRANSPOSED = re.compile(r"(\], |transposed\s*=\s*)True\b")  # the only flag of a convolution that follows a list
_MASK = re.compile(r"\[(True|False), (True|False), (True|False)\]")


def flops(target: str, operands: Sequence[TensorMeta], results: Sequence[TensorMeta], args: str = "") -> int | None:
    """FLOPs of one call of a function or method, symbols at their hints; None where it is not known.

    `operands` are the tensors of the nodes that `idbg.analysis.ops.operands` gives: x twice for mm(x, x).
    `args` is the node's, or what `analysis.ops.flags` says of it; without it a convolution is not transposed, and of a
    convolution's backward the shapes must tell.
    """
    name = short_name(target).removesuffix("_")
    if name in _UNCOUNTED:
        return None
    count = _COUNTS.get(name)
    if count is None:
        return 0
    read, made = _shapes(operands), _shapes(results)
    return count(read, made, args) if read and made and len(read) >= _LEAST.get(count, 2) else None


def _shapes(tensors: Sequence[TensorMeta]) -> list[_Shape] | None:
    """Their shapes with symbols at their hints; None where a hint is missing."""
    shapes = []
    for tensor in tensors:
        shape = tuple(hint for dim in tensor.shape if (hint := hint_of(dim)) is not None)
        if len(shape) < len(tensor.shape):
            return None
        shapes.append(shape)
    return shapes


def _product(operands: list[_Shape], results: list[_Shape], args: str) -> int:
    """mm, bmm, matmul and linear: each element of the result sums over the first operand's last dimension."""
    vector = len(operands[1]) == 1
    return 0 if vector else 2 * prod(results[0]) * operands[0][-1]


def _sum_and_product(operands: list[_Shape], results: list[_Shape], args: str) -> int:
    """addmm and baddbmm."""
    return 2 * prod(results[0]) * operands[1][-1]


def _convolution(operands: list[_Shape], results: list[_Shape], args: str) -> int:
    return _conv_transpose(operands, results, args) if _TRANSPOSED.search(args) else _conv(operands, results, args)


def _conv(operands: list[_Shape], results: list[_Shape], args: str) -> int:
    return 2 * prod(results[0]) * prod(operands[1][1:])


def _conv_transpose(operands: list[_Shape], results: list[_Shape], args: str) -> int:
    return 2 * prod(operands[0]) * prod(operands[1][1:])


def _convolution_backward(operands: list[_Shape], results: list[_Shape], args: str) -> int | None:
    """The products of the input's gradient and of the weight's, of which torch counts the second as if not grouped."""
    grad, source, weight = operands[:3]
    points = {prod((source if transposed else grad)[2:]) for transposed in _directions(grad, source, weight, args)}
    if len(points) != 1:
        return None
    common = 2 * source[0] * points.pop()
    of_input, of_weight = _wanted(source, weight, results, args)
    kernel = prod(weight[2:])
    return common * (of_input * prod(weight) + of_weight * kernel * grad[1] * source[1])


def _directions(grad: _Shape, source: _Shape, weight: _Shape, args: str) -> list[bool]:
    """Whether the convolution was transposed: what `args` says, or else all that the channels allow."""
    if _MASK.search(args):  # which stands in the arguments of every one
        return [_TRANSPOSED.search(args) is not None]
    fits = {False: (grad[1], source[1]), True: (source[1], grad[1])}
    return [way for way, (first, second) in fits.items() if first == weight[0] and second % weight[1] == 0]


def _wanted(source: _Shape, weight: _Shape, results: list[_Shape], args: str) -> tuple[bool, bool]:
    """Which gradients are computed: the input's, the weight's."""
    if mask := _MASK.search(args):
        return mask[1] == "True", mask[2] == "True"
    of_input = results[0] == source
    return of_input, weight in results[of_input:]


def _attention(operands: list[_Shape], results: list[_Shape], args: str) -> int:
    """Queries with keys, and scores with values, as if nothing were masked."""
    query, key = operands[:2]
    *rows, value_size = results[0]
    return 2 * prod(rows) * key[-2] * (query[-1] + value_size)


def _attention_backward(operands: list[_Shape], results: list[_Shape], args: str) -> int | None:
    """The scores again, and the two products of each of the forward's two."""
    if len(results) < 3:
        return None
    *rows, query_size = results[0]
    key_length, value_size = results[2][-2:]
    return 2 * prod(rows) * key_length * (3 * query_size + 2 * value_size)


_ATTENTIONS = ("attention_math", "cudnn_attention", "efficient_attention", "flash_attention", "flash_attention_for_cpu")
_COUNTS: dict[str, _Count] = {
    **dict.fromkeys(("mm", "bmm", "matmul", "linear", "_scaled_mm"), _product),
    **dict.fromkeys(("addmm", "baddbmm"), _sum_and_product),
    **dict.fromkeys(("convolution", "_convolution", "convolution_overrideable"), _convolution),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "_convolution_mode"), _conv),
    **dict.fromkeys(("cudnn_convolution", "_slow_conv2d_forward"), _conv),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _conv_transpose),
    "convolution_backward": _convolution_backward,
    **dict.fromkeys(("scaled_dot_product_attention", "flex_attention"), _attention),
    **{f"_scaled_dot_product_{kernel}": _attention for kernel in _ATTENTIONS},
    **{f"_scaled_dot_product_{kernel}_backward": _attention_backward for kernel in _ATTENTIONS},
    "flex_attention_backward": _attention_backward,
}
# How many operands there are at least, where that is not 2: fewer, and torch kept no tensor of one
_LEAST: dict[_Count, int] = {_sum_and_product: 3, _convolution_backward: 3, _attention: 3}
