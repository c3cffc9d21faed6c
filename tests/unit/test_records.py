"""Records hold sizes as torch has them, and survive every boundary."""

import msgspec
import pytest

from idbg.schema.code import Kernel, KernelCall
from idbg.schema.graphs import DTYPE_OF_SHORT, DTYPES, Graph, GraphId, Node, NodeId, Sym, TensorMeta, hint_of
from idbg.schema.programs import Program
from idbg.schema.violations import Violation, worst
from idbg.schema.written import Written, keys_of, written


def test_a_tensors_bytes_are_its_elements_times_its_dtype() -> None:
    tensor = TensorMeta("float32", (100, 100), (100, 1))
    assert (tensor.numel, tensor.nbytes, TensorMeta("float64", ()).nbytes) == (10000, 40000, 8)
    assert TensorMeta("float32", (0, 5)).nbytes == 0


def test_symbols_count_with_their_hints_and_without_one_nothing_is_known() -> None:
    assert TensorMeta("float32", (Sym("s0", hint=10), 2)).numel == 20
    assert TensorMeta("float32", (Sym("u0"), 2)).nbytes is None
    assert (hint_of(3), hint_of(Sym("s0", hint=4)), hint_of(Sym("u0"))) == (3, 4, None)


def test_a_tensor_prints_as_torch_prints_it() -> None:
    assert str(TensorMeta("bfloat16", (Sym("s0"), 8))) == "bf16[s0,8]"
    assert str(TensorMeta("float32")) == "f32[]"
    assert str(TensorMeta("float1_new", (2,))) == "float1_new[2]"


def test_every_dtype_has_a_short_name_of_its_own() -> None:
    assert len(DTYPE_OF_SHORT) == len(DTYPES)


def test_a_graph_knows_its_nodes_by_name_and_who_reads_them() -> None:
    nodes = (
        Node(name="x", op="placeholder", target="x"),
        Node(name="a", op="call_function", target="aten.mul.Tensor", inputs=("x", "x")),
        Node(name="b", op="call_function", target="aten.add.Tensor", inputs=("a", "x")),
    )
    graph = Graph(GraphId("0/0", "forward"), nodes)
    assert graph.by_name["b"] is nodes[2]
    assert graph.users["a"] == ("b",) and graph.users["b"] == () and set(graph.users["x"]) == {"a", "b"}


def test_a_kernel_computes_each_node_of_its_calls_once() -> None:
    calls = (KernelCall("k:1", 1, ("a", "b")), KernelCall("k:2", 2, ("b", "c")))
    assert Kernel(frame="0/0", part="", name="k", language="cpp", calls=calls).nodes == ("a", "b", "c")


def test_the_severest_is_the_worst() -> None:
    assert worst(["slow", "pad", "fallback"]) == "fallback" and worst([]) is None


def test_a_violation_reads_as_a_sentence_with_its_place() -> None:
    node = NodeId(GraphId("0/0", "forward"), "mul")
    violation = Violation(rule="alignment", severity="pad", node=node, found="dim 0 is 10", wanted="a multiple of 16")
    assert str(violation) == "alignment: mul [forward] dim 0 is 10, wanted a multiple of 16"
    placed = msgspec.structs.replace(violation, file="m.py", line=3)
    assert str(placed).endswith("(m.py:3)")


@pytest.mark.parametrize(
    ("program", "label"),
    [(Program("m.py"), "m.py"), (Program("m.py", "big"), "m.py:big"), (Program("pkg.mod", module=True), "-m pkg.mod")],
)
def test_a_program_is_labelled_as_it_was_given(program: Program, label: str) -> None:
    assert program.label == label


def test_records_are_frozen_and_hashable() -> None:
    tensor = TensorMeta("float32", (Sym("s0", hint=4),))
    with pytest.raises(AttributeError):
        tensor.dtype = "int8"  # type: ignore[misc]
    assert {tensor: 1}[TensorMeta("float32", (Sym("s0", hint=4),))] == 1


def test_what_is_written_of_a_record_has_its_types_its_renamed_attributes_and_what_is_computed() -> None:
    @keys_of(Violation, "what rule graph=node.graph.frame adds")
    class Line(Written, frozen=True):
        what: int

    violation = Violation(rule="r", severity="pad", node=NodeId(GraphId("0/0", "forward"), "n"), found="", wanted="")
    line = written(Line, violation, what=3)
    assert msgspec.json.encode(line) == b'{"what":3,"rule":"r","graph":"0/0","adds":null}'
    assert [field.type for field in msgspec.structs.fields(Line)] == [int, str, str, float | None]
    with pytest.raises(AttributeError, match="immutable"):
        line.what = 4  # type: ignore[misc]


def test_a_key_that_a_record_does_not_have_is_refused_where_it_is_declared() -> None:
    with pytest.raises(KeyError, match="frames"):

        @keys_of(Violation, "rule frame=node.graph.frames")
        class Line(Written, frozen=True):
            pass
