"""Each launch is judged by what it was really given: its own error, whatever came before, and however small."""

import re
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch._inductor import select_algorithm
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.codecache import PyCodeCache

from idbg.engine.kerneldiff.kernels import launch_result
from idbg.engine.kerneldiff.kernels.observe import observing
from idbg.schema.diff import KernelError
from idbg.views import remarks
from tests.harness.observed_launches import first_bad, observe_model

Edit = Callable[[str], str]


def planted(monkeypatch: pytest.MonkeyPatch, edit: Edit) -> list[str]:
    """Every C++ kernel's source is edited on its way to the compiler; the list takes the sources that were changed."""
    original = AsyncCompile.cpp_pybinding
    changed: list[str] = []

    def cpp_pybinding(self: AsyncCompile, argtypes: list[str], source_code: str, **kwargs: object) -> object:
        if (edited := edit(source_code)) != source_code:
            changed.append(edited)
        return original(self, argtypes, edited, **kwargs)

    PyCodeCache.cache_clear()
    monkeypatch.setattr(AsyncCompile, "cpp_pybinding", cpp_pybinding)
    return changed


def bad(kernels: tuple[KernelError, ...]) -> list[int]:
    return [place for place, kernel in enumerate(kernels) if kernel.bad]


def chain(x: Tensor) -> Tensor:
    first = ((x @ x) * 1.0173).sin()
    second = ((first @ x) * 1.0273).cos()
    return (second @ x) * 1.0373


def test_an_error_that_is_passed_on_is_accumulated_and_not_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert planted(monkeypatch, lambda source: source.replace("1.0173", "1.5173")) == []
    torch.manual_seed(0)
    kernels = observe_model(chain, (torch.randn(32, 32),))
    guilty, *after = kernels[1:]
    assert bad(kernels) == [1] and guilty.isolated is not None and guilty.isolated > 1e-2
    assert guilty.isolated == pytest.approx(guilty.error)  # what came to it was right
    for kernel in after:
        assert kernel.isolated is not None and kernel.isolated < 1e-6 < 1e-2 < (kernel.error or 0)
        assert kernel.isolated_eager is not None and kernel.isolated_eager < 1e-6


def test_an_error_of_its_own_shows_in_what_came_wrong_already(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second is a thousandth of the first, which hides it."""

    def edit(source: str) -> str:
        return source.replace("1.0173", "1.5173").replace("1.0273", "1.0277")

    planted(monkeypatch, edit)
    torch.manual_seed(0)
    kernels = observe_model(chain, (torch.randn(32, 32),))
    assert bad(kernels) == [1, 3]
    assert (kernels[3].isolated or 0) < (kernels[3].error or 0) / 10


def test_one_wrong_argmax_of_6400_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(x: Tensor) -> Tensor:
        return (x * 1.0171).argmax(-1)

    def edit(source: str) -> str:
        return (
            re.sub(r"\}\s*$", "    out_ptr0[77] = (out_ptr0[77] + 1) % 16;\n}\n", source)
            if "1.0171" in source
            else source
        )

    torch.manual_seed(0)
    x = torch.randn(6400, 16)
    assert bad(observe_model(program, (x,))) == []
    changed = planted(monkeypatch, edit)
    kernels = observe_model(program, (x,))
    assert changed, "the kernel was not edited"
    assert bad(kernels) == [0] and kernels[0].node.startswith("argmax")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_an_argmax_that_rounding_turns_over_accuses_nobody(dtype: torch.dtype) -> None:
    """All of a row but one element are within two roundings of each other."""
    torch.manual_seed(0)
    x = (1 + torch.randint(0, 3, (6400, 16)) * torch.finfo(torch.float32).eps).to(dtype)
    kernels = observe_model(lambda x: ((x * 1.1).exp() * 0.3 + x.sum(-1, keepdim=True).sin()).argmax(-1), (x,))
    assert bad(kernels) == [] and kernels[-1].observed


def test_an_erf_that_is_3_percent_off_in_bfloat16_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.GELU()).bfloat16()
    x = torch.randn(32, 64, dtype=torch.bfloat16)
    assert bad(observe_model(model, (x,))) == []
    changed = planted(
        monkeypatch, lambda source: re.sub(r"= (std::erf\(\w+\)|\w+\.erf\(\))", r"= (\1) * decltype(\1)(1.03f)", source)
    )
    kernels = observe_model(model, (x,))
    assert changed, "the kernel was not edited"
    assert bad(kernels) == [1]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_gradients_of_convolutions_that_cancel_accuse_nobody(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1)]
    model = nn.Sequential(*layers, nn.BatchNorm2d(16), nn.Hardswish(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    kernels = observe_model(
        model.to(dtype), (torch.randn(8, 3, 16, 16, dtype=dtype),), loss=lambda out: out.float().square().mean()
    )
    assert bad(kernels) == []
    gradients = [kernel for kernel in kernels if kernel.part == "backward" and kernel.isolated is not None]
    assert gradients


# What a launch is given


class Cached(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(2, 16, 8))
        self.layer = nn.Linear(8, 8)

    def forward(self, x: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
        assert isinstance(self.cache, Tensor)
        self.cache[:, at] = self.layer(x)[:, None]
        kept = self.cache * 1.0471
        self.cache.mul_(0.9271)
        return (kept @ kept.transpose(1, 2)).softmax(-1), self.cache.sum(1) @ x.t()


def test_what_is_written_in_place_is_judged_before_and_after(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    inputs = torch.randn(2, 8), torch.tensor([3])
    clean = observe_model(Cached(), inputs)
    assert bad(clean) == [] and all(kernel.isolated is not None for kernel in clean if kernel.observed)
    assert planted(monkeypatch, lambda source: source.replace("0.9271", "0.9272")) == []
    kernels = observe_model(Cached(), inputs)
    assert len(bad(kernels)) == 2  # the sum computes it too, and does not read it
    assert all(kernels[place].isolated == pytest.approx(1.1e-4, rel=0.5) for place in bad(kernels))


def test_a_weight_that_is_overwritten_is_told_where_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wrapper only reads it, so there is no copy to tell."""

    def program(x: Tensor, w: Tensor) -> Tensor:
        return ((x @ x) * 1.0571).sin() @ w

    torch.manual_seed(0)
    x, w = torch.randn(16, 16), torch.randn(16, 16)
    torch._dynamo.reset()
    with observing() as observation:
        compiled = torch.compile(program)
        original = vars(select_algorithm.extern_kernels)["mm"]

        def mm(*args: Tensor, out: Tensor) -> Tensor:
            w[3, 3] += 1.0  # a kernel that writes where it should not
            return original(*args, out=out)

        monkeypatch.setattr(select_algorithm.extern_kernels, "mm", mm)
        compiled(x, w)
    kernels = observation.kernels
    assert first_bad(kernels) == 2 and "was overwritten before" in remarks.sentence(kernels[2].reason), kernels[2]


def test_every_output_of_a_launch_is_told_but_for_the_least_wrong_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(x: Tensor) -> tuple[Tensor, ...]:
        return tuple((x * (factor + 0.0671)).sin() for factor in range(6))

    (kernel,) = observe_model(program, (torch.randn(40),))
    assert len(kernel.outputs) == 6 and kernel.outputs_left_out == 0
    assert {output.node for output in kernel.outputs} <= {*kernel.nodes}
    for output in kernel.outputs:
        assert output.isolated == output.error and output.isolated_eager == output.eager_error and not output.bad
    monkeypatch.setattr(launch_result, "OUTPUTS_KEPT", 4)
    (again,) = observe_model(program, (torch.randn(40),))
    assert len(again.outputs) == 4 and again.outputs_left_out == 2
