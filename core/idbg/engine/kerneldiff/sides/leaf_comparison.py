"""Compare the leaves of two sides, each by the rule that applies to it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import torch
from msgspec.structs import replace
from torch import Tensor

from idbg.engine.compat import fx
from idbg.engine.kerneldiff.tensors.compare import compare_sides, compare_tensors
from idbg.engine.kerneldiff.tensors.tree import Leaves, Repeated, is_opaque, shared
from idbg.schema.diff import FailedBy, K, TensorDiff
from idbg.schema.remarks import Remark

_FLOAT32_MAX: Final = torch.finfo(torch.float32).max
_SHOWN = 40  # characters of a value in a note
_MISSING: Final = object()
"""Stands for a leaf that a side does not have."""


@dataclass(frozen=True)
class ComparisonRules:
    """`tolerances` are (atol, rtol) by name: such an output is compared by these, and not with float64."""

    k: float = K
    atol: float | None = None
    rtol: float | None = None
    tolerances: Mapping[str, tuple[float, float]] = field(default_factory=dict)


def compare_leaves(
    reference: Leaves, test: Leaves, float64: Leaves | None, rules: ComparisonRules
) -> tuple[TensorDiff, ...]:
    """A diff of each tensor and floating number of either side, and of what else is unequal.

    Without `float64` the tolerances decide. A tensor that is there twice is compared once.
    """
    diffs: list[TensorDiff] = []
    done: dict[tuple[str, str], TensorDiff] = {}
    first_names, tests_first_names = shared(reference), shared(test)
    for name in dict.fromkeys((*reference, *test)):
        key = (first_names.get(name, name), tests_first_names.get(name, name))
        if key in done and name in reference and name in test and name not in rules.tolerances:
            diffs.append(replace(done[key], name=name, note=Remark("same tensor", key[0])))
            continue
        sides = reference.get(name, _MISSING), test.get(name, _MISSING)
        diff = _compare_leaf(name, *sides, None if float64 is None else float64.get(name), rules)
        if diff is not None:
            done[key] = diff
            diffs.append(diff)
    return tuple(diffs)


def one_sided(reference: Leaves | None, test: Leaves | None, why: Remark) -> tuple[TensorDiff, ...]:
    """The tensors of the one side that has any, not compared for this reason."""
    leaves = (test if reference is None else reference) or {}
    return tuple(
        TensorDiff(
            name=name,
            passed=False,
            judged=False,
            reference=None if reference is None else fx.tensor_meta(value),
            test=fx.tensor_meta(value) if reference is None else None,
            elements=value.numel(),
            note=why,
        )
        for name, value in leaves.items()
        if isinstance(value, Tensor)
    )


def without_verdict(diffs: tuple[TensorDiff, ...]) -> tuple[TensorDiff, ...]:
    """The figures that are known before float64 has run."""
    return tuple(replace(diff, passed=False, judged=False, failed_by=(), criteria=()) for diff in diffs)


def _compare_leaf(
    name: str, reference: object, test: object, float64: object, rules: ComparisonRules
) -> TensorDiff | None:
    """None for two equal leaves that are no numbers."""
    if reference is _MISSING:
        return _unlike(name, None, test, "extra", Remark("on one side", _described(test)))
    if test is _MISSING:
        return _unlike(name, reference, None, "missing", Remark("on one side", _described(reference)))
    alike = type(reference) is type(test) or (isinstance(reference, Tensor) and isinstance(test, Tensor))
    if alike:
        ours, theirs = as_tensor(reference), as_tensor(test)
        if ours is not None and theirs is not None:
            return _compare_tensors(name, ours, theirs, as_tensor(float64), rules)
        if reference == test or (is_opaque(reference) and is_opaque(test)):
            return None
    return _unlike(name, reference, test, "type", Remark("types", _described(reference), _described(test)))


def _compare_tensors(
    name: str, reference: Tensor, test: Tensor, float64: Tensor | None, rules: ComparisonRules
) -> TensorDiff:
    own = rules.tolerances.get(name)
    if own is None and float64 is not None and float64.shape == reference.shape:
        return compare_sides(reference, test, float64, k=rules.k, name=name, gradient=name.startswith("grad("))
    atol, rtol = own or (rules.atol, rules.rtol)
    return compare_tensors(reference, test, atol=atol, rtol=rtol, name=name)


def as_tensor(value: object) -> Tensor | None:
    """A tensor; a floating number as the float32 that it came from; numpy's arrays in their own dtype."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, (float, complex)):
        fits = abs(value) <= _FLOAT32_MAX or value != value
        narrow, wide = (
            (torch.float32, torch.float64) if isinstance(value, float) else (torch.complex64, torch.complex128)
        )
        return torch.tensor(value, dtype=narrow if fits else wide)
    if type(value).__module__ == "numpy" and hasattr(value, "__array__"):
        try:
            return torch.as_tensor(value)
        except TypeError:  # of objects or text
            return None
    return None


def _unlike(name: str, reference: object, test: object, why: FailedBy, note: Remark) -> TensorDiff:
    return TensorDiff(
        name=name,
        passed=False,
        failed_by=(why,),
        reference=fx.tensor_meta(reference) if isinstance(reference, Tensor) else None,
        test=fx.tensor_meta(test) if isinstance(test, Tensor) else None,
        note=note,
    )


def _described(value: object) -> str:
    if isinstance(value, Tensor):
        return f"a {str(value.dtype).removeprefix('torch.')} tensor of shape {tuple(value.shape)}"
    if isinstance(value, Repeated):
        return f"{value.name} again"
    text = repr(value)
    return text if len(text) <= _SHOWN else f"a {type(value).__name__}"
