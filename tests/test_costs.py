"""What padding and falling back cost is counted from the shapes, views once, operands padded too."""

from idbg import costs
from idbg.constraints import Checker, Constraint, Findings
from idbg.constraints.alignment import Alignment
from idbg.constraints.unsupported_ops import UnsupportedOps
from idbg.records import Graph, GraphId, Node, TensorMeta


def node(name: str, target: str = "", inputs: tuple[str, ...] = (), *shape: int, storage: int = -1) -> Node:
    return Node(
        name=name,
        op="call_function" if target else "placeholder",
        target=target or name,
        inputs=inputs,
        tensors=(TensorMeta("float32", shape),),
        role="intermediate" if target else "input",
        storages=(storage,) if storage >= 0 else (),
    )


def findings(*rules: Constraint, nodes: tuple[Node, ...]) -> Findings:
    return Checker(Graph(GraphId("0/0", "forward"), nodes)).check(rules)


MATMUL = (
    node("x", "", (), 10, 16, storage=0),
    node("w", "", (), 16, 20, storage=1),
    node("mm", "aten.mm.default", ("x", "w"), 10, 20, storage=2),
    node("view", "aten.view.default", ("mm",), 200, storage=2),
)
PAD = Alignment(multiple=16, severity="pad")


def test_a_padded_node_has_its_shape_bytes_and_flops() -> None:
    found = findings(PAD, nodes=MATMUL)
    (result,) = costs.padded(found, 2)
    assert result.shape == (16, 32)
    waste = costs.waste_of(found, 2)
    assert (waste.nbytes, waste.wasted_bytes) == (4 * 10 * 20, 4 * (16 * 32 - 10 * 20))
    assert (waste.flops, waste.flops + waste.wasted_flops) == (2 * 10 * 16 * 20, 2 * 16 * 16 * 32)
    assert costs.padded(found, 1)[0].shape == (16, 32)


def test_the_total_counts_memory_that_a_view_shares_once() -> None:
    total = costs.waste(findings(PAD, nodes=MATMUL))
    elements, padded = 10 * 16 + 16 * 20 + 10 * 20, 16 * 16 + 16 * 32 + 16 * 32
    assert (total.nbytes, total.wasted_bytes) == (4 * elements, 4 * (padded - elements))
    assert total.bytes_percent == 100 * (padded - elements) / elements


def test_of_two_rules_the_larger_pads() -> None:
    rows = Alignment(multiple=8, dims=(0,), severity="pad", name="rows")
    found = findings(PAD, rows, nodes=MATMUL)
    assert costs.padded(found, 2)[0].shape == (16, 32)
    assert costs.padded(findings(rows, nodes=MATMUL), 2)[0].shape == (16, 20)


def test_a_rule_about_operands_pads_copies_of_them() -> None:
    found = findings(Alignment(multiple=16, severity="pad", ops=("mm",), tensors="operands"), nodes=MATMUL)
    assert costs.padded(found, 2) == []
    assert costs.waste(found).wasted_bytes == 4 * (16 * 16 - 10 * 16 + 16 * 32 - 16 * 20)


def test_what_rejects_pads_nothing() -> None:
    assert costs.waste(findings(Alignment(multiple=16), nodes=MATMUL)).wasted_bytes == 0
    assert costs.waste(findings(nodes=())).bytes_percent == 0.0


CHAIN = (
    node("x", "", (), 8),
    node("a", "aten.sin.default", ("x",), 8),
    node("b", "aten.cos.default", ("a",), 8),
    node("c", "aten.sin.default", ("b",), 8),
    node("d", "aten.tan.default", ("c",), 8),
    node("e", "aten.sin.default", ("d",), 8),
)


def test_nodes_that_fall_back_cut_the_graph_and_their_tensors_cross() -> None:
    found = findings(UnsupportedOps(deny=("cos",), severity="fallback"), nodes=CHAIN)
    parts = costs.partitions(found)
    assert (parts.parts, parts.host) == ((("a",), ("c", "d", "e")), ("b",))
    assert (parts.crossings, parts.bytes) == (2, 64)


def test_the_best_change_is_the_finding_whose_end_merges_most() -> None:
    found = findings(UnsupportedOps(deny=("cos", "tan"), severity="fallback"), nodes=CHAIN)
    change = costs.best_change(found)
    assert change is not None and change.label.startswith("unsupported_ops: ") and change.count == 2
    assert costs.best_change(findings(UnsupportedOps(deny=("cos",)), nodes=CHAIN)) is None


def test_two_rules_pad_to_what_both_take() -> None:
    three = (node("x", "", (), 3),)
    rules = [Alignment(multiple=multiple, severity="pad", name=str(multiple)) for multiple in (4, 6)]
    assert costs.padded(findings(*rules, nodes=three), 0)[0].shape == (12,)


def test_what_multiplies_padded_operands_is_padded_too() -> None:
    found = findings(Alignment(multiple=8, severity="pad", ops=("mm",), tensors="operands"), nodes=MATMUL)
    waste = costs.waste_of(found, 2)
    assert waste.flops + waste.wasted_flops == 2 * 16 * 16 * 24
