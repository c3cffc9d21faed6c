"""A part of a graph, and a kernel's code: what is asked for, what is left out, and what was meant."""

import json
from pathlib import Path

import msgspec
import pytest

from idbg.cli import main
from idbg.render.text import text
from idbg.schema.errors import BadInput
from idbg.schema.graphs import Stage
from idbg.schema.runs import Run
from idbg.views import graph_slice, kernel_source
from idbg.views.tree import Row
from tests.harness.recorded import RECORDINGS, chain, state_of


@pytest.fixture(scope="module")
def resnet() -> Run:
    run = state_of("resnet").history.last
    assert run is not None
    return run


def test_what_is_around_a_node_goes_both_ways_by_steps(resnet: Run) -> None:
    graph = next(graph for key, graph in resnet.graphs.items() if key.stage == "inference")
    node = next(node for node in graph.nodes if node.target == "aten.relu.default")
    near = graph_slice.around(resnet, node.name, 1)
    users = {each.name for each in graph.nodes if node.name in each.inputs}
    assert {each.name for each in near.nodes} == {node.name, *node.inputs, *users}
    told = {each.name: each for each in near.nodes}
    assert told[node.name].distance == 0 and set(told[node.name].users) == users and told[node.name].kernels
    assert node.target in near.about[0] and any(fact.startswith("kernels") for fact in near.about)
    assert near.about[0] in text(graph_slice.view(near))
    far = graph_slice.around(resnet, node.name, 3)
    assert {each.name for each in near.nodes} < {each.name for each in far.nodes}
    assert [each.name for each in far.nodes] == [
        each.name for each in graph.nodes if each.name in {n.name for n in far.nodes}
    ]


def test_a_module_is_told_with_what_is_inside_it_and_what_it_breaks(resnet: Run) -> None:
    told = graph_slice.within(resnet, "layer1")
    assert told.nodes and all(node.module.split(".")[0] == "layer1" for node in told.nodes)
    broken = [rule for node in told.nodes for rule in node.violations]
    assert broken and {rule.rule for rule in broken} == {"unsupported_ops"}
    dynamo = graph_slice.within(resnet, "layer1", "dynamo")
    assert dynamo.graph is not None and dynamo.graph.stage == "dynamo"


def test_a_module_has_its_totals_without_keys_of_the_screen(resnet: Run) -> None:
    told = graph_slice.within(resnet, "layer1.0")
    facts = {fact[:11].strip(): fact[11:] for fact in told.about}
    assert facts["module"].startswith("layer1.0 ·") and facts["nodes"].startswith("33 · ")
    assert facts["✘ reject"] == "2 violations" and facts["time"] == "not measured" and facts["error"] == "not compared"
    assert "live while it runs" in facts["memory"] and "kernels ·" in facts["kernels"]
    shown = [row.text for row in graph_slice.view(told).body if isinstance(row, Row)]
    assert shown == told.about
    assert graph_slice.within(resnet, "layer1.0.bn1", "dynamo").about == []  # one node: no heading


def test_without_a_name_it_says_what_can_be_named(resnet: Run) -> None:
    told = graph_slice.overview(resnet)
    assert told.nodes == [] and len(told.graphs) == len(resnet.graphs) and "layer1.0" in told.modules
    assert sum(line.violations for line in told.graphs) == len(resnet.violations)
    empty = graph_slice.overview(Run(1, resnet.program, resnet.target, 0.0))
    assert text(graph_slice.view(empty)) == "this run has no graph"


def test_a_large_slice_keeps_the_nearest_and_counts_the_rest(resnet: Run) -> None:
    run = Run(1, resnet.program, resnet.target, 0.0)
    graph = chain(1000)
    run.graphs[graph.id] = graph
    told = graph_slice.around(run, "relu_500", 20)
    assert len(told.nodes) == 41 and told.left_out == 0
    run.graphs[graph.id] = graph = chain(1000, module="m")
    told = graph_slice.within(run, "m")
    assert len(told.nodes) == graph_slice.MOST_NODES and told.left_out == 1000 - graph_slice.MOST_NODES
    assert "800 more" in text(graph_slice.view(told)).splitlines()[-1]


@pytest.mark.parametrize(("node", "stage"), [("rleu_1", None), ("relu_1", "backward")])
def test_what_is_not_there_is_said_with_what_is(resnet: Run, node: str, stage: Stage | None) -> None:
    with pytest.raises(BadInput) as caught:
        graph_slice.around(resnet, node, 1, stage)
    assert caught.value.hint


def test_a_kernel_is_found_by_its_name_a_part_of_it_and_a_launch(resnet: Run) -> None:
    kernel = next(kernel for kernel in resnet.kernels if kernel.source and kernel.calls[0].handle)
    told = kernel_source.kernel_source(resnet, kernel.name)
    assert told.source == kernel.source and told.kernel is not None and told.kernel.nodes == kernel.nodes
    assert kernel_source.kernel_source(resnet, kernel.calls[0].handle).kernel == told.kernel
    assert len(kernel_source.kernel_source(resnet).kernels) == len(resnet.kernels)
    with pytest.raises(BadInput, match="kernels have 'fused' in their name"):
        kernel_source.kernel_source(resnet, "fused")
    with pytest.raises(BadInput, match="there is no kernel 'nothing'"):
        kernel_source.kernel_source(resnet, "nothing")


@pytest.mark.parametrize("command", [["graph"], ["graph", "--module", "layer1"], ["kernel"]])
def test_the_commands_tell_the_same_as_text_and_as_json(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "events.jsonl").write_bytes((RECORDINGS / "resnet.jsonl").read_bytes())
    line = [command[0], str(tmp_path), *command[1:]]
    assert main(line) == 0
    assert "resnet" not in capsys.readouterr().out.splitlines()[0]
    assert main([*line, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == f"idbg.{command[0]}/1" and told["run"] == 1
    assert main([*line, "--run", "7"]) == 2
    assert "has no run 7" in capsys.readouterr().err


def test_every_key_of_their_json_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "json-schema.md").read_text(encoding="utf-8")
    structs = (graph_slice.GraphSlice, graph_slice.NodeLine, graph_slice.GraphLine, graph_slice.BrokenRule)
    for struct in (*structs, kernel_source.KernelSource, kernel_source.KernelLine):
        for field in msgspec.structs.fields(struct):
            assert f"`{field.encode_name}" in page
