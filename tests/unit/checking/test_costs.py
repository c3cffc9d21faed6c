"""What padding and falling back cost is counted from the shapes, views once, operands padded too."""

from idbg.checking import costs
from idbg.constraints import Checker, Constraint, Findings
from idbg.constraints.alignment import Alignment
from idbg.constraints.dtype import Dtype
from idbg.constraints.rank import Rank
from idbg.constraints.unsupported_ops import UnsupportedOps
from idbg.schema.graphs import Graph, GraphId, Node, TensorMeta


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


def best(found: Findings) -> list[costs.Better]:
    return costs.best_changes([found], [costs.partitions(found)])


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
    finding, rule = best(found)
    assert finding.label.startswith("unsupported_ops: ") and (finding.count, finding.host) == (2, 1)
    assert (rule.label, rule.count, rule.host) == ("without rule unsupported_ops", 1, 0)
    assert best(findings(UnsupportedOps(deny=("cos",)), nodes=CHAIN)) == []


def test_a_dtype_is_one_finding_in_whichever_operand_it_is() -> None:
    rule = Dtype(allowed=("int8",), tensors="all", ops=("cat",), severity="fallback", name="quantized")
    nodes = (*CHAIN[:3], node("c", "aten.cat.default", ("a", "b"), 8), node("d", "aten.sin.default", ("c",), 8))
    (change,) = best(findings(rule, nodes=nodes))
    assert change.label == "quantized: dtype is float32"
    assert change.words == "allowing 'dtype is float32' (quantized): nothing falls back"


def test_where_no_finding_alone_helps_a_rule_is_left_out() -> None:
    rank = Rank(max=0, ops=("cos",), severity="fallback", tensors="all")
    nodes = (*CHAIN[:2], node("b", "aten.cos.default", ("a",), 8, 1), *CHAIN[3:4])
    (change,) = best(findings(rank, nodes=nodes))
    assert change.words == "without rule rank: nothing falls back"


def test_where_all_is_on_the_host_the_best_change_takes_the_most_from_there() -> None:
    rule = UnsupportedOps(deny=("sin", "cos", "tan"), severity="fallback")
    finding = best(findings(rule, nodes=CHAIN))[0]
    assert (finding.change.found, finding.count, finding.host) == ("sin is denied", 3, 2)


def test_two_rules_pad_to_what_both_take() -> None:
    three = (node("x", "", (), 3),)
    rules = [Alignment(multiple=multiple, severity="pad", name=str(multiple)) for multiple in (4, 6)]
    assert costs.padded(findings(*rules, nodes=three), 0)[0].shape == (12,)


def test_what_multiplies_padded_operands_is_padded_too() -> None:
    found = findings(Alignment(multiple=8, severity="pad", ops=("mm",), tensors="operands"), nodes=MATMUL)
    waste = costs.waste_of(found, 2)
    assert waste.flops + waste.wasted_flops == 2 * 16 * 16 * 24
