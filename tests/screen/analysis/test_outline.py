"""Do nodes stand under their modules, in the graph's order, and fold?"""

from msgspec.structs import replace

from idbg.analysis.outline import DEEPEST, INPUTS, outline
from idbg.schema.graphs import Graph, Node, TensorMeta
from tests.harness.recorded import INFERENCE, state_of


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


def layers(count: int, *, odd: int = -1) -> Graph:
    """So many layers, `odd` of which makes one tensor of another shape."""
    nodes = [node for layer in range(count) for node in _layer(layer)]
    if odd >= 0:
        at = 4 * odd + 1
        nodes[at] = replace(nodes[at], tensors=(TensorMeta("float32", (9,)),))
    return Graph(INFERENCE, tuple(nodes))


def test_repeated_layers_are_folded_under_one_heading_beside_the_first() -> None:
    built = outline(layers(12))
    shown = [built.headings[~row] for row in built.rows() if row < 0]
    assert [(h.key, h.title, h.alike, h.twin) for h in shown] == [
        ("layers", "layers", 0, ""),
        ("layers.0", "0", 12, ""),
        ("layers.1..11", "1..11", 11, "0"),
    ]
    group = shown[-1]
    assert group.is_group and group.span == (4, 48) and not group.differing
    built.unfold(built.headings.index(group))
    assert [built.headings[~row].title for row in built.rows() if row < 0][3:] == [str(at) for at in range(1, 12)]
    assert {built.depth(~at) for at in group.children} == {2} and built.depth(44) == 3
    assert built.reveal(44) and 44 in built.rows()


def test_two_layers_that_are_alike_need_no_heading_of_their_own() -> None:
    built = outline(layers(2))
    assert [(h.title, h.alike, h.twin) for h in built.headings] == [("layers", 0, ""), ("0", 2, ""), ("1", 0, "0")]


def test_a_layer_that_differs_in_a_node_is_alike_and_has_that_node() -> None:
    built = outline(layers(4, odd=2))
    group = next(heading for heading in built.headings if heading.is_group)
    assert (group.alike, group.twin, group.model, group.differing) == (3, "0", 0, (9,))
    assert [heading.differing for heading in built.headings if heading.twin == "0"][1:] == [(), (9,), ()]


def test_layers_with_other_operators_or_too_many_other_tensors_are_not_alike() -> None:
    graph = layers(3, odd=1)
    second = replace(graph.nodes[6], tensors=(TensorMeta("float32", (9,)),))
    renamed = replace(graph.nodes[5], target="aten.tanh.default")
    for at, node in ((6, second), (5, renamed)):
        unlike = Graph(INFERENCE, (*graph.nodes[:at], node, *graph.nodes[at + 1 :]))
        assert [heading.twin for heading in outline(unlike).headings] == [""] * 4


def test_a_module_with_nothing_but_one_module_is_one_heading_with_it() -> None:
    graph = graph_of(*["bert.encoder.layer.0"] * 3, *["bert.encoder.layer.1"] * 4, *["head"] * 3)
    built = outline(graph, set())
    found = [(h.title, h.depth, h.path, h.span) for h in built.headings]
    assert found == [
        ("bert.encoder.layer", 0, "bert.encoder.layer", (0, 7)),
        ("0", 1, "bert.encoder.layer.0", (0, 3)),
        ("1", 1, "bert.encoder.layer.1", (3, 7)),
        ("head", 0, "head", (7, 10)),
    ]
    assert [built.headings[at].parent for at in (0, 1, 2, 3)] == [-1, 0, 0, -1]
    assert built.owner == [1, 1, 1, 2, 2, 2, 2, 3, 3, 3]


def test_what_is_alone_in_a_module_is_unfolded_with_it() -> None:
    built = outline(graph_of("m", *["m.a"] * 3, *["m.a.b"] * 3, "m"), None)
    built.folded.update(heading.key for heading in built.headings)
    assert built.rows() == [~0]
    built.unfold(0)
    assert not built.folded & {"m", "m.a", "m.a.b"}


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
    assert [heading.title for heading in built.headings] == [deep]
    assert len(outline(graph_of(*(deep[: 2 * length + 1] for length in range(200))), set()).headings) <= DEEPEST + 1
