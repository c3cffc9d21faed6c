"""A tensor without memory of its own (of a class that wraps others, fake, freed) is never read at its address."""

import os
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses import FakeTensorMode
from torch.masked import masked_tensor
from torch.testing._internal.two_tensor import TwoTensor

from idbg import KernelDiff, compare_tensors
from idbg.engine.kerneldiff.tensors import native
from idbg.engine.kerneldiff.tensors.compare import compare_sides, relative_rmse
from idbg.engine.kerneldiff.tensors.saved_outputs import digest
from idbg.views.remarks import tensor_note

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors", "ignore:.* is not implemented in")


@pytest.fixture(params=["torch", "compiled"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "enabled", request.param == "compiled")
    if request.param == "compiled" and not native.wait():
        pytest.skip(native.problem())


def freed() -> Tensor:
    value = torch.ones(5)
    value.untyped_storage().resize_(0)
    return value


def inside_of(transform: str) -> Tensor:
    met: list[Tensor] = []
    if transform == "vmap":
        torch.func.vmap(lambda x: (met.append(x), x)[1])(torch.ones(1, 5))
    else:
        torch.func.grad(lambda x: (met.append(x), x.sum())[1])(torch.ones(5))
    return met[0]


HOLLOW = {
    "two": (lambda: TwoTensor(torch.ones(5), torch.ones(5)), "a TwoTensor is not one tensor but a and b"),
    "masked": (lambda: masked_tensor(torch.ones(5), torch.ones(5).bool()), "not one tensor but to_tensor"),
    "fake": (lambda: FakeTensorMode().from_tensor(torch.ones(5)), "a FakeTensor has no values in memory"),
    "freed": (freed, "its memory was freed"),
    "vmap": (lambda: inside_of("vmap"), "torch.func"),
    "grad": (lambda: inside_of("grad"), "torch.func"),
    "functional": (lambda: torch._to_functional_tensor(torch.ones(5)), "its memory was freed"),
}


@pytest.mark.parametrize("name", HOLLOW)
def test_what_has_no_memory_is_a_finding_and_no_segfault(name: str):
    make, why = HOLLOW[name]
    hollow, dense = make(), torch.ones(5)
    for one, other in ((hollow, hollow), (hollow, dense), (dense, hollow)):
        found = compare_tensors(one, other)
        assert found.failed_by == ("type",) and why in tensor_note(found)
        assert compare_sides(one, other, dense.double()).failed_by == ("type",)
        assert relative_rmse(one, other) == torch.inf
    assert compare_sides(dense, dense, hollow).passed, "float64 has no such tensor"
    assert digest([hollow])


def test_zeros_without_memory_and_subclasses_with_their_own_are_read():
    zeros = torch._efficientzerotensor(5)
    assert compare_tensors(zeros, torch.zeros(5)).passed
    assert compare_tensors(torch.ones(5), zeros).mismatches == 5
    assert digest([zeros]) == digest([torch.zeros(5)])

    class Own(Tensor):
        pass

    own = torch.ones(5).as_subclass(Own)
    assert compare_tensors(own, torch.ones(5)).passed and not compare_tensors(own, torch.zeros(5)).passed
    assert compare_tensors(nn.Parameter(torch.ones(5)), nn.Buffer(torch.ones(5))).passed
    assert digest([torch.tensor([1 + 2j]).conj()]) == digest([torch.tensor([1 - 2j])])


@pytest.fixture
def mesh() -> Iterator[object]:
    pytest.importorskip("torch.distributed.tensor")
    import torch.distributed as dist

    if not dist.is_available():
        pytest.skip("torch was built without torch.distributed")
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # type: ignore[attr-defined]
    yield dist.device_mesh.init_device_mesh("cpu", (1,))
    dist.destroy_process_group()


def test_a_dtensor_is_compared_by_what_this_rank_holds(mesh):
    from torch.distributed.tensor import Shard, distribute_tensor

    one, other = (distribute_tensor(value, mesh, [Shard(0)]) for value in (torch.ones(4, 2), torch.zeros(4, 2)))
    assert compare_tensors(one, one).passed and compare_tensors(one, one).max_abs == 0
    assert compare_tensors(one, other).mismatches == 8
    assert digest([one]) == digest([torch.ones(4, 2)]) != digest([other])


def wrong(model: nn.Module) -> object:
    """A compiler that loses the second of the tensors that a TwoTensor wraps."""

    def call(*args: object) -> object:
        found = model(*args)
        return TwoTensor(found.a, torch.zeros_like(found.b))

    return call


@pytest.mark.parametrize("way", ["torch"], indirect=True)
def test_each_tensor_that_an_output_wraps_is_compared(way, monkeypatch: pytest.MonkeyPatch):
    layer = nn.Linear(8, 8, bias=False)
    layer.weight = nn.Parameter(TwoTensor(torch.randn(8, 8), torch.randn(8, 8)))
    given = KernelDiff(layer, (torch.randn(4, 8),), test="aot_eager", backward=True).compare()
    assert given.passed, given.summary()
    assert [diff.name for diff in given.outputs] == ["out.a", "out.b"]
    assert [diff.name for diff in given.gradients] == [
        f"grad({name}.{part})" for name in ("weight", "args[0]") for part in "ab"
    ]

    monkeypatch.setattr(torch, "compile", lambda model, **_: wrong(model))
    lost = KernelDiff(layer, (torch.randn(4, 8),), test="aot_eager").compare()
    assert [diff.name for diff in lost.outputs if not diff.passed] == ["out.b"]


@pytest.mark.parametrize("way", ["torch"], indirect=True)
def test_state_that_wraps_tensors_is_held_against_what_it_was(way):
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.steps = nn.Buffer(TwoTensor(torch.zeros(3), torch.zeros(3)))

        def forward(self, x: Tensor) -> Tensor:
            self.steps += 1
            return x * 2

    report = KernelDiff(Counts(), (torch.ones(3),), test="eager").compare()
    assert [diff.name for diff in report.outputs] == ["out", "steps.a (after)", "steps.b (after)"]
    assert report.passed, report.summary()


@pytest.mark.parametrize("way", ["torch"], indirect=True)
def test_a_masked_tensor_goes_through_a_comparison(way):
    x = masked_tensor(torch.randn(4), torch.tensor([True, False, True, True]))
    report = KernelDiff(lambda x: x.sin() * 2, (x,), test="eager").compare()
    assert all(diff.passed for diff in report.outputs), report.summary()
    assert [diff.name for diff in report.outputs] == ["out.to_tensor(0)", "out.get_mask()"]
