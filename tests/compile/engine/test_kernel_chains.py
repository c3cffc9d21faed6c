"""Nodes that are computed in more than one launch, and wrappers that reuse memory which is still needed."""

import re
from types import SimpleNamespace
from typing import cast

import pytest
import torch
from torch import Tensor, nn
from torch._inductor.codecache import PyCodeCache

from idbg import KernelDiff
from idbg.engine.instrument.wrapper_lines import Launch, Point, Wrapper
from idbg.engine.kerneldiff.kernels.buffers import NodeBuffer
from idbg.engine.kerneldiff.kernels.chains import completed_by
from idbg.engine.kerneldiff.kernels.launch_result import BufferResult, LaunchResult
from idbg.engine.kerneldiff.kernels.live import LiveMemory, Overwrite
from idbg.engine.kerneldiff.kernels.verdict import BufferVerdict
from idbg.engine.kerneldiff.observed_run import run_observed
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.tensors.allowance import Size
from idbg.engine.program.load import Workload
from idbg.views import remarks
from tests.harness.observed_launches import observe_model


def wrapper(*launches: tuple[str, str, str]) -> Wrapper:
    """Launches as (what it writes, what it reads, the node that it computes)."""
    made = Wrapper(cast("object", None))  # type: ignore[arg-type]
    for number, (writes, takes, node) in enumerate(launches):
        made.launches.append(Launch(f"k{number}", "", number, (node,), tuple(takes.split())))
        made.points.append(Point(number, (writes,)))
    return made


def judged(node: str) -> LaunchResult:
    return LaunchResult(outputs=[BufferResult(NodeBuffer("buf", node), BufferVerdict(Size(), Size(), 0.5))], ran=True)


def test_steps_are_judged_with_the_launch_that_completes_their_node():
    chain = wrapper(("a", "x", "conv"), ("b", "a", "conv"), ("c", "b", "conv"))
    found = completed_by(chain, [LaunchResult(ran=True), LaunchResult(ran=True), judged("conv")])
    assert {number: last for number, (last, _) in found.items()} == {0: 2, 1: 2}


def test_a_chain_may_end_in_a_node_that_the_first_step_knows_nothing_of():
    """The layout copy, the convolution without its bias, and a group norm that adds the bias as it reads it."""
    chain = wrapper(("a", "x", "conv"), ("b", "a", "conv"), ("c", "b", "norm"))
    chain.launches[2] = Launch("k2", "", 2, ("norm", "conv"), ("b",))
    found = completed_by(chain, [LaunchResult(ran=True), LaunchResult(ran=True), judged("norm")])
    assert {number: last for number, (last, _) in found.items()} == {0: 2, 1: 2}


def test_a_launch_is_not_judged_with_one_that_computes_another_node_or_reads_something_else():
    other_node = wrapper(("a", "x", "conv"), ("b", "a", "relu"))
    assert completed_by(other_node, [LaunchResult(ran=True), judged("relu")]) == {}
    not_read = wrapper(("a", "x", "conv"), ("b", "x", "conv"))
    assert completed_by(not_read, [LaunchResult(ran=True), judged("conv")]) == {}
    written_over = wrapper(("a", "x", "conv"), ("a", "x", "relu"), ("b", "a", "conv"))
    assert 0 not in completed_by(written_over, [LaunchResult(ran=True), judged("relu"), judged("conv")])
    did_not_run = wrapper(("a", "x", "conv"), ("b", "a", "conv"))
    assert completed_by(did_not_run, [LaunchResult(), judged("conv")]) == {}


def test_the_layout_copies_of_a_convolution_are_judged_with_it():
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.SiLU(), nn.Conv2d(8, 3, 1)).eval()
    kernels = observe_model(layers, (torch.randn(1, 3, 8, 8),))
    assert kernels and all(kernel.isolated is not None and not kernel.bad for kernel in kernels), kernels
    steps = [kernel for kernel in kernels if kernel.reason]
    assert steps and all("it computes a step of convolution" in remarks.sentence(kernel.reason) for kernel in steps)


@pytest.fixture
def reusing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wrapper gives its first buffer the memory of the graph's input."""
    original = PyCodeCache.write.__func__  # type: ignore[attr-defined]

    def write(cls: type[PyCodeCache], /, source_code: str, *args: object, **kwargs: object) -> object:
        planted = re.sub(r"buf0 = empty_strided_cpu\(.*\)", "buf0 = arg0_1", source_code)
        return original(cls, planted, *args, **kwargs)

    PyCodeCache.cache_clear()
    monkeypatch.setattr(PyCodeCache, "write", classmethod(write))


@pytest.mark.usefixtures("reusing")
def test_where_memory_that_is_still_needed_is_reused_the_wrapper_is_to_blame():
    def program(x: Tensor) -> tuple[Tensor, Tensor]:
        y = (x * 1.5).sin()
        return (y @ y).cos() + x, y.mT @ y

    torch.manual_seed(0)
    with torch._inductor.config.patch(fx_graph_cache=False):
        report = KernelDiff(model=program, inputs=(torch.randn(16, 16),), per_kernel=True).compare()
    assert report.verdict == "failed"
    bad = [kernel for kernel in report.kernels if kernel.bad]
    assert [kernel.buffer for kernel in bad] == ["buf0"]  # and not the kernel that reads what was overwritten
    assert "gives buf0 the memory of arg0_1, which" in remarks.sentence(bad[0].reason)
    maker = report.stages[-1].made_by
    assert (
        maker is not None
        and maker.kind == "wrapper"
        and "reads after it was overwritten" in remarks.sentence(maker.proven)
    )


@pytest.mark.parametrize("share", ["0.1", "0.15"])
def test_what_dropout_leaves_is_judged_by_the_mask_that_it_drew(share: str, monkeypatch: pytest.MonkeyPatch):
    original = PyCodeCache.write.__func__  # type: ignore[attr-defined]

    def write(cls: type[PyCodeCache], /, source_code: str, *args: object, **kwargs: object) -> object:
        return original(
            cls, re.sub(r"(native_dropout.default\(\w+, )0.1", rf"\g<1>{share}", source_code), *args, **kwargs
        )

    PyCodeCache.cache_clear()
    monkeypatch.setattr(PyCodeCache, "write", classmethod(write))
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 16), nn.Dropout(0.1))
    with torch._inductor.config.patch(fx_graph_cache=False):
        subject = Subject(Workload(model, (torch.randn(8, 16),), {}))
        observed = run_observed(subject, torch.compile, backward=True)
    (dropout,) = [kernel for kernel in observed.kernels if "native_dropout.default" in kernel.name]
    assert dropout.isolated is not None and dropout.bad == (share != "0.1"), dropout


def live(graph_part: str, reads: str = "", *, bases: dict[str, str]) -> list[Overwrite]:
    """What LiveMemory finds of `buf0 = sin(x); buf1 = mm(buf0); buf2 = cos(reads)` if buf1 changes what it is based on;
    without `reads` there is no third launch.
    """
    third = [("buf2", reads, "cos")] if reads else []
    made = wrapper(("buf0", "x", "sin"), ("buf1", "buf0", "mm"), *third)
    made.bases.update(bases)
    made.writes = {f"buf{at}": [at] for at in range(len(made.launches))}
    gm = torch.fx.symbolic_trace(lambda x: x + 1)
    memory = LiveMemory(SimpleNamespace(gm=gm, inputs=("x",), buffers=(), part=graph_part), made)  # type: ignore[arg-type]
    values = {name: torch.full((4,), torch.nan) for name in ("x", "buf0", "buf2")}
    values["buf1"] = values[next(iter(bases.values()), "buf0")]
    memory.hold({"x": values["x"]})
    found: list[Overwrite] = []
    for at in range(len(made.launches)):
        if at == 1 and bases:
            values["buf1"][2] = 1.0
        memory.hold({f"buf{at}": values[f"buf{at}"]}, at)
        found += memory.overwritten(at)
    return found


@pytest.mark.parametrize("part", ["inference", "backward"])
def test_memory_that_a_later_launch_reads_may_not_be_reused(part: str):
    (one,) = live(part, "buf0", bases={"buf1": "buf0"})
    assert (one.name, one.by, one.reader) == ("buf0", "buf1", 2)
    (one,) = live(part, "x", bases={"buf1": "x"})
    assert (one.name, one.by, one.reader) == ("x", "buf1", 2)


def test_memory_that_is_read_later_by_another_name_alone_may_be_reused():
    assert live("inference", "buf1", bases={"buf1": "buf0"}) == []
    assert live("inference", "buf0", bases={}) == []  # NaN is equal to itself
    assert live("backward", bases={"buf1": "x"}) == []
    assert [(one.name, one.reader) for one in live("inference", bases={"buf1": "x"})] == [("x", None)]


def test_an_op_that_writes_to_its_argument_is_to_blame_and_not_what_reads_it():
    @torch.library.custom_op("chains::spoils", mutates_args=())
    def spoils(x: Tensor) -> Tensor:
        x.data.mul_(2)
        return x.clone()

    @spoils.register_fake
    def _(x: Tensor) -> Tensor:
        return torch.empty_like(x)

    def program(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        y, z = x @ w, (w @ x).sin()
        return (spoils(y) @ w).cos() + y.sin(), (spoils(z) @ w + z).cos()  # of z there is a second buffer

    torch.manual_seed(0)
    kernels = observe_model(program, (torch.randn(8, 8), torch.randn(8, 8)))
    (bad,) = [kernel for kernel in kernels if kernel.bad]
    assert bad.name == "torch.ops.chains.spoils.default" and bad.node == "spoils"
    assert "it writes to its argument buf0, which it should only read" in remarks.sentence(bad.reason)
