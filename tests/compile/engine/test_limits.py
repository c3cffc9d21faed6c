"""What the README says that a comparison does not see, and what it does see beside it: both as it says."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from idbg import KernelDiff
from idbg.engine.kerneldiff.tensors.compare import compare_sides

Spoil = Callable[[Tensor], Tensor]


def found(model: Callable[..., Any], x: Tensor, spoil: Spoil, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a compiler that spoils the model's output fails."""
    monkeypatch.setattr(torch, "compile", lambda given, **_: lambda x: spoil(given(x).clone()))
    report = KernelDiff(model, (x,), test="aot_eager").compare()
    return any(not each.passed for each in report.outputs)


def last_column(share: float) -> Spoil:
    def spoil(out: Tensor) -> Tensor:
        out[..., -1] *= 1 + share
        return out

    return spoil


@pytest.mark.parametrize(
    ("spoil", "is_found"),
    [
        (last_column(0.03), False),
        (last_column(0.05), True),
        (lambda out: out * 1.01, False),
        (lambda out: out * 1.02, True),
    ],
    ids=["a column by 3 %", "a column by 5 %", "all by 1 %", "all by 2 %"],
)
def test_in_bfloat16_rounding_is_nearly_a_hundredth(
    spoil: Spoil, is_found: bool, monkeypatch: pytest.MonkeyPatch, seeded: None
) -> None:
    x, layer = torch.randn(64, 128).bfloat16(), nn.Linear(128, 96).bfloat16()
    assert found(layer, x, spoil, monkeypatch) is is_found


@pytest.mark.parametrize(
    ("times", "by", "is_found"), [(1e4, 1.3, True), (1e5, 1.3, False), (1e6, 0, True), (1e7, 0, False)]
)
def test_small_values_beside_large_ones(
    times: float, by: float, is_found: bool, monkeypatch: pytest.MonkeyPatch, seeded: None
) -> None:
    x, weight = torch.randn(64, 128), torch.randn(128, 128)

    def both(x: Tensor) -> Tensor:
        return torch.cat([x @ weight * times, x @ weight], -1)

    def spoil(out: Tensor) -> Tensor:
        out[:, 128:] *= by
        return out

    assert found(both, x, spoil, monkeypatch) is is_found


def test_a_loss_that_is_one_percent_off_fails_where_eagers_is_near(
    monkeypatch: pytest.MonkeyPatch, seeded: None
) -> None:
    layer, x = nn.Linear(128, 96), torch.randn(64, 128)

    def loss(x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return layer(x).float().square().mean()

    assert found(loss, x, lambda out: out * 1.012, monkeypatch)
    assert not found(loss, x, lambda out: out, monkeypatch)
    true = torch.ones((), dtype=torch.float64)
    eager, test = ((true * by).float() for by in (1.0003, 1.012))
    assert compare_sides(eager, test, true).passed, "the README says that this passes"
    assert not compare_sides((true * 1.0001).float(), test, true).passed
