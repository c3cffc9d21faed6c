"""The backend `mock`: an accelerator that checks its rules and compiles nothing.

Rules are checked on the Dynamo and ATen graphs. Graphs that pass run in eager, or, if the accelerator defines how its
hardware computes (`[numerics]`), op by op in that precision: inputs, weights and constants are rounded to `compute` as
they enter, and every floating result of an op is rounded too; each keeps its own dtype. Integer, bool, complex and
float8 tensors and Python numbers are left alone. Views are not rounded again: they share the memory of what was; what
the program returns of its inputs, as they are or viewed, is the caller's own memory. With "tf32" only the operands of
matmuls, convolutions and attention are rounded to it, and everything else to float32.

Matmuls, convolutions and reductions (`_MULTIPLIES`, `_REDUCES`) add up in `accumulate`: operands of another dtype are
converted to it, and the result is rounded once, to `compute`. What is added at the end of such an op (a bias) is added
before that rounding. The limits of the model:

- float16 and bfloat16 accumulators: matmuls add 16 products in float32, then round the sum so far, and so on, as a
  tensor core does (https://docs.nvidia.com/cuda/parallel-thread-execution, mma.m16n8k16), though to nearest, where
  hardware may cut off. Convolutions do the same with as many whole windows as 16 products have room for, one at least.
  Transposed and grouped convolutions, all convolutions' gradients, and reductions add up in float32 and are rounded to
  `accumulate` once: less error than the hardware has.
- int32 accumulators (int8) are float64 sums of the scaled values: exact up to 2^53, with no overflow at 2^31.
- Attention and `bilinear` are one op, rounded at its ends; what is inside is computed as torch's kernel does.
- What norms and attention save for the backward pass (mean, rstd, logsumexp) is kept in `accumulate`, as kernels do.
- An op that only moves values does not compute a new scale for them.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import cast

import torch
from torch import Tensor
from torch.fx import GraphModule, Interpreter, Node
from torch.fx.node import map_aggregate

from idbg.accelerators.model import Numerics
from idbg.engine.backends.base import Job
from idbg.engine.backends.rounding import HardwareRounding, is_float, narrowed
from idbg.engine.compat import fx, lowering
from idbg.engine.compat.lowering import Compiled
from idbg.schema.graphs import Part

_STEP = 16  # products that a tensor core adds before it rounds into a 16-bit accumulator

# op -> positions of what it multiplies
_ATTENTION_KERNELS = tuple(
    f"_scaled_dot_product_{kind}_attention{device}"
    for kind, device in (("flash", ""), ("flash", "_for_cpu"), ("efficient", ""), ("cudnn", ""))
)
_ATTENTION = dict.fromkeys(_ATTENTION_KERNELS, (0, 1, 2)) | {
    f"{name}_backward": (0, 1, 2, 3) for name in _ATTENTION_KERNELS
}
_MULTIPLIES: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(("mm", "bmm", "linear", "mv", "dot", "vdot", "_grouped_mm", "convolution"), (0, 1)),
    **dict.fromkeys(("addmm", "baddbmm", "addbmm", "addmv"), (1, 2)),
    **dict.fromkeys(("_trilinear", "convolution_backward"), (0, 1, 2)),
}
_REDUCES = re.compile(
    r"""(
    (nan)?sum | mean | prod | cumsum | cumprod | (var|std)(_mean)? | (linalg_vector_)?norm | logsumexp | trace
    | _(log_)?softmax(_backward_data)?
    | (native_(layer|group|batch)_norm | _fused_rms_norm | batch_norm)(_backward)?
    | _native_batch_norm_legit_(functional|no_training) | _batch_norm_with_update_functional
    | (_adaptive_)?avg_pool[23]d(_backward)?
    | nll_loss(2d)?_forward | (mse|smooth_l1|huber)_loss | binary_cross_entropy
    | embedding_dense_backward | index_add | scatter_add | scatter_reduce
    )""",
    re.VERBOSE,
)
# ops whose results at 1 (and 2) are for their backward alone
_SAVES = re.compile(
    r"_scaled_dot_product_\w+_attention(_for_cpu)?|flex_attention|_fused_rms_norm|native_(layer|group|batch)_norm"
    r"|_native_batch_norm_legit_(functional|no_training)|_batch_norm_with_update_functional"
)
_SAVED = (1, 2)
# ops whose results are values that they were given
_MOVES = re.compile(
    r"clone|_unsafe_view|embedding|index|index_select|gather|take|flip|roll|repeat|(slice|select)_backward"
    r"|max_pool[23]d_with_indices|amax|amin|max|min|sort|topk"
)

_Arguments = tuple[tuple[object, ...], Mapping[str, object]]
# torch's own declaration is of what a graph holds before it runs, not of tensors
_map = cast("Callable[[object, Callable[[object], object]], object]", map_aggregate)


def lowered(gm: GraphModule, numerics: Numerics, part: Part) -> Compiled:
    """The callable that runs this part's graph as hardware with these numerics would."""
    # a backward's other inputs are what its forward saved, rounded
    entering = "tangents" if part == "backward" else ""
    return lowering.boxed(lambda *args: _Hardware(gm, numerics, entering).run(*args, enable_io_processing=False))


class _Hardware(Interpreter):
    """Runs a graph once. Inputs whose names begin with `entering` are not rounded yet; None: all are."""

    def __init__(self, gm: GraphModule, numerics: Numerics, entering: str | None) -> None:
        super().__init__(gm)
        self.numerics = numerics
        self.rounding = HardwareRounding(numerics)
        self.entering = entering
        self.inputs: dict[object, object] = {}  # and views of them, as the caller gave them

    def run_node(self, n: Node) -> object:
        if n.op == "call_function":
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            if fx.is_view(n.target) and n.args[0] in self.inputs:
                self.inputs[n] = cast("Callable[..., object]", n.target)(self.inputs[n.args[0]], *args[1:], **kwargs)
            return self._called(n, self._unrounded(n, args), kwargs)
        value = super().run_node(n)
        if n.op == "output" and self.entering == "":
            returned = zip(fx.results_for_program(n), cast("Sequence[object]", value), strict=True)
            return [self.inputs.get(own, result) for own, result in returned]
        if n.op == "placeholder":
            self.inputs[n] = value
            is_new = self.entering is not None and str(n.target).startswith(self.entering)
            return self._entered(value) if is_new else value
        if n.op == "get_attr" and isinstance(value, GraphModule):
            return _Nested(value, self.numerics)
        return self._entered(value) if n.op == "get_attr" else value

    def _entered(self, value: object) -> object:
        return self.rounding.value(value) if is_float(value) else value

    def _unrounded(self, n: Node, args: tuple[object, ...]) -> tuple[object, ...]:
        """The arguments, with those that the op writes to as the caller gave them: its own memory, not a copy."""
        written = fx.written(n.target)
        return tuple(self.inputs.get(n.args[at], arg) if at in written else arg for at, arg in enumerate(args))

    def _called(self, n: Node, args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
        function, name = cast("Callable[..., object]", n.target), fx.op_name(n.target)
        if not fx.is_computed(n.target) or _MOVES.fullmatch(name):
            return function(*args, **kwargs)
        if self.numerics.compute == "tf32":  # in all other formats operands are rounded already
            operands = _ATTENTION.get(name) or _MULTIPLIES.get(name, ())
            args = tuple(self._operand(arg) if at in operands else arg for at, arg in enumerate(args))
            if name == "_euclidean_dist":
                return self._result(
                    self._distances(*cast("tuple[Tensor, Tensor]", args[:2])), True, False, n.meta.get("val")
                )
        adds_up = name in _MULTIPLIES or bool(_REDUCES.fullmatch(name))
        value = self._added_up(function, name, args, kwargs) if adds_up else function(*args, **kwargs)
        return self._results(value, name, adds_up, n.meta.get("val"))

    def _distances(self, one: Tensor, other: Tensor) -> Tensor:
        """`cdist` of more than 25 rows, as torch computes it: one product of -2x, |x|^2, 1 and y, 1, |y|^2, with
        rounded operands.
        """
        squares = [each.square().sum(-1, keepdim=True) for each in (one, other)]
        left = torch.cat([one * -2, squares[0], torch.ones_like(squares[0])], -1)
        right = torch.cat([other, torch.ones_like(squares[1]), squares[1]], -1)
        return (self.rounding.operand(left) @ self.rounding.operand(right).mT).clamp_min(0).sqrt()

    def _operand(self, value: object) -> object:
        return self.rounding.operand(value) if is_float(value) else value

    def _added_up(
        self, function: Callable[..., object], name: str, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> object:
        """The op's results, in the dtype that stands for the accumulator."""
        wide = _wide(self.numerics.accumulate)
        tensors: list[Tensor] = []
        _map((args, kwargs), lambda leaf: tensors.append(leaf) if is_float(leaf) else None)
        if any(tensor.dtype != wide for tensor in tensors):
            args, kwargs = cast("_Arguments", _map((args, kwargs), lambda leaf: _in(leaf, wide)))
            if name in ("_softmax", "_log_softmax"):
                args = (*args[:2], False)  # half_to_float: torch takes it for float16 only
        narrow = self._accumulator
        if narrow is not None and (step_by_step := _STEP_BY_STEP.get(name)):
            return step_by_step(narrow, *args, **kwargs)
        return function(*args, **kwargs)

    def _results(self, value: object, name: str, adds_up: bool, traced: object) -> object:
        """The op's results, rounded, in the dtypes that they were traced with."""
        if isinstance(value, (tuple, list)):
            members = traced if isinstance(traced, (tuple, list)) else [None] * len(value)
            kept = _SAVED if _SAVES.fullmatch(name) else ()
            results = (
                self._result(member, adds_up, at in kept, like)
                for at, (member, like) in enumerate(zip(value, members, strict=True))
            )
            return type(value)(results)
        return self._result(value, adds_up, False, traced)

    def _result(self, value: object, adds_up: bool, kept: bool, traced: object) -> object:
        if not is_float(value):
            return value
        tensor = value
        if adds_up and self._accumulator is not None:
            tensor = narrowed(tensor, self._accumulator)
        tensor = tensor if kept else self.rounding.value(tensor)
        return tensor.to(traced.dtype) if adds_up and isinstance(traced, Tensor) else tensor

    @property
    def _accumulator(self) -> torch.dtype | None:
        """The accumulator's dtype, if torch does not accumulate in it: it uses float32 for the 16-bit ones."""
        return getattr(torch, self.numerics.accumulate) if self.numerics.accumulate in ("float16", "bfloat16") else None


class _Nested:
    """A graph that an op of another graph calls: a branch, a loop's body. Its inputs are rounded already."""

    def __init__(self, gm: GraphModule, numerics: Numerics) -> None:
        self.gm = gm
        self.numerics = numerics

    def __call__(self, *args: object) -> object:
        return _Hardware(self.gm, self.numerics, None).run(*args, enable_io_processing=False)


def _wide(accumulate: str) -> torch.dtype:
    return torch.float64 if accumulate in ("float64", "int32") else torch.float32


def _in(leaf: object, dtype: torch.dtype) -> object:
    if is_float(leaf):
        return leaf.to(dtype)
    return dtype if isinstance(leaf, torch.dtype) and leaf.is_floating_point else leaf


def _product(accumulator: torch.dtype, a: Tensor, b: Tensor) -> Tensor:
    total = a[..., :0] @ b[..., :0, :]
    for at in range(0, a.shape[-1], _STEP):
        total = narrowed(total + a[..., at : at + _STEP] @ b[..., at : at + _STEP, :], accumulator)
    return total


def _product_added(
    accumulator: torch.dtype, bias: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    product = alpha * _product(accumulator, a, b)
    return product if beta == 0 else product + beta * bias


def _convolved(accumulator: torch.dtype, x: Tensor, weight: Tensor, bias: Tensor | None, *how: object) -> Tensor:
    *_, transposed, _, groups = how  # stride, padding, dilation, transposed, output_padding, groups
    convolution = torch.ops.aten.convolution.default
    if transposed or groups != 1:
        return cast("Tensor", convolution(x, weight, bias, *how))
    step = max(1, _STEP // max(1, weight[:1, :1].numel()))
    parts = zip(x.split(step, 1), weight.split(step, 1), strict=True)  # type: ignore[no-untyped-call]
    total: Tensor | float = 0.0
    for inputs, weights in parts:
        total = narrowed(total + convolution(inputs, weights, None, *how), accumulator)
    sums = cast("Tensor", total)
    return sums if bias is None else sums + bias.view(-1, *[1] * (weight.dim() - 2))


_STEP_BY_STEP: Mapping[str, Callable[..., Tensor]] = {
    "mm": _product,
    "bmm": _product,
    "addmm": _product_added,
    "baddbmm": _product_added,
    "convolution": _convolved,
}


class Mock:
    """Checks the rules and runs the graphs in eager, in the accelerator's number format if it has one."""

    name = "mock"
    checks = True

    def compile(self, job: Job) -> Compiled:
        return job.through_aot(partial(_lowered, job.accelerator.numerics))


def _lowered(how: Numerics | None, part: Part, gm: GraphModule, inputs: Sequence[object]) -> Compiled:
    return lowering.boxed(gm.forward) if how is None else lowered(gm, how, part)
