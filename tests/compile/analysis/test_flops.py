"""FLOPs from shapes against torch's own counter: calls counted as they run, and as the graphs that they become."""

from collections.abc import Callable

import pytest
import torch
from torch import randn
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode, flop_registry

from idbg.analysis import ops
from idbg.analysis.flops import flops
from idbg.engine.capture.fx import graph_of
from idbg.engine.compat.fx import tensor_meta
from idbg.schema.graphs import Graph, GraphId, Node, Sym, TensorMeta

Function = Callable[..., object]
Shapes = tuple[tuple[int, ...], ...]

PRODUCTS: dict[str, tuple[Function, Shapes]] = {
    "mm": (torch.mm, ((4, 5), (5, 6))),
    "mm of itself": (lambda x: torch.mm(x, x), ((5, 5),)),
    "bmm": (torch.bmm, ((2, 4, 5), (2, 5, 6))),
    "addmm": (torch.addmm, ((6,), (4, 5), (5, 6))),
    "addmm of itself": (lambda b, x: torch.addmm(b, x, x), ((5,), (5, 5))),
    "addmm with its sum twice": (lambda x, y: torch.addmm(x, x, y), ((4, 5), (5, 5))),
    "addmm with its sum twice, last": (lambda x, y: torch.addmm(x, y, x), ((4, 5), (4, 4))),
    "addmm of one tensor": (lambda x: torch.addmm(x, x, x), ((5, 5),)),
    "baddbmm": (torch.baddbmm, ((2, 4, 6), (2, 4, 5), (2, 5, 6))),
    "matmul": (torch.matmul, ((4, 5), (5, 6))),
    "matmul of itself": (lambda x: x @ x, ((3, 5, 5),)),
    "matmul of vectors": (torch.matmul, ((5,), (5,))),
    "matmul of one vector with itself": (lambda x: x @ x, ((5,),)),
    "matmul by a vector": (torch.matmul, ((2, 4, 5), (5,))),
    "matmul of a vector": (torch.matmul, ((5,), (2, 5, 6))),
    "matmul, batched by one": (torch.matmul, ((2, 4, 5), (5, 6))),
    "matmul, broadcast": (torch.matmul, ((3, 1, 4, 5), (2, 5, 6))),
    "linear": (F.linear, ((2, 4, 5), (6, 5))),
    "linear with bias": (F.linear, ((2, 4, 5), (6, 5), (6,))),
    "linear, keywords in another order": (lambda x, w, b: F.linear(x, bias=b, weight=w), ((4, 5), (6, 5), (6,))),
    "linear of a vector": (F.linear, ((5,), (6, 5))),
    "linear by a vector": (F.linear, ((2, 4, 5), (5,))),
    "mm, keywords in another order": (lambda x, y: torch.mm(mat2=y, input=x), ((4, 5), (5, 6))),
    "mm of a tensor and itself turned": (lambda x: torch.mm(mat2=x, input=x.t()), ((4, 5),)),
    "bmm, keywords in another order": (lambda x, y: torch.bmm(mat2=y, input=x), ((2, 4, 5), (2, 5, 6))),
    "addmm, keywords in another order": (
        lambda b, x, y: torch.addmm(input=b, mat2=y, mat1=x),
        ((4, 6), (4, 5), (5, 6)),
    ),
    "addmm, one keyword after another": (lambda b, x, y: torch.addmm(b, mat2=y, mat1=x), ((6,), (4, 5), (5, 6))),
    "addmm, a method": (lambda b, x, y: b.addmm(mat2=y, mat1=x), ((4, 6), (4, 5), (5, 6))),
    "addmm of one tensor, by keywords": (lambda b, x: torch.addmm(mat1=x, mat2=x, input=b), ((5,), (5, 5))),
    "baddbmm, keywords in another order": (
        lambda b, x, y: torch.baddbmm(batch2=y, batch1=x, input=b),
        ((2, 4, 6), (2, 4, 5), (2, 5, 6)),
    ),
    "matmul, keywords in another order": (lambda x, y: torch.matmul(other=y, input=x), ((3, 4, 5), (5, 6))),
    "matmul, keywords as NumPy has them": (
        lambda x, y: torch.matmul(x2=y, x1=x),  # type: ignore[call-arg]
        ((3, 4, 5), (5, 6)),
    ),
    "linear, all keywords in another order": (
        lambda x, w, b: F.linear(bias=b, weight=w, input=x),
        ((4, 5), (6, 5), (6,)),
    ),
    "mv": (torch.mv, ((4, 5), (5,))),
    "elementwise and reductions": (lambda x: (x * x).relu().sum().exp(), ((4, 5),)),
    "conv1d": (F.conv1d, ((2, 4, 9), (6, 4, 3), (6,))),
    "conv2d": (lambda x, w: F.conv2d(x, w, stride=2, padding=1), ((2, 4, 9, 8), (6, 4, 3, 2))),
    "conv2d, grouped": (lambda x, w: F.conv2d(x, w, groups=2), ((2, 4, 9, 8), (6, 2, 3, 3))),
    "conv2d, dilated": (lambda x, w: F.conv2d(x, w, dilation=2), ((2, 4, 9, 8), (6, 4, 3, 3))),
    "conv2d, same padding": (lambda x, w: F.conv2d(x, w, padding="same"), ((2, 4, 9, 8), (6, 4, 3, 3))),
    "conv2d without a batch": (F.conv2d, ((4, 9, 8), (6, 4, 3, 3))),
    "conv2d, keywords in another order": (
        lambda x, w, b: F.conv2d(x, bias=b, weight=w),
        ((2, 4, 9, 8), (6, 4, 3, 3), (6,)),
    ),
    "conv2d, all keywords in another order": (
        lambda x, w, b: F.conv2d(weight=w, bias=b, input=x, stride=(2, 1)),
        ((2, 4, 9, 8), (6, 4, 3, 3), (6,)),
    ),
    "conv_transpose2d, keywords in another order": (
        lambda x, w: F.conv_transpose2d(weight=w, input=x, stride=2),
        ((2, 4, 9, 8), (4, 6, 3, 3)),
    ),
    "conv2d of itself": (lambda x: F.conv2d(x, x, padding=1), ((4, 4, 3, 3),)),
    "conv3d": (F.conv3d, ((2, 4, 5, 6, 7), (6, 4, 3, 2, 1))),
    "conv_transpose1d": (lambda x, w: F.conv_transpose1d(x, w, stride=2), ((2, 4, 9), (4, 6, 3))),
    "conv_transpose2d": (lambda x, w, b: F.conv_transpose2d(x, w, b, 2), ((2, 4, 9, 8), (4, 6, 3, 3), (6,))),
    "conv_transpose2d, grouped": (lambda x, w: F.conv_transpose2d(x, w, groups=2), ((2, 4, 9, 8), (4, 3, 3, 3))),
    "conv_transpose3d": (F.conv_transpose3d, ((2, 4, 5, 6, 7), (4, 6, 3, 2, 1))),
    "attention": (F.scaled_dot_product_attention, ((2, 4, 8, 16), (2, 4, 9, 16), (2, 4, 9, 16))),
    "attention, values of another size": (
        F.scaled_dot_product_attention,
        ((2, 4, 8, 16), (2, 4, 9, 16), (2, 4, 9, 3)),
    ),
    "attention to itself": (lambda x: F.scaled_dot_product_attention(x, x, x), ((2, 4, 8, 16),)),
    "attention, key is value": (lambda q, x: F.scaled_dot_product_attention(q, x, x), ((2, 4, 8, 16), (2, 4, 9, 16))),
    "attention, query is key": (lambda x, v: F.scaled_dot_product_attention(x, x, v), ((2, 4, 8, 16), (2, 4, 8, 3))),
    "attention to itself, masked": (
        lambda x, mask: F.scaled_dot_product_attention(x, x, x, mask),
        ((2, 4, 8, 16), (2, 1, 8, 8)),
    ),
    "attention to itself, masked by truth": (
        lambda x, mask: F.scaled_dot_product_attention(x, x, x, mask > 0),
        ((2, 4, 8, 16), (8, 8)),
    ),
    "attention, keywords in another order": (
        lambda q, k, v: F.scaled_dot_product_attention(key=k, query=q, value=v),
        ((2, 4, 8, 16), (2, 4, 9, 16), (2, 4, 9, 3)),
    ),
    "attention, its mask before all": (
        lambda mask, x, v: F.scaled_dot_product_attention(attn_mask=mask, value=v, key=x, query=x),
        ((1, 1, 8, 8), (2, 4, 8, 16), (2, 4, 8, 3)),
    ),
    "attention of three dimensions": (F.scaled_dot_product_attention, ((2, 8, 16), (2, 9, 16), (2, 9, 16))),
    "attention, causal": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        ((2, 4, 8, 16), (2, 4, 8, 16), (2, 4, 8, 16)),
    ),
    "attention with grouped heads": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        ((2, 4, 8, 16), (2, 2, 9, 16), (2, 2, 9, 16)),
    ),
}
TRAINED = [
    name
    for name in PRODUCTS
    if name.startswith(("conv", "attention", "linear", "addmm", "baddbmm")) and "truth" not in name
]


def case(name: str) -> tuple[Function, Shapes]:
    if name.startswith("attention") and torch.ops.aten._scaled_dot_product_flash_attention_for_cpu not in flop_registry:
        pytest.skip("this torch's counter leaves out attention on the CPU (2.11 does)")
    return PRODUCTS[name]


def tensors(shapes: Shapes, *, trained: bool = False) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [randn(shape, requires_grad=trained) for shape in shapes]


def torch_count(function: Function, inputs: list[torch.Tensor]) -> int:
    with FlopCounterMode(display=False) as counter:
        function(*inputs)
    return counter.get_total_flops()


def dynamo_graph(function: Function, inputs: list[torch.Tensor], *, dynamic: bool = False) -> Graph:
    found: list[Graph] = []

    def backend(module: GraphModule, _: object) -> Function:
        found.append(graph_of(module, GraphId("0/0", "dynamo")))
        return module.forward

    torch._dynamo.reset()
    torch.compile(lambda *inputs: function(*inputs), backend=backend, fullgraph=True, dynamic=dynamic)(*inputs)
    return found[0]


def aten_graph(function: Function, inputs: list[torch.Tensor]) -> Graph:
    return graph_of(make_fx(function, tracing_mode="fake")(*inputs), GraphId("0/0", "joint"))


def operands(graph: Graph, node: Node) -> list[TensorMeta]:
    return [tensor for name in ops.operands(node) for tensor in graph.by_name[name].tensors]


def counted(graph: Graph, args: Callable[[Node], str] = lambda node: node.args) -> int | None:
    """The graph's FLOPs; None if those of a node are not known."""
    calls = [node for node in graph.nodes if node.op in ("call_function", "call_method")]
    counts = [flops(node.target, operands(graph, node), node.tensors, args(node)) for node in calls]
    return None if None in counts else sum(count for count in counts if count is not None)


def gradients(function: Function) -> Function:
    def forward_and_backward(*inputs: torch.Tensor) -> object:
        out = function(*inputs)
        assert isinstance(out, torch.Tensor)
        return torch.autograd.grad(out.sum(), inputs)

    return forward_and_backward


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_dynamo_graph_takes_what_torch_counts_as_it_runs(name: str):
    function, shapes = case(name)
    inputs = tensors(shapes)
    assert counted(dynamo_graph(function, inputs)) == torch_count(function, inputs)


@pytest.mark.parametrize("name", PRODUCTS)
def test_an_aten_graph_takes_what_torch_counts_as_it_runs(name: str):
    function, shapes = case(name)
    inputs = tensors(shapes)
    graph = aten_graph(function, inputs)
    assert counted(graph) == counted(graph, ops.flags) == torch_count(function, inputs)


@pytest.mark.parametrize("name", TRAINED)
def test_backward_takes_what_torch_counts_as_it_runs(name: str):
    function, shapes = case(name)
    inputs = tensors(shapes, trained=True)
    graph = aten_graph(gradients(function), inputs)
    assert counted(graph) == counted(graph, ops.flags) == torch_count(gradients(function), inputs)


@pytest.mark.parametrize("mask", [(True, True, False), (True, False, False), (False, True, True), (False, False, True)])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
def test_a_convolutions_backward_counts_the_gradients_that_are_asked_for(mask, transposed: bool, groups: int):
    source, weight = randn(2, 4, 9, 8), randn(4, 6 // groups, 3, 3) if transposed else randn(6, 4 // groups, 3, 3)
    settings = ([2, 2], [1, 1], [1, 1], transposed, [0, 0], groups)
    grad = torch.ops.aten.convolution(source, weight, None, *settings)

    def backward(grad: torch.Tensor, source: torch.Tensor, weight: torch.Tensor) -> object:
        made = torch.ops.aten.convolution_backward(grad, source, weight, [6], *settings, mask)
        return [tensor for tensor in made if tensor is not None]

    inputs = [grad, source, weight]
    graph = aten_graph(backward, inputs)
    assert counted(graph) == counted(graph, ops.flags) == torch_count(backward, inputs)


def test_a_convolutions_backward_that_shapes_leave_open_is_not_known_without_its_arguments():
    def backward(grad: torch.Tensor, source: torch.Tensor, weight: torch.Tensor) -> object:
        settings = ([4], [2, 2], [1, 1], [1, 1], False, [0, 0], 1, [True, True, False])
        return torch.ops.aten.convolution_backward(grad, source, weight, *settings)[:2]

    inputs = tensors(((2, 4, 5, 4), (2, 4, 9, 8), (4, 4, 3, 3)))
    graph = aten_graph(backward, inputs)
    assert counted(graph) == torch_count(backward, inputs)
    assert counted(graph, ops.flags) is None


@pytest.mark.parametrize("op", [op for op in flop_registry if "attention" in str(op)], ids=str)
def test_attention_of_other_devices_takes_what_torchs_formula_says(op: object):
    """These kernels do not all run on a CPU: torch's formula is asked, and not its counter."""
    name = str(op).rpartition(".")[2]
    query, key, value, out = (torch.empty(2, 4, *sizes, device="meta") for sizes in ((8, 16), (9, 16), (9, 3), (8, 3)))
    if name == "flex_attention_backward":
        inputs, made = [query, key, value, out, out[..., 0], out], [query, key, value]
    elif name.endswith("_backward"):
        inputs, made = [out, query, key, value], [query, key, value]
    else:
        inputs, made = [query, key, value], [out]
    count = flops(f"aten.{name}.default", list(map(tensor_meta, inputs)), list(map(tensor_meta, made)))
    if name.startswith(("_flash", "_efficient")):
        assert count is None  # their layout depends on arguments
    else:
        assert count == flop_registry[op](*inputs, out_val=tuple(made))


def test_symbols_count_at_their_hints():
    inputs = tensors(((7, 5), (5, 6)))
    graph = dynamo_graph(torch.mm, inputs, dynamic=True)
    assert any(isinstance(dim, Sym) for node in graph.nodes for tensor in node.tensors for dim in tensor.shape)
    assert counted(graph) == torch_count(torch.mm, inputs)


@pytest.mark.parametrize(
    ("target", "shapes"),
    [
        ("torch.einsum", ((4, 5), (5, 6))),  # a product whose shapes do not tell
        ("torch.lstm", ((4, 5), (5, 6))),
        ("aten.mm.default", ()),  # torch kept no tensors of the inputs
        ("aten.mm.default", ((4, 5),)),  # or not of all of them
        ("aten.addmm.default", ((4, 5), (5, 6))),
        ("torch._C._nn.scaled_dot_product_attention", ((2, 4, 8, 8), (2, 4, 9, 8))),
    ],
)
def test_what_is_a_product_but_not_known_is_no_number(target: str, shapes: Shapes):
    metas = [TensorMeta("float32", shape) for shape in shapes]
    assert flops(target, metas, [TensorMeta("float32", (4, 6))]) is None


@pytest.mark.parametrize("op", flop_registry, ids=str)
def test_nothing_that_torch_counts_is_taken_for_free(op: object):
    name = str(op).rpartition(".")[2]
    assert flops(f"aten.{name}.default", [], []) is None


def test_a_size_without_a_hint_is_no_number():
    square = TensorMeta("float32", (4, 4))
    unbacked = TensorMeta("float32", (Sym("u0"), 4))
    assert flops("aten.mm.default", [unbacked, square], [unbacked]) is None
    assert flops("aten.relu.default", [unbacked], [unbacked]) == 0


def test_a_product_in_place_counts_as_the_same_product_where_torch_takes_it_for_free():
    added, left, right = inputs = tensors(((4, 6), (4, 5), (5, 6)))
    assert torch_count(lambda *_: added.clone().addmm_(left, right), inputs) == 0
    graph = dynamo_graph(lambda added, left, right: added.clone().addmm_(left, right), inputs)
    assert counted(graph) == torch_count(torch.addmm, inputs)
