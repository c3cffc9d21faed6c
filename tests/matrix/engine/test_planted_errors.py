"""No planted error passes and no correct program fails: each program of a small set runs in eager and in float64, and a
third time with other sums, casts or fusing (correct), or with a part of one result lost or changed (planted).
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from idbg import KernelDiff
from idbg.engine.compat import fx
from idbg.engine.kerneldiff import comparison
from idbg.engine.kerneldiff.sides.run import Side, SideValues, run_eager, run_float64
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.tensors.tree import AFTER
from idbg.schema.diff import SideResult, TensorDiff

pytestmark = pytest.mark.slow

Leaves = dict[str, Tensor]
Plant = Callable[[Tensor, torch.Generator], tuple[slice, ...]]


class Counter(nn.Module):
    """A count of steps beside a total that is much larger, and averages of what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.steps, self.total = nn.Buffer(torch.zeros(8)), nn.Buffer(torch.full((8,), 1e5))
        self.norm = nn.BatchNorm1d(32)

    def forward(self, x: Tensor) -> Tensor:
        self.steps += 1
        self.total += x.sum()
        return self.norm(300 * x + 1)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        return x + self.out((q @ k.transpose(-1, -2) / 5).softmax(-1) @ v)


def convolutions() -> nn.Module:
    two = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8)
    return nn.Sequential(*two, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))


class Centred(nn.Module):
    """Sums that cancel: means of what was normalised, beside what does not."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(96))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        x = x * self.scale
        centred = x - x.mean(0)
        variance, mean = torch.var_mean(centred, 0)
        return F.layer_norm(x, x.shape[-1:]).mean(), centred.mean(0), variance, mean


def small_scales() -> nn.Module:
    layer = nn.Linear(32, 64)
    with torch.no_grad():
        layer.weight[16:32] *= 1e-3
        layer.bias[16:32] *= 1e-3
    return nn.Sequential(layer, nn.Tanh())


PROGRAMS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "counter": (Counter, (64, 32)),
    "attention": (Attention, (4, 24, 32)),
    "convolutions": (convolutions, (4, 3, 12, 12)),
    "centred": (Centred, (64, 96)),
    "small scales": (small_scales, (48, 32)),
    "loss": (lambda: nn.Sequential(nn.Linear(32, 40), nn.GELU(), nn.Linear(40, 10)), (64, 32)),
}
DTYPES = (torch.float32, torch.bfloat16)


def made(name: str, dtype: torch.dtype, seed: int) -> tuple[nn.Module, Tensor]:
    torch.manual_seed(seed)
    make, shape = PROGRAMS[name]
    return make().train().to(dtype), torch.randn(shape).to(dtype)


def loss(out: Any) -> Tensor:
    first = out[2] if isinstance(out, tuple) else out
    return F.cross_entropy(first, torch.zeros(len(first), dtype=torch.int64)) if first.dim() == 2 else first.sum()


# Correct: the same program, computed otherwise


class PlainSums(TorchDispatchMode):
    """Sums and products of matrices are added up one after another, from the last to the first."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        name = fx.op_name(func)
        if name in ("sum", "mean") and args[0].is_floating_point() and not kwargs:
            given, dims, *keep = (*args, None)[:3] if len(args) > 1 else (args[0], None)
            return plain_sum(given, dims, bool(keep and keep[0]), mean=name == "mean")
        if name == "mm":
            return plain_product(*args)
        if name == "addmm":
            return (args[0].float() + plain_product(*args[1:]).float()).to(args[0].dtype)
        return func(*args, **(kwargs or {}))


def plain_sum(value: Tensor, dims: list[int] | None, keep: bool, *, mean: bool) -> Tensor:
    places = [dim % value.dim() for dim in (dims or range(value.dim()))]
    kept = [dim for dim in range(value.dim()) if dim not in places]
    flat = value.permute(*kept, *places).reshape(*(value.shape[dim] for dim in kept), -1)
    total = flat.float().flip(-1).cumsum(-1)[..., -1]
    total = (total / flat.shape[-1] if mean else total).to(value.dtype)
    return total.reshape([1 if dim in places else size for dim, size in enumerate(value.shape)]) if keep else total


def plain_product(left: Tensor, right: Tensor) -> Tensor:
    total = torch.zeros(left.shape[0], right.shape[1])
    for at in reversed(range(left.shape[1])):
        total = torch.addcmul(total, left[:, at : at + 1].float(), right[at : at + 1].float())
    return total.to(left.dtype)


def in_plain_order(subject: Subject) -> Side:
    with PlainSums():
        return run_eager(subject, backward=True)


def in_dtype(dtype: torch.dtype) -> Callable[[Subject], Side]:
    """All of it in a wider dtype, with one rounding at the end: as if it were fused."""

    def run(subject: Subject) -> Side:
        held = [(tensor, tensor.data) for tensor in subject.tensors.values() if tensor.is_floating_point()]
        try:
            for tensor, data in held:
                tensor.data = data.to(dtype)
            given = run_eager(subject, backward=True).values
        finally:
            for tensor, data in held:
                tensor.data = data
        assert given is not None
        return Side(
            SideResult("otherwise"),
            SideValues(cast_to(given.outputs, held[0][1].dtype), cast_to(given.gradients, held[0][1].dtype)),
        )

    return run


def cast_to(found: Any, dtype: torch.dtype) -> Leaves:
    return {name: value.to(dtype) if value.is_floating_point() else value for name, value in found.items()}


# Planted


def rows(value: Tensor, random: torch.Generator) -> tuple[slice, ...]:
    at = drawn(len(value), random)
    return (slice(at, at + max(1, len(value) // 16)),)


def columns(value: Tensor, random: torch.Generator) -> tuple[slice, ...]:
    at = drawn(value.shape[-1], random)
    return *(slice(None),) * (value.dim() - 1), slice(at, at + max(1, value.shape[-1] // 16))


def tile(value: Tensor, random: torch.Generator) -> tuple[slice, ...]:
    tops = [drawn(size, random) // 8 * 8 for size in value.shape[-2:]]
    return *(slice(0, 1),) * (value.dim() - 2), *(slice(top, top + 8) for top in tops)


def tail(value: Tensor, random: torch.Generator) -> tuple[slice, ...]:
    return *(slice(-1, None),) * (value.dim() - 1), slice(-max(1, value.shape[-1] // 4), None)


def everything(value: Tensor, random: torch.Generator) -> tuple[slice, ...]:
    return (slice(None),) * value.dim()


PLANTS: tuple[Plant, ...] = (rows, columns, tile, tail, everything)


def drawn(most: int, random: torch.Generator) -> int:
    return int(torch.randint(most, (), generator=random))


def spoilt(value: Tensor, where: tuple[slice, ...], how: str, before: Tensor | None) -> Tensor:
    """The value with a part lost, scaled, moved on by one place, or left as it was."""
    found = value.clone()
    if how == "lost":
        found[where] = 0
    elif how == "scaled":
        found[where] *= 1.5 if value.dtype == torch.bfloat16 else 1.01
    elif how == "moved" and value.dim():
        found[where] = value.roll(1, -1)[where]
    elif before is not None:
        found[where] = before.to(value.dtype)[where]
    return found


def is_effective(eager: Tensor, test: Tensor, exact: Tensor, where: tuple[slice, ...]) -> bool:
    """Whether there is anything to be seen: what was changed was known in eager, and is far from what it was."""
    own, wrong, size = (each[where].double().square().mean().sqrt() for each in (eager - exact, test - exact, exact))
    all_own = (eager - exact).double().square().mean().sqrt()
    return bool(wrong > 30 * max(own, all_own) and wrong > (0.2 if eager.dtype == torch.bfloat16 else 1e-3) * size > 0)


def compared(model: nn.Module, x: Tensor, test: Callable[[Subject], Side], monkeypatch: Any) -> list[TensorDiff]:
    monkeypatch.setattr(comparison, "run_compiled", lambda name, subject, compile, **_: test(subject))
    report = KernelDiff(model, (x,), loss=loss, test="aot_eager").compare()
    assert report.mode == "float64", report.summary()
    return [*report.outputs, *report.gradients]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_correct_program_does_not_fail(name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch):
    ways = {"plain order": in_plain_order, "float64": in_dtype(torch.float64)}
    if dtype == torch.bfloat16:
        ways["float32"] = in_dtype(torch.float32)
    for seed in range(4):
        model, x = made(name, dtype, seed)
        for way, test in ways.items():
            found = compared(model, x, test, monkeypatch)
            failed = [(each.name, each.failed_by, each.baseline) for each in found if not each.passed]
            assert not failed, (way, seed)


def planted(given: SideValues, before: Subject, random: torch.Generator) -> Iterator[tuple[str, str, Any, Tensor]]:
    for name, value in {**given.outputs, **given.gradients}.items():
        if not isinstance(value, Tensor) or not value.is_floating_point():
            continue
        initial = before.initial(name.removesuffix(AFTER)) if name.endswith(AFTER) else None
        for how in ("lost", "scaled", "moved", *(("stuck",) if initial is not None else ())):
            for plant in PLANTS if value.dim() else PLANTS[-1:]:
                where = plant(value, random) if value.dim() != 1 or plant is not tile else rows(value, random)
                yield name, f"{how} {plant.__name__}", where, spoilt(value, where, how, initial)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_planted_error_passes(name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch):
    model, x = made(name, dtype, 0)
    random = torch.Generator().manual_seed(0)
    kept: dict[str, Any] = {}

    def keep(subject: Subject) -> Side:
        kept["test"], kept["subject"] = in_plain_order(subject), subject
        return kept["test"]

    compared(model, x, keep, monkeypatch)
    given, subject = kept["test"].values, kept["subject"]
    eager, exact = (run(subject, backward=True).values for run in (run_eager, run_float64))
    sides = {**eager.outputs, **eager.gradients}, {**exact.outputs, **exact.gradients}
    plants: defaultdict[str, list[tuple[str, Tensor]]] = defaultdict(list)
    for leaf, what, where, wrong in planted(given, subject, random):
        if leaf in sides[0] and is_effective(sides[0][leaf], wrong, sides[1][leaf], where):
            plants[leaf].append((what, wrong))
    passed, counts = [], [len(errors) for errors in plants.values()]
    for at in range(max(counts)):  # one error in each leaf at a time: each leaf is judged by itself
        now = {leaf: errors[at] for leaf, errors in plants.items() if at < len(errors)}
        outputs, gradients = (
            {name: now[name][1] if name in now else value for name, value in found.items()}
            for found in (given.outputs, given.gradients)
        )
        side = Side(SideResult("planted"), SideValues(outputs, gradients))
        found = compared(model, x, lambda _, side=side: side, monkeypatch)
        assert now.keys() <= {each.name for each in found}
        passed += [(each.name, now[each.name][0], each.note) for each in found if each.name in now and each.passed]
    assert sum(counts) > 3 and not passed, passed
