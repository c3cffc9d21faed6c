"""Name operations alike at every stage, and read their operands and flags.

PyTorch spells one op in many ways: torch.conv2d in a Dynamo graph is aten.convolution.default after AOTAutograd,
F.relu(x, inplace=True) is the method relu_. A rule names an op once, and means all of them.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Protocol

from idbg.schema.graphs import Node, TensorMeta


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

# What tells the window of an op -> its place among the positional arguments
_WINDOWS: tuple[tuple[str, dict[str, int]], ...] = (
    (r"conv[123]d|_?convolution(_mode|_overrideable|_pointwise)?|(mkldnn|miopen)_convolution", {"dilation": 5}),
    (r"conv_transpose[123]d", {"dilation": 7}),
    (r"cudnn_convolution", {"dilation": 4}),
    (
        r"(mkldnn_|quantized_)?max_pool[123]d(_with_indices)?|_low_memory_max_pool_with_offsets",
        {"kernel_size": 1, "dilation": 4},
    ),
    (r"avg_pool[123]d|fractional_max_pool[23]d(_with_indices)?", {"kernel_size": 1}),
    (r"lp_pool[123]d", {"kernel_size": 2}),
)

# Ops that mean something by the place of an operand -> the parameters that operands are given to
_PARAMETERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"mm|bmm|_scaled_mm|_int_mm", ("input", "mat2")),
    (r"matmul", ("input", "other")),
    (r"addmm", ("input", "mat1", "mat2")),
    (r"baddbmm", ("input", "batch1", "batch2")),
    (r"linear|conv(_transpose)?[123]d|\w*convolution(_mode|_overrideable|_pointwise)?", ("input", "weight", "bias")),
    (r"convolution_backward", ("grad_output", "input", "weight")),
    (r"scaled_dot_product_attention|_scaled_dot_product_\w*(?<!_backward)", ("query", "key", "value", "attn_mask")),
    (r"flex_attention", ("query", "key", "value")),
)
_ALIASES = {"self": "input", "x": "input", "a": "input", "x1": "input"}  # torch takes NumPy's names too

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
_MAYBE_TRANSPOSED = ("convolution", "_convolution", "convolution_overrideable")
_TRANSPOSED_AT = 6  # aten::convolution(input, weight, bias, stride, padding, dilation, transposed, ...)


def _synonyms() -> dict[str, tuple[str, ...]]:
    synonyms: dict[str, dict[str, None]] = {}
    for row in _SAME:
        for name in row:
            synonyms.setdefault(name, {}).update(dict.fromkeys(row))
    return {name: tuple(others) for name, others in synonyms.items()}


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
    if name in _MAYBE_TRANSPOSED and (
        ("=" in node.args and _TRANSPOSED.search(node.args)) or _argument(node.args, _TRANSPOSED_AT) == "True"
    ):
        found.append("transposed = True")
    if name.startswith("hardtanh") and ("relu6" in node.args or _RELU6.search(node.args)):
        found.append("relu6")
    return ", ".join(found + _window(name, node.args))


@lru_cache(maxsize=4096)
def has_flags(target: str) -> bool:
    """Whether `flags` may find any in a call of this."""
    name = short_name(target)
    return name in _INPLACE_AT or name.startswith("hardtanh") or bool(_window_places(name))


@lru_cache(maxsize=4096)
def _window_places(name: str) -> dict[str, int]:
    return next((places for pattern, places in _WINDOWS if re.fullmatch(pattern, name)), {})


def _window(name: str, args: str) -> list[str]:
    """The window of a pool, and the dilation of a pool or convolution, where the arguments say them."""
    spelled = []
    for key, place in _window_places(name).items():
        given = re.search(rf"\b{key}\s*=\s*([\[(][\d, ]*[\])]|\d+)", args) if "=" in args else None
        value = given[1] if given else _argument(args, place)
        sizes = re.findall(r"\d+", value) if re.fullmatch(r"[\[(]?[\d, ]+[\])]?", value) else []
        if len(sizes) == 1 and name[-2:] in ("2d", "3d"):
            sizes *= int(name[-2])
        if sizes and (key != "dilation" or set(sizes) != {"1"}):
            spelled.append(f"{key} = [{', '.join(sizes)}]")
    return spelled


def operands(node: Node) -> tuple[str, ...]:
    """The node's inputs in the order of its op's parameters, each as often as it is an argument: mm(x, x) has two.

    Only products, convolutions and attention tell their operands apart so; other ops have `node.inputs`, each once.
    """
    inputs, parameters = node.inputs, _parameters(node.target)
    if not parameters or not ("=" in node.args or _repeats(inputs, node.args)):
        return inputs
    named = {name.rpartition(".")[2]: name for name in inputs}  # a branch's nodes are named after it, but not in args
    bound = []
    for argument in _arguments(node.args):
        key, _, value = map(str.strip, argument.rpartition("="))
        if value in named:
            key = _ALIASES.get(key, key)
            place = parameters.index(key) if key in parameters else len(parameters) if key else -1
            bound.append((place, named[value]))
    given = [name for _, name in sorted(bound, key=itemgetter(0))]
    return (*given, *(name for name in inputs if name not in given))


def _repeats(inputs: Sequence[str], args: str) -> bool:
    """Whether an input may be two of the arguments. A guess on the safe side: it costs less than to read them."""
    for name in inputs:  # noqa: SIM110 (any() takes twice as long, and it runs for every product)
        if args.count(name) > 1 or "." in name:
            return True
    return False


@lru_cache(maxsize=4096)
def reads_args(target: str) -> bool:
    """Whether `flags` or `operands` read the arguments of a call of this."""
    return has_flags(target) or bool(_parameters(target))


@lru_cache(maxsize=4096)
def _parameters(target: str) -> tuple[str, ...]:
    name = short_name(target).removesuffix("_")
    return next((parameters for pattern, parameters in _PARAMETERS if re.fullmatch(pattern, name)), ())


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
    names = {own: None}
    if "inplace" in marks:
        names = {f"{own}_": None, own: None}
    elif own.endswith("_") and not own.endswith("__"):
        names[own.removesuffix("_")] = None
    for name in tuple(names):
        names.update(dict.fromkeys(_SYNONYMS.get(name, ())))
        names.update(dict.fromkeys(_convolution_names(name, rank, transposed="transposed" in marks)))
    return tuple(names)


@lru_cache(maxsize=16384)
def targets(target: str, called: tuple[str, ...]) -> tuple[str, ...]:
    """The full targets that this call has or stands for: its own, and, but for another library's op, ATen's for each
    of its names."""
    own = target.removeprefix("torch.ops.")
    library, _, rest = own.partition(".")
    overload = rest.rpartition(".")[2] if is_overload(target) else "default"
    spellings = [target, own]
    if is_overload(target):
        spellings.append(f"{library}.{rest.partition('.')[0]}")
        if library not in _OP_LIBRARIES:
            return tuple(spellings)
    spellings += [f"aten.{name}" for name in called]
    if overload == "default":
        spellings += [f"aten.{name}.default" for name in called]
    return tuple(spellings)


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
    given = _arguments(args)
    return given[position] if position < len(given) else ""


@lru_cache(maxsize=64)
def _arguments(args: str) -> list[str]:
    if not _NESTED.search(args):
        return [each.strip() for each in _ONE.findall(args)]
    arguments, held = [], ""
    for piece in args.split(","):
        held += piece
        if sum(map(held.count, "([{")) <= sum(map(held.count, ")]}")):
            arguments.append(held.strip())
            held = ""
        else:
            held += ","
    return arguments


_NESTED = re.compile(r"[(\[{][^)\]}]*[(\[{]")
_ONE = re.compile(r"((?:[^,()\[\]{}]+|[(\[{][^)\]}]*[)\]}])+)")
