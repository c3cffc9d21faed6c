"""Does the program give the same twice? What depends on a clock or on an address cannot be compared with anything.

Eager runs again only where that could change the verdict: where an output is beyond torch.testing's tolerances.
"""

from collections.abc import Iterable
from math import sqrt

import torch
from msgspec.structs import replace
from torch import Tensor

from idbg.engine.kerneldiff.tensors.compare import compare_tensors, relative_rmse
from idbg.engine.kerneldiff.tensors.tree import Leaves
from idbg.schema.diff import TensorDiff

_ULPS = 16.0


def doubtful(diffs: Iterable[TensorDiff]) -> bool:
    """Whether it is worth a run of eager's to know: the rest is as near to it as can be asked for."""
    return any(diff.mismatches or (not diff.passed and diff.failed_by) for diff in diffs)


def with_steadiness(diffs: Iterable[TensorDiff], first: Leaves, again: Leaves, name: str) -> tuple[TensorDiff, ...]:
    """The diffs, those failed of which the reference (called `name`) itself gives something else the second time."""
    return tuple(_judged(diff, first.get(diff.name), again.get(diff.name), name) for diff in diffs)


def _judged(diff: TensorDiff, first: object, again: object, name: str) -> TensorDiff:
    if isinstance(first, float) and isinstance(again, float):
        first, again = torch.tensor(first), torch.tensor(again)
    if not isinstance(first, Tensor) or not isinstance(again, Tensor) or _is_rounding(first, again):
        return diff
    apart = compare_tensors(first, again, full=False)
    told = f"up to {apart.max_abs:.3g} apart" if apart.max_abs is not None else "of another shape or dtype"
    note = (
        f"{name} itself gives something else each time, {told}: it depends on more than its inputs (a clock, an "
        "address, threads), so nothing can be said of the test's"
    )
    return replace(diff, passed=False, failed_by=("unsteady",), note=note)


def _is_rounding(first: Tensor, again: Tensor) -> bool:
    """Whether two runs differ by no more than sums in another order do: half of the digits on a GPU, whose atomics add
    up in any order, and a few ulps elsewhere.
    """
    if first.shape != again.shape or first.dtype != again.dtype:
        return False
    if first.dtype.is_floating_point or first.dtype.is_complex:
        eps = torch.finfo(first.dtype).eps
        return relative_rmse(first, again) <= (_ULPS * eps if first.is_cpu else sqrt(eps))
    return compare_tensors(first, again, full=False).passed
