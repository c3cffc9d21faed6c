"""What the rules about sizes, operands, windows and memory find, and what they let pass."""

from typing import Any

import pytest

from idbg.accelerators.model import Accelerator
from idbg.accelerators.parse import parse
from idbg.constraints import BadValue, Constraint, NodeSignature, Operand, check
from idbg.constraints.alignment import Alignment
from idbg.constraints.constant_operand import ConstantOperand
from idbg.constraints.layout import Layout
from idbg.constraints.leading_dims import LeadingDims
from idbg.constraints.matmul_tile import MatmulTile
from idbg.constraints.max_dim import MaxDim
from idbg.constraints.peak_memory import PeakMemory
from idbg.constraints.rank import Rank
from idbg.constraints.same_dtype import SameDtype
from idbg.constraints.static_shapes import StaticShapes
from idbg.constraints.unknown import Unknown
from idbg.constraints.unsupported_ops import UnsupportedOps
from idbg.constraints.weights_memory import WeightsMemory
from idbg.constraints.window import Window
from idbg.schema.graphs import Dim, Graph, GraphId, Node, Role, Sym, TensorMeta


def tensor(*shape: Dim, dtype: str = "float32", stride: tuple[int, ...] = ()) -> TensorMeta:
    return TensorMeta(dtype, shape, stride)


def signature(
    *results: TensorMeta, role: Role = "intermediate", target: str = "aten.mul.Tensor", **fields: Any
) -> NodeSignature:
    return NodeSignature(target=target, role=role, tensors=results, **fields)


def reads(target: str, *operands: TensorMeta | Operand, args: str = "") -> NodeSignature:
    wrapped = [one if isinstance(one, Operand) else Operand(one) for one in operands]
    return signature(tensor(1), target=target, operands=tuple(wrapped), args=args)


def found(rule: Constraint, node: NodeSignature) -> list[str]:
    return [f"{finding.found} | {finding.wanted} | {finding.advice}" for finding in rule.check(node)]


# ---------------------------------------------------------------- which dimensions


@pytest.mark.parametrize(
    ("dims", "batch", "role", "shape", "places"),
    [
        ("all", True, "input", (3, 5, 7), [0, 1, 2]),
        ("all", False, "input", (3, 5, 7), [1, 2]),
        ("all", False, "weight", (3, 5, 7), [0, 1, 2]),
        ("all", False, "input", (3,), [0]),
        ("last", True, "input", (3, 5, 7), [2]),
        ("last 2", True, "input", (3, 5, 7), [1, 2]),
        ("last 9", True, "input", (3, 5), [0, 1]),
        (("channels",), True, "input", (3, 5, 7, 9), [1]),
        (("channels", "width"), True, "input", (3, 5), []),
        (("height", "batch"), True, "input", (3, 5, 7, 9), [0, 2]),
        ((0, -1, 5), True, "input", (3, 5, 7), [0, 2]),
    ],
)
def test_dims_name_positions(dims, batch, role, shape, places) -> None:
    rule = Alignment(multiple=16, dims=dims, batch=batch)
    assert [place for place, _ in rule.sizes(tensor(*shape), role)] == places


@pytest.mark.parametrize("dims", ["last 0", "lasting", ("depth",)])
def test_dims_that_do_not_exist_are_refused(dims) -> None:
    with pytest.raises(BadValue):
        Alignment(multiple=16, dims=dims)


def test_alignment_in_bytes_is_in_elements_of_each_dtype() -> None:
    rule = Alignment(multiple=32, unit="bytes", dims="last")
    assert found(rule, signature(tensor(3, 8))) == []
    (said,) = found(rule, signature(tensor(3, 8, dtype="bfloat16")))
    assert said == "dim 1 is 8 | a multiple of 16 (32 bytes of bfloat16) | pad to 16: +100 % bytes"


def test_alignment_says_the_range_of_a_symbol() -> None:
    (said,) = found(Alignment(multiple=16), signature(tensor(Sym("s0", 10, 2, 64))))
    assert said.startswith("dim 0 is s0 (hint 10, range 2 to 64)")


# ---------------------------------------------------------------- sizes and ranks


def test_rank() -> None:
    rule = Rank(min=1, max=4)
    assert found(rule, signature(tensor(1, 2, 3, 4))) == []
    assert "rank is 5 | at most 4" in found(rule, signature(tensor(1, 1, 1, 1, 1)))[0]
    assert "rank is 0 | at least 1" in found(rule, signature(tensor()))[0]


def test_max_dim() -> None:
    rule = MaxDim(max=65535, dims=("height", "width"))
    assert found(rule, signature(tensor(1, 70000, 3, 3))) == []
    (said,) = found(rule, signature(tensor(1, 1, 70000, 3)))
    assert said == "dim 2 is 70000 | at most 65535 | split it: 2 pieces or more (torch.chunk)"


@pytest.mark.parametrize(
    ("dim", "breaks"),
    [
        (Sym("s0", 10), False),
        (Sym("s0", 10, 2, 64), True),
        (Sym("s0", 10, 2, 32), False),
        (Sym("s0", 40), True),
        (Sym("u0"), False),
    ],
)
def test_max_dim_of_a_symbol_is_that_of_its_hint_and_of_the_end_of_its_range(dim: Sym, breaks: bool) -> None:
    assert bool(found(MaxDim(max=32), signature(tensor(dim)))) is breaks


def test_static_shapes() -> None:
    assert found(StaticShapes(), signature(tensor(3, 4))) == []
    (said,) = found(StaticShapes(), signature(tensor(3, Sym("s0", 8))))
    assert "dim 1 is s0 (hint 8)" in said and "dynamic=False" in said


def test_leading_dims() -> None:
    assert found(LeadingDims(free=3), signature(tensor(1, 8, 8, 3))) == []
    assert "dim 0 is 2" in found(LeadingDims(free=3), signature(tensor(2, 8, 8, 3)))[0]


# ---------------------------------------------------------------- layout


@pytest.mark.parametrize(
    ("shape", "stride", "dense", "innermost"),
    [
        ((2, 3), (3, 1), True, True),
        ((2, 3), (1, 2), True, False),
        ((2, 3), (4, 1), False, True),
        ((2, 3), (0, 1), False, True),
        ((2, 1), (1, 7), True, True),
        ((), (), True, True),
    ],
)
def test_dense_and_innermost(shape, stride, dense, innermost) -> None:
    node = signature(tensor(*shape, stride=stride))
    assert (found(Layout(formats=("dense",)), node) == []) is dense
    assert (found(Layout(formats=("innermost",)), node) == []) is innermost


# ---------------------------------------------------------------- calls and their operands


def test_same_dtype() -> None:
    half, full = tensor(2, 2, dtype="float16"), tensor(2, 2)
    assert found(SameDtype(), reads("aten.mm.default", full, full)) == []
    assert "operands are float16 and float32" in found(SameDtype(), reads("aten.mm.default", half, full))[0]


def test_constant_operand() -> None:
    rule = ConstantOperand(position=1, ops=("convolution",))
    image, kernel = tensor(1, 3, 8, 8), tensor(4, 3, 3, 3)
    assert found(rule, reads("aten.convolution.default", image, Operand(kernel, "weight"))) == []
    assert "operand 1 is computed" in found(rule, reads("aten.convolution.default", image, kernel))[0]


@pytest.mark.parametrize(
    ("target", "operands"),
    [
        ("aten.mm.default", [(5, 300), (300, 7)]),
        ("aten.bmm.default", [(2, 5, 300), (2, 300, 7)]),
        ("aten.addmm.default", [(7,), (5, 300), (300, 7)]),
        ("torch.matmul", [(2, 5, 300), (300, 7)]),
        ("torch._C._nn.linear", [(5, 300), (7, 300), (7,)]),
    ],
)
def test_a_matmul_is_cut_into_tiles(target: str, operands: list[tuple[int, ...]]) -> None:
    node = reads(target, *[tensor(*shape) for shape in operands])
    assert found(MatmulTile(k=128, m=128, n=512), node) == ["k is 300 | k at most 128 | runs in 3 tiles"]
    assert found(MatmulTile(m=4, n=4), node) == ["m is 5, n is 7 | m at most 4, n at most 4 | runs in 4 tiles"]


def test_what_is_no_matmul_has_no_tiles() -> None:
    assert found(MatmulTile(k=1), reads("aten.add.Tensor", tensor(5, 300), tensor(5, 300))) == []


@pytest.mark.parametrize(
    ("target", "args", "area"),
    [
        ("aten.convolution.default", "x, w, None, [1, 1], [0, 0], [2, 2], False, [0, 0], 1", 9 * 9),
        ("torch.conv2d", "x, w, None, (1, 1), (0, 0), (1, 1), 1", 5 * 5),
        ("torch.conv2d", "x, w, dilation = 2", 9 * 9),
        ("aten.avg_pool2d.default", "x, [7, 7]", 7 * 7),
        ("torch.nn.functional.max_pool2d", "x, 3, 2", 3 * 3),
    ],
)
def test_windows_count_their_dilation(target: str, args: str, area: int) -> None:
    node = Node(
        name="n", op="call_function", target=target, args=args, inputs=("x", "w"), tensors=(tensor(1, 4, 8, 8),)
    )
    inputs = [
        Node(name=name, op="placeholder", target=name, tensors=(tensor(*shape),))
        for name, shape in (("x", (1, 3, 20, 20)), ("w", (4, 3, 5, 5)))
    ]
    graph = Graph(GraphId("0/0", "dynamo"), (*inputs, node))
    (violation,) = check(graph, Accelerator(rules=(Window(max_area=1),)))
    assert violation.found == f"the window has {area} elements"
    dilated = check(graph, Accelerator(rules=(Window(max_area=1, dilated=True),)))
    assert bool(dilated) is (area == 81)


def call_of(target: str, args: str, **shapes: tuple[int, ...]) -> Graph:
    """A Dynamo graph of one call. Its inputs stand in the order in which the call names them; w is a weight."""
    inputs = [
        Node(name=name, op="placeholder", target=name, role="weight" if name == "w" else "input", tensors=(tensor(*s),))
        for name, s in shapes.items()
    ]
    node = Node(
        name="n", op="call_function", target=target, args=args, inputs=tuple(shapes), tensors=(tensor(2, 6, 8, 8),)
    )
    return Graph(GraphId("0/0", "dynamo"), (*inputs, node))


def said_of(graph: Graph, rule: Constraint) -> list[str]:
    return [violation.found for violation in check(graph, Accelerator(rules=(rule,)))]


IMAGE, KERNEL = (2, 4, 12, 12), (6, 4, 3, 3)


@pytest.mark.parametrize(
    ("target", "args", "shapes", "area"),
    [
        ("torch.conv2d", "weight = w, input = x", {"w": KERNEL, "x": IMAGE}, 9),
        ("torch.conv2d", "x, x", {"x": (4, 4, 3, 3)}, 9),
        ("torch.conv_transpose2d", "x, w, b, (2, 2), (1, 1), (0, 0), 1, (1, 1)", {"x": IMAGE, "w": (4, 6, 5, 5)}, 25),
        ("torch.conv_transpose2d", "x, w, b, (2, 2), (1, 1), (1, 1), 1, (2, 2)", {"x": IMAGE, "w": (4, 6, 3, 3)}, 25),
        ("torch.conv_transpose2d", "weight = w, dilation = 2, input = x", {"w": (4, 6, 3, 3), "x": IMAGE}, 25),
        ("torch.nn.functional.max_pool2d", "x, 3, 1, 0, 2", {"x": IMAGE}, 25),
        ("torch.nn.functional.max_pool2d", "x, 3, 1, 0, 2", {"x": (4, 12, 12)}, 25),
        ("aten.max_pool2d_with_indices.default", "x, [3, 3], [1, 1], [0, 0], [2, 2]", {"x": IMAGE}, 25),
        ("torch.nn.functional.lp_pool2d", "x, 2, 3", {"x": IMAGE}, 9),
    ],
)
def test_a_window_is_that_of_the_weight_or_the_pool_however_the_call_is_written(target, args, shapes, area) -> None:
    graph = call_of(target, args, **shapes)
    assert said_of(graph, Window(max_area=1)) == [f"the window has {area} elements"]
    assert bool(said_of(graph, Window(max_area=1, dilated=True))) is (area == 25 and shapes.get("w") != (4, 6, 5, 5))


@pytest.mark.parametrize(
    ("target", "args", "order"),
    [
        ("torch.mm", "x, y", "xy"),
        ("torch.mm", "mat2 = y, input = x", "yx"),
        ("torch.addmm", "input = b, mat2 = y, mat1 = x", "byx"),
        ("torch.addmm", "mat2 = y, input = b, mat1 = x", "ybx"),
        ("torch.bmm", "mat2 = y, input = x", "yx"),
    ],
)
def test_keywords_do_not_turn_a_matmul(target: str, args: str, order: str) -> None:
    shapes = {"x": (5, 300), "y": (300, 7), "b": (7,)}
    graph = call_of(target, args, **{name: shapes[name] for name in order})
    assert said_of(graph, MatmulTile(m=1, k=1, n=1)) == ["m is 5, k is 300, n is 7"]


def test_a_matmul_of_a_tensor_and_itself_has_both_operands() -> None:
    graph = call_of("torch.addmm", "b, y, y", b=(7,), y=(7, 7))
    assert said_of(graph, MatmulTile(m=1, n=1)) == ["m is 7, n is 7"]
    assert said_of(call_of("torch.mm", "y, y", y=(7, 7)), ConstantOperand(position=1)) != []
    assert said_of(call_of("torch.mm", "w, w", w=(7, 7)), ConstantOperand(position=1)) == []


def test_the_operand_at_a_position_is_that_of_the_parameter() -> None:
    graph = call_of("torch.conv2d", "weight = w, input = x", w=KERNEL, x=IMAGE)
    assert said_of(graph, ConstantOperand(position=1)) == []
    assert said_of(graph, ConstantOperand(position=0)) == ["operand 0 is computed when it runs"]


def test_only_what_is_allowed_runs() -> None:
    with pytest.raises(BadValue, match="in allow and in deny"):
        UnsupportedOps(allow=("mm", "conv2d"), deny=("mm",))
    rule = UnsupportedOps(allow=("mm", "conv2d"))
    assert found(rule, reads("torch.mm", tensor(1, 1))) == []
    assert found(rule, reads("aten.add.Tensor", tensor(1, 1)))[0].startswith("add is not supported")
    assert found(rule, signature(target="operator.getitem")) == []
    assert found(rule, NodeSignature(target="aten.sym_size.int")) == []


def test_unknown_nodes_are_reported_and_reject_where_the_rule_says_so() -> None:
    graph = Graph(GraphId("0/0", "dynamo"), (Node(name="n", op="call_function", target="lib.op", unknown=True),))
    default = parse('[[rules]]\nkind = "rank"\nmax = 4')
    strict = parse('[[rules]]\nkind = "unknown"\nseverity = "reject"')
    off = parse('[[rules]]\nkind = "unknown"\nenabled = false')
    assert [[v.severity for v in check(graph, a)] for a in (default, strict, off)] == [["unknown"], ["reject"], []]
    assert found(Unknown(), NodeSignature(target="aten.sym_size.int")) == []


# ---------------------------------------------------------------- whole graphs


def forty(count: int = 40) -> Graph:
    """`count` tensors of 4 MB that are all needed at the end."""
    big = TensorMeta("float32", (1024, 1024), (1024, 1))
    inputs = [Node(name="x", op="placeholder", target="x", role="input", tensors=(big,), storages=(0,))]
    made = [
        Node(
            name=f"n{i}", op="call_function", target="aten.mul.Tensor", inputs=("x",), tensors=(big,), storages=(i + 1,)
        )
        for i in range(count)
    ]
    cat = Node(
        name="cat",
        op="call_function",
        target="aten.cat.default",
        inputs=tuple(node.name for node in made),
        tensors=(TensorMeta("float32", (1,), (1,)),),
        storages=(count + 1,),
        role="output",
    )
    return Graph(
        GraphId("0/0", "inference"), (*inputs, *made, cat, Node(name="output", op="output", target="", inputs=("cat",)))
    )


def test_forty_live_tensors_break_a_limit_that_none_breaks_alone() -> None:
    rules = parse(
        '[[rules]]\nkind = "peak_memory"\nmax_bytes = 5_000_000\n[[rules]]\nkind = "memory"\nmax_bytes = 5_000_000'
    )
    (violation,) = check(forty(), rules)
    assert violation.rule == "peak_memory" and violation.node.name == "n39"
    assert "(164.0 MiB) here: x 4 MiB, n0 4 MiB, n1 4 MiB and 38 more" in violation.found
    assert check(forty(0), rules) == []


def test_weights_together() -> None:
    shape = TensorMeta("float32", (256,), (1,))
    weights = tuple(Node(name=f"w{i}", op="placeholder", target="w", role="weight", tensors=(shape,)) for i in range(3))
    graph = Graph(GraphId("0/0", "forward"), weights)
    (violation,) = check(graph, Accelerator(rules=(WeightsMemory(max_bytes=3000),)))
    assert violation.found == "3 weights take 3072 bytes, this one 1024 bytes"
    assert check(graph, Accelerator(rules=(WeightsMemory(max_bytes=3072), PeakMemory(max_bytes=3072)))) == []


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        (Rank, {"max": -1}),
        (Rank, {"min": 3, "max": 2}),
        (MaxDim, {"max": 0}),
        (MaxDim, {"max": 4, "min": 5}),
        (LeadingDims, {"free": -1}),
        (MatmulTile, {"k": 0}),
        (Window, {}),
        (Window, {"max_area": 0}),
        (ConstantOperand, {"position": -1}),
        (PeakMemory, {"max_bytes": -1}),
        (WeightsMemory, {"max_bytes": float("nan")}),
    ],
)
def test_values_that_make_no_sense_are_refused(kind: type[Constraint], keys: dict[str, Any]) -> None:
    with pytest.raises(BadValue):
        kind(**keys)
