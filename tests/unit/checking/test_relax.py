"""The smallest change of a rule that all graphs pass: applied to the text, nothing breaks the rule any more."""

import pytest

from idbg.accelerators import edit
from idbg.accelerators.parse import parse
from idbg.checking.relax import relaxations
from idbg.constraints import Checker, check
from idbg.schema.graphs import Graph, GraphId, Node, Sym, TensorMeta

SHAPES = ((7, 14), (1, 28), (7, 21, 2, 35), ())


def graph(*, dtype: str = "float64", symbol: bool = False) -> Graph:
    """Calls on tensors of odd shapes, one of them transposed, and a weight."""
    nodes = [
        Node(name=f"in{i}", op="placeholder", target="x", role="weight" if i == 1 else "input", tensors=(tensor,))
        for i, shape in enumerate(SHAPES)
        if (tensor := TensorMeta(dtype, shape, _strides(shape), "cpu"))
    ]
    mixed = TensorMeta("bfloat16", (14, 7), (1, 14), "cpu")
    nodes += [
        Node(name="t", op="call_method", target="t", inputs=("in0",), tensors=(mixed,)),
        Node(name="mm", op="call_function", target="aten.mm.default", inputs=("in0", "t"), tensors=(mixed,)),
        Node(name="relu", op="call_function", target="aten.relu_.default", inputs=("mm",), tensors=(mixed,)),
    ]
    if symbol:
        nodes.append(Node(name="s", op="placeholder", target="s", tensors=(TensorMeta("int8", (Sym("u0"),)),)))
    return Graph(GraphId("0/0", "forward"), tuple(nodes))


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return tuple(strides) if shape else ()


RULES = [
    ('kind = "alignment"\nmultiple = 16', "multiple 16 → 1"),
    ('kind = "alignment"\nmultiple = 16\ndims = "last"\nroles = ["inputs"]', "multiple 16 → 7"),
    ('kind = "alignment"\nmultiple = 256\ndims = "last"\nroles = ["inputs"]\nunit = "bytes"', "multiple 256 → 56"),
    ('kind = "dtype"\nallowed = [\n    "float32",  # full\n]', "allowed + float64, + bfloat16"),
    ('kind = "layout"', "formats + dense"),
    ('kind = "memory"\nmax_bytes = 1000', "max_bytes +79.4 KiB → 80.4 KiB"),
    ('kind = "unsupported_ops"\ndeny = ["relu", "mm", "sin"]', "deny − relu, − mm"),
    ('kind = "unsupported_ops"\nallow = ["t"]', "allow + mm, + relu_"),
    ('kind = "rank"\nmax = 2', "max 2 → 4"),
    ('kind = "max_dim"\nmax = 20', "max 20 → 35"),
    ('kind = "leading_dims"\nfree = 1', "free 1 → 4"),
    ('kind = "matmul_tile"\nseverity = "reject"\nk = 8', "k 8 → 14"),
    ('kind = "peak_memory"\nmax_bytes = 5', "max_bytes +"),
    ('kind = "weights_memory"\nmax_bytes = 5', "max_bytes +219 B → 224 B"),
]


@pytest.mark.parametrize(("keys", "words"), RULES)
def test_the_change_is_told_and_makes_the_text_accept(keys: str, words: str) -> None:
    text = f"# mine\n[[rules]]\n{keys}\n"
    before = parse(text)
    (change,) = relaxations([Checker(graph()).check(before.rules)])
    assert change.words.startswith(words) and change.count > 0
    assert change.relaxed is not None
    after = edit.apply(text, 0, change.rule, change.relaxed)
    assert check(graph(), parse(after)) == []
    assert after.startswith("# mine\n") and ("# full" in after) is ("# full" in text)


@pytest.mark.parametrize(
    "keys", ['kind = "same_dtype"', 'kind = "constant_operand"\nposition = 0', 'kind = "static_shapes"']
)
def test_a_rule_that_no_value_mends_can_only_be_switched_off(keys: str) -> None:
    rules = parse(f"[[rules]]\n{keys}\n").rules
    (change,) = relaxations([Checker(graph(symbol=True)).check(rules)])
    assert change.relaxed is None and "switch it off" in change.words


def test_sizes_that_the_rule_already_took_still_pass() -> None:
    """32 is a multiple of 16 and not of 7: the smallest change must take both."""
    shapes = [TensorMeta("float32", (size,)) for size in (32, 7)]
    nodes = tuple(Node(name=f"n{i}", op="placeholder", target="x", tensors=(one,)) for i, one in enumerate(shapes))
    rules = parse('[[rules]]\nkind = "alignment"\nmultiple = 16').rules
    (change,) = relaxations([Checker(Graph(GraphId("0/0", "forward"), nodes)).check(rules)])
    assert change.words == "multiple 16 → 1"


def test_one_change_serves_all_graphs_and_other_severities_are_asked_for() -> None:
    rules = parse('[[rules]]\nkind = "dtype"\nallowed = ["f32"]\nseverity = "slow"').rules
    both = [Checker(graph(dtype=dtype)).check(rules) for dtype in ("float64", "float16")]
    assert relaxations(both) == []
    (change,) = relaxations(both, severities=("slow",))
    assert change.words == "allowed + float64, + bfloat16, + float16"
