"""Are the nodes around one found, and only those that have to do with it?"""

from idbg.analysis.neighbours import distances
from idbg.schema.graphs import Graph, GraphId, Node


def graph_of(**inputs: str) -> Graph:
    nodes = []
    for name, reads in inputs.items():
        op = "placeholder" if name.startswith("arg") else "output" if name == "output" else "call_function"
        nodes.append(Node(name=name, op=op, target=name, inputs=tuple(reads.split())))  # type: ignore[arg-type]
    return Graph(GraphId("0/0", "inference"), tuple(nodes))


GRAPH = graph_of(arg="", a="arg", b="a", c="b", d="c", other="arg", output="d other")


def test_inputs_and_users_count_alike_the_nearest_first() -> None:
    assert list(distances(GRAPH, "b", 1).items()) == [("b", 0), ("a", 1), ("c", 1)]
    assert distances(GRAPH, "b", 2) == {"b": 0, "a": 1, "c": 1, "arg": 2, "d": 2}


def test_no_way_leads_through_a_weight_or_the_output() -> None:
    assert "other" not in distances(GRAPH, "b", 9)
    assert distances(GRAPH, "arg", 1) == {"arg": 0, "a": 1, "other": 1}
    assert distances(GRAPH, "d", 9)["output"] == 1
