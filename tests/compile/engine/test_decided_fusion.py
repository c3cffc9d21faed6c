"""What the scheduler fused and refused: real compiles on the CPU, held against what torch itself logs."""

import logging
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch

from idbg.analysis.decisions.fusion import Answer, fusion_of, why_not
from idbg.analysis.decisions.kernel_facts import kernel_facts
from idbg.engine.compat import scheduling
from idbg.render.text import text as text_of
from idbg.schema.decisions.inductor import FusionLog
from idbg.schema.errors import BadInput
from idbg.schema.graphs import GraphId, NodeId
from idbg.schema.runs import Run
from idbg.views import fusion as report
from idbg.views.tree import referring

Runner = Callable[..., Run]
COLD = {"fx_graph_cache": False}
GRAPH = GraphId("0/0", "post_grad", "inference")

# a: a reduction, whose result c needs; b: a loop of another size; m: a call into a library, and a's way to d
PROGRAM = """\
import torch

def f(x, y):
    a = x.sin() * 2
    b = y.cos() + 1
    c = (a / a.sum()).exp()
    e = x.tanh()
    m = e @ e
    return b, c, e * m

torch.compile(f)(torch.randn(64, 64), torch.randn(1000))
"""

BRANCHES = """\
import torch

def f(x):
    return torch.cond(x.sum() > 0, lambda x: x.sin().cos().sum(0), lambda x: x.exp().sum(0), (x,)) * 2

torch.compile(f)(torch.randn(7, 5))
"""
SCATTERED = """\
import torch

def f(x, at):
    return torch.zeros(8).scatter_add(0, at, x)

torch.compile(f)(torch.ones(100_000), torch.zeros(100_000, dtype=torch.long))
"""


def asked(run: Run, one: str, other: str) -> Answer:
    return why_not(run, NodeId(GRAPH, one), NodeId(GRAPH, other))


@pytest.fixture
def compiled(ran: Runner) -> Run:
    return ran(PROGRAM, backend="inductor", options=COLD)


def test_why_two_nodes_are_not_one(compiled: Run):
    run = compiled
    assert asked(run, "div", "exp").kind == "one"
    apart = asked(run, "cos", "sum_1")
    assert apart.kind in ("apart", "one kernel")
    assert (apart.refusals, apart.shared) == ((), ()), "different data: the scheduler looks at no such pair"
    reduced = asked(run, "sum_1", "exp")
    assert reduced.kind in ("refused", "one kernel")
    assert "need the result of a reduction" in "\n".join(report.pair_lines(run, "sum_1", "exp"))
    assert asked(run, "mm", "mul_1").kind == "library"
    waits = asked(run, "tanh", "mul_1")
    found = fusion_of(run, "0/0", "inference")
    assert found is not None
    assert [refusal.reason for refusal in waits.refusals] == ["intermediate nodes between node1 & node2"]
    assert [name for number in waits.between for name in found.nodes(number)] == ["mm"]
    assert "fusion rejected: another kernel must run between them" in "\n".join(report.pair_lines(run, "tanh", "mul_1"))
    with pytest.raises(BadInput, match="no node or kernel nobody"):
        report.pair_lines(run, "nobody", "exp")


def test_nodes_of_any_stage_and_kernels_can_be_asked_about(compiled: Run):
    product = next(kernel for kernel in compiled.kernels if kernel.language == "extern")
    dynamo = compiled.graph("0/0", "dynamo")
    assert dynamo is not None
    exp = next(node for node in dynamo.nodes if node.target.endswith("exp"))
    assert why_not(compiled, product, dynamo.node_id(exp.name)).kind == "library"
    assert why_not(compiled, product, product).kind == "one"
    argument = next(node for node in dynamo.nodes if node.op == "placeholder")
    assert why_not(compiled, product, dynamo.node_id(argument.name)).kind == "nothing"


def test_what_is_computed_in_two_kernels_is_marked_and_what_is_read_there_is_not(compiled: Run):
    found = fusion_of(compiled, "0/0", "inference")
    assert found is not None
    again = found.recomputed()
    assert set(again) == {"sin", "mul"}, "the sum and the quotient each compute x.sin() * 2"
    assert len(again["sin"]) == 2
    (row,) = [row for row in referring(report.view(compiled)) if "computed 2 times" in row.text]
    assert row.text.endswith(report.recomputed(found)[0][0]) and "sin, mul: computed" in row.text
    assert row.refs.nodes == (NodeId(GRAPH, "sin"), NodeId(GRAPH, "mul"))


def test_every_reason_is_torchs_own(ran: Runner, monkeypatch: pytest.MonkeyPatch):
    from torch._inductor import scheduler

    said: Counter[str] = Counter()
    heard: Counter[str] = Counter()

    class Log(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if isinstance(record.msg, scheduler.WhyNoFuse):
                said[record.msg.reason % record.msg.args if record.msg.args else record.msg.reason] += 1

    original = scheduling.groups_of

    def groups_of(own: Any) -> list[list[str]]:
        return original(own)

    decided: list[scheduling.SchedulerRecord] = []
    heard_init = scheduling.SchedulerRecord.__init__

    def init(self: scheduling.SchedulerRecord) -> None:
        heard_init(self)
        decided.append(self)

    monkeypatch.setattr(scheduling.SchedulerRecord, "__init__", init)
    handler, log = Log(logging.DEBUG), scheduler.fusion_log
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        ran(PROGRAM, backend="inductor", options=COLD)
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
    for _, _, reason, times in decided[0].refusals():
        heard[reason] += times
    assert heard.pop("", 0) > 0, "the C++ backend refuses without a word"
    assert heard == said
    assert said


def test_torch_is_left_as_it_was(compiled: Run):
    from torch._inductor.scheduler import Scheduler, WhyNoFuse

    modules = {vars(owner)[name].__module__ for owner, name in ((Scheduler, "can_fuse"), (WhyNoFuse, "__call__"))}
    assert modules == {"torch._inductor.scheduler"}


def test_code_out_of_a_cache_says_that_the_scheduler_was_not_asked(ran: Runner):
    source = "import torch\ntorch.compile(lambda x: x.sin().sum(0) * x)(torch.ones(6, 5))\n"
    ran(source, backend="inductor")
    torch._dynamo.reset()
    run = ran(source, backend="inductor")
    assert not run.decided.last(FusionLog)
    assert asked(run, "sin", "mul").kind == "cached"
    assert report.pair_lines(run, "sin", "mul")[1] == report.NOT_RECORDED
    assert report.NOT_RECORDED in text_of(report.view(run))
    assert any(row.text == report.NOT_RECORDED and row.refs.nodes for row in referring(report.view(run)))


def test_a_listener_that_fails_breaks_nothing(ran: Runner, monkeypatch: pytest.MonkeyPatch):
    def broken(scheduler: object) -> list[list[str]]:
        raise AttributeError("another torch")

    monkeypatch.setattr(scheduling, "groups_of", broken)
    run = ran(PROGRAM, backend="inductor", options=COLD)
    assert run.verdict == "compiled"
    assert run.kernels
    assert not run.decided.last(FusionLog)
    notes: list[str] = run.notes  # type: ignore[attr-defined]
    assert [note for note in notes if "fusion decisions are not recorded in full" in note]


def test_refusals_beyond_the_bound_are_counted(ran: Runner, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(scheduling, "MAX_REFUSALS", 1)
    run = ran(PROGRAM, backend="inductor", options=COLD)
    found = fusion_of(run, "0/0", "inference")
    assert found is not None
    assert found.log.dropped > 0
    assert "not recorded" in report.headline(found)


def test_branches_have_schedulers_and_kernels_of_their_own(ran: Runner):
    run = ran(BRANCHES, backend="inductor", options=COLD)
    found = fusion_of(run, "0/0", "inference")
    assert found is not None
    sums = [number for name, numbers in found.of_node.items() if name.endswith(".sum_1") for number in numbers]
    assert len(sums) == 2
    kernels = [found.kernels[number] for number in sums]
    assert None not in kernels
    assert len({kernel.name for kernel in kernels if kernel}) == 2, "each branch's sum is in that branch's kernel"
    assert not found.recomputed(), "nodes of different graphs that have one name are not one"


def test_a_call_into_a_library_is_its_own_kernel_and_computes_its_own_node(compiled: Run):
    found = fusion_of(compiled, "0/0", "inference")
    assert found is not None
    (number,) = found.of_node["mm"]
    kernel = found.kernels[number]
    assert found.nodes(number) == ["mm"]
    assert kernel is not None
    assert kernel.language == "extern"


def test_what_a_kernel_does_is_read_from_its_source(ran: Runner):
    source = "import torch\ntorch.compile(lambda x: (x.sin() * 2).sum())(torch.ones(64, 64))\n"
    run = ran(source, backend="inductor", options=COLD)
    (kernel,) = run.kernels
    facts = kernel_facts(run, kernel)
    assert facts.vectorised
    assert (facts.reductions, facts.loads, facts.stores) == (1, 1, 1)
    assert [loop.end for loop in facts.loops] == ["4096"]
    assert [(buffer.node, buffer.nbytes) for buffer in facts.writes] == [("sum_1", 4)]
    assert [buffer.nbytes for buffer in facts.reads] == [64 * 64 * 4]
    assert "1 reduction; reads 1 buffer (16 KiB), writes 1 (4 B)" in report.facts_words(facts)


def test_atomic_additions_are_counted(ran: Runner):
    options = {**COLD, "cpp.fallback_scatter_reduce_sum": False, "cpp.threads": 2}
    run = ran(SCATTERED, backend="inductor", options=options)
    facts = [kernel_facts(run, kernel) for kernel in run.kernels if kernel.language == "cpp"]
    assert sum(each.atomics for each in facts) == 1, [kernel.source for kernel in run.kernels]
