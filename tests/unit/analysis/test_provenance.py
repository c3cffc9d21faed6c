"""One computation is followed through every stage, down to its kernels and up to the user's line."""

from pathlib import Path

import pytest

from idbg.analysis.provenance import Provenance
from idbg.schema.code import Kernel, KernelCall, OutputCode
from idbg.schema.graphs import Graph, GraphId, Links, Node, NodeId
from idbg.schema.programs import Program, Target
from idbg.schema.runs import Run, fold
from tests.harness.event_lines import events_of
from tests.harness.work import lines_run

DYNAMO, JOINT = GraphId("0/0", "dynamo"), GraphId("0/0", "joint")
FORWARD, BACKWARD = GraphId("0/0", "forward"), GraphId("0/0", "backward")
POST_FORWARD, POST_BACKWARD = GraphId("0/0", "post_grad", "forward"), GraphId("0/0", "post_grad", "backward")
OTHER = GraphId("1/0", "dynamo")

RECORDINGS = sorted((Path(__file__).parents[2] / "recordings").glob("*.jsonl"))


def graph(graph_id: GraphId, *names: str) -> Graph:
    """A graph in which the node `mul_3` comes from line 3."""
    nodes = [Node(name=n, op="call_function", target="aten.mul.Tensor", file="m.py", line=int(n[-1])) for n in names]
    return Graph(graph_id, tuple(nodes))


FUSED = Kernel(
    frame="0/0",
    part="forward",
    name="fused",
    language="cpp",
    calls=(KernelCall("fused:1", 10, ("relu_2", "mul_1")), KernelCall("fused:2", 20, ("mul_1",))),
)
GRAD = Kernel(frame="0/0", part="backward", name="grad", language="cpp", calls=(KernelCall("grad:1", 5, ("mul_1",)),))


def trained() -> Run:
    """linear_1 becomes mul_1 and relu_2 in the joint graph; its forward and its backward have kernels of their own."""
    run = Run(1, Program("m.py"), Target(), 0.0)
    for each in (
        graph(DYNAMO, "linear_1"),
        graph(JOINT, "mul_1", "relu_2", "grad_1"),
        graph(FORWARD, "mul_1", "relu_2"),
        graph(POST_FORWARD, "mul_1", "relu_2"),
        graph(BACKWARD, "grad_1"),
        graph(POST_BACKWARD, "mul_1"),
        graph(OTHER, "linear_1"),
    ):
        run.graphs[each.id] = each
    run.links = [
        Links(FORWARD, POST_FORWARD, (("mul_1", "mul_1"), ("relu_2", "relu_2"))),
        Links(BACKWARD, POST_BACKWARD, (("grad_1", "mul_1"),)),
        Links(JOINT, FORWARD, (("mul_1", "mul_1"), ("relu_2", "relu_2"))),
        Links(JOINT, BACKWARD, (("grad_1", "grad_1"),)),
        Links(DYNAMO, JOINT, (("linear_1", "relu_2"), ("linear_1", "mul_1"), ("linear_1", "grad_1"))),
    ]
    run.codes["0/0", "forward"] = OutputCode("0/0", "forward", "", (FUSED,))
    run.codes["0/0", "backward"] = OutputCode("0/0", "backward", "", (GRAD,))
    return run


def uses(node: NodeId) -> list[str]:
    return [call.handle for _, call in Provenance(trained()).kernels_of(node)]


def test_a_users_op_has_the_kernels_of_its_forward_and_its_backward() -> None:
    assert sorted(uses(NodeId(DYNAMO, "linear_1"))) == ["fused:1", "fused:2", "grad:1"]


def test_an_op_of_a_library_comes_before_the_generated_kernel_that_prepares_its_inputs() -> None:
    run = trained()
    library = Kernel(
        frame="0/0", part="forward", name="extern_kernels.convolution", language="extern",
        calls=(KernelCall("extern:3", 30, ("relu_2",)),),
    )  # fmt: skip
    run.codes["0/0", "forward"] = OutputCode("0/0", "forward", "", (FUSED, library))
    found = Provenance(run).kernels_of(NodeId(FORWARD, "relu_2"))
    assert [kernel.name for kernel, _ in found] == ["extern_kernels.convolution", "fused"]


def test_a_node_that_was_merged_with_an_equal_one_has_its_kernels() -> None:
    run = trained()
    names = {"x": "()", "cos": "(x,)", "cos_1": "(x,)", "neg": "(cos,)", "neg_1": "(cos_1,)", "cos_2": "(y,)"}
    nodes = tuple(
        Node(name=name, op="call_function", target=f"aten.{name.partition('_')[0]}.default", args=args)
        for name, args in names.items()
    )
    run.graphs[DYNAMO] = Graph(DYNAMO, nodes)
    run.links = [
        Links(DYNAMO, POST_FORWARD, (("cos", "mul_1"), ("neg", "relu_2"))),  # as torch has it: no link of the others
    ]
    assert [call.handle for _, call in Provenance(run).kernels_of(NodeId(DYNAMO, "cos_1"))] == ["fused:1", "fused:2"]
    assert [call.handle for _, call in Provenance(run).kernels_of(NodeId(DYNAMO, "neg_1"))] == ["fused:1"]
    assert Provenance(run).kernels_of(NodeId(DYNAMO, "cos_2")) == []


def test_a_node_of_one_part_has_only_that_parts_kernels() -> None:
    assert uses(NodeId(FORWARD, "relu_2")) == ["fused:1"]
    assert uses(NodeId(BACKWARD, "grad_1")) == ["grad:1"]


def test_equal_names_in_two_post_grad_graphs_are_different_nodes() -> None:
    assert uses(NodeId(POST_FORWARD, "mul_1")) == ["fused:1", "fused:2"]
    assert uses(NodeId(POST_BACKWARD, "mul_1")) == ["grad:1"]


def test_a_node_without_a_kernel_has_none() -> None:
    assert uses(NodeId(OTHER, "linear_1")) == [] and uses(NodeId(FORWARD, "nobody")) == []


def test_a_kernel_computes_the_post_grad_nodes_of_its_part() -> None:
    assert Provenance(trained()).nodes_of(FUSED) == [NodeId(POST_FORWARD, "relu_2"), NodeId(POST_FORWARD, "mul_1")]


@pytest.mark.parametrize(
    ("node", "there", "names"),
    [
        (NodeId(DYNAMO, "linear_1"), POST_FORWARD, ["mul_1", "relu_2"]),
        (NodeId(POST_BACKWARD, "mul_1"), DYNAMO, ["linear_1"]),
        (NodeId(POST_FORWARD, "relu_2"), FORWARD, ["relu_2"]),
        (NodeId(FORWARD, "relu_2"), BACKWARD, []),
        (NodeId(JOINT, "grad_1"), POST_BACKWARD, ["mul_1"]),
        (NodeId(DYNAMO, "linear_1"), DYNAMO, ["linear_1"]),
        (NodeId(DYNAMO, "linear_1"), OTHER, []),
    ],
)
def test_counterparts_are_found_up_and_down_and_in_graph_order(node: NodeId, there: GraphId, names: list[str]) -> None:
    assert Provenance(trained()).counterparts(node, there) == [NodeId(there, name) for name in names]


def test_a_users_line_has_its_nodes_in_every_graph() -> None:
    found = Provenance(trained()).nodes_at("m.py", 2)
    assert found == [NodeId(JOINT, "relu_2"), NodeId(FORWARD, "relu_2"), NodeId(POST_FORWARD, "relu_2")]
    assert Provenance(trained()).nodes_at("m.py", 99) == []


def test_a_run_that_grows_is_followed() -> None:
    run = trained()
    codes, run.codes = run.codes, {}
    provenance = Provenance(run)
    assert provenance.kernels_of(NodeId(FORWARD, "mul_1")) == []
    run.codes = codes
    assert len(provenance.kernels_of(NodeId(FORWARD, "mul_1"))) == 2


def test_a_hundred_thousand_nodes_are_walked_without_a_search() -> None:
    run = Run(1, Program("m.py"), Target(), 0.0)
    names = [f"n{index}_1" for index in range(100_000)]
    run.graphs = {each: graph(each, *names) for each in (FORWARD, POST_FORWARD)}
    run.links = [Links(FORWARD, POST_FORWARD, tuple((name, name) for name in names))]
    provenance = Provenance(run)
    provenance.counterparts(NodeId(FORWARD, names[0]), POST_FORWARD)

    def walk() -> None:
        for name in names[:1000]:
            provenance.counterparts(NodeId(FORWARD, name), POST_FORWARD)
            provenance.kernels_of(NodeId(FORWARD, name))

    assert lines_run(walk)[1] < 200 * 1_000  # a search through the pairs would run 100,000 for each


def test_only_the_links_on_the_way_of_a_node_are_walked() -> None:
    run = trained()
    names = [f"n{index}_1" for index in range(10_000)]
    run.links.append(Links(OTHER, GraphId("1/0", "joint"), tuple((name, name) for name in names)))

    def look() -> None:
        assert [node.name for node in Provenance(run).counterparts(NodeId(DYNAMO, "linear_1"), FORWARD)]

    assert lines_run(look)[1] < 1_000


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_in_a_real_compile_most_post_grad_calls_have_a_kernel_and_go_back_to_the_users_graph(recording: Path) -> None:
    with recording.open("rb") as log:
        run = fold(events_of(log)).last
    assert run is not None
    provenance = Provenance(run)
    for each in [graph for graph in run.graphs.values() if graph.id.stage == "post_grad"]:
        calls = [each.node_id(node.name) for node in each.nodes if node.op == "call_function"]
        assert sum(bool(provenance.kernels_of(node)) for node in calls) > len(calls) / 2
        dynamo = GraphId(each.id.frame, "dynamo")
        assert sum(bool(provenance.counterparts(node, dynamo)) for node in calls) > len(calls) / 2
