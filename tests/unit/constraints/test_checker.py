"""A check of a big graph costs what its distinct nodes cost, and says the same as a check of each node."""

from collections.abc import Iterator
from typing import ClassVar

import msgspec

from idbg.accelerators import edit, registry
from idbg.accelerators.model import Accelerator
from idbg.accelerators.parse import parse
from idbg.constraints import Checker, Constraint, Finding, NodeSignature, check
from idbg.constraints.alignment import Alignment
from idbg.constraints.dtype import Dtype
from idbg.constraints.unsupported_ops import UnsupportedOps
from idbg.schema.graphs import Graph, GraphId, Node, TensorMeta
from tests.harness.work import lines_run

ID = GraphId("0/0", "forward")


class Asked(Constraint, frozen=True, tag="asked"):
    """A rule that every node breaks, and that remembers what it was asked."""

    seen: ClassVar[list[NodeSignature]] = []

    def check(self, signature: NodeSignature) -> Iterator[Finding]:
        self.seen.append(signature)
        yield Finding("asked", "not asked")


def call(name: str, target: str, *shape: int, args: str = "", dtype: str = "float32", line: int = 0) -> Node:
    return Node(
        name=name,
        op="call_function",
        target=target,
        args=args,
        tensors=(TensorMeta(dtype, shape, device="cpu"),),
        file="model.py" if line else "",
        line=line,
    )


def graph(*nodes: Node) -> Graph:
    return Graph(ID, nodes)


REPEATED = graph(
    Node(name="x", op="placeholder", target="x", role="input", tensors=(TensorMeta("float32", (10,)),)),
    call("a", "aten.sin.default", 10, args="x", line=3),
    call("b", "aten.sin.default", 10, args="a", line=4),
    call("c", "aten.cos.default", 16, args="b"),
    call("d", "aten.sin.default", 10, args="c"),
    Node(name="output", op="output", target="output", tensors=(TensorMeta("float64", (3,)),)),
)


def test_nodes_that_look_alike_are_asked_about_once() -> None:
    Asked.seen.clear()
    assert len(Checker(REPEATED).check((Asked(),))) == 5
    assert [signature.target for signature in Asked.seen] == ["", "aten.sin.default", "aten.cos.default"]


def test_a_rule_sees_nothing_that_nodes_of_its_look_do_not_share() -> None:
    Asked.seen.clear()
    list(Checker(REPEATED).check((Asked(),)).violations())
    assert {signature.args for signature in Asked.seen} == {""}


def test_the_in_place_argument_makes_another_signature() -> None:
    target = "torch.nn.functional.relu"
    nodes = graph(call("a", target, 8, args="x, inplace = False"), call("b", target, 8, args="x, inplace = True"))
    assert [v.node.name for v in Checker(nodes).check((UnsupportedOps(deny=("relu_",)),)).violations()] == ["b"]


def test_output_nodes_are_not_checked() -> None:
    assert "output" not in {v.node.name for v in Checker(REPEATED).check((Dtype(allowed=()),)).violations()}


def test_violations_come_in_the_order_of_nodes_and_then_of_rules() -> None:
    rules = (UnsupportedOps(deny=("sin",)), Alignment(multiple=16))
    found = [(v.node.name, v.rule) for v in Checker(REPEATED).check(rules).violations()]
    assert found == [
        ("x", "alignment"),
        ("a", "unsupported_ops"),
        ("a", "alignment"),
        ("b", "unsupported_ops"),
        ("b", "alignment"),
        ("d", "unsupported_ops"),
        ("d", "alignment"),
    ]


def test_a_violation_carries_its_rule_and_the_users_line() -> None:
    rule = Alignment(multiple=16, name="tiles", severity="pad", source="https://example.org")
    violation = Checker(REPEATED).check((rule,)).violations_of("b")[0]
    assert (violation.rule, violation.severity, violation.source) == ("tiles", "pad", "https://example.org")
    assert (violation.file, violation.line, violation.node.graph) == ("model.py", 4, ID)


def test_counts_need_no_expansion_and_agree_with_it() -> None:
    found = Checker(REPEATED).check(
        (UnsupportedOps(deny=("sin",)), Alignment(multiple=16, severity="pad"), Dtype(allowed=("f32",)))
    )
    assert found.by_rule == {"unsupported_ops": 3, "alignment": 4, "dtype": 0}
    assert found.by_severity == {"reject": 3, "pad": 4}
    assert len(found) == len(list(found.violations())) == sum(group.count for group in found.groups)


def test_groups_hold_the_nodes_of_one_finding_in_graph_order() -> None:
    (group,) = Checker(REPEATED).check((Alignment(multiple=16),)).groups
    assert group.finding.found == "dim 0 is 10"
    assert [REPEATED.nodes[index].name for index in group.nodes] == ["x", "a", "b", "d"]
    assert [violation.node.name for violation in group.violations()] == ["x", "a", "b", "d"]


def test_a_nodes_rules_and_worst_severity_are_looked_up_by_place_or_name() -> None:
    found = Checker(REPEATED).check((Alignment(multiple=16, severity="pad"), UnsupportedOps(deny=("sin",))))
    assert [rule.name for rule, _ in found.broken_by("a")] == ["alignment", "unsupported_ops"]
    assert (found.worst_at(0), found.worst_at(1), found.worst_at(3), found.worst_at(5)) == ("pad", "reject", None, None)
    assert found.broken_by("nobody") == ()


def test_a_disabled_rule_finds_nothing() -> None:
    assert Checker(REPEATED).check((Alignment(multiple=16, enabled=False),)).by_rule == {}


def test_only_rules_that_changed_are_asked_again() -> None:
    checker = Checker(REPEATED)
    checker.check((Asked(), Alignment(multiple=8)))
    Asked.seen.clear()
    assert len(checker.check((Asked(), Alignment(multiple=16)))) == 9
    assert Asked.seen == []
    checker.check((Asked(severity="slow"), Alignment(multiple=16)))
    assert Asked.seen


def test_a_recheck_says_what_appeared_and_what_went() -> None:
    checker = Checker(REPEATED)
    before = checker.check((UnsupportedOps(deny=("sin",)),))
    after = checker.check((UnsupportedOps(deny=("cos",)),))
    change = after.since(before)
    assert [(group.finding.found, group.count) for group in change.appeared] == [("cos is denied", 1)]
    assert [(group.finding.found, group.count) for group in change.went] == [("sin is denied", 3)]


def test_a_stricter_value_that_the_same_sizes_break_makes_nothing_appear() -> None:
    checker = Checker(REPEATED)
    before = checker.check((Alignment(multiple=16),))
    assert checker.check((Alignment(multiple=32),)).since(before).appeared != []  # 16 itself is bad now
    assert sum(group.count for group in checker.check((Alignment(multiple=32),)).since(before).appeared) == 1
    assert checker.check((Alignment(multiple=32),)).since(before).went == []


def test_a_rule_that_is_taken_out_takes_its_violations_along() -> None:
    checker = Checker(REPEATED)
    before = checker.check((Alignment(multiple=16), UnsupportedOps(deny=("sin",))))
    change = checker.check((UnsupportedOps(deny=("sin",)),)).since(before)
    assert change.appeared == [] and [group.rule.name for group in change.went] == ["alignment"]


def test_checking_a_graph_says_what_asking_each_node_alone_says() -> None:
    text, _ = registry.find("mock")
    text = edit.set_first(text, "alignment", "multiple", 16)
    text = edit.set_first(text, "dtype", "allowed", ["bfloat16"])
    rules = parse(edit.set_first(text, "unsupported_ops", "deny", ["sin"])).rules
    alone = [
        (node.name, rule.name, finding.found, finding.wanted, finding.advice)
        for node in REPEATED.nodes[:-1]
        for rule in rules
        for finding in rule.check(node)  # type: ignore[arg-type]  # it has all that these rules read
    ]
    together = [(v.node.name, v.rule, v.found, v.wanted, Finding.of(v).advice) for v in check(REPEATED, parse(text))]
    assert [each for each in alone if each[1] != "unsupported_ops"] == [
        each for each in together if each[1] != "unsupported_ops"
    ]


def test_a_graph_without_nodes_has_no_violations() -> None:
    found = Checker(graph()).check((Alignment(multiple=16),))
    assert len(found) == 0 and found.groups == [] and list(found.violations()) == []


def test_findings_of_equal_graphs_are_equal_after_a_round_trip() -> None:
    again = msgspec.json.decode(msgspec.json.encode(REPEATED), type=Graph)
    rules = Accelerator(rules=(Alignment(multiple=16),))
    assert check(again, rules) == check(REPEATED, rules)


def test_without_a_rule_nothing_is_indexed() -> None:
    nodes = graph(*(call(f"sin_{at}", "aten.sin.default", 10, line=at) for at in range(1_000)))
    checker = Checker(nodes)

    def look() -> None:
        found = checker.check(())
        assert (len(found), found.broken_nodes(), found.worst_at(999), found.broken_at(999)) == (0, [], None, ())

    assert lines_run(look)[1] < 100
