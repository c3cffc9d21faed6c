"""Do nodes stand under their modules, in the graph's order, and fold?"""

from idbg.analysis.outline import DEEPEST, INPUTS, outline
from idbg.schema.graphs import Graph, Node
from tests.harness.recorded import INFERENCE, chain, state_of


def graph_of(*modules: str) -> Graph:
    nodes = (
        Node(name=f"n{index}", op="call_function", target=f"aten.op{index}.default", module=module)
        for index, module in enumerate(modules)
    )
    return Graph(INFERENCE, tuple(nodes))


def titles(graph: Graph) -> list[str]:
    built = outline(graph, set())
    return [graph.nodes[row].name if row >= 0 else f"<{built.headings[~row].key}>" for row in built.rows()]


def test_a_module_with_several_nodes_gets_a_heading() -> None:
    assert titles(graph_of("a", "a", "a", "b", "b", "b")) == ["<a>", "n0", "n1", "n2", "<b>", "n3", "n4", "n5"]


def test_a_leaf_with_one_node_stands_in_its_parent() -> None:
    assert titles(graph_of("block.conv", "block.relu", "block.add")) == ["<block>", "n0", "n1", "n2"]


def test_nodes_keep_the_graphs_order_when_a_module_comes_back() -> None:
    found = titles(graph_of("a", "a", "a", "b", "b", "b", "a", "a", "a"))
    assert [title for title in found if not title.startswith("<")] == [f"n{index}" for index in range(9)]
    assert [title for title in found if title.startswith("<")] == ["<a>", "<b>", "<a#2>"]


def test_a_folded_module_hides_its_nodes_and_its_own_modules() -> None:
    graph = graph_of("m.a", "m.a", "m.a", "m.b", "m.b", "m.b", "")
    built = outline(graph, {"m"})
    assert [built.headings[~row].key if row < 0 else row for row in built.rows()] == ["m", 6]


def test_revealing_a_node_unfolds_all_that_is_above_it() -> None:
    built = outline(graph_of("m.a", "m.a", "m.a", "m.b", "m.b", "m.b"), {"m", "m.a", "m.b"})
    assert built.reveal(4)
    assert 4 in built.rows() and 0 not in built.rows()
    assert not built.reveal(4)


def test_repeated_layers_are_folded_and_say_what_they_repeat() -> None:
    built = outline(chain(12, "layers.{index}"), None)
    assert built.headings[0].key == "layers"
    graph = Graph(INFERENCE, tuple(node for layer in range(3) for node in _layer(layer)))
    built = outline(graph, None)
    assert [(h.title, h.twin) for h in built.headings] == [("layers", ""), ("0", ""), ("1", "0"), ("2", "0")]
    assert built.folded == {"layers.1", "layers.2"}


def _layer(number: int) -> list[Node]:
    ops = ("mm", "relu", "add", "mul")
    return [
        Node(name=f"{op}_{number}", op="call_function", target=f"aten.{op}.default", module=f"layers.{number}")
        for op in ops
    ]


def test_every_node_of_a_real_graph_has_one_row_when_nothing_is_folded() -> None:
    graph = state_of("resnet").graph
    assert graph is not None
    built = outline(graph, set())
    assert [row for row in built.rows() if row >= 0] == list(range(len(graph.nodes)))


def test_weights_are_folded_away_as_inputs() -> None:
    graph = state_of("resnet").graph
    assert graph is not None
    built = outline(graph)
    first = built.rows()[0]
    assert first < 0 and built.headings[~first].key == INPUTS
    assert built.headings[~first].last == sum(node.op == "placeholder" for node in graph.nodes)


def test_a_path_of_any_depth_is_read_at_once() -> None:
    deep = ".".join("a" * 100_000)
    built = outline(graph_of(deep, deep, deep), set())
    assert len(built.headings) == DEEPEST + 1
    assert built.headings[-1].title.startswith("a.a.a")
