"""Is nothing accused that computes what it should, and is an op named that writes to what it does not declare?"""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._higher_order_ops import while_loop
from torch.fx import Graph, GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from idbg import KernelDiff
from idbg.engine.kerneldiff.float64.rounding import PerturbedRounding
from idbg.engine.kerneldiff.float64.undeclared_writes import WithoutUndeclaredWrites
from idbg.engine.kerneldiff.stages.chain import FrameInputs, Stage
from idbg.engine.kerneldiff.stages.evaluate import computed
from idbg.engine.kerneldiff.stages.own_dtypes import first_nonfinite, first_unlike
from idbg.reports.diff import summary
from idbg.schema.remarks import Remark
from idbg.views import remarks
from tests.harness.plants.passes import another, constant, hooked
from tests.harness.plants.plant import without_caches

aten = torch.ops.aten


@torch.library.custom_op("idbg_tests::doubles", mutates_args=())
def doubles(x: Tensor) -> Tensor:
    x.data.mul_(2)
    return x.sum()


@doubles.register_fake
def _(x: Tensor) -> Tensor:
    return x.new_empty(())


def reads_after(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 1.5
    z = y + 1
    s = torch.ops.idbg_tests.doubles(y)
    return z + y.sin(), s


def reads_before(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 1.5
    return y + 1 + y.sin(), 2 * y.sum()


def values(count: int) -> Tensor:
    return torch.randn(count, generator=torch.Generator().manual_seed(0))


def test_an_undeclared_write_fails_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda given, **_: reads_before)
    report = KernelDiff(reads_after, (values(54),), test="aot_eager").compare()
    assert [each.name for each in report.outputs if not each.passed] == ["out[0]"]
    assert 'idbg_tests::doubles writes to its argument x, which its schema does not declare (mutates_args=("x",))' in (
        summary(report)
    )


@pytest.mark.slow
def test_an_op_with_an_undeclared_write_is_to_blame_and_not_the_pass_that_moves_it() -> None:
    report = KernelDiff(reads_after, (values(54),), per_kernel=True).compare()
    stage = report.first_wrong_stage
    assert report.verdict == "failed" and stage is not None and stage.made_by is not None
    assert (stage.made_by.kind, stage.made_by.name, stage.made_by.file) == ("op", "idbg_tests::doubles", __file__)
    assert "does not declare it" in remarks.sentence(stage.made_by.proven) and report.culprit is None


def test_an_op_that_returns_its_own_argument_is_to_blame() -> None:
    with torch.library._scoped_library("idbg_alias", "DEF") as library:
        library.define("same(Tensor x) -> Tensor")
        library.impl("same", lambda x: x.view(-1), "CPU")
        torch.library.register_fake("idbg_alias::same", lambda x: torch.empty_like(x), lib=library)

        def program(x: Tensor, factor: float) -> Tensor:
            y = x * 1.5
            torch.ops.idbg_alias.same(y).mul_(factor)  # here
            return y.sin()

        report = KernelDiff(program, (values(54), 2.0), per_kernel=True).compare()
        unchanged = KernelDiff(program, (values(54), 1.0), per_kernel=True).compare()
    stage = report.first_wrong_stage
    assert report.verdict == "failed" and stage is not None and stage.made_by is not None and report.culprit is None
    assert (stage.made_by.kind, stage.made_by.name) == ("op", "idbg_alias::same")
    lines, first = inspect.getsourcelines(program)
    here = next(first + at for at, line in enumerate(lines) if "# here" in line)
    assert (stage.node, stage.file, stage.line) == ("same", __file__, here)
    assert "it returns its argument x itself" in remarks.sentence(stage.made_by.proven)
    assert unchanged.passed and not unchanged.notes


def test_a_rounding_goes_on_with_what_an_op_wrote() -> None:
    x = values(8)
    with PerturbedRounding(0):
        y = x * 1.5
        torch.ops.idbg_tests.doubles(y)
    torch.testing.assert_close(y, 3 * x)
    with WithoutUndeclaredWrites():
        torch.ops.idbg_tests.doubles(x)
    torch.testing.assert_close(x, values(8))


def nothing_is_off(program: Callable[..., Any], *inputs: Tensor) -> None:
    report = KernelDiff(program, inputs, per_kernel=True).compare()
    assert report.passed, summary(report)
    assert report.first_wrong_stage is None and not any(stage.harmless for stage in report.stages), summary(report)
    assert any(stage.judged for stage in report.stages)


def test_tokens_of_ops_with_effects_are_no_results_that_differ() -> None:
    nothing_is_off(torch.linalg.cholesky, torch.diag(torch.arange(1.0, 7.0)))


def graph_of(*, whole: bool) -> GraphModule:
    """Writes a row of its second argument, by a view of it, or as a whole in its end."""
    graph = Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    row = graph.call_function(aten.select.int, (x, 0, 0))
    if whole:
        written = graph.call_function(aten.select_scatter.default, (y, row, 0, 0))
        result = graph.call_function(aten.mul.Tensor, (x, written))
        graph.call_function(aten.copy_.default, (y, written))
    else:
        graph.call_function(aten.copy_.default, (graph.call_function(aten.select.int, (y, 0, 0)), row))
        result = graph.call_function(aten.mul.Tensor, (x, y))
    graph.output((result,))
    return GraphModule(nn.Module(), graph)


@pytest.mark.parametrize("exact", [True, False])
def test_what_is_written_by_a_view_of_an_argument_is_its_value_after(exact: bool) -> None:
    x, y = values(12).view(3, 4), torch.ones(3, 4)
    one, other = (computed(graph_of(whole=whole), [x, y], exact=exact) for whole in (True, False))
    torch.testing.assert_close(other.outputs, one.outputs, rtol=0, atol=0)
    torch.testing.assert_close(other.after, one.after, rtol=0, atol=0)
    assert torch.equal(y, torch.ones(3, 4)), "the argument itself is left as it was"


def without_maximum(x: Tensor) -> Tensor:
    powers = (x * 60).exp()
    return powers / powers.sum(-1, keepdim=True)


def test_the_node_that_makes_an_infinity_in_the_programs_own_dtypes_is_named() -> None:
    x = values(16).abs().view(2, 8) + 2
    right, wrong = (
        Stage("joint", {"": make_fx(program)(x)}) for program in (lambda x: (x * 60).softmax(-1), without_maximum)
    )
    inputs = FrameInputs((x,), outputs=1)
    at = first_unlike(right.run(inputs, exact=False), wrong.run(inputs, exact=False))
    assert at == 0 and first_unlike(right.run(inputs), wrong.run(inputs)) is None
    found = first_nonfinite(right, wrong, inputs, at)
    assert found.node is not None and found.node.target is aten.exp.default


def tanh_as_sine(gm: GraphModule, inputs: object) -> Callable[..., object]:
    for node in gm.graph.nodes:
        if node.target is torch.tanh or node.target == "tanh":
            node.op, node.target = "call_function", torch.sin
    gm.recompile()
    return gm.forward


def test_a_wrong_node_between_convolutions_with_biases_is_bisected() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Tanh(), nn.Conv2d(4, 4, 3))
    report = KernelDiff(model, (torch.randn(2, 3, 8, 8),), test=tanh_as_sine, per_kernel=True).compare()
    assert report.culprit is not None and report.culprit.name == "input_2", summary(report)


def added(x: Tensor, w: Tensor) -> Tensor:
    h = (x @ w).sin()
    h = h * 0.25  # guilty
    return x + h


@pytest.mark.slow
def test_a_pass_that_changes_a_node_within_the_outputs_rounding_is_said_to() -> None:
    x, w = (4 * values(180).view(18, 10)).bfloat16(), values(100).view(10, 10).bfloat16()
    grown = constant(1.04, aten.mul.Tensor)
    with without_caches({}), hooked("post_grad_custom_post_pass", grown)():
        report = KernelDiff(added, (x, w), per_kernel=True).compare()
    stage = report.changed_stage
    assert report.passed and report.first_wrong_stage is None and stage is not None, summary(report)
    assert (stage.stage, stage.node, stage.line) == ("post_grad", "mul", added.__code__.co_firstlineno + 2)
    assert stage.node_error == pytest.approx(0.04, rel=1e-3)
    assert "within rounding, but post-grad changed the graph: 4 % in float64 at `mul`" in summary(report)


def test_dropout_of_what_dropout_gave_is_in_the_dtype_of_the_graph() -> None:
    def program(x: Tensor, weight: Tensor) -> Tensor:
        low = weight.to(torch.bfloat16)
        dropped, _ = aten.native_dropout(x.to(torch.bfloat16) @ low, 0.3, True)
        return aten.native_dropout(dropped @ low, 0.3, True)[0]

    x, weight = torch.randn(4, 16), torch.randn(16, 16)
    draws = computed(make_fx(program, tracing_mode="fake")(x, weight), [x, weight]).draws
    assert [draw.split()[1].partition("(")[0] for draw in draws] == ["torch.bfloat16"] * 2


def test_stages_above_the_last_are_known_right_in_a_program_with_a_break() -> None:
    def broken(x: Tensor) -> Tensor:
        x = x.sin() * 2
        torch._dynamo.graph_break()
        return x.cos().softmax(-1)

    report = KernelDiff(broken, torch.randn(4, 8), per_kernel=True).compare()
    assert report.passed and len({stage.frame for stage in report.stages}) > 1, report.stages
    assert report.unknown_stages == ()


def counted_loop(x: Tensor) -> Tensor:
    return while_loop(lambda i, x: i < 4, lambda i, x: (i + 1, x.sin() + 0.1 * i), (torch.tensor(0), x.clone()))[1] * 2


def sizes_by_values(x: Tensor) -> Tensor:
    y = x[x > 0]
    return y.exp().sum() + y.shape[0]


@pytest.mark.parametrize("program", [counted_loop, sizes_by_values])
def test_a_program_that_makes_sizes_of_its_own_is_judged_at_every_stage(program: Callable[[Tensor], Tensor]) -> None:
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        report = KernelDiff(program, (values(24),), per_kernel=True).compare()
    assert report.verdict == "passed" and report.unknown_stages == ()


def test_a_stage_is_unknown_if_it_is_unknown_in_one_frame() -> None:
    def broken(x: Tensor) -> Tensor:
        x = x.sin() * 2
        torch._dynamo.graph_break()
        return (x.view(torch.int32) >> 31) + x

    report = KernelDiff(broken, torch.randn(4, 8), per_kernel=True).compare()
    last = next(stage for stage in report.stages if stage.stage == "post_grad")
    assert report.passed and last in report.unknown_stages, report.stages
    assert "another dtype" in remarks.sentence(last.reason)


def test_stages_of_nested_tensors_are_not_judged_for_a_reason_in_words() -> None:
    ragged = torch.nested.nested_tensor([torch.ones(3, 8), torch.ones(5, 8)], layout=torch.jagged)
    report = KernelDiff(lambda x: nn.functional.gelu(x.sin()) * 2, (ragged,), per_kernel=True).compare()
    assert report.passed and {remarks.sentence(stage.reason) for stage in report.unknown_stages} == {
        "graphs of nested tensors are not run again stage by stage"
    }


def test_a_frame_that_could_not_be_judged_is_named_beside_another_that_is_wrong() -> None:
    def broken(x: Tensor) -> Tensor:
        x = x.sin() * 2
        torch._dynamo.graph_break()
        x = (x.view(torch.int32) >> 31) + x
        torch._dynamo.graph_break()
        return x.tanh() + 1

    plant = hooked("post_grad_custom_post_pass", another([torch.ops.aten.tanh.default], torch.ops.aten.sin.default))
    with without_caches({}), plant():
        report = KernelDiff(broken, torch.randn(4, 8), per_kernel=True).compare()
    (note,) = (note for note in report.notes if isinstance(note, Remark) and note.kind == "stages not judged")
    kernels = report.stages[-1]
    assert report.first_wrong_stage is not None and report.first_wrong_stage.stage == "post_grad"
    assert note.subject == "1/0" and "another dtype" in remarks.sentence(note)
    assert "the stages of 1/0 were not judged" in report.summary()
    assert kernels.stage == "kernels" and kernels.frame == report.first_wrong_stage.frame
