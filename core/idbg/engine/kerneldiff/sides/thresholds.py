"""Judge failed tensors again with elements on the test's side of a threshold, where rounding decides the side.

The result or gradient of a ReLU, a clamp or a comparison jumps at a threshold. An element that is nearer to it than
eager's rounding there is right on both sides. Of few such elements eager may have none on another side than float64,
and the test one: its error is then far above eager's, and no error. So float64 runs again with such elements on the
other side, and keeps those there with which it is nearer to the test. What these runs move of float64 is taken off the
test, and the rules of docs/numerics.md are applied again: they allow no more than before.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import torch
from msgspec.structs import replace
from torch import Tensor

from idbg.engine.compat import comparing, fx
from idbg.engine.compat.torch_types import OpOverload
from idbg.engine.kerneldiff.float64.op_mode import Args, Kwargs, OpMode
from idbg.engine.kerneldiff.sides.leaf_comparison import ComparisonRules, compare_leaves
from idbg.engine.kerneldiff.sides.resampling import Resampling, may_be_rounding
from idbg.engine.kerneldiff.sides.run import run_eager, run_float64
from idbg.engine.kerneldiff.tensors.compare import with_note
from idbg.engine.kerneldiff.tensors.float64_device import is_narrow
from idbg.engine.kerneldiff.tensors.tree import Leaves
from idbg.format.amounts import counted
from idbg.schema.diff import TensorDiff
from idbg.schema.remarks import Remark

MOVED: Final = "float64, beside thresholds"
# Times eager's rounding beside a threshold: further elements are on float64's side however they are rounded
REACH = 4.0
_MOST = 16  # elements that are tried, those nearest to a threshold first: each costs a run in float64
_NEAREST = 64  # elements of an op that are looked at
_AT: Final[Mapping[str, tuple[float, ...]]] = {
    **dict.fromkeys(("relu", "leaky_relu", "_prelu_kernel", "elu", "abs", "sign", "sgn"), (0.0,)),
    **dict.fromkeys(("hardswish", "hardsigmoid"), (-3.0, 3.0)),
    "hardtanh": (-1.0, 1.0),  # unless it has others
}
_BOUNDED: Final = frozenset({"hardtanh", "clamp", "clamp_min", "clamp_max", "threshold"})
_COMPARES: Final = frozenset({"gt", "ge", "lt", "le", "maximum", "minimum"})
_BOUNDS: Final = ("min", "max", "min_val", "max_val", "threshold", "other")


@dataclass(frozen=True)
class Site:
    """The threshold number `at` of an op: the `call`-th of this name on tensors of this shape."""

    op: str
    shape: tuple[int, ...]
    call: int
    at: int


Elements = Mapping[Site, list[int]]


class AtThresholds(OpMode):
    """Moves elements to the other side of a threshold, and records how far those `seen` are from it, or, without
    `seen`, those nearest to it.
    """

    def __init__(self, seen: Elements | None = None, moved: Elements | None = None) -> None:
        super().__init__()
        self.seen: dict[Site, list[int]] = {}
        self.apart: dict[Site, Tensor] = {}
        self._wanted = seen
        self._moved = moved or {}
        self._calls: Counter[tuple[str, tuple[int, ...]]] = Counter()

    def run(self, func: OpOverload, args: Args, kwargs: Kwargs) -> object:
        with comparing.tensors_as_they_are():
            for site, value, apart in self._sites(func, args, kwargs):
                if self._wanted is None and not self._moved:
                    self._see_nearest(site, apart)
                elif self._wanted and (elements := self._wanted.get(site)):
                    self.apart[site] = apart.flatten()[elements].double().cpu()
                for element in self._moved.get(site, ()):
                    place = torch.unravel_index(torch.tensor(element, device=value.device), value.shape)
                    value[place] -= 2 * apart[place]
        return func(*args, **kwargs)

    def _see_nearest(self, site: Site, apart: Tensor) -> None:
        """Those that are on the threshold to the bit are not beside it: they are zeros of another op."""
        distance = apart.abs().flatten()
        distance = distance.masked_fill(distance == 0, torch.inf)
        nearest, at = distance.topk(min(_NEAREST, distance.numel()), largest=False)
        at = at[nearest.isfinite()]
        self.seen[site], self.apart[site] = at.tolist(), apart.flatten()[at].double().cpu()

    def _sites(self, func: OpOverload, args: Args, kwargs: Kwargs) -> Iterator[tuple[Site, Tensor, Tensor]]:
        """Each threshold, with the values and how far they are from it."""
        op = fx.op_name(func).rstrip("_")
        if op not in _AT and op not in _BOUNDED and op not in _COMPARES:
            return
        named = {**dict(zip((argument.name for argument in func._schema.arguments), args, strict=False)), **kwargs}
        value = named.get("self")
        if type(value) is not Tensor or not value.is_floating_point() or not value.numel():
            return
        if any(stride == 0 and size > 1 for stride, size in zip(value.stride(), value.shape, strict=True)):
            return  # one number, read as many
        shape = tuple(value.shape)
        call = self._calls[op, shape]
        self._calls[op, shape] += 1
        bounds = [named[name] for name in _BOUNDS if isinstance(named.get(name), Tensor | int | float)]
        for at, bound in enumerate(bounds or _AT.get(op, ())):
            apart = value - bound
            if apart.shape == value.shape:
                yield Site(op, shape, call, at), value, apart


def beside_thresholds(float64: AtThresholds, eager: AtThresholds) -> list[tuple[Site, int]]:
    """The elements that rounding may put on the other side, those nearest first; `eager` has seen the same elements."""
    found = []
    for site, apart in float64.apart.items():
        own = eager.apart.get(site)
        if own is None or not len(own):
            continue
        error, distance = (own - apart).nan_to_num(0, 0, 0), apart.abs()
        noise = _rms(error)
        for _ in range(3):  # rounding is smaller where the values are: by that of those nearby
            noise = _rms(error[distance <= 2 * REACH * noise])
        for element, far in zip(float64.seen[site], distance.tolist(), strict=True):
            if far <= REACH * noise:
                found.append((far / noise, site, element))
    return [(site, element) for _, site, element in sorted(found, key=lambda one: one[0])]


def _rms(values: Tensor) -> float:
    return float(values.square().mean().sqrt()) if values.numel() else 0.0


@dataclass(frozen=True)
class ThresholdCheck:
    """Judges what failed with elements on the test's side of thresholds, by these rules and resampled roundings."""

    resampling: Resampling
    rules: ComparisonRules

    def judge(
        self, diffs: tuple[TensorDiff, ...], eager: Leaves, test: Leaves, float64: Leaves
    ) -> tuple[TensorDiff, ...]:
        """The diffs, where those pass whose error is that of elements on the other side of a threshold: with these on
        float64's side all tensors pass, also those that such an element does not move above what is allowed.
        """
        failed = [diff for diff in diffs if diff.failed]
        # beside other ranks no side runs twice: they would wait
        if not failed or not all(map(may_be_rounding, failed)) or self.resampling.agree is not bool:
            return diffs
        tensors = _Tensors.of(diffs, test, float64)
        places = self._places[:_MOST] if tensors is not None else []
        if tensors is None or not places or not tensors.may_reach(self._float64(places)):
            return diffs
        accepted: list[tuple[Site, int]] = []
        for place in places:
            if not tensors.go_to(self._float64([*accepted, place])):
                continue
            accepted.append(place)
            again = self._again(eager, tensors.as_in_float64(), float64)
            if all(diff.passed for diff in again.values()):
                return tuple(_passed(diff, again[diff.name], len(accepted)) if diff.failed else diff for diff in diffs)
        return diffs

    def _again(self, eager: Leaves, test: Leaves, float64: Leaves) -> dict[str, TensorDiff]:
        reference = {name: eager[name] for name in test}
        diffs = compare_leaves(reference, test, float64, self.rules)
        return {diff.name: diff for diff in self.resampling.judge_rounding(diffs, reference, test, float64)}

    @cached_property
    def _places(self) -> list[tuple[Site, int]]:
        """The elements that rounding may put on the other side."""
        subject, backward = self.resampling.subject, self.resampling.backward
        self.resampling.begin(MOVED)
        nearest = AtThresholds()
        run_float64(subject, backward=backward, modes=[nearest])
        own = AtThresholds(nearest.seen)
        if nearest.seen:
            run_eager(subject, modes=[own], backward=backward)
        return beside_thresholds(nearest, own)

    def _float64(self, places: Iterable[tuple[Site, int]]) -> Leaves:
        moved: dict[Site, list[int]] = {}
        for site, element in places:
            moved.setdefault(site, []).append(element)
        subject, backward = self.resampling.subject, self.resampling.backward
        return run_float64(subject, backward=backward, modes=[AtThresholds(moved=moved)]).leaves


@dataclass
class _Tensors:
    """The test's tensors, float64's, and those of float64 with elements on the other side; which of them failed."""

    test: dict[str, Tensor]
    float64: dict[str, Tensor]
    moved: dict[str, Tensor]
    failed: frozenset[str]

    @classmethod
    def of(cls, diffs: Iterable[TensorDiff], test: Leaves, float64: Leaves) -> "_Tensors | None":
        """Those of the diffs that have floating numbers; None where one that failed has none."""
        ours, exact, failed = {}, {}, set()
        for diff in diffs:
            one, wide = test.get(diff.name), float64.get(diff.name)
            if isinstance(one, Tensor) and isinstance(wide, Tensor) and one.shape == wide.shape and _is_real(one):
                ours[diff.name], exact[diff.name] = one, wide
            if diff.failed:
                failed.add(diff.name)
        return cls(ours, exact, exact, frozenset(failed)) if failed <= ours.keys() else None

    def may_reach(self, everything: Leaves) -> bool:
        """Whether elements on the other side explain so much: each moves a part of the tensors for itself."""
        moved = self._of(everything)
        return moved is not None and all(
            0 < self._error(name, self.float64) <= 2 * float(self._moved_by(name, moved).norm()) for name in self.failed
        )

    def go_to(self, leaves: Leaves) -> bool:
        """Continue from these values, if they are nearer to the test's."""
        moved = self._of(leaves)
        if moved is None or not self._distance(moved) < self._distance(self.moved):
            return False
        self.moved = moved
        return True

    def as_in_float64(self) -> dict[str, Tensor]:
        """The test's values with all elements on float64's side."""
        return {
            name: (own.double() - self._moved_by(name, self.moved).nan_to_num_(0, 0, 0).to(own.device)).to(own.dtype)
            for name, own in self.test.items()
        }

    def _of(self, leaves: Leaves) -> dict[str, Tensor] | None:
        moved = {name: value for name in self.test if isinstance(value := leaves.get(name), Tensor)}
        return moved if len(moved) == len(self.test) else None

    def _moved_by(self, name: str, moved: Mapping[str, Tensor]) -> Tensor:
        """What these values differ by from float64's, each of which may wait in host memory."""
        return moved[name] - self.float64[name].to(moved[name].device)

    def _distance(self, moved: Mapping[str, Tensor]) -> float:
        """Of what failed, each beside its distance from float64."""
        return sum((self._error(name, moved) / self._error(name, self.float64)) ** 2 for name in self.failed)

    def _error(self, name: str, exact: Mapping[str, Tensor]) -> float:
        return float((self.test[name].to(exact[name].device).double() - exact[name]).norm())


def _is_real(value: Tensor) -> bool:
    return is_narrow(value) and value.is_floating_point()


def _passed(diff: TensorDiff, again: TensorDiff, count: int) -> TensorDiff:
    note = Remark("beside threshold", counted(count, "element"))
    own = tuple(replace(each, why_not=note) for each in diff.criteria if each.exceeded)
    return with_note(replace(diff, passed=True, failed_by=(), criteria=(*again.criteria, *own)), note)
