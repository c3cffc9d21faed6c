"""What is known of a printed graph from its text alone."""

from idbg.analysis.graph_text import read_graph
from idbg.schema.graphs import Graph, GraphId


def read(body: str) -> Graph:
    lines = [f"        {line}" for line in body.strip().splitlines()]
    text = 'class <lambda>(torch.nn.Module):\n    def forward(self, x: "f32[4, 3][3, 1]cpu"):\n' + "\n".join(lines)
    return read_graph(text + "\n", GraphId("0/0", "post_grad", "inference"))


LOOP = """\
class <lambda>(torch.nn.Module):
    def forward(self, i: "i64[][]cpu", x: "f32[4, 3][3, 1]cpu"):
        # File: loop.py:4 in f, code: return while_loop(cond, body, (i, x))
        cond_graph = self.cond_graph
        body_graph = self.body_graph
        loop = torch.ops.higher_order.while_loop(cond_graph, body_graph, (i, x), ());  i = x = None
        taken: "f32[4, 3][3, 1]cpu" = loop[1];  loop = None
        return (taken,)

    class cond_graph(torch.nn.Module):
        def forward(self, i: "i64[][]cpu", x: "f32[4, 3][3, 1]cpu"):
            lt: "b8[][]cpu" = torch.ops.aten.lt.Scalar(i, 5);  i = None
            return lt

    class body_graph(torch.nn.Module):
        def forward(self, i: "i64[][]cpu", x: "f32[4, 3][3, 1]cpu"):
            # File: loop.py:7 in body, code: return i + 1, x.sin()
            add: "i64[][]cpu" = torch.ops.aten.add.Tensor(i, 1);  i = None
            sin: "f32[4, 3][3, 1]cpu" = torch.ops.aten.sin.default(x);  x = None
            return (add, sin)
"""


def test_a_loop_has_the_tensors_of_its_body_also_those_that_nobody_takes() -> None:
    graph = read_graph(LOOP, GraphId("0/0", "post_grad", "inference"))
    loop = graph.by_name["loop"]
    assert [str(tensor) for tensor in loop.tensors] == ["i64[]", "f32[4,3]"]
    assert not loop.unknown
    assert loop.inputs == ("cond_graph", "body_graph", "i", "x")
    sin = graph.by_name["body_graph.sin"]
    assert (sin.inputs, sin.line, sin.op) == (("body_graph.x",), 7, "call_function")
    assert graph.code.splitlines()[sin.code_line - 1].strip().startswith("sin:")


def test_a_tuple_of_which_the_first_is_never_taken_is_not_given_the_seconds_tensor() -> None:
    graph = read("""
pair = torch.ops.my.pair.default(x)
second: "i64[][]cpu" = pair[1];  pair = None
return (second,)
""")
    assert graph.by_name["pair"].tensors == ()
    assert graph.by_name["pair"].unknown


def test_a_tuple_keeps_what_comes_before_the_first_gap() -> None:
    graph = read("""
three = torch.ops.my.three.default(x)
first: "f32[4][1]cpu" = three[0]
third: "i64[][]cpu" = three[2];  three = None
return (first, third)
""")
    assert [str(tensor) for tensor in graph.by_name["three"].tensors] == ["f32[4]"]
    assert graph.by_name["three"].unknown


def test_what_an_output_mask_leaves_out_is_no_gap() -> None:
    graph = read("""
grads = torch.ops.aten.convolution_backward.default(x, x, x, [4], [1], [0], [1], False, [0], 1, [False, True, True])
weight: "f32[4][1]cpu" = grads[1]
bias: "f32[2][1]cpu" = grads[2];  grads = None
return (weight, bias)
""")
    assert [str(tensor) for tensor in graph.by_name["grads"].tensors] == ["f32[4]", "f32[2]"]
    assert not graph.by_name["grads"].unknown
