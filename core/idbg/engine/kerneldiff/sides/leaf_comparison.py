"""Do the leaves of two sides agree, each by the rule that it is held to?"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import torch
from msgspec.structs import replace
from torch import Tensor

from idbg.engine.compat import fx
from idbg.engine.kerneldiff.tensors.compare import compare_sides, compare_tensors
from idbg.engine.kerneldiff.tensors.tree import Again, Leaves, is_opaque, shared
from idbg.schema.diff import FailedBy, K, TensorDiff

_FLOAT32_MAX: Final = torch.finfo(torch.float32).max
_GRADIENT: Final = "grad("
_SHOWN = 40  # characters of a value in a note


class _Missing:
    """There is no such leaf."""


MISSING: Final = _Missing()


@dataclass(frozen=True)
class ComparisonRules:
    """The rules. `tolerances` are (atol, rtol) by name: such an output is held to them and to no float64."""

    k: float = K
    atol: float | None = None
    rtol: float | None = None
    tolerances: Mapping[str, tuple[float, float]] = field(default_factory=dict)


def compare_leaves(
    reference: Leaves, test: Leaves, float64: Leaves | None, how: ComparisonRules
) -> tuple[TensorDiff, ...]:
    """Every tensor and floating number of either side, and whatever else is not the same on both.

    Without `float64` the tolerances decide. A tensor that is there twice is compared once.
    """
    return tuple(_compared(reference, test, float64, how))


def _compared(reference: Leaves, test: Leaves, float64: Leaves | None, how: ComparisonRules) -> Iterator[TensorDiff]:
    done: dict[tuple[str, str], TensorDiff] = {}
    again, tests_again = shared(reference), shared(test)
    for name in dict.fromkeys((*reference, *test)):
        key = (again.get(name, name), tests_again.get(name, name))
        if key in done and name in reference and name in test and name not in how.tolerances:
            yield replace(done[key], name=name, note=f"the same tensor as {key[0]}")
            continue
        truth = float64.get(name, MISSING) if float64 is not None else MISSING
        diff = _leaf(name, reference.get(name, MISSING), test.get(name, MISSING), truth, how)
        if diff is not None:
            done[key] = diff
            yield diff


def uncompared(leaves: Leaves, *, of_test: bool, why: str) -> tuple[TensorDiff, ...]:
    """The tensors of one side where the other gave nothing."""
    tensors = {name: value for name, value in leaves.items() if isinstance(value, Tensor)}
    return tuple(
        TensorDiff(
            name=name,
            passed=False,
            judged=False,
            reference=None if of_test else fx.tensor_meta(value),
            test=fx.tensor_meta(value) if of_test else None,
            elements=value.numel(),
            note=f"not compared: {why}",
        )
        for name, value in tensors.items()
    )


def _leaf(name: str, reference: object, test: object, float64: object, how: ComparisonRules) -> TensorDiff | None:
    """None where two leaves that are no numbers are the same."""
    if reference is MISSING or test is MISSING:
        there = reference if test is MISSING else test
        return _unlike(name, reference, test, "missing" if test is MISSING else "extra", f"it is {_told(there)}")
    if type(reference) is not type(test) and not (isinstance(reference, Tensor) and isinstance(test, Tensor)):
        return _unlike(name, reference, test, "type", f"reference is {_told(reference)}, test is {_told(test)}")
    ours, theirs = as_tensor(reference), as_tensor(test)
    if ours is not None and theirs is not None:
        return _tensors(name, ours, theirs, as_tensor(float64), how)
    if reference == test or (is_opaque(reference) and is_opaque(test)):
        return None
    return _unlike(name, reference, test, "type", f"reference is {_told(reference)}, test is {_told(test)}")


def _tensors(name: str, reference: Tensor, test: Tensor, float64: Tensor | None, how: ComparisonRules) -> TensorDiff:
    if name in how.tolerances:
        atol, rtol = how.tolerances[name]
        return compare_tensors(reference, test, atol=atol, rtol=rtol, name=name)
    if float64 is not None and float64.shape == reference.shape:
        return compare_sides(reference, test, float64, k=how.k, name=name, gradient=name.startswith(_GRADIENT))
    return compare_tensors(reference, test, atol=how.atol, rtol=how.rtol, name=name)


def as_tensor(value: object) -> Tensor | None:
    """Floating numbers are compared as the float32 that they came from; numpy's arrays as what they are."""
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


def _unlike(name: str, reference: object, test: object, why: FailedBy, note: str) -> TensorDiff:
    return TensorDiff(
        name=name,
        passed=False,
        failed_by=(why,),
        reference=fx.tensor_meta(reference) if isinstance(reference, Tensor) else None,
        test=fx.tensor_meta(test) if isinstance(test, Tensor) else None,
        note=note,
    )


def _told(value: object) -> str:
    if isinstance(value, Tensor):
        return f"a {str(value.dtype).removeprefix('torch.')} tensor of shape {tuple(value.shape)}"
    if isinstance(value, Again):
        return f"{value.name} again"
    text = repr(value)
    return text if len(text) <= _SHOWN else f"a {type(value).__name__}"


def one_sided(reference: Leaves | None, test: Leaves | None, why: str) -> tuple[TensorDiff, ...]:
    """What the one side gave, where the other failed."""
    if reference is not None:
        return uncompared(reference, of_test=False, why=why)
    return uncompared(test, of_test=True, why=why) if test is not None else ()


def without_verdict(diffs: tuple[TensorDiff, ...]) -> tuple[TensorDiff, ...]:
    """What is known before float64 has run: the figures, and no verdict."""
    return tuple(replace(diff, passed=False, judged=False, failed_by=(), criteria=()) for diff in diffs)
