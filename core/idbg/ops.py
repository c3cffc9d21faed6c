"""What is this operation called, at whatever stage it stands?

PyTorch spells one op in many ways: torch.conv2d in a Dynamo graph is aten.convolution.default after AOTAutograd,
F.relu(x, inplace=True) is the method relu_. A rule names an op once, and means all of them.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

from idbg.records import TensorMeta


class Called(Protocol):
    """What names an operation: a node, or what rules see of one."""

    @property
    def op(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def args(self) -> str: ...
    @property
    def module_class(self) -> str: ...
    @property
    def tensors(self) -> Sequence[TensorMeta]: ...


# Ops that are one op to a user: a name that matches one matches all of its row. Convolutions: see `_convolution_names`.
_SAME: tuple[tuple[str, ...], ...] = (
    ("convolution_backward", "_convolution_double_backward", "convolution_backward_overrideable"),
    ("lu", "_lu_with_info"),
    ("linalg_lu_factor", "linalg_lu_factor_ex", "_lu_with_info"),
    ("linalg_lu_solve", "lu_solve"),
    ("prelu", "_prelu_kernel"),
    ("_prelu_kernel_backward", "prelu_backward"),
    ("softmax", "_softmax", "_safe_softmax"),
    ("log_softmax", "_log_softmax"),
    ("layer_norm", "native_layer_norm"),
    ("group_norm", "native_group_norm"),
    ("batch_norm", "native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_functional"),
    ("batch_norm", "_native_batch_norm_legit_no_training", "_batch_norm_with_update", "cudnn_batch_norm"),
    ("dropout", "native_dropout"),
    ("max_pool1d", "max_pool1d_with_indices"),
    ("max_pool2d", "max_pool2d_with_indices", "_low_memory_max_pool_with_offsets"),
    ("max_pool3d", "max_pool3d_with_indices"),
    ("adaptive_avg_pool2d", "_adaptive_avg_pool2d"),
    ("scaled_dot_product_attention", "_scaled_dot_product_attention_math", "_scaled_dot_product_flash_attention"),
    ("scaled_dot_product_attention", "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention"),
    ("scaled_dot_product_attention", "_scaled_dot_product_flash_attention_for_cpu"),
)

_CONVOLUTIONS = (
    "convolution",
    "_convolution",
    "_convolution_mode",
    "convolution_overrideable",
    "cudnn_convolution",
    "mkldnn_convolution",
    "miopen_convolution",
    "_convolution_pointwise",
)
_CONV_ND = re.compile(r"conv(_transpose)?[123]d")

_OPERATORS = {
    "truediv": "div",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "invert": "bitwise_not",
    "and_": "bitwise_and",
    "or_": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}
_OPERATORS |= {f"i{name.rstrip('_')}": f"{op}_" for name, op in _OPERATORS.items()}
_OPERATORS |= {f"i{name}": f"{name}_" for name in ("add", "sub", "mul", "pow", "matmul")}

_OP_LIBRARIES = frozenset({"aten", "prims", "inductor", "quantized", "quantized_decomposed", "mkldnn", "higher_order"})
_SUBMODULES = {"linalg": "linalg_", "_linalg": "linalg_", "fft": "fft_", "_fft": "fft_", "special": "special_"}

# Functions of torch.nn.functional with an `inplace` argument -> its place among the positional ones
_INPLACE_AT = {
    "relu": 1,
    "relu6": 1,
    "silu": 1,
    "selu": 1,
    "mish": 1,
    "hardswish": 1,
    "hardsigmoid": 1,
    "elu": 2,
    "celu": 2,
    "leaky_relu": 2,
    "rrelu": 4,
    "hardtanh": 3,
    "threshold": 3,
    "dropout": 3,
}
_INPLACE = re.compile(r"\binplace\s*=\s*True\b")
_TRANSPOSED = re.compile(r"\btransposed\s*=\s*True\b")
_RELU6 = re.compile(r", 0(\.0)?, 6(\.0)?\b")  # F.relu6 is hardtanh(x, 0, 6) in a Dynamo graph
_TRANSPOSED_AT = 6  # aten::convolution(input, weight, bias, stride, padding, dilation, transposed, ...)


def _synonyms() -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for row in _SAME:
        for name in row:
            found.setdefault(name, {}).update(dict.fromkeys(row))
    return {name: tuple(others) for name, others in found.items()}


_SYNONYMS = _synonyms()


@lru_cache(maxsize=4096)
def short_name(target: str) -> str:
    """The op's own name: "aten.add.Tensor" -> add, "torch.linalg.lu" -> linalg_lu, "_operator.iadd" -> add_."""
    path = target.removeprefix("torch.ops.")
    parts = path.split(".")
    if len(parts) > 1 and (path != target or is_overload(target)):
        return parts[1]
    last = parts[-1]
    if last.startswith("__") and last.endswith("__"):
        return _OPERATORS.get(last.strip("_"), last.strip("_"))
    if parts[0] in ("_operator", "operator"):
        return _OPERATORS.get(last, last)
    prefix = _SUBMODULES.get(parts[-2], "") if len(parts) > 1 else ""
    return last if last.startswith(prefix) else prefix + last


def is_overload(target: str) -> bool:
    """Whether it is an operator library's ("aten.add.Tensor", "mylib.op.default") and not a Python function."""
    parts = target.removeprefix("torch.ops.").split(".")
    return len(parts) in (2, 3) and (parts[0] in _OP_LIBRARIES or (len(parts) == 3 and parts[-1] == "default"))


def flags(node: Called) -> str:
    """What about the arguments rules ask for: "inplace = True", "transposed = True", "relu6", "dilation = [2, 2]",
    "kernel_size = [3, 3]", or nothing.

    Of a node whose `args` are flags already, it gives the same flags.
    """
    if not has_flags(node.target):
        return ""
    name = short_name(node.target)
    found = []
    if name in _INPLACE_AT and (_INPLACE.search(node.args) or _argument(node.args, _INPLACE_AT[name]) == "True"):
        found.append("inplace = True")
    if name in _CONVOLUTIONS and (
        ("=" in node.args and _TRANSPOSED.search(node.args)) or _argument(node.args, _TRANSPOSED_AT) == "True"
    ):
        found.append("transposed = True")
    if name.startswith("hardtanh") and ("relu6" in node.args or _RELU6.search(node.args)):
        found.append("relu6")
    if _has_window(name):
        found += _window(name, node.args)
    return ", ".join(found)


@lru_cache(maxsize=4096)
def has_flags(target: str) -> bool:
    """Whether `flags` may find any in a call of this."""
    name = short_name(target)
    return name in _INPLACE_AT or name in _CONVOLUTIONS or name.startswith("hardtanh") or _has_window(name)


def _has_window(name: str) -> bool:
    return ("conv" in name or "pool" in name) and "backward" not in name


def _window(name: str, args: str) -> list[str]:
    """The window of a pool and the dilation of a convolution, where the arguments say them."""
    wanted = [("dilation", 5)] if "conv" in name else [("kernel_size", 1)] if "adaptive" not in name else []
    found = []
    for key, position in wanted:
        given = re.search(rf"\b{key}\s*=\s*([\[(][\d, ]*[\])]|\d+)", args) if "=" in args else None
        value = given[1] if given else _argument(args, position)
        sizes = re.findall(r"\d+", value) if re.fullmatch(r"[\[(]?[\d, ]+[\])]?", value) else []
        if sizes and (key != "dilation" or set(sizes) != {"1"}):
            found.append(f"{key} = [{', '.join(sizes)}]")
    return found


def names(node: Called) -> tuple[str, ...]:
    """Everything this call is called, its own name first; nothing for a node that is not a call."""
    if node.op not in ("call_function", "call_method", "call_module"):
        return ()
    rank = len(node.tensors[0].shape) if node.tensors else 0
    return _names(node.target, flags(node), node.module_class if node.op == "call_module" else None, rank)


@lru_cache(maxsize=16384)
def _names(target: str, marks: str, module_class: str | None, rank: int) -> tuple[str, ...]:
    own = short_name(target)
    if module_class is not None:
        own = module_class.rpartition(".")[2].lower() or own
    if "relu6" in marks:
        own = own.replace("hardtanh", "relu6")
    found = {own: None}
    if "inplace" in marks:
        found = {f"{own}_": None, own: None}
    elif own.endswith("_") and not own.endswith("__"):
        found[own.removesuffix("_")] = None
    for name in tuple(found):
        found.update(dict.fromkeys(_SYNONYMS.get(name, ())))
        found.update(dict.fromkeys(_convolution_names(name, rank, transposed="transposed" in marks)))
    return tuple(found)


@lru_cache(maxsize=16384)
def targets(target: str, called: tuple[str, ...]) -> tuple[str, ...]:
    """The full targets that this call has or stands for: its own, and, but for another library's op, ATen's for each
    of its names."""
    own = target.removeprefix("torch.ops.")
    library, _, rest = own.partition(".")
    overload = rest.rpartition(".")[2] if is_overload(target) else "default"
    found = [target, own]
    if is_overload(target):
        found.append(f"{library}.{rest.partition('.')[0]}")
        if library not in _OP_LIBRARIES:
            return tuple(found)
    found += [f"aten.{name}" for name in called]
    if overload == "default":
        found += [f"aten.{name}.default" for name in called]
    return tuple(found)


def _convolution_names(name: str, rank: int, *, transposed: bool) -> tuple[str, ...]:
    if _CONV_ND.fullmatch(name):
        return _CONVOLUTIONS
    if name not in _CONVOLUTIONS:
        return ()
    kind = "conv_transpose" if transposed else "conv"
    spatial = (str(rank - 2),) if rank in (3, 4, 5) else ("1", "2", "3")
    return (*_CONVOLUTIONS, *(f"{kind}{count}d" for count in spatial))


def _argument(args: str, position: int) -> str:
    """The positional argument at `position` in an argument list as FX prints it; "" if there is none."""
    found = _arguments(args)
    return found[position] if position < len(found) else ""


@lru_cache(maxsize=64)
def _arguments(args: str) -> list[str]:
    if not _NESTED.search(args):
        return [found.strip() for found in _ONE.findall(args)]
    found, held = [], ""
    for piece in args.split(","):
        held += piece
        if sum(map(held.count, "([{")) <= sum(map(held.count, ")]}")):
            found.append(held.strip())
            held = ""
        else:
            held += ","
    return found


_NESTED = re.compile(r"[(\[{][^)\]}]*[(\[{]")
_ONE = re.compile(r"((?:[^,()\[\]{}]|[(\[{][^)\]}]*[)\]}])+)")
