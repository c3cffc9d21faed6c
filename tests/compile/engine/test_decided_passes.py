"""What passes do to graphs, and what min-cut keeps: torch's own passes and one of a program's, on real compiles."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import GraphModule

from idbg.analysis.decisions.partitioner import partition
from idbg.render.text import text as text_of
from idbg.schema.decisions.inductor import PassRun, PhaseRun
from idbg.schema.graphs import GraphId, NodeId
from idbg.schema.runs import Run
from idbg.views import passes as report
from idbg.views.tree import referring

Runner = Callable[..., Run]
COLD = {"fx_graph_cache": False}

OWN = """\
import torch
from torch._inductor.custom_graph_pass import CustomGraphPass

aten = torch.ops.aten

class Softer(CustomGraphPass):
    def __call__(self, graph):
        for node in graph.find_nodes(op="call_function", target=aten.sin.default):
            with graph.inserting_before(node):
                made = graph.call_function(aten.tanh.default, node.args)
            made.meta.update(node.meta)
            node.replace_all_uses_with(made)
            graph.erase_node(node)

    def uuid(self):
        return "softer"

def model(x):
    return x.sin().clone().cos() * 2

torch._inductor.config.post_grad_custom_post_pass = Softer()
out = torch.compile(model)(torch.ones(16))
assert torch.allclose(out, torch.ones(16).tanh().cos() * 2)
"""
MOVING = """\
import torch
from torch._inductor.custom_graph_pass import CustomGraphPass

class Later(CustomGraphPass):
    def __call__(self, graph):
        (exp,) = graph.find_nodes(op="call_function", target=torch.ops.aten.exp.default)
        (mul,) = graph.find_nodes(op="call_function", target=torch.ops.aten.mul.Tensor)
        mul.prepend(exp)

    def uuid(self):
        return "later"

torch._inductor.config.joint_custom_pre_pass = Later()
torch.compile(lambda x: x.exp() * x.sin().cos().tanh())(torch.ones(9))
"""
TRAINED = """\
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 32), nn.Sigmoid(), nn.LayerNorm(32))
compiled = torch.compile(net)
compiled(torch.randn(4, 8)).sum().backward()
"""


def changes(run: Run, frame: str) -> list[tuple[PhaseRun, PassRun]]:
    return [(phase, each) for phase in run.decided.of(PhaseRun)[frame] for each in phase.passes]


def found(run: Run, name: str) -> tuple[PhaseRun, PassRun]:
    return next((phase, each) for phase, each in changes(run, "0/0") if each.name == name)


def test_passes_that_changed_the_graph_are_told_with_what_they_changed(ran: Runner):
    run = ran(OWN, backend="inductor", options=COLD)
    phase, noop = next((phase, each) for phase, each in changes(run, "0/0") if "clone" in each.went)
    assert phase.phase == "joint"
    assert not noop.own
    assert noop.went == ("clone",)
    assert noop.changed == ("cos",)
    signs = {(line.sign, line.before, line.after) for line in report.diff_lines(noop)}
    assert {("-", "clone", ""), ("-", "cos", "cos"), ("+", "cos", "cos")} <= signs
    names = [phase.phase for phase in run.decided.of(PhaseRun)["0/0"]]
    assert names == ["pre_grad", "joint", "post_grad"]
    assert all(phase.ran > len(phase.passes) for phase in run.decided.of(PhaseRun)["0/0"]), "most passes change nothing"


def test_a_pass_of_the_programs_is_marked_with_its_place_and_what_its_nodes_stand_for(ran: Runner):
    run = ran(OWN, backend="inductor", options=COLD)
    phase, own = found(run, "post_grad_custom_post_pass")
    assert (phase.phase, phase.part, own.own, own.by) == ("post_grad", "inference", True, "Softer")
    assert own.file.endswith("subject.py")
    assert own.line == 7
    assert (own.came, own.went, own.of) == (("tanh_default",), ("sin",), (("tanh_default", ("sin",)),))
    assert "tanh_default" in run.graphs[GraphId("0/0", "post_grad", "inference")].by_name
    node = NodeId(GraphId("0/0", "post_grad", "inference"), "tanh_default")
    row, *changes = [row for row in referring(report.view(run)) if node in row.refs.nodes]
    assert row.text.startswith("post_grad_custom_post_pass") and row.refs.line == 7
    assert {change.text[0] for change in changes} >= {"+"}
    assert any("Softer at" in line for line in text_of(report.view(run)).splitlines())


def test_on_a_cache_hit_the_post_grad_passes_are_said_not_to_have_run(ran: Runner):
    source = "import torch\ntorch.compile(lambda x: (x + 0).sin())(torch.ones(5))\n"
    first = ran(source, backend="inductor")
    torch._dynamo.reset()
    second = ran(source, backend="inductor")
    assert not report.not_run(first, "0/0") or report.not_run(first, "0/0") == report.not_run(second, "0/0")
    assert report.not_run(second, "0/0") == [
        "post-grad (inference): not run, its code was found in a cache (--cold compiles it)"
    ]


def test_what_changes_a_graph_between_named_passes_is_told(ran: Runner, monkeypatch: pytest.MonkeyPatch):
    from torch._inductor.fx_passes import joint_graph

    original = joint_graph.canonicalize_aten_ir_passes  # called between two passes that have names

    def sneaky(gm: GraphModule) -> object:
        for node in gm.graph.find_nodes(op="call_function", target=torch.ops.aten.sin.default):
            node.target = torch.ops.aten.cos.default
        return original(gm)

    monkeypatch.setattr(joint_graph, "canonicalize_aten_ir_passes", sneaky)
    run = ran("import torch\ntorch.compile(lambda x: x.sin() * 3)(torch.ones(7))\n", backend="inductor", options=COLD)
    phase, between = found(run, "between passes")
    assert (phase.phase, between.changed) == ("joint", ("sin",))


def test_a_node_that_a_pass_moves_is_told_as_moved(ran: Runner):
    run = ran(MOVING, backend="inductor", options=COLD)
    _, own = found(run, "joint_custom_pre_pass")
    assert (own.moved, own.came, own.went, own.changed) == (("exp",), (), (), ())
    lines = [(line.sign, line.text.partition(":")[0]) for line in report.diff_lines(own) if line.sign in "+-"]
    assert lines == [("-", "exp"), ("+", "exp")]


def test_min_cuts_choice_is_that_of_torch(ran: Runner, monkeypatch: pytest.MonkeyPatch):
    from torch._functorch import partitioners
    from torch._inductor import compile_fx

    cuts: list[tuple[int, GraphModule, GraphModule]] = []
    original = vars(compile_fx)["min_cut_rematerialization_partition"]

    def cut(*args: Any, num_fwd_outputs: int, **kwargs: Any) -> Any:
        forward, backward = original(*args, num_fwd_outputs=num_fwd_outputs, **kwargs)
        cuts.append((num_fwd_outputs, forward, backward))
        return forward, backward

    monkeypatch.setattr(compile_fx, "min_cut_rematerialization_partition", cut)
    saved: list[tuple[str, int]] = []
    extract = partitioners._extract_fwd_bwd_modules

    def extracting(joint: Any, values: Any, *args: Any, **kwargs: Any) -> Any:
        saved.extend((value.name, partitioners._size_of(value)) for value in values)
        return extract(joint, values, *args, **kwargs)

    monkeypatch.setattr(partitioners, "_extract_fwd_bwd_modules", extracting)
    run = ran(TRAINED, backend="inductor")
    ((_, forward, backward),) = cuts
    computed = [{node.name for node in gm.graph.nodes if node.op == "call_function"} for gm in (forward, backward)]
    ours = partition(run, "0/0")
    assert ours is not None
    assert {*ours.recomputed, *ours.views} == computed[0] & computed[1]
    assert ours.recomputed, "gelu's pointwise ops are cheaper than what they give"
    assert {held.node for held in ours.kept} == {name for name, _ in saved}
    assert ours.nbytes + ours.argument_bytes == sum(size for _, size in saved)
    assert ours.everything > ours.nbytes, "more would be held, were nothing computed again"
    assert any("computed again in the backward" in line for line in text_of(report.view(run)).splitlines())
