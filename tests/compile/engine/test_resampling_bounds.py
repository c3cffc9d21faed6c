"""What may a second look excuse at a tensor that failed by a little? Each bound by itself, of tensors made for it."""

import importlib
from collections.abc import Iterable
from typing import Any

import pytest
import torch
from torch import Tensor

from idbg.engine.kerneldiff.kernels.values import ReferenceValue
from idbg.engine.kerneldiff.kernels.verdict import judge_launch
from idbg.engine.kerneldiff.sides.resampling import Samples, judge_samples, not_computed
from idbg.engine.kerneldiff.tensors.compare import compare_sides
from idbg.schema.diff import K, TensorDiff
from tests.harness.without_constant import ROOT, Row, rows


def normal(seed: int, size: float = 1.0, count: int = 4096) -> Tensor:
    """float64, of this RMS."""
    return size * torch.randn(count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def again(exact: Tensor, eager: Tensor, test: Tensor, samples: Iterable[Tensor]) -> tuple[TensorDiff, TensorDiff]:
    """The verdict on errors of eager's, the test's and each sample's, in float32, and that of the second look."""
    one, other, *runs = ((exact + each).float() for each in (eager, test, *samples))
    first = compare_sides(one, other, exact)
    sides = ({first.name: one}, {first.name: other}, {first.name: exact})
    return first, judge_samples(first, sides, Samples(tuple({first.name: run} for run in runs)), None, K)


def noises(size: float) -> list[Tensor]:
    return [normal(seed, size) for seed in (11, 12, 13)]


@pytest.mark.parametrize(("eagers", "passes"), [(3e-12, True), (1e-13, False)])
def test_a_sum_that_cancels_may_not_be_hundreds_of_times_as_far_off_as_eagers(eagers: float, passes: bool) -> None:
    first, second = again(normal(0, 1e-9), normal(1, eagers), normal(2, 2.9e-10), noises(1e-10))
    assert not first.passed and second.passed is passes


@pytest.mark.parametrize(("noise", "passes"), [(1.2e-6, True), (2.4e-7, False)])
def test_noise_below_what_is_allowed_anyway_is_no_cancellation(noise: float, passes: bool) -> None:
    """The values are of size 1: nothing has cancelled."""
    first, second = again(normal(0), normal(1, 2e-8), normal(2, 7.5e-7), noises(noise))
    assert not first.passed and second.passed is passes


@pytest.mark.parametrize(("offset", "passes"), [(0.0, True), (1.0, False)])
def test_samples_that_agree_with_each_other_and_not_with_eager_excuse_nothing(offset: float, passes: bool) -> None:
    """What they have in common is no rounding: they ran something else."""
    exact = normal(0, 1e-9)
    apart = offset * normal(3, 3e-10)
    size = 2e-10 if not offset else 1e-13
    first, second = again(exact, normal(1, 4e-12), normal(2, 3.5e-10), [apart + each for each in noises(size)])
    assert not first.passed and second.passed is passes


def test_three_zeros_of_eight_may_be_luck() -> None:
    exact = torch.linspace(1, 2, 8, dtype=torch.float64) * 1e-9
    own = [(exact * (1 + 0.5 * at)).float() for at in (-1, 1, 2)]
    for count, lost in ((3, False), (4, True)):
        test = own[0].clone()
        test[:count] = 0
        assert not_computed(own[2], test, exact, own, None) is lost


@pytest.mark.parametrize(("eagers", "passes"), [(2e-4, True), (5e-5, False)])
def test_a_block_that_eager_has_not_either_is_not_lost(eagers: float, passes: bool) -> None:
    """A row of 1e-3 beside rows of 1, all noisy: eager is 20 % or 5 % off there, and the test seven times the row."""
    exact, own, other = (normal(seed, size, 96 * 64).reshape(96, 64) for seed, size in ((0, 1.0), (1, 1e-3), (2, 1e-3)))
    exact[7], own[7], other[7] = normal(3, 1e-3, 64), normal(4, eagers, 64), normal(5, 7e-3, 64)
    assert compare_sides((exact + own).float(), (exact + other).float(), exact).passed is passes


def judged(value: Tensor, exact: Tensor, own: Tensor, others: Any, *, steps: bool = False) -> float:
    return judge_launch(value, ReferenceValue(exact, own), others, steps=steps).excess


def test_an_integer_that_a_few_roundings_turn_over_is_right() -> None:
    exact = torch.arange(64)
    value = exact.clone()
    value[5] = 9
    assert judged(value, exact, exact, lambda times: [value if times >= 4 else exact]) == 0
    assert judged(value, exact, exact, lambda times: [exact]) > 1


def test_an_element_on_the_other_side_of_a_step_excuses_no_other() -> None:
    exact = torch.ones(1000, dtype=torch.float64)
    noise = [normal(seed, 1e-7, 1000) for seed in (1, 2, 3)]
    noise[0][0] = 1.0  # it fell on the other side
    value = exact.float()
    value[0], value[5] = 2.0, 1.5
    others = [(exact + each).float() for each in noise]
    assert judged(value, exact, exact.float(), lambda _: others, steps=True) > 1
    value[5] = 1.0
    assert judged(value, exact, exact.float(), lambda _: others, steps=True) <= 1


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.name)
def test_the_page_of_the_judge_has_each_constant_as_it_is_and_a_test_of_it(row: Row) -> None:
    """That the test fails without it is tried by `python -m tests.harness.without_constant`."""
    assert getattr(importlib.import_module(row.module), row.name) == row.value
    assert row.tests
    for file, test in row.tests:
        assert f"def {test}(" in (ROOT / f"tests/{file}.py").read_text()
