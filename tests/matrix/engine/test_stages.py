"""Stages of a compiled frame, held against each other in float64: real passes and decompositions made wrong."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
import torch
import torch._functorch.config
import torch._inductor.decomposition as inductor_decompositions
from torch import Tensor, nn
from torch._inductor.custom_graph_pass import CustomGraphPass
from torch.fx import Graph, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional

from idbg import KernelDiff
from idbg.engine.compat import stages
from idbg.engine.kerneldiff.stages import table
from idbg.engine.kerneldiff.stages.chain import FrameInputs, Stage
from idbg.engine.kerneldiff.stages.fingerprints import fingerprint
from idbg.reports.diff import summary
from idbg.schema.attribution import STAGES, StageError
from idbg.schema.diff import DiffReport
from idbg.schema.remarks import Remark

pytestmark = [pytest.mark.usefixtures("seeded"), pytest.mark.slow]
aten = torch.ops.aten


class Net(nn.Module):
    """A layer of each kind that is decomposed, with random numbers, state that is written to, and a sum."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(16, 16), nn.BatchNorm1d(16)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.norm(self.linear(x))
        hidden = functional.gelu(hidden)  # guilty
        return functional.dropout(hidden, 0.3) - x


LINE = next(at for at, line in enumerate(Path(__file__).read_text().splitlines(), 1) if line.endswith("# guilty"))


def compared(model: nn.Module | Callable[..., object], *inputs: Tensor, **asked: Any) -> DiffReport:
    return KernelDiff(model, inputs, per_kernel=True, **asked).compare()


def trained(**options: Any) -> DiffReport:
    return compared(Net(), torch.randn(32, 16), loss=lambda out: out.square().sum(), options=options)


def guilty(report: DiffReport) -> StageError:
    assert report.verdict == "failed"
    assert report.first_wrong_stage is not None
    assert report.first_bad_kernel is None, "the kernels compute what they were given"
    return report.first_wrong_stage


def halves(graph: Graph) -> None:
    """One constant of GELU is 0.5003."""
    node = next(each for each in graph.nodes if each.target is aten.mul.Tensor and each.args[1] == 0.5)
    node.args = (node.args[0], 0.5003)


@contextmanager
def decomposed(op: object, by: Callable[..., object]) -> Iterator[None]:
    """While it lasts, an op is decomposed otherwise: torch's cache of whole programs, which does not look, is off."""
    table: dict[Any, Any] = inductor_decompositions.decompositions
    own = table[op]
    table[op] = by
    inductor_decompositions.fast_random_decomps.cache_clear()
    try:
        with torch._functorch.config.patch(enable_autograd_cache=False):
            yield
    finally:
        table[op] = own
        inductor_decompositions.fast_random_decomps.cache_clear()


def test_a_clean_training_step_has_no_bad_stage() -> None:
    report = trained()
    assert report.verdict == "passed" and report.first_wrong_stage is None
    assert [row.stage for row in report.stages] == list(STAGES)
    last = report.stages[-2]
    assert last.judged and last.error is not None and last.error < 1e-7
    assert all(row.reason for row in report.stages if not row.judged)


@pytest.mark.parametrize(
    ("option", "stage"),
    [
        ("joint_custom_pre_pass", "joint_passes"),
        ("joint_custom_post_pass", "joint_passes"),
        ("post_grad_custom_pre_pass", "post_grad"),
        ("post_grad_custom_post_pass", "post_grad"),
    ],
)
def test_a_pass_is_named_with_its_line_and_graphs(option: str, stage: str) -> None:
    row = guilty(trained(**{option: halves}))
    assert (row.stage, row.line) == (stage, LINE)
    assert row.made_by is not None
    assert (row.made_by.kind, row.made_by.name) == ("pass", option)
    assert row.made_by.file == __file__ and row.made_by.line == halves.__code__.co_firstlineno
    assert "+" in row.made_by.diff and "0.5003" in row.made_by.diff
    assert row.error == pytest.approx(6e-4, rel=0.5)


def test_a_pass_on_dynamos_graph_is_named() -> None:
    def tanh(graph: Graph) -> None:
        node = next(each for each in graph.nodes if "gelu" in str(each.target))
        node.kwargs = {"approximate": "tanh"}

    row = guilty(trained(pre_grad_custom_pass=tanh))
    assert (row.stage, row.above, row.line) == ("pre_grad", "hidden_1", LINE)
    assert row.made_by is not None and row.made_by.name == "pre_grad_custom_pass"


def test_a_decomposition_is_named_with_where_it_is_registered() -> None:
    def gelu(x: Tensor, approximate: str = "none") -> Tensor:
        return x * 0.5 * (1 + torch.erf(x * 0.7072))

    with decomposed(aten.gelu.default, gelu):
        row = guilty(trained())
    assert (row.stage, row.above, row.line) == ("joint", "hidden_1", LINE)
    assert row.made_by is not None and row.made_by.proven
    assert (row.made_by.kind, row.made_by.name) == ("decomposition", "aten.gelu.default")
    assert (row.made_by.file, row.made_by.line) == (__file__, gelu.__code__.co_firstlineno)


def test_a_decomposition_of_the_backward_that_passes_on_another_value_is_named() -> None:
    own = inductor_decompositions.decompositions[aten.gelu_backward.default]

    def backward(gradient: Tensor, x: Tensor, approximate: str = "none") -> Tensor:
        return own(gradient, x, approximate=approximate) * 1.001

    with decomposed(aten.gelu_backward.default, backward):
        row = guilty(trained())
    assert (row.stage, row.line) == ("joint", LINE)
    assert row.made_by is not None and row.made_by.name == "aten.gelu_backward.default" and row.made_by.proven


def two(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    a = torch.sin(x) - torch.cos(y)
    return a.exp(), (a * 2).tanh()


def _output(graph: Graph) -> Node:
    return next(node for node in graph.nodes if node.op == "output")


def swapped(graph: Graph) -> None:
    first, second, *rest = cast("tuple[Node, ...]", _output(graph).args[0])
    _output(graph).args = ((second, first, *rest),)


def turned(graph: Graph) -> None:
    node = next(each for each in graph.nodes if each.target is aten.sub.Tensor)
    node.args = (node.args[1], node.args[0])


@pytest.mark.parametrize(("dtype", "dynamic"), [(torch.float32, False), (torch.bfloat16, True)])
def test_swapped_outputs_and_turned_operands_are_named(dtype: torch.dtype, dynamic: bool) -> None:
    inputs = [torch.randn(8, 8, dtype=dtype) for _ in range(2)]
    row = guilty(compared(two, *inputs, dynamic=dynamic, options={"post_grad_custom_post_pass": swapped}))
    assert (row.stage, row.node) == ("post_grad", "tanh")
    row = guilty(compared(two, *inputs, dynamic=dynamic, options={"joint_custom_pre_pass": turned}))
    assert row.stage == "joint_passes" and row.node.startswith("sub")


def test_a_lost_mutation_is_named() -> None:
    counts = torch.zeros(8)

    def counting(x: Tensor) -> Tensor:
        counts.add_(x)
        return counts * 2

    def dropped(graph: Graph) -> None:
        graph.erase_node(next(node for node in graph.nodes if node.target is aten.copy_.default))

    row = guilty(compared(counting, torch.randn(8), options={"post_grad_custom_post_pass": dropped}))
    assert (row.stage, row.above) == ("post_grad", "add")
    assert row.made_by is not None and row.made_by.name == "post_grad_custom_post_pass"


def test_code_from_a_cache_that_is_stale_is_named() -> None:
    class Turning(CustomGraphPass):
        """Its uuid stays what it is, whatever it does."""

        does = True

        def __call__(self, graph: Graph) -> None:
            if self.does:
                turned(graph)

        def uuid(self) -> str:
            return "idbg: a pass that lies"

    lying, inputs = Turning(), [torch.randn(8, 8) for _ in range(2)]
    assert guilty(compared(two, *inputs, options={"post_grad_custom_post_pass": lying})).stage == "post_grad"
    lying.does = False
    row = guilty(compared(two, *inputs, options={"post_grad_custom_post_pass": lying}))
    assert row.made_by is not None and (row.stage, row.made_by.kind) == ("kernels", "cache")


def test_random_numbers_that_every_stage_draws_alike_make_none_bad() -> None:
    report = compared(Net(), torch.randn(32, 16), backward=True)
    last = report.stages[-2]
    assert report.first_wrong_stage is None and last.judged and last.stage == "post_grad"


def test_fingerprints_tell_values_apart_and_not_their_shapes() -> None:
    value = torch.randn(40, 30, dtype=torch.float64)
    made = fingerprint(value)
    assert made is not None

    def same(other: Tensor) -> bool:
        print_ = fingerprint(other)
        return print_ is not None and made.same(print_)

    assert same(value.reshape(30, 40)) and same(value * (1 + 1e-13))
    wrong = value.clone()
    wrong[3, 4] += 1e-3
    assert not same(wrong) and not same(value.flip(0)) and not same(value * 1.0001)
    lost = value.clone()
    lost[0, 0] = torch.nan
    assert not same(lost)


def test_running_a_stage_changes_neither_inputs_nor_generators() -> None:
    def model(x: Tensor, counts: Tensor) -> Tensor:
        counts.add_(1)
        return functional.dropout(x, 0.5) * counts

    fake = [torch.randn(4), torch.ones(4)]
    with torch.no_grad():
        gm = stages.traced(torch.fx.symbolic_trace(_tupled(model)), fake, {}).gm
    inputs = [torch.randn(4), torch.zeros(4)]
    kept, state = [value.clone() for value in inputs], torch.get_rng_state()
    result = Stage("dynamo", {"": gm}).run(FrameInputs(tuple(inputs), outputs=1))
    assert all(torch.equal(one, other) for one, other in zip(inputs, kept, strict=True))
    assert torch.equal(torch.get_rng_state(), state)
    (after,) = result.after.values()
    assert torch.equal(after, torch.ones(4, dtype=torch.float64))


def _tupled(model: Callable[..., Tensor]) -> nn.Module:
    class Tupled(nn.Module):
        def forward(self, x: Tensor, counts: Tensor) -> tuple[Tensor]:
            return (model(x, counts),)

    return Tupled()


def test_a_stage_holds_no_second_copy_of_the_weights() -> None:
    """Each copy in float64 is gone once its op is done: at most a few layers' are alive at once."""

    def model(x: Tensor, *weights: Tensor) -> Tensor:
        for weight in weights:
            x = (x @ weight).tanh()
        return x

    weights = [torch.randn(64, 64) for _ in range(20)]
    gm = make_fx(lambda *inputs: (model(*inputs),))(torch.randn(2, 64), *weights)
    alive: list[int] = []

    def count(*_: object) -> None:
        copies = [one for one in gc.get_objects() if type(one) is Tensor and one.shape == (64, 64)]
        alive.append(sum(one.dtype == torch.float64 for one in copies))

    Stage("dynamo", {"": gm}).run(FrameInputs((torch.randn(2, 64), *weights), outputs=1), on_value=count)
    assert max(alive) <= 2


def test_a_node_whose_value_is_in_another_shape_above_is_named() -> None:
    """A statistic that is written to a buffer: above it has the buffer's shape, in the pass's graph a dim more."""

    def moved(graph: Graph) -> None:
        products = (each for each in graph.nodes if each.target is aten.mul.Tensor)
        node = next(each for each in products if isinstance(each.args[1], float))
        node.args = (node.args[0], cast("float", node.args[1]) * 1.01)

    row = guilty(trained(joint_custom_post_pass=moved))
    assert row.stage == "joint_passes" and row.node and row.line and not row.reason
    assert row.made_by is not None and row.made_by.name == "joint_custom_post_pass"


def renamed(graph: Graph) -> None:
    """Every result is computed by a node of another name."""
    for node in _output(graph).all_input_nodes:
        if node.op == "call_function":
            with graph.inserting_before(node):
                other = graph.create_node("call_function", node.target, node.args, node.kwargs, name="renamed")
            other.meta.update(node.meta)
            node.replace_all_uses_with(other)
            graph.erase_node(node)


def test_what_a_pass_has_named_anew_is_still_what_the_backward_takes() -> None:
    report = trained(post_grad_custom_post_pass=renamed)
    row = next(each for each in report.stages if each.stage == "post_grad")
    assert report.passed and row.judged and not row.bad, summary(report)


@pytest.fixture
def _narrow() -> Iterator[None]:
    """An op that takes float32 alone."""
    with torch.library._scoped_library("idbg_narrow", "DEF") as library:
        library.define("wavy(Tensor x) -> Tensor")

        def only_float32(x: Tensor) -> Tensor:
            if x.dtype != torch.float32:
                raise RuntimeError(f"not implemented for {x.dtype}")
            return x.sin()

        library.impl("wavy", only_float32, "CPU")
        library.impl("wavy", torch.empty_like, "Meta")
        yield


def doubled(graph: Graph) -> None:
    for node in list(graph.nodes):
        if node.op == "call_function" and node.target is aten.mul.Tensor:
            node.args = (node.args[0], 2 * cast("float", node.args[1]))


@pytest.mark.usefixtures("_narrow")
def test_an_op_without_float64_runs_in_its_own_dtype_and_is_judged_with_that() -> None:
    def model(x: Tensor) -> Tensor:
        return torch.ops.idbg_narrow.wavy(x * 1.5) + x

    right = compared(model, torch.randn(32, 16))
    judged = {each.stage: each for each in right.stages if each.judged and each.stage != "kernels"}
    assert right.passed and {"dynamo", "post_grad"} <= set(judged)
    assert all(each.reason == (Remark("narrow", "idbg_narrow::wavy", "float32"),) for each in judged.values())
    assert "wavy has no float64" in " ".join(summary(right).split())
    wrong = compared(model, torch.randn(32, 16), options={"post_grad_custom_post_pass": doubled})
    assert guilty(wrong).stage == "post_grad" and guilty(wrong).node.startswith("mul")


class Broken(nn.Module):
    """Two frames, both called where ops are cast."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.first(x).relu()
        torch._dynamo.graph_break()
        return self.second(hidden).sin()


class Cast(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.broken = Broken()

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return cast("Tensor", self.broken(x))


def test_a_frame_is_traced_as_it_was_called_where_ops_are_cast(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[StageError] = []
    judged = table._Frame.judged

    def watched(frame: Any, **asked: Any) -> tuple[StageError, ...]:
        seen.extend(rows := judged(frame, **asked))
        return rows

    monkeypatch.setattr(table._Frame, "judged", watched)
    assert compared(Cast(), torch.randn(4, 16), backward=True).passed
    dynamo = [row for row in seen if row.stage == "dynamo"]
    assert len(dynamo) == 2 and all(row.judged for row in dynamo), dynamo
