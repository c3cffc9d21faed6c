"""Custom ops that change their arguments, and users' own references, as the launches that they are."""

from collections.abc import Iterator
from functools import partial

import pytest
import torch
from torch import Tensor

import idbg
from idbg.engine.kerneldiff.kernels import user_reference
from idbg.engine.kerneldiff.observed_run import run_observed
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.program.load import Workload
from idbg.schema.errors import BadInput
from tests.harness.observed_launches import observe_model

WRONG = [0.0]  # what the op is off by


@torch.library.custom_op("idbg_user_kernels::scale_", mutates_args=("x",))
def scale_(x: Tensor, by: float) -> None:
    x.mul_(by).add_(WRONG[0])


@torch.library.custom_op("idbg_user_kernels::add_to", mutates_args=("out",))
def add_to(x: Tensor, out: Tensor) -> Tensor:
    out.add_(x)
    return x.sin()


@add_to.register_fake
def _(x: Tensor, out: Tensor) -> Tensor:
    return torch.empty_like(x)


def program(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    y = x * 2 + 1
    scale_(y, 1.5)
    z = torch.ones_like(y)
    w = add_to(y.cos(), z)
    return y.sum(0), (z @ z.mT).relu(), w + 1


@pytest.fixture(autouse=True)
def _no_references() -> Iterator[None]:
    yield
    user_reference._FUNCTIONS.clear()
    WRONG[0] = 0.0


def test_every_launch_of_a_program_with_ops_that_change_their_arguments_is_judged():
    torch.manual_seed(0)
    kernels = observe_model(program, (torch.randn(16, 16),))
    assert len(kernels) == 6
    for kernel in kernels:
        assert kernel.observed and kernel.isolated is not None and not kernel.bad, kernel
        assert not kernel.reason
    by_name = {kernel.name: kernel for kernel in kernels}
    assert by_name["torch.ops.idbg_user_kernels.scale_.default"].node == "add"
    assert {output.buffer for output in by_name["torch.ops.idbg_user_kernels.add_to.default"].outputs} == {
        "buf3",
        "buf5",
    }


@torch.library.custom_op("idbg_user_kernels::count", mutates_args=("into",))
def count(into: Tensor, x: Tensor) -> Tensor:
    into.add_(x.sum(0))
    return x - x.mean()


@count.register_fake
def _(into: Tensor, x: Tensor) -> Tensor:
    return torch.empty_like(x)


def test_what_an_op_returns_is_not_taken_for_the_input_that_it_writes_to():
    def counted(into: Tensor, x: Tensor) -> Tensor:
        return count(into, x.sin()).relu() + into

    kernels = observe_model(counted, (torch.zeros(5), torch.randn(6, 5)))
    assert all(kernel.observed for kernel in kernels)
    written = {output.buffer: output.node for output in kernels[1].outputs}
    assert written == {"buf1": "count_default", "arg1_1": "arg1_1"}


def test_an_op_is_held_against_the_reference_that_the_user_gives():
    WRONG[0] = 0.25

    @idbg.reference(scale_)
    def scaled(x: Tensor, by: float) -> None:
        x.mul_(by)

    torch.manual_seed(0)
    kernels = observe_model(program, (torch.randn(16, 16),))
    assert [kernel.name for kernel in kernels if kernel.bad] == ["torch.ops.idbg_user_kernels.scale_.default"]
    bad = next(kernel for kernel in kernels if kernel.bad)
    assert bad.diff is not None and bad.diff.max_abs == pytest.approx(0.25, rel=1e-3)


def test_a_reference_is_known_by_the_op_its_overload_and_its_name():
    def function(x: Tensor, by: float) -> None: ...

    packet = torch.ops.idbg_user_kernels.scale_
    for op in (scale_, packet, packet.default, "idbg_user_kernels::scale_"):
        user_reference._FUNCTIONS.clear()
        assert idbg.reference(op, function) is function
        assert {"idbg_user_kernels::scale_": function} == user_reference._FUNCTIONS


def test_a_reference_of_what_is_no_op_is_refused():
    with pytest.raises(BadInput, match="takes a Triton kernel or a custom op"):
        idbg.reference(print, print)


def test_a_reference_of_a_triton_op_is_refused_as_it_would_have_no_effect():
    @torch.library.triton_op("idbg_user_kernels::doubled", mutates_args=())
    def doubled(x: Tensor) -> Tensor:
        return x * 2

    packet = torch.ops.idbg_user_kernels.doubled
    for op in (doubled, packet, packet.default, "idbg_user_kernels::doubled"):
        with pytest.raises(BadInput, match="is a triton_op") as refused:
            idbg.reference(op, torch.clone)
        assert "@triton.jit" in str(refused.value.hint)
    assert user_reference._FUNCTIONS == {}


def test_an_op_that_changes_its_arguments_is_replayed_alone():
    from idbg.engine.kerneldiff.kernel_attribution.isolated import judge_isolated
    from idbg.engine.kerneldiff.kernel_attribution.plan import plan_launch
    from idbg.engine.kerneldiff.kernel_attribution.recorder import LaunchRecorder
    from idbg.engine.kerneldiff.kernel_attribution.replay import replay

    torch.manual_seed(0)
    x = torch.randn(16, 16)
    observed = run_observed(Subject(Workload(program, (x,), {})), partial(torch.compile))
    assert observed.record.call is not None
    at = next(at for at, kernel in enumerate(observed.kernels) if "scale_" in kernel.name and "ops" in kernel.name)
    watch, number = observed.record.launches[at]
    plan = plan_launch(watch, number)
    assert list(plan.sources) == ["add"]  # the buffer that it was given, and not what that was computed from
    recorder = LaunchRecorder(plan)
    with recorder.recording(), torch.no_grad():
        observed.record.call(x)
    (alone,), reasons = judge_isolated(plan, recorder.recorded, replay(plan, recorder.recorded))
    assert not reasons and not alone.bad and alone.run.excess <= 1
