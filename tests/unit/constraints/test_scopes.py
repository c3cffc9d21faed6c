"""A rule applies to the ops, roles, stages and tensors that it names, and nowhere else."""

from typing import Any

import pytest

from idbg.constraints import Constraint, Finding, check
from idbg.constraints.dtype import Dtype
from idbg.constraints.rank import Rank
from idbg.constraints.unsupported_ops import UnsupportedOps
from idbg.schema.graphs import Graph, GraphId, Node, Stage, TensorMeta


def tensor(*shape: int, dtype: str = "float32") -> TensorMeta:
    return TensorMeta(dtype, shape)


def mlp(stage: Stage = "forward") -> Graph:
    """out = relu(x @ w), with x float32 and w int8."""
    nodes = (
        Node(name="x", op="placeholder", target="x", role="input", tensors=(tensor(2, 3),)),
        Node(name="w", op="placeholder", target="w", role="weight", tensors=(tensor(3, 4, dtype="int8"),)),
        Node(name="mm", op="call_function", target="aten.mm.default", inputs=("x", "w"), tensors=(tensor(2, 4),)),
        Node(
            name="relu",
            op="call_function",
            target="aten.relu.default",
            inputs=("mm",),
            tensors=(tensor(2, 4),),
            role="output",
        ),
        Node(name="output", op="output", target="output", inputs=("relu",)),
    )
    return Graph(GraphId("0/0", stage), nodes)


class Rules:
    def __init__(self, *rules: Constraint) -> None:
        self.rules = rules


def broken(rule: Constraint, stage: Stage = "forward") -> list[str]:
    return [violation.node.name for violation in check(mlp(stage), Rules(rule))]


@pytest.mark.parametrize(
    ("roles", "nodes"),
    [
        ((), ["x", "w", "mm", "relu"]),
        (("inputs",), ["x"]),
        (("weights",), ["w"]),
        (("intermediates",), ["mm"]),
        (("outputs", "inputs"), ["x", "relu"]),
    ],
)
def test_roles(roles: Any, nodes: list[str]) -> None:
    assert broken(Dtype(allowed=(), roles=roles)) == nodes


@pytest.mark.parametrize("glob", ["mm", "m*", "aten.mm.default", "torch.mm"])
def test_ops_are_globs_of_calls(glob: str) -> None:
    assert broken(Dtype(allowed=(), ops=(glob,))) == ["mm"]


def test_stages() -> None:
    rule = Dtype(allowed=(), stages=("backward",))
    assert (broken(rule), len(broken(rule, "backward"))) == ([], 4)


def test_operands_are_checked_where_they_are_read_and_called_by_their_place() -> None:
    (violation,) = check(mlp(), Rules(Dtype(allowed=("float32",), ops=("mm",), tensors="operands")))
    assert (violation.node.name, violation.found) == ("mm", "operand 1: dtype is int8")


def test_roles_of_operands_are_those_of_the_nodes_that_make_them() -> None:
    assert broken(Rank(max=1, tensors="operands", roles=("weights",))) == ["mm"]
    assert broken(Rank(max=1, tensors="operands", roles=("intermediates",))) == ["relu"]


def test_a_rule_about_calls_can_be_kept_to_outputs() -> None:
    assert broken(UnsupportedOps(deny=("*",), roles=("outputs",))) == ["relu"]


def test_the_authors_hint_stands_behind_ours() -> None:
    violation = check(mlp(), Rules(Rank(max=1, fix="see page 3")))[0]
    assert Finding.of(violation).advice.endswith("; see page 3")


@pytest.mark.parametrize(
    ("target", "glob", "hit"),
    [
        ("aten.add.Tensor", "torch.ops.aten.add.Tensor", True),
        ("aten.add.Tensor", "torch.ops.aten.*", True),
        ("aten.add.Tensor", "operator.add", True),
        ("operator.add", "aten.add", True),
        ("rev.foo.default", "rev.foo", True),
        ("rev.foo.default", "torch.ops.rev.foo.default", True),
        ("rev.foo.default", "foo", True),
        ("rev.foo.default", "aten.*", False),
        ("rev.foo.default", "aten.foo", False),
    ],
)
def test_a_glob_with_a_library_means_that_librarys_op(target: str, glob: str, hit: bool) -> None:
    node = Node(name="n", op="call_function", target=target, tensors=(tensor(2),))
    found = check(Graph(GraphId("0/0", "forward"), (node,)), Rules(UnsupportedOps(deny=(glob,))))
    assert bool(found) is hit
