"""Which kernels are accused where values cancel, where eager overflows, and where the outputs agree all the same?"""

import re
from collections.abc import Callable
from math import inf

import pytest
import torch
from torch import Tensor, nn
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.codecache import PyCodeCache
from torch.fx.experimental.proxy_tensor import make_fx

from idbg import KernelDiff
from idbg.engine.kerneldiff.kernels import verdict
from idbg.engine.kerneldiff.kernels.interpreter import NodeState, OrderedGraph
from idbg.engine.kerneldiff.kernels.launch_references import LaunchReferences
from idbg.engine.kerneldiff.kernels.values import ReferenceValue
from idbg.engine.kerneldiff.kernels.verdict import BufferVerdict, Resample, judge_buffer, judge_launch
from idbg.reports.diff import summary
from idbg.schema.diff import KernelError
from tests.harness.observed_launches import first_bad, observe_model


def planted(monkeypatch: pytest.MonkeyPatch, edit: Callable[[str], str]) -> None:
    """Every C++ kernel's source is edited on its way to the compiler."""
    original = AsyncCompile.cpp_pybinding

    def cpp_pybinding(self: AsyncCompile, argtypes: list[str], source_code: str, **kwargs: object) -> object:
        return original(self, argtypes, edit(source_code), **kwargs)

    PyCodeCache.cache_clear()
    monkeypatch.setattr(AsyncCompile, "cpp_pybinding", cpp_pybinding)


def standardised() -> Tensor:
    torch.manual_seed(0)
    x = torch.randn(64, 96)
    return (x - x.mean(0)) / x.std(0)


def of(kernels: tuple[KernelError, ...]) -> list[str]:
    return [f"{kernel.name} {kernel.error}" for kernel in kernels if kernel.bad]


def test_a_mean_that_cancels_accuses_no_kernel_and_hides_no_wrong_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(x: Tensor) -> Tensor:
        mean = x.mean(0, keepdim=True)
        return ((x - mean) @ x.t() * 1.0471).cos() @ (x - mean)

    clean = observe_model(program, (standardised(),))
    assert len(clean) > 2 and of(clean) == [] and all(kernel.error is not None for kernel in clean)
    planted(monkeypatch, lambda source: source.replace("1.0471", "1.0472"))
    found = observe_model(program, (standardised(),))
    assert (place := first_bad(found)) is not None and "cos" in found[place].name, of(found)


def test_standardised_data_in_a_batch_norm_accuses_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    model = nn.BatchNorm1d(96).train()
    assert of(observe_model(model, (standardised(),), loss=lambda out: (out * out).sum())) == []
    monkeypatch.setattr(verdict, "_judged_again", lambda sides, *_: BufferVerdict(sides.error, sides.eager, inf))
    assert of(
        observe_model(nn.BatchNorm1d(96).train(), (standardised(),))
    )  # held against its own size, the mean is wrong


def test_a_wrong_running_mean_of_standardised_data_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    planted(monkeypatch, lambda source: re.sub(r"0\.1173", "0.2173", source))
    model = nn.BatchNorm1d(96, momentum=0.1173).train()
    model.running_mean += 1.0  # type: ignore[operator, assignment]
    found = observe_model(model, (standardised(),))
    assert (place := first_bad(found)) is not None and found[place].node.startswith("copy_")


def overflowing() -> Tensor:
    torch.manual_seed(0)
    return (torch.randn(16, 64) * 200).half()


def halves(x: Tensor) -> Tensor:
    return nn.functional.layer_norm(x * 200.5, (64,)) * 1.0625


def test_where_eager_overflows_it_is_not_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not halves(overflowing()).isfinite().all()  # what this test is about
    assert of(observe_model(halves, (overflowing(),))) == []
    planted(monkeypatch, lambda source: source.replace("1.0625", "1.1875"))
    assert first_bad(observe_model(halves, (overflowing(),))) == 0


def test_a_kernel_is_held_against_float64_where_eager_is_infinite() -> None:
    exact = torch.tensor([7e4, 1.0, 2.0, 3.0], dtype=torch.float64)
    eager = exact.half()
    assert eager.isinf().tolist() == [True, False, False, False]
    overflowed, wide, wrong = (torch.tensor([first, 1.0, 2.0, 3.0]) for first in (inf, 7e4, 1e4))
    assert judge_buffer(overflowed, ReferenceValue(exact, eager), []).excess <= 1
    assert judge_buffer(wide, ReferenceValue(exact, eager), []).excess <= 1
    assert judge_buffer(wrong, ReferenceValue(exact, eager), []).excess > 1
    assert judge_buffer(torch.tensor([7e4, inf, 2.0, 3.0]), ReferenceValue(exact, eager), []).excess > 1


def others_of(function: Callable[[Tensor], Tensor], x: Tensor) -> tuple[ReferenceValue, Resample]:
    """What the function should give, and what it may as well give with other roundings."""
    gm = make_fx(function)(x)
    (returned,) = next(node for node in gm.graph.nodes if node.op == "output").all_input_nodes
    wanted = NodeState(returned)
    given = LaunchReferences(OrderedGraph(gm), [x], [[wanted]])
    return given.value(wanted), lambda times: [given.resampled(wanted, seed, times) for seed in range(3)]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.mean(0),
        lambda x: x.sum(0),
        lambda x: (x * 2).sum(0) / 7,
        lambda x: torch.var_mean(x, 0)[1],
        lambda x: (x + 100) - 100 - x,
        lambda x: (x.mean(0) * 0.1).unsqueeze(0).neg(),
    ],
)
def test_what_cancels_is_as_wrong_as_its_terms(function: Callable[[Tensor], Tensor]) -> None:
    reference, others = others_of(function, standardised())
    assert float(reference.exact.abs().mean()) < 1e-5  # of the result next to nothing is left
    assert judge_launch(reference.own.flip(-1), reference, others).excess <= 1
    assert judge_launch(reference.own + 1e-3, reference, others).excess > 1


@pytest.mark.parametrize(
    "function", [lambda x: x * 3 + 1, lambda x: (x * x).sum(0), lambda x: x.exp().mean(1), lambda x: torch.var(x, 0)]
)
def test_what_does_not_cancel_is_as_right_as_its_size(function: Callable[[Tensor], Tensor]) -> None:
    reference, others = others_of(function, standardised())
    assert judge_launch(reference.own, reference, others).excess <= 1
    assert judge_launch(reference.own * (1 + 3e-5), reference, others).excess > 1


def test_a_value_that_is_zero_is_judged_by_its_terms() -> None:
    exact, own = torch.zeros(8, dtype=torch.float64), torch.zeros(8)
    others = [torch.full((8,), 1e-7), torch.full((8,), -1e-7)]
    assert judge_launch(torch.full((8,), 1e-7), ReferenceValue(exact, own), lambda _: others).excess <= 1
    assert judge_launch(torch.full((8,), 1e-3), ReferenceValue(exact, own), lambda _: others).excess > 1


def test_in_a_run_that_passes_no_kernel_is_accused(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(x: Tensor) -> Tensor:
        return ((x @ x) * 1.0629).sin() @ x

    torch.manual_seed(0)
    x = torch.randn(16, 16)
    planted(monkeypatch, lambda source: source.replace("1.0629", "1.0639"))
    assert KernelDiff(program, x, per_kernel=True).compare().first_bad_kernel is not None
    loose = KernelDiff(program, x, per_kernel=True, atol=1e6).compare()
    assert loose.passed and loose.first_bad_kernel is None and of(loose.kernels) == []
    (harmless,) = [kernel for kernel in loose.kernels if kernel.harmless]
    text = summary(loose)
    assert "1 worse than its inputs and not accused: the outputs agree" in text and harmless.name in text
