"""Memory is alive from the node that makes it to the last use of any view of it, and the peak names what is alive."""

from typing import Any

import pytest

from idbg.analysis.graph_text import read_graph
from idbg.analysis.liveness import Alive, MemoryProfile, WholeCopy, memory_profile, whole_copies
from idbg.schema.graphs import Dim, Graph, GraphId, Node, Opcode, Role, Sym, TensorMeta
from idbg.views.memory import view
from idbg.views.tree import Row

MB = 1 << 20


def f32(*shape: Dim, stride: tuple[Dim, ...] = ()) -> TensorMeta:
    return TensorMeta("float32", shape, stride, "cpu")


def call(name: str, target: str, *inputs: str, tensors: tuple[TensorMeta, ...] = (f32(256),), **more: Any) -> Node:
    return Node(
        name=name, op="call_function", target=target, inputs=inputs, tensors=tensors, args=", ".join(inputs), **more
    )


def argument(name: str, *, role: Role = "input", op: Opcode = "placeholder") -> Node:
    return Node(name=name, op=op, target=name, tensors=(f32(256),), role=role)


def output(*inputs: str) -> Node:
    return Node(name="output", op="output", target="output", inputs=inputs, role="output")


def graph(*nodes: Node) -> Graph:
    return Graph(GraphId("0/0", "inference"), nodes)


def live(*nodes: Node, weights: bool = True) -> list[int]:
    """The profile in KiB: each tensor here takes one."""
    return [nbytes // 1024 for nbytes in memory_profile(graph(*nodes), weights=weights).live_bytes]


def test_a_result_lives_to_its_last_use_and_what_is_returned_to_the_end():
    chain = (call("a", "aten.relu", "x"), call("b", "aten.relu", "a"), call("c", "aten.relu", "b"), output("c"))
    assert live(argument("x"), *chain) == [1, 2, 2, 2, 1]
    assert live(argument("x"), *chain[:-1], output("a", "c")) == [1, 2, 2, 3, 2]


def test_the_peak_names_the_node_and_what_is_alive_largest_first():
    big = call("big", "aten.cat.default", "x", tensors=(f32(1024),))
    found = memory_profile(graph(argument("x"), call("a", "aten.relu", "x"), big, output("a", "big")))
    assert found == MemoryProfile(
        peak_bytes=6 * 1024,
        peak_at="big",
        alive=(Alive("big", 4096), Alive("x", 1024), Alive("a", 1024)),
        live_bytes=[1024, 2048, 6144, 5120],
        unsized=0,
    )


def test_46_forty_live_tensors_of_4_mb_take_160_mb():
    made = [call(f"t{i}", "aten.relu.default", "x", tensors=(f32(1024, 1024),)) for i in range(40)]
    found = memory_profile(graph(argument("x"), *made, call("all", "aten.cat.default", *(node.name for node in made))))
    assert found.peak_bytes >= 160 * MB and found.peak_at == "t39"
    assert sum(held.nbytes >= 4 * MB for held in found.alive) == 40


def test_inputs_are_there_from_the_start_and_weights_and_primals_to_the_end():
    uses = (call("a", "aten.add", "x", "w", "primals_1"), call("b", "aten.relu", "a"), output("b"))
    held = (argument("x"), argument("w", role="weight"), argument("primals_1"))
    assert live(*held, *uses) == [3, 3, 3, 4, 4, 3]
    assert live(*held, *uses, weights=False) == [2, 2, 2, 3, 3, 2]


def test_an_input_that_nobody_uses_stays_and_a_result_that_nobody_uses_goes_at_once():
    assert live(argument("x"), argument("y"), call("dead", "aten.relu", "x"), output("y")) == [2, 2, 3, 1]


def test_a_constant_of_the_graph_counts_from_the_start():
    assert live(call("a", "aten.ones"), argument("c", op="get_attr"), output("a", "c")) == [2, 2, 2]


def test_recorded_memory_decides_what_is_a_view():
    strange = call("v", "mylib.reinterpret.default", "a", storages=(0,))
    nodes = (call("a", "aten.ones", storages=(0,)), strange, call("b", "aten.relu", "v", storages=(1,)), output("b"))
    assert live(*nodes) == [1, 1, 2, 1]


def test_a_views_use_keeps_its_base_alive_and_the_largest_extent_is_what_it_takes():
    row = call("row", "aten.select.int", "a", tensors=(f32(16, stride=(1,)),))
    nodes = (call("a", "aten.ones"), row, call("b", "aten.ones"), call("c", "aten.relu", "row"), output("b", "c"))
    assert live(*nodes) == [1, 1, 2, 3, 2]


@pytest.mark.parametrize(
    "target", ["view", "aten.t.default", "torch.transpose", "aten.add_.Tensor", "operator.iadd", "aten.detach.default"]
)
def test_views_and_in_place_ops_take_no_memory(target: str):
    assert live(call("a", "aten.ones"), call("b", target, "a"), output("b")) == [1, 1, 1]


@pytest.mark.parametrize("args", ["a, inplace = True", "x, out = a"])
def test_arguments_can_say_that_an_op_writes_into_what_is_there(args: str):
    node = Node(name="b", op="call_function", target="torch.nn.functional.relu", args=args, inputs=("a",))
    node = Node(**{**{f: getattr(node, f) for f in node.__struct_fields__}, "tensors": (f32(256),)})
    assert live(call("a", "aten.ones"), node, output("b")) == [1, 1, 1]


@pytest.mark.parametrize(
    ("target", "before", "after", "is_view"),
    [
        ("reshape", f32(16, 16, stride=(16, 1)), f32(256, stride=(1,)), True),
        ("reshape", f32(16, 16, stride=(1, 16)), f32(256, stride=(1,)), False),
        ("reshape", f32(4, 8, 8, stride=(64, 1, 8)), f32(4, 64, stride=(64, 1)), False),
        ("flatten", f32(16, 4, 4, stride=(1, 64, 16)), f32(16, 16, stride=(1, 16)), True),
        ("contiguous", f32(16, 16, stride=(16, 1)), f32(16, 16, stride=(16, 1)), True),
        ("contiguous", f32(16, 16, stride=(1, 16)), f32(16, 16, stride=(16, 1)), False),
        ("to", f32(256, stride=(1,)), f32(256, stride=(1,)), True),
        ("to", TensorMeta("float64", (256,), (1,), "cpu"), f32(256, stride=(1,)), False),
        ("clone", f32(256, stride=(1,)), f32(256, stride=(1,)), False),
    ],
)
def test_strides_and_dtypes_decide_where_an_op_may_copy(
    target: str, before: TensorMeta, after: TensorMeta, is_view: bool
):
    made = call("a", "aten.ones", tensors=(before,))
    found = memory_profile(graph(made, call("b", target, "a", tensors=(after,)), output("b")))
    alone = memory_profile(graph(made, output("a"))).peak_bytes
    assert found.peak_bytes == (alone if is_view else alone + 1024)


def test_an_item_is_the_memory_of_its_place_in_the_tuple():
    small, big = f32(1, stride=(1,)), f32(1024, stride=(1,))
    item = Node(name="i", op="call_function", target="operator.getitem", args="m, 1", inputs=("m",), tensors=(big,))
    nodes = (call("m", "aten.max.dim", tensors=(small, big)), item, call("u", "aten.relu", "i"), output("u", "i"))
    assert memory_profile(graph(*nodes)).live_bytes == [4100, 4100, 5120, 5120]


@pytest.mark.parametrize(("index", "taken"), [("0", 1), ("(slice(None, None, None), 0)", 1), ("[0, 1]", 2)])
def test_an_index_of_numbers_is_a_view_and_one_of_lists_a_copy(index: str, taken: int):
    item = Node(
        name="i", op="call_function", target="operator.getitem", args=f"a, {index}", inputs=("a",), tensors=(f32(256),)
    )
    assert live(call("a", "aten.ones"), item, output("i")) == [1, taken, 1]


def test_overlapping_windows_take_no_more_than_what_they_reach():
    windows = f32(254, 3, stride=(1, 1))
    nodes = (call("a", "aten.ones"), call("w", "aten.unfold.default", "a", tensors=(windows,)), output("w"))
    assert live(*nodes) == [1, 1, 1]


def test_symbols_count_at_their_hints_and_what_has_none_is_told():
    hinted = call("a", "aten.ones", tensors=(f32(Sym("s0", hint=64), 4, stride=(4, 1)),))
    unhinted = call("b", "aten.nonzero.default", "a", tensors=(f32(Sym("u0"), 1, stride=(1, 1)),))
    found = memory_profile(graph(hinted, unhinted, output("b")))
    assert (found.peak_bytes, found.unsized) == (1024, 1)


def test_an_unknown_width_is_told_and_nothing_is_no_memory():
    odd = call("a", "aten.ones", tensors=(TensorMeta("quint4x2", (8,), (1,)), f32(0, 4, stride=(4, 1))))
    found = memory_profile(graph(odd, output("a")))
    assert (found.peak_bytes, found.alive, found.unsized) == (0, (), 1)
    assert memory_profile(graph()) == MemoryProfile(0, "", (), [], 0)


def test_a_branch_of_cond_counts_nothing_and_breaks_nothing():
    inner = (argument("true_graph_0.a"), call("true_graph_0.cos", "aten.cos.default", "true_graph_0.a"))
    held = Node(name="true_graph_0", op="get_attr", target="true_graph_0")
    nodes = (argument("x"), *inner, held, call("cond", "higher_order.cond", "x", "true_graph_0"), output("cond"))
    assert live(*nodes) == [1, 1, 1, 1, 2, 1]


PRINTED = """\
class GraphModule(torch.nn.Module):
    def forward(self, arg0_1: "Sym(s0)", arg1_1: "f32[s0, 4][4, 1]cpu"):
        mul: "Sym(2*s0)" = arg0_1 * 2
        floordiv = mul // 3
        max_1 = torch.ops.aten.max.dim(arg1_1, 1)
        getitem_1: "i64[s0][1]cpu" = max_1[1]
        getitem: "f32[s0][1]cpu" = max_1[0];  max_1 = None
        pair = torch.ops.mylib.nested.default(getitem)
        inner = pair[0];  pair = None
        item: "f32[2][1]cpu" = inner[0];  inner = None
        nothing = torch.ops.aten._assert_scalar.default(arg0_1, 'no');  nothing = None
        mystery = torch.ops.mylib.mystery.default(item);  mystery = None
        return (getitem, getitem_1)
"""


def test_a_printed_tuple_takes_its_tensors_from_its_items_and_what_is_left_is_unknown():
    found = read_graph(PRINTED, GraphId("0/0", "joint")).by_name
    assert [str(tensor) for tensor in found["max_1"].tensors] == ["f32[s0]", "i64[s0]"]
    assert [str(tensor) for tensor in found["pair"].tensors] == ["f32[2]"]
    assert [name for name, node in found.items() if node.unknown] == ["mystery"]


def test_a_write_to_a_part_of_an_argument_that_became_one_of_a_copy_names_the_copy_and_the_users_line():
    """pytorch/pytorch#195285: a slice write and an indexed write of one input."""
    add = call("add", "aten.add.Tensor", "slice_1", "src", file="m.py", line=4, code="field[1:-1].add_(src)")
    scatter = call("scatter", "aten.slice_scatter.default", "field", "add")
    put = call("put", "aten.index_put_.default", "scatter", "at", "val", file="m.py", line=5)
    copy = call("copy_", "aten.copy_.default", "field", "put")
    arguments = map(argument, ("field", "src", "at", "val"))
    begin = (*arguments, call("slice_1", "aten.slice.Tensor", "field"), add)
    post = Graph(GraphId("0/0", "post_grad"), (*begin, scatter, put, copy, output()))
    assert whole_copies(post) == [WholeCopy("scatter", "field", "copy_", "add", 1024)]
    rows = [row.text for row in view(post, memory_profile(post)).body if isinstance(row, Row)]
    (shown,) = [text for text in rows if text.startswith("scatter copies all of field (1")]
    assert "for `field[1:-1].add_(src)` (m.py:4), and copy_ copies it back" in shown
    assert not whole_copies(graph(*begin, scatter, call("copy_", "aten.copy_.default", "field", "scatter"))), "fused"
    in_place = call("put", "aten.index_put_.default", "field", "at", "val")
    assert not whole_copies(graph(*begin, in_place, copy)), "nothing is copied"
