"""Is what draws other random numbers than eager not judged, and is what else is wrong still caught?"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from msgspec.structs import replace
from torch import Tensor, nn
from torch._inductor import lowering as lowerings
from torch.fx import Graph as Graph_
from torch.fx import GraphModule
from torch.nn.functional import dropout, scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from idbg import KernelDiff
from idbg.cli import exits
from idbg.cli.commands.diff import status
from idbg.cli.fail_on import Policy
from idbg.engine.kerneldiff import observed_run
from idbg.engine.kerneldiff.kernels.drawn_shares import KeptShares
from idbg.engine.kerneldiff.sides.random_draws import with_proven_fault
from idbg.engine.kerneldiff.stages.captured import FrameStages
from idbg.engine.kerneldiff.stages.table import stage_table
from idbg.format.verdicts import verdict_words
from idbg.reports.baseline import NOTHING_KNOWN
from idbg.reports.diff import ReadableReport, as_json, summary
from idbg.schema.attribution import StageError
from idbg.schema.diff import DiffReport, TensorDiff
from idbg.schema.remarks import Remark
from idbg.views.diff import headline
from idbg.views.remarks import sentence
from idbg.worker.comparing import merged
from tests.harness.compared import run_with, texts
from tests.harness.plants.lowerings import lowered
from tests.harness.plants.passes import hooked
from tests.harness.plants.plant import Planting, without_caches
from tests.harness.traced import is_traced

X = torch.linspace(-1, 1, 512).reshape(16, 32)
Model = Callable[[Tensor], Any]


def drawing(x: Tensor) -> Tensor:
    if torch.compiler.is_compiling():
        x = x + 0 * torch.rand(3).sum()
    return dropout(x * 2, 0.3)


def plain(x: Tensor) -> Tensor:
    return dropout(torch.tanh(dropout(x * 2, 0.3)), 0.5)


def drawing_and_more(x: Tensor) -> tuple[Tensor, Tensor]:
    """Beside what depends on the draws, what does not is wrong."""
    return drawing(x), x.sin() + 0.1 * is_traced()


def drawing_for_nothing(x: Tensor) -> Tensor:
    if is_traced():
        x = x + 0.1 + 0 * torch.rand(3).sum()
    return x.sin()


def wrong_beside_equal_draws(x: Tensor) -> Tensor:
    y = dropout(x * 2, 0.3)
    return y * 1.1 if is_traced() else y


def doubles_wrong(gm: GraphModule, _: object) -> Callable[..., Any]:
    """A backend whose results are 1 % too large."""
    return lambda *args: [each * 1.01 for each in gm(*args)]


def draws_once_more(gm: GraphModule, _: object) -> Callable[..., Any]:
    """A backend that draws what Dynamo's graph does not."""

    def run(*args: object) -> object:
        torch.rand(5)
        return gm(*args)

    return run


def compared(model: Model, test: Any = "aot_eager", **asked: Any) -> DiffReport:
    torch.manual_seed(0)
    return KernelDiff(model, X, test=test, **asked).compare()


@pytest.mark.parametrize("asked", [{}, {"atol": 1e-5, "rtol": 1e-5}, {"backward": True}], ids=str)
def test_other_random_numbers_than_eagers_are_not_judged(asked: dict[str, Any]) -> None:
    report = compared(drawing, **asked)
    assert report.verdict == "waiting" and "draws other random numbers than eager" in sentence(report.not_comparable)
    assert not report.passed and not any(diff.failed for diff in (*report.outputs, *report.gradients))
    assert not report.outputs[0].judged and report.outputs[0].max_abs
    said = summary(report)
    assert said.startswith("… not comparable   aot_eager against eager\nthe compiled program draws other random")


def test_dynamos_graph_is_accused_of_nothing_either() -> None:
    report = compared(drawing, per_kernel=True)
    assert report.not_comparable and report.first_wrong_stage is None and report.culprit is None


def test_dropout_that_draws_alike_is_judged() -> None:
    report = compared(plain)
    assert report.passed and not report.not_comparable


@pytest.mark.slow
@pytest.mark.parametrize("own", [False, True], ids=["Inductor's", "the program's setting"])
def test_the_verdict_says_that_inductors_random_operators_are_not_judged(own: bool) -> None:
    """They are replaced by eager's, unless the program has set that itself."""
    report = compared(plain, "inductor", options={"fallback_random": own})
    assert report.passed and bool(report.not_judged) == (not own)
    line, *_ = summary(report).splitlines()
    assert ("random operators not judged" in line) == (not own) and line.startswith("✔ passed   ")
    assert as_json(report)["not_judged"] == ("" if own else "random operators")
    assert ("random operators are not judged" in summary(report)) == (not own)


def test_nothing_is_unjudged_where_no_random_operator_was_replaced() -> None:
    assert not compared(plain).not_judged and not compared(lambda x: x.sin(), "inductor").not_judged


def test_a_run_with_unjudged_random_operators_is_not_simply_clean() -> None:
    unjudged = Remark("random as eager", "inductor")
    report = DiffReport(test="inductor", reference="eager", verdict="passed", mode="float64", notes=(unjudged,))
    run = run_with(report)
    assert "random operators not judged" in verdict_words(run)
    assert merged([report, replace(report, notes=())]).not_judged == "random operators"


@pytest.mark.parametrize("model", [drawing_and_more, drawing_for_nothing, wrong_beside_equal_draws])
def test_what_does_not_come_of_the_draws_still_fails(model: Model) -> None:
    report = compared(model)
    assert report.verdict == "failed" and not report.not_comparable


@pytest.mark.parametrize(("model", "test"), [(drawing, doubles_wrong), (plain, draws_once_more)])
def test_a_backend_that_gives_other_than_dynamos_graph_still_fails(model: Model, test: Any) -> None:
    report = compared(model, test)
    assert report.verdict == "failed" and not report.not_comparable


def test_a_backend_that_rounds_otherwise_draws_the_same_other_numbers() -> None:
    """It is not Dynamo's graph to the bit."""

    def rounds(gm: Any, _: object) -> Any:
        return lambda *args: [each * (1 + 1e-7) for each in gm(*args)]

    assert compared(drawing, rounds).verdict == "waiting"


def test_a_stage_proven_wrong_of_equal_draws_is_accused_all_the_same() -> None:
    failed = DiffReport(
        test="inductor", reference="eager", verdict="failed", mode="float64", outputs=(TensorDiff(passed=False),)
    )
    unknown = replace(failed, verdict="waiting", not_comparable="why", outputs=())
    bad = replace(unknown, stages=(StageError(stage="post_grad", bad=True),))
    assert with_proven_fault(unknown, failed) == unknown
    assert with_proven_fault(bad, failed) == replace(failed, stages=bad.stages)


def test_a_run_says_it_and_the_exit_status_is_that_of_what_is_not_decided() -> None:
    report = DiffReport(test="aot", reference="eager", verdict="waiting", mode="float64", not_comparable="why")
    run = run_with(report)
    assert (run.verdict, run.looks) == ("compiled", "waiting") and not run.compared
    assert verdict_words(run) == "numbers not comparable, no rule broken"
    assert [text.strip() for text in texts(report)[:2]] == ["… not comparable   aot against eager", "why"]
    assert status(run, Policy(frozenset(), False, None, NOTHING_KNOWN, False)) == exits.UNDECIDED


def dropped_more(graph: Graph_) -> None:
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.gt.Scalar):
        node.args = (node.args[0], 2 * node.args[1])


def merged_draws(graph: Graph_) -> None:
    draws = [node for node in graph.nodes if "inductor_random" in str(node.target)]
    for other in draws[1:]:
        other.replace_all_uses_with(draws[0])
        graph.erase_node(other)


class Dropping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(16, 32), nn.Linear(32, 32)

    def forward(self, x: Tensor) -> Tensor:
        hidden = dropout(torch.tanh(self.first(x)), 0.1)
        return dropout(torch.tanh(self.second(hidden)), 0.1)


DROPS = Dropping.forward.__code__.co_firstlineno + 1


@pytest.mark.slow
@pytest.mark.parametrize(("edit", "line"), [(dropped_more, DROPS), (merged_draws, DROPS + 1)], ids=["rate", "merged"])
def test_a_pass_that_changes_how_inductor_draws_is_named(edit: Callable[[Graph_], None], line: int) -> None:
    torch.manual_seed(0)
    with without_caches({}), hooked("post_grad_custom_post_pass", edit)():
        report = KernelDiff(Dropping(), torch.randn(8, 16), backward=True, per_kernel=True).compare()
    stage = report.first_wrong_stage
    assert report.only_draws_fail and stage is not None and stage.made_by is not None, report.summary()
    assert (stage.stage, stage.line, stage.made_by.name) == ("post_grad", line, "post_grad_custom_post_pass")
    assert headline(report).startswith("✘ random operators wrong")
    assert "right with eager's random operators; with Inductor's own, wrong since post-grad" in report.summary()


class Parting(Dropping):
    """It draws numbers of its own where it is compiled: nothing that depends on the draws is comparable with eager."""

    def forward(self, x: Tensor) -> Tensor:
        if torch.compiler.is_compiling():
            x = x + 0 * torch.rand(3).sum()
        return super().forward(x)


def drawn_by(change: Callable[[Any], Any]) -> Planting:
    """Inductor lowers its own uniform numbers to what this makes of them."""
    return lowered(torch.ops.prims.inductor_random.default, lambda right, *args: change(right(*args)))


def fewer(drawn: Any) -> Any:
    return lowerings.lowerings[torch.ops.aten.mul.Tensor](drawn, 0.2)


def mirrored(drawn: Any) -> Any:
    return lowerings.lowerings[torch.ops.aten.rsub.Scalar](drawn, 1.0)


def with_lowering(change: Callable[[Any], Any], model: Callable[[], nn.Module], **settings: Any) -> ReadableReport:
    torch.manual_seed(0)
    with without_caches({}), drawn_by(change)():
        return KernelDiff(model(), torch.randn(128, 16), per_kernel=True, **settings).compare()


@pytest.mark.slow
@pytest.mark.parametrize(("model", "backward"), [(Dropping, True), (Dropping, False), (Parting, False)], ids=str)
def test_a_kernel_that_drops_another_share_is_named(model: Callable[[], nn.Module], backward: bool) -> None:
    """Its draws are not eager's, nor its graph's: their statistics are judged."""
    report = with_lowering(fewer, model, backward=backward)
    stage = report.first_wrong_stage
    assert report.only_draws_fail and not report.not_comparable, report.summary()
    assert stage is not None and stage.made_by is not None and stage.line in (DROPS, DROPS + 1)
    assert (stage.stage, stage.made_by.name) == ("kernels", "prims.inductor_random.default")
    assert re.search(r"dropout keeps 0\.[45]\d of its values, 0\.\d\d in eager \(n = 4,096\); right", report.summary())


@pytest.mark.slow
def test_a_kernel_that_draws_other_numbers_with_the_same_share_is_right() -> None:
    report = with_lowering(mirrored, Dropping)
    assert report.passed and report.not_judged == "random operators", report.summary()


@pytest.mark.slow
def test_a_pass_is_named_where_the_draws_are_not_comparable_with_eagers() -> None:
    torch.manual_seed(0)
    with without_caches({}), hooked("post_grad_custom_post_pass", dropped_more)():
        report = KernelDiff(Parting(), torch.randn(8, 16), per_kernel=True).compare()
    stage = report.first_wrong_stage
    assert report.only_draws_fail and stage is not None and stage.made_by is not None, report.summary()
    assert stage.made_by.name == "post_grad_custom_post_pass"


@pytest.mark.slow
def test_a_right_program_whose_draws_are_not_comparable_is_accused_of_nothing() -> None:
    torch.manual_seed(0)
    report = KernelDiff(Parting(), torch.randn(8, 16), per_kernel=True).compare()
    assert report.not_comparable and report.first_wrong_stage is None


def test_shares_differ_where_no_chance_explains_both() -> None:
    assert KeptShares(0.5, 0.9, 4096).differ and KeptShares(0.8, 0.9, 4096).differ and KeptShares(0.0, 1.0, 64).differ
    assert not KeptShares(0.5, 0.9, 64).differ and not KeptShares(0.0, 1.0, 32).differ
    for share in (0.0, 0.5, 1.0):
        assert not KeptShares(share, share, 10**9).differ
    assert KeptShares(0.9001, 0.9, 10**9).remark == Remark("other share", "0.9001", "0.9000", f"{10**9:,}")


@pytest.mark.parametrize("chance", [0.001, 0.1, 0.5, 0.9])
def test_equal_chances_are_far_from_a_failure(chance: float) -> None:
    torch.manual_seed(0)
    kept = torch.bernoulli(torch.full((2, 1000, 4096), chance)).mean(2)
    assert not any(KeptShares(one, other, 4096).differ for one, other in kept.T.tolist())


def attended(x: Tensor) -> Tensor:
    return scaled_dot_product_attention(x, x, x, dropout_p=0.1)


RIGHT: dict[str, Callable[[Tensor], Tensor]] = {
    "one dropout": lambda h: dropout(h, 0.1),
    "two dropouts": lambda h: dropout(torch.tanh(dropout(h, 0.3)), 0.3),
    "channels": lambda h: nn.functional.dropout1d(h.view(8, 4, 8), 0.4).view(8, 32),
    "alpha": lambda h: nn.functional.alpha_dropout(h, 0.2, training=True),
    "noise": lambda h: h + torch.rand_like(h) * 0.1 + torch.randn(8, 32),
    "bernoulli": lambda h: h * torch.bernoulli(torch.full_like(h, 0.5)),
    "checkpointed": lambda h: checkpoint(lambda x: dropout(torch.sin(x), 0.25), h, use_reentrant=False),
    "unused": lambda h: (torch.rand(8, 32), dropout(h, 0.1))[1],
    "attention": lambda h: attended(h.view(1, 2, 8, 16)).reshape(8, 32),
    "integers": lambda h: h * torch.randint(0, 2, (8, 32)) + dropout(h, 0.1),
    "bfloat16": lambda h: dropout(h.bfloat16(), 0.1).float(),
}


class Around(nn.Module):
    def __init__(self, within: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.first, self.second, self.within = nn.Linear(16, 32), nn.Linear(32, 8), within

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.within(self.first(x)))


@pytest.mark.slow
@pytest.mark.parametrize("name", RIGHT)
def test_no_stage_of_a_right_program_is_accused_for_inductors_own_draws(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[StageError] = []

    def table(frames: Sequence[FrameStages], **sought: Any) -> tuple[StageError, ...]:
        rows = stage_table(frames, **sought)
        judged.extend(row for row in rows if row.judged and all(frame.own_draws for frame in frames))
        return rows

    monkeypatch.setattr(observed_run, "stage_table", table)
    torch.manual_seed(0)
    report = KernelDiff(Around(RIGHT[name]), torch.randn(8, 16), backward=True, per_kernel=True).compare()
    assert report.passed and report.changed_stage is None and not any(row.bad for row in judged), judged
    if name in ("one dropout", "two dropouts", "noise"):
        assert judged[-1].stage == "post_grad" and judged[-1].error is not None and judged[-1].error < 1e-6
