"""Perturb the roundings of a program's ops, to measure how far rounding moves its results."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeGuard, cast

import torch
from torch import Tensor

from idbg.engine.compat import fx, gpu
from idbg.engine.compat.torch_types import OpOverload, tree_leaves, tree_map
from idbg.engine.kerneldiff.float64.op_mode import Args, Kwargs, OpMode
from idbg.engine.kerneldiff.float64.undeclared_writes import ReadOnlyArguments

SAMPLES = 3  # runs that measure how far rounding moves a value
MOST_OPS = 20_000  # in one run for one launch, each 50 to 100 us of Python: an op that loops may take millions
_MOST_ADDED = 4096  # whose plain sum is 64 times as far off as its last rounding; no kernel adds up more one by one
# Ops that round nothing
_MOVE: Final = frozenset(
    {"clone", "_to_copy", "_local_scalar_dense", "equal", "cat", "stack", "gather", "index"}
    | {"index_select", "embedding", "repeat", "flip", "roll", "constant_pad_nd", "slice_backward"}
    | {"select_backward", "nonzero", "isnan", "isinf", "relu", "relu_", "threshold_backward", "neg", "abs"}
    | {"where", "copy_", "fill_", "zero_", "maximum", "minimum", "amax", "amin", "max", "min", "sort"}
    | {"topk", "max_pool2d_with_indices", "masked_fill", "zeros_like", "ones_like"}
)
_TF32_EPS: Final = 2.0**-10
_REDUCES: Final = getattr(torch.Tag, "reduction", None)


class TooManyOps(RuntimeError):
    """A run with perturbed roundings takes more ops than it may."""


class PerturbedRounding(OpMode):
    """Changes the results of ops in their last digit, by random numbers from `seed`.

    In float32 each number is moved by up to half an ulp, and by sqrt(n) times as much before n of them are added up,
    since some kernels add one after another. In narrower dtypes, which are added up in float32, one number of 16 is
    moved by an ulp. Both have the standard deviation of a rounding; `times` multiplies it. Inputs of an op that may
    compute in TF32 are truncated to its 10 bits, as tensor cores do, or, for every second seed, moved by up to half an
    ulp of that; `tf32` collects the settings that allow it.
    """

    def __init__(self, seed: int, times: float = 1.0, *, one_by_one: bool = False, most_ops: float = math.inf) -> None:
        """`one_by_one`: sums also have the error of adding one number after another and rounding each sum, as
        Inductor's batch norms of channels-last images do. After `most_ops` ops it raises TooManyOps.
        """
        super().__init__()
        self.seed = seed
        self.times = times
        self.one_by_one = one_by_one
        self.most_ops = most_ops
        self.tf32: set[str] = set()
        self._generators: dict[torch.device, torch.Generator] = {}

    def run(self, func: OpOverload, args: Args, kwargs: Kwargs) -> object:
        self.most_ops -= 1
        if self.most_ops < 0:
            raise TooManyOps("resampling its rounding takes too many ops")
        if func.is_view or fx.op_name(func) in _MOVE or not any(map(_is_rounded, tree_leaves(args))):
            return func(*args, **kwargs)
        amount, originals = 1.0, tree_leaves((args, kwargs))
        if setting := _tf32_setting(func, args):
            self.tf32.add(setting)
            amount = _TF32_EPS / torch.finfo(torch.float32).eps
            args = self._moved(args, amount, _is_float32) if self.seed % 2 else _cut_off(args)
        elif (added := added_up(func, args, kwargs)) > 1:
            amount = math.sqrt(min(_MOST_ADDED, added))
            wanted = zip(func._schema.arguments, args, strict=False)
            args = tuple(
                self._moved(value, amount, _is_exact) if _is_read(argument) else value for argument, value in wanted
            )
        before = ReadOnlyArguments(func, args, kwargs)
        result = func(*args, **kwargs)
        moved = dict(zip(map(id, tree_leaves((args, kwargs))), originals, strict=True))
        for _, now, _ in before.written():  # the op wrote to a copy that was moved
            if moved[id(now)] is not now:
                moved[id(now)].copy_(now)
        left = amount if self.one_by_one and not setting else 1.0
        if not func._schema.is_mutable:
            return self._moved(result, left, _is_rounded)
        if _is_rounded(result):
            result.copy_(self._move(result, left))
        return result

    def _moved(self, value: Any, amount: float, which: Callable[[object], TypeGuard[Tensor]]) -> Any:
        return tree_map(lambda each: self._move(each, amount) if which(each) else each, value)

    def _move(self, value: Tensor, amount: float) -> Tensor:
        if value.device not in self._generators:
            self._generators[value.device] = torch.Generator(value.device).manual_seed(self.seed)
        generator, eps = self._generators[value.device], torch.finfo(value.dtype).eps
        if eps > 1e-6:
            drawn = torch.randint(max(2, round(32 / self.times)), value.shape, device=value.device, generator=generator)
            moved = value * ((drawn == 0).to(value.dtype) - (drawn == 1).to(value.dtype)) * eps
        else:
            drawn = torch.rand(value.shape, device=value.device, generator=generator)
            moved = value * (2 * drawn - 1) * (eps / 2 * amount * self.times)
        return value + moved.nan_to_num_(0, 0, 0)  # infinity has no last digit


def _tf32_setting(func: OpOverload, args: tuple[object, ...]) -> str:
    devices = (leaf.device for leaf in tree_leaves(args) if _is_float32(leaf))
    return next((gpu.tf32_setting(fx.op_name(func), device) for device in devices), "")


def _cut_off(args: Any) -> Any:
    """Keep the upper 19 bits of float32: all that a tensor core reads of a TF32 operand."""
    return tree_map(
        lambda each: (each.view(torch.int32) & -(1 << 13)).view(torch.float32) if _is_float32(each) else each, args
    )


def _is_float32(value: object) -> TypeGuard[Tensor]:
    return _is_rounded(value) and value.dtype == torch.float32


def _is_read(argument: torch.Argument) -> bool:
    """Whether the op only reads the argument; schemas of batch norms do not declare that they write statistics."""
    return argument.alias_info is None and not argument.name.startswith("running_")


def _is_rounded(value: object) -> TypeGuard[Tensor]:
    if not isinstance(value, Tensor) or type(value) not in (Tensor, torch.nn.Parameter):
        return False
    if value.layout != torch.strided or value.is_quantized:
        return False
    return bool(value.dtype in (torch.float32, torch.float16, torch.bfloat16, torch.complex64))


def _is_exact(value: object) -> TypeGuard[Tensor]:
    """Whether sums of it are accumulated in its own precision."""
    return _is_rounded(value) and torch.finfo(value.dtype).eps < 1e-6


def added_up(func: OpOverload, args: tuple[object, ...], kwargs: Mapping[str, object]) -> int:
    """About how many numbers are added up for one number of the result."""
    if torch.Tag.pointwise in func.tags:
        return 1
    tensors = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor) and each.dim()]
    if not tensors:
        return 1
    largest = max(tensors, key=Tensor.numel)
    names = [argument.name for argument in func._schema.arguments]
    if "dim" in names:
        at = names.index("dim")
        dim = kwargs.get("dim", args[at] if at < len(args) else None)
        dims = [dim] if isinstance(dim, int) else cast("Sequence[int] | None", dim) or range(largest.dim())
        return math.prod(largest.shape[each] for each in dims if -largest.dim() <= each < largest.dim())
    if _REDUCES in func.tags or largest.dim() == 1:
        return largest.numel()
    return largest.numel() // max(1, largest.shape[1])  # a norm's and a convolution's channels are summed apart
