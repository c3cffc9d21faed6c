"""What stays together, what crosses, and which one change joins the most: on graphs small enough to see."""

import random

import pytest

from idbg.analysis.partition import HOST, Boundary, Merge, best_merge, partition
from idbg.schema.graphs import Graph, GraphId, Node, Sym, TensorMeta

F32 = TensorMeta("float32", (10,))  # 40 bytes


def graph(*lines: str, **tensors: tuple[TensorMeta, ...]) -> Graph:
    """Each line is a node: "c = add(a, b)"; a bare name is an input. Values are f32[10], or what `tensors` says."""
    nodes = []
    for line in lines:
        name, _, call = line.partition(" = ")
        target, _, inputs = call.rstrip(")").partition("(")
        made = tensors.get(name, (F32,))
        if not call:
            nodes.append(Node(name=name, op="placeholder", target=name, tensors=made))
            continue
        op = "output" if name == "output" else "get_attr" if target == "weight" else "call_function"
        read = tuple(inputs.split(", ")) if inputs else ()
        nodes.append(Node(name=name, op=op, target=target, inputs=read, tensors=made))  # type: ignore[arg-type]
    return Graph(GraphId("0/0", "dynamo"), tuple(nodes))


CHAIN = graph("x", "a = relu(x)", "b = lu(a)", "c = relu(b)", "d = lu(c)", "e = relu(d)", "output = output(e)")


def test_with_nothing_on_the_host_all_calls_are_one_partition():
    found = partition(CHAIN, ())
    assert found.parts == (("a", "b", "c", "d", "e"),)
    assert (found.host, found.boundaries, found.count, found.crossings, found.bytes) == ((), (), 1, 0, 0)


def test_with_everything_on_the_host_there_is_no_partition_and_nothing_crosses():
    found = partition(CHAIN, "abcde")
    assert found.parts == () and found.host == ("a", "b", "c", "d", "e") and found.crossings == 0


def test_an_empty_graph_has_no_partition():
    assert partition(graph(), ()).count == 0


def test_each_host_node_cuts_a_chain_and_parts_come_in_the_order_they_run():
    found = partition(CHAIN, ["b", "d"])
    assert found.parts == (("a",), ("c",), ("e",))
    assert found.host == ("b", "d")
    assert found.boundaries == (
        Boundary(0, HOST, ("a",), 40, 0),
        Boundary(HOST, 1, ("b",), 40, 0),
        Boundary(1, HOST, ("c",), 40, 0),
        Boundary(HOST, 2, ("d",), 40, 0),
    )
    assert (found.count, found.crossings, found.bytes) == (3, 4, 160)


def test_independent_calls_are_one_partition_and_a_detour_through_the_host_is_not():
    split = graph(
        "x", "a = relu(x)", "b = lu(a)", "c = relu(b)", "d = exp(x)", "e = add(a, d)", "output = output(c, e)"
    )
    assert partition(split, ["b"]).parts == (("a",), ("c", "d", "e"))


def test_a_value_with_many_readers_on_one_side_crosses_once_and_to_two_sides_twice():
    read = graph("x", "a = relu(x)", "b = lu(a)", "c = lu(a)", "d = add(b, c)", "e = add(d, a)", "output = output(e)")
    found = partition(read, ["b", "c"])
    assert found.parts == (("a",), ("d", "e"))
    assert Boundary(0, HOST, ("a",), 40, 0) in found.boundaries
    assert Boundary(0, 1, ("a",), 40, 0) in found.boundaries
    assert Boundary(HOST, 1, ("b", "c"), 80, 0) in found.boundaries
    assert len(found.boundaries) == 3


def test_inputs_weights_and_outputs_cross_no_boundary():
    found = partition(graph("x", "w = weight", "a = lu(x, w)", "output = output(a, x)"), ["a"])
    assert found.host == ("a",) and found.boundaries == ()


def test_numbers_cross_without_bytes_and_what_has_no_known_size_is_counted_apart():
    unbacked = TensorMeta("float32", (Sym("u0"),))
    odd = TensorMeta("float6", (8,))
    many = graph(
        *("x", "n = size(x)", "u = nonzero(x)", "o = pack(x)", "t = pair(x)", "s = expand(x)"),
        *("r = lu(n, u, o, t, s)", "output = output(r)"),
        n=(),
        u=(unbacked,),
        o=(odd,),
        t=(F32, F32),
        s=(TensorMeta("float32", (Sym("s0", hint=3), 4)),),
    )
    [boundary] = partition(many, ["r"]).boundaries
    assert boundary == Boundary(0, HOST, ("n", "u", "o", "t", "s"), 80 + 48, 2)


def test_a_node_whose_value_torch_did_not_keep_has_no_known_size():
    lost = Node(name="a", op="call_function", target="custom", unknown=True)
    reader = Node(name="b", op="call_function", target="lu", inputs=("a",), tensors=(F32,))
    [boundary] = partition(Graph(GraphId("0/0", "dynamo"), (lost, reader)), ["b"]).boundaries
    assert (boundary.nbytes, boundary.unsized) == (0, 1)


def test_an_element_stays_with_its_tuple_whatever_is_said_of_it():
    split = graph("x", "t = split(x)", "a = operator.getitem(t)", "b = relu(a)", "output = output(b)", t=(F32, F32))
    assert partition(split, ["t"]).host == ("t", "a")
    assert partition(split, ["a"]).host == ()


def test_an_index_that_is_itself_only_an_index_ends_where_torch_does_not():
    index = graph("x", "i = argmax(x)", "y = relu(x)", "a = operator.getitem(y, i)", "output = output(a)")
    assert partition(index, ["i"]).parts == (("y", "a"),)
    assert partition(index, ["y"]).host == ("y", "a")


def test_a_node_inside_a_cond_takes_the_cond_with_it_and_is_not_named():
    branch = graph(
        *("x", "yes_0.x", "yes_0.a = sin(yes_0.x)", "yes_0 = weight", "c = relu(x)"),
        *("cond = cond(x, yes_0, c)", "d = relu(cond)", "output = output(d)"),
    )
    assert partition(branch, ()).parts == (("c", "cond", "d"),)
    assert partition(branch, ["yes_0.a"]) == partition(branch, ["cond"])
    assert partition(branch, ["yes_0.a"]).parts == (("c",), ("d",))


def test_names_that_are_no_calls_change_nothing():
    assert partition(CHAIN, ["x", "output", "gone", "gone.too"]) == partition(CHAIN, ())


def test_the_change_that_leaves_the_fewest_partitions_is_best():
    broken = {"dtype": ["b"], "ops": ["d"], "rank": []}
    assert best_merge(CHAIN, broken) == Merge("dtype", 2, 80)
    assert best_merge(CHAIN, {"dtype": ["b"], "ops": ["b", "d"]}) == Merge("ops", 2, 80)


def test_a_node_that_two_changes_hold_back_waits_for_both():
    assert best_merge(CHAIN, {"dtype": ["b", "d"], "ops": ["b", "d"]}) is None
    assert best_merge(CHAIN, {"dtype": ["b", "d"], "ops": ["b"]}) == Merge("dtype", 2, 80)


def test_of_changes_that_leave_as_many_partitions_the_one_with_fewest_bytes_is_best():
    large = graph(
        *("x", "a = relu(x)", "b = lu(a)", "c = relu(b)", "d = lu(c)", "e = relu(d)", "output = output(e)"),
        d=(TensorMeta("float32", (1000,)),),
    )
    assert best_merge(large, {"dtype": ["b"], "ops": ["d"]}) == Merge("ops", 2, 80)


def test_no_change_is_best_where_none_leaves_less():
    assert best_merge(CHAIN, {}) is None
    assert best_merge(CHAIN, {"dtype": "abcde"}) is None  # it would make the first partition
    assert best_merge(CHAIN, {"dtype": ["x"]}) is None


@pytest.mark.parametrize("seed", range(30))
def test_the_best_merge_is_the_best_of_all_partitions_made_one_by_one(seed: int):
    chance = random.Random(seed)
    lines = ["n0"]
    for index in range(1, 40):
        reads = {f"n{chance.randint(max(0, index - 6), index - 1)}" for _ in range(2)}
        lines.append(f"n{index} = add({', '.join(sorted(reads))})")
    whole = graph(*lines, "output = output(n39)")
    names = [f"n{index}" for index in range(1, 40)]
    broken = {rule: set(chance.sample(names, chance.randint(0, 8))) for rule in "pqrst"}
    now = partition(whole, set().union(*broken.values()))
    left = {}
    for rule in broken:
        found = partition(whole, set().union(*(held for other, held in broken.items() if other != rule)))
        left[rule] = (found.count, found.bytes)
    least = min(left.values())
    best = best_merge(whole, broken, now)
    assert best == best_merge(whole, broken)
    if least >= (now.count, now.bytes):
        assert best is None
    else:
        assert best is not None and (best.count, best.bytes) == least == left[best.label]
