"""Do the walking keys follow edges, and come back?"""

from idbg.constraints import Checker
from idbg.schema.graphs import Graph, Node, NodeId
from idbg_tui.state.jumps import JumpList, Walker
from idbg_tui.state.navigation import next_broken
from tests.harness.recorded import INFERENCE, state_of


def diamond() -> Graph:
    def node(name: str, *inputs: str) -> Node:
        return Node(name=name, op="call_function", target="aten.add.Tensor", inputs=inputs)

    return Graph(INFERENCE, (node("a"), node("b", "a"), node("c", "a"), node("d", "b", "c", "b")))


def test_a_step_goes_to_the_first_input_or_user() -> None:
    assert Walker().step(diamond(), "d", "input", 0) == "b"
    assert Walker().step(diamond(), "a", "user", 0) == "b"


def test_a_further_turn_goes_to_the_next_sibling_and_round_again() -> None:
    walker, graph = Walker(), diamond()
    assert walker.step(graph, "d", "input", 0) == "b"
    assert walker.step(graph, "b", "input", 1) == "c"
    assert walker.step(graph, "c", "input", 1) == "b"


def test_a_turn_from_elsewhere_begins_there() -> None:
    walker, graph = Walker(), diamond()
    walker.step(graph, "d", "input", 0)
    assert walker.step(graph, "a", "user", 1) == "b"


def test_there_is_no_step_past_the_ends() -> None:
    assert Walker().step(diamond(), "a", "input", 0) is None
    assert Walker().step(diamond(), "d", "user", 0) is None


def test_broken_nodes_are_visited_in_order_and_round_again() -> None:
    state = state_of("resnet")
    graph = state.graph
    assert graph is not None
    findings = state.checks.findings(graph)
    expected = [graph.nodes[index].name for index in findings.broken_nodes()]
    name, seen = expected[0], [expected[0]]
    for _ in range(len(expected) - 1):
        name = next_broken(graph, findings, name, 1) or ""
        seen.append(name)
    assert seen == expected
    assert next_broken(graph, findings, expected[-1], 1) == expected[0]
    assert next_broken(graph, findings, expected[0], -1) == expected[-1]


def test_a_clean_graph_has_no_broken_node() -> None:
    graph = diamond()
    assert next_broken(graph, Checker(graph).check(()), "a", 1) is None


def test_jumps_return_in_order_and_a_new_jump_forgets_the_way_forward() -> None:
    a, b, c, d = (NodeId(INFERENCE, name) for name in "abcd")
    jumps = JumpList()
    jumps.leave(a, b)
    jumps.leave(b, c)
    assert jumps.back(c) == b
    assert jumps.back(b) == a
    assert jumps.back(a) is None
    assert jumps.forward(a) == b
    jumps.leave(b, d)
    assert jumps.forward(d) is None
    assert jumps.back(d) == b


def test_a_jump_to_the_same_place_is_none() -> None:
    a = NodeId(INFERENCE, "a")
    jumps = JumpList()
    jumps.leave(a, a)
    assert jumps.back(a) is None
