"""What else could eager have given, had its ops rounded otherwise, and is the test as near to float64 as that?

Eager is one rounding of the program. Where a sum cancels (the gradient of a bias before a batch norm, the mean of what
was normalised) all that is left is rounding, and how large that is cannot be told from the tensor; of few elements,
eager may be right by luck. So what fails by a little too much is looked at again: the program runs in eager SAMPLES
times more, with the tensors that its ops take moved by as much as a rounding moves them.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeGuard, cast

import torch
from msgspec.structs import replace
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from idbg.engine.compat import fx
from idbg.engine.kerneldiff.float64.draws import Op
from idbg.engine.kerneldiff.tensors.allowance import SMALL
from idbg.engine.kerneldiff.tensors.compare import compare_sides
from idbg.engine.kerneldiff.tensors.tree import Leaves
from idbg.schema.diff import TensorDiff

SAMPLES = 3
NOTE = "as near to float64 as eager is where its ops round otherwise"
# Times eager's own error, and no rounding explains it: plain sums of float32 were seen to be 90 times as far off as
# pairwise ones; narrower dtypes are added up in float32
FAR_ABOVE, NARROW_ABOVE = 100.0, 5.0
# Ulps of the values: noise above it is of something larger that has cancelled; of float32 what allowance.py allows
_CANCELLED, _NARROW_CANCELLED = 4.0, 16.0
_LITTLE = 0.25  # of the noise: what is nearer to float64 than that is not wrong
_MOST_ADDED = 4096  # whose plain sum is 64 times as far off as its last rounding; no kernel adds up more one by one
_TOO_MUCH: Final = frozenset({"rmse", "maximum", "row", "column", "tile", "tolerance"})
_ZEROS, _LEAST_ZEROS = 0.25, 4  # of the elements: fewer may cancel to nothing by luck
# Ops that round nothing
_MOVE: Final = frozenset(
    {
        "clone",
        "_to_copy",
        "_local_scalar_dense",
        "equal",
        "cat",
        "stack",
        "gather",
        "index",
        "index_select",
        "embedding",
    }
    | {"repeat", "flip", "roll", "constant_pad_nd", "slice_backward", "select_backward", "nonzero", "isnan", "isinf"}
    | {"relu", "relu_", "threshold_backward", "neg", "abs", "where", "copy_", "fill_", "zero_", "maximum", "minimum"}
    | {
        "amax",
        "amin",
        "max",
        "min",
        "sort",
        "topk",
        "max_pool2d_with_indices",
        "masked_fill",
        "zeros_like",
        "ones_like",
    }
)
_REDUCES: Final = getattr(torch.Tag, "reduction", None)


class OtherRoundings(TorchDispatchMode):
    """While it is in force, what ops give differs in the last digit: `seed` says where, and how.

    Of float32 each number is moved by up to half an ulp, and by as much times the root of n before n of them are added
    up, since some kernels add one after another; of narrower dtypes, which are added up in float32, one number of 16 is
    moved by an ulp. Either is a rounding's standard deviation.
    """

    supports_higher_order_operators = True

    def __init__(self, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seed = seed
        self._generators: dict[torch.device, torch.Generator] = {}

    def __torch_dispatch__(
        self, func: Op, types: object, args: tuple[object, ...] = (), kwargs: Mapping[str, object] | None = None
    ) -> object:
        given = dict(kwargs or {})
        if not isinstance(func, OpOverload):
            with self:  # what a higher-order op holds runs op by op
                return func(*args, **given)
        if func.is_view or fx.op_name(func) in _MOVE or not any(map(_is_rounded, tree_leaves(args))):
            return func(*args, **given)
        if (added := added_up(func, args, given)) > 1:
            amount = math.sqrt(min(_MOST_ADDED, added))
            wanted = zip(func._schema.arguments, args, strict=False)
            args = tuple(
                self._moved(value, amount, _is_exact) if _is_read(argument) else value for argument, value in wanted
            )
        result = func(*args, **given)
        if not func._schema.is_mutable:
            return self._moved(result, 1.0, _is_rounded)
        if _is_rounded(result):
            result.copy_(self._move(result, 1.0))
        return result

    def _moved(self, value: object, amount: float, which: Callable[[object], TypeGuard[Tensor]]) -> object:
        return tree_map(lambda each: self._move(each, amount) if which(each) else each, value)

    def _move(self, value: Tensor, amount: float) -> Tensor:
        if value.device not in self._generators:
            self._generators[value.device] = torch.Generator(value.device).manual_seed(self.seed)
        generator, eps = self._generators[value.device], torch.finfo(value.dtype).eps
        if eps > 1e-6:
            drawn = torch.randint(32, value.shape, device=value.device, generator=generator)
            return value + value * ((drawn == 0).to(value.dtype) - (drawn == 1).to(value.dtype)) * eps
        drawn = torch.rand(value.shape, device=value.device, generator=generator)
        return value + value * (2 * drawn - 1) * (eps / 2 * amount)


def _is_read(argument: torch._C.Argument) -> bool:
    """Not what an op writes to; batch norms write their statistics, and their schemas do not say so."""
    return argument.alias_info is None and not argument.name.startswith("running_")


def _is_rounded(value: object) -> TypeGuard[Tensor]:
    if not isinstance(value, Tensor) or type(value) not in (Tensor, torch.nn.Parameter):
        return False
    if value.layout != torch.strided or value.is_quantized:
        return False
    return bool(value.dtype in (torch.float32, torch.float16, torch.bfloat16, torch.complex64))


def _is_exact(value: object) -> TypeGuard[Tensor]:
    """Whether its sums are no more exact than it is."""
    return _is_rounded(value) and torch.finfo(value.dtype).eps < 1e-6


def added_up(func: OpOverload, args: tuple[object, ...], kwargs: Mapping[str, object]) -> int:
    """About how many numbers one number of the result is the sum of."""
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


def is_doubtful(diff: TensorDiff) -> bool:
    """Whether it failed by the size of its errors alone."""
    return not diff.passed and diff.baseline is not None and _TOO_MUCH.issuperset(diff.failed_by)


def looked_at_again(
    diff: TensorDiff,
    sides: tuple[Leaves, Leaves, Leaves],
    samples: Sequence[Leaves],
    before: Tensor | None,
    k: float,
) -> TensorDiff:
    """Passes what rounding explains; `sides` are eager, test and float64, `before` what a state's value was."""
    leaves = [side.get(diff.name) for side in (*sides, *samples)]
    tensors = [each for each in leaves if isinstance(each, Tensor)]
    if len(tensors) < 4 or len(tensors) < len(leaves) or len({each.shape for each in tensors}) > 1:
        return diff
    eager, test, float64, *others = tensors
    if any(each.dtype != test.dtype for each in (eager, *others)) or not test.is_floating_point():
        return diff
    worst = _worst(eager, float64, others)
    if not_computed(worst, test, float64, (eager, *others), before):
        return diff
    again = compare_sides(worst, test, float64, k=k, gradient=diff.name.startswith("grad("), samples=SAMPLES + 1)
    if not again.passed or not _is_explained(again, diff, float64):
        return diff
    own = tuple(replace(each, why_not=NOTE) for each in diff.criteria if each.exceeded)
    return replace(diff, passed=True, failed_by=(), criteria=(*again.criteria, *own), note=NOTE)


def not_computed(worst: Tensor, test: Tensor, float64: Tensor, own: Sequence[Tensor], before: Tensor | None) -> bool:
    """Whether the test is zero, or what it was before, where eager is not however it rounds, and that is no better."""
    noise = (worst.double() - float64).abs()
    for blank in (torch.zeros_like(test), before):
        if blank is None or blank.shape != test.shape:
            continue
        blank = blank.to(test.dtype)
        lost = (test == blank) & ((float64 - blank.double()).abs() > _LITTLE * noise)
        for each in own:
            lost &= each != blank
        count = int(lost.sum())
        if count and (count == test.numel() or count >= max(_LEAST_ZEROS, _ZEROS * test.numel())):
            return True
    return False


def _worst(eager: Tensor, float64: Tensor, others: Sequence[Tensor]) -> Tensor:
    """Of each element the value of that run that has it furthest from float64."""
    worst, error = eager, (eager.double() - float64).abs()
    for other in others:
        further = (other.double() - float64).abs()
        worst = torch.where(further > error, other, worst)
        error = torch.maximum(error, further)
    return worst


def _is_explained(again: TensorDiff, diff: TensorDiff, float64: Tensor) -> bool:
    """Not where eager's error says enough by itself, nor where the test's is far above it."""
    base, noise = diff.baseline, again.baseline
    assert base is not None and noise is not None and diff.test is not None
    count, eps = max(1, diff.elements), torch.finfo(getattr(torch, diff.test.dtype)).eps
    # An eager that sums in double is more exact than any rounding of its inputs: within those the test is right too
    limit = (
        NARROW_ABOVE * base.reference_rmse if eps > 1e-6 else max(noise.reference_rmse, FAR_ABOVE * base.reference_rmse)
    )
    if base.rmse > limit * (1 + SMALL / count) ** 2:
        return False
    magnitude = float(torch.linalg.vector_norm(float64)) / math.sqrt(count)
    return noise.reference_rmse > (_NARROW_CANCELLED if eps > 1e-6 else _CANCELLED) * eps * magnitude
