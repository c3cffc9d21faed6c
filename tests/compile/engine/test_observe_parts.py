"""The parts of observing kernels: wrappers read, reference values, random numbers, and the judgement of an error."""

from collections import Counter
from collections.abc import Callable

import pytest
import torch

from idbg.analysis.output_code import read_output_code
from idbg.engine.compat import comparing
from idbg.engine.instrument.wrapper_lines import read_wrapper
from idbg.engine.kerneldiff.kernels.inputs import copied
from idbg.engine.kerneldiff.kernels.interpreter import Interpreter, NodeState, OrderedGraph
from idbg.engine.kerneldiff.kernels.philox import drawn
from idbg.engine.kerneldiff.kernels.returned import checksum
from idbg.engine.kerneldiff.kernels.values import NotComputable, ReferenceValue
from idbg.engine.kerneldiff.kernels.verdict import judge_buffer, measured
from idbg.engine.kerneldiff.tensors.allowance import Size

TRITON = """
class Runner:
    def call(self, args):
        arg0_1, arg1_1 = args
        args.clear()
        with torch.cuda._DeviceGuard(0):
            torch.cuda.set_device(0)
            buf0 = empty_strided_cuda((8, 8), (8, 1), torch.float32)
            # Topologically Sorted Source Nodes: [mm], Original ATen: [aten.mm]
            # [Provenance debug handles] extern_kernels.mm:1
            extern_kernels.mm(arg0_1, arg1_1, out=buf0)
            buf1 = buf0; del buf0  # reuse
            # [Provenance debug handles] triton_poi_fused_sin_0:2
            raw_stream0 = get_raw_stream(0)
            triton_poi_fused_sin_0.run(buf1, arg1_1, 64, stream=raw_stream0)
            buf4 = empty_strided_cuda((8, 16), (16, 1), torch.float32)
            buf2 = reinterpret_tensor(buf4, (8, 8), (16, 1), 0)  # alias
            buf3 = reinterpret_tensor(buf4, (8, 8), (16, 1), 8)  # alias
            # [Provenance debug handles] triton_poi_fused_cat_1:3
            triton_poi_fused_cat_1.run(buf1, buf2, buf3, 64, stream=raw_stream0)
            del buf1
            # [Provenance debug handles] torch.ops.aten.var_mean.correction:4
            buf5 = torch.ops.aten.var_mean.correction(buf4, [1], correction=0)
            buf6 = buf5[0]
            # [Provenance debug handles] triton_poi_fused_copy_2:5
            triton_poi_fused_copy_2.run(buf6, arg0_1, 64, stream=raw_stream0)
        return (buf6, )
"""


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64, torch.bool, torch.bfloat16])
def test_the_checksum_of_values_does_not_depend_on_their_strides(dtype: torch.dtype):
    numbers = torch.arange(8.0).to(dtype)
    for values in (numbers[1:2].expand(4), numbers[::2], numbers.view(2, 4).t(), numbers[3].expand(2, 3)):
        assert checksum(values) == checksum(values.clone(memory_format=torch.contiguous_format))
    assert checksum(numbers[:4]) != checksum(numbers[4:])


def test_a_wrapper_for_a_gpu_is_read():
    handles = {"triton_poi_fused_copy_2:5": ["copy_", "add"], "triton_poi_fused_sin_0:2": ["sin"]}
    code = read_output_code(TRITON, frame="0/0", part="inference", handles=handles)
    names = {"arg0_1", "arg1_1", *(f"buf{number}" for number in range(7))}
    wrapper = read_wrapper(code, names, {"arg0_1": ["copy_"]})
    assert [launch.name for launch in wrapper.launches] == [
        "extern_kernels.mm",
        "triton_poi_fused_sin_0",
        "triton_poi_fused_cat_1",
        "torch.ops.aten.var_mean.correction",
        "triton_poi_fused_copy_2",
    ]
    lines = TRITON.splitlines()
    assert all(launch.name in lines[launch.line - 1] for launch in wrapper.launches)
    assert [launch.takes for launch in wrapper.launches] == [
        ("arg0_1", "arg1_1"),
        ("buf0", "arg1_1"),  # in place
        ("buf1",),
        ("buf4",),
        ("buf6", "arg0_1"),
    ]
    written = {name: wrapper.points[places[-1]].launch for name, places in wrapper.writes.items()}
    assert written == {"buf0": 0, "buf1": 1, "buf2": 2, "buf3": 2, "buf4": 2, "buf5": 3, "buf6": 3, "arg0_1": 4}


def test_an_error_is_held_against_that_of_the_inputs_and_of_eager():
    exact = torch.randn(1000, dtype=torch.float64)
    own = exact.to(torch.float32)
    off = own * (1 + 1e-5)
    assert judge_buffer(own, ReferenceValue(exact, own), []).excess <= 1
    assert judge_buffer(off, ReferenceValue(exact, own), []).excess > 1
    assert judge_buffer(off, ReferenceValue(exact, own), [Size(1e-5, 1e-4)]).excess <= 1
    assert judge_buffer(off, ReferenceValue(exact, own * (1 + 1e-5)), []).excess <= 1


def test_nan_and_infinities_are_bad_where_only_the_kernel_has_them():
    exact = torch.tensor([1.0, 2.0, float("inf"), float("nan")], dtype=torch.float64)
    own = exact.float()
    assert judge_buffer(own, ReferenceValue(exact, own), []).excess == 0
    for wrong in (float("nan"), float("inf")):
        value = own.clone()
        value[0] = wrong
        assert judge_buffer(value, ReferenceValue(exact, own), []).excess > 1
    overflowed = torch.full((4,), float("inf"), dtype=torch.float16)  # as eager's does
    assert (
        judge_buffer(overflowed, ReferenceValue(torch.full((4,), 1e6, dtype=torch.float64), overflowed), []).excess == 0
    )


def test_what_is_exactly_zero_is_judged_by_the_size_of_rounding_errors():
    """The gradient of a bias before a BatchNorm, say."""
    exact, own = torch.zeros(8, dtype=torch.float64), torch.randn(8) * 1e-6
    assert judge_buffer(own.flip(0), ReferenceValue(exact, own), []).excess <= 1
    assert judge_buffer(own * 1e4, ReferenceValue(exact, own), []).excess > 1


def test_integers_are_exact_but_for_a_few_that_their_inputs_error_explains():
    exact = torch.arange(100_000) % 7
    value = exact.clone()
    value[:3] += 1
    assert judge_buffer(value, ReferenceValue(exact, exact), []).excess <= 1
    value[:300] += 1
    assert judge_buffer(value, ReferenceValue(exact, exact), []).excess > 1
    assert judge_buffer(value, ReferenceValue(exact, exact), [Size(1e-3, 1.0)]).excess <= 1
    assert measured(exact[:4], exact[:4] + 1) == Size(1.0, 1.0)


def test_a_few_elements_beyond_a_comparison_do_not_make_a_kernel_bad():
    exact = torch.randn(1_000_000, dtype=torch.float64)
    own = exact.float()
    value = own.clone()
    value[7] = 0.0
    assert judge_buffer(value, ReferenceValue(exact, own), []).excess > 1
    assert judge_buffer(value, ReferenceValue(exact, own), [], steps=True).excess <= 1


def test_random_numbers_are_uniform_or_normal_and_counted_from_an_offset():
    same = drawn("rand", (4,), torch.tensor(42))
    assert same.dtype == torch.float32
    assert torch.equal(same[1:], drawn("rand", (3,), torch.tensor(42), offset=1))
    many, normal = (drawn(kind, (100_000,), torch.tensor(-7)) for kind in ("rand", "randn"))
    assert float(many.min()) >= 0 and float(many.max()) < 1 and abs(float(many.mean()) - 0.5) < 0.01
    assert abs(float(normal.mean())) < 0.02 and abs(float(normal.std()) - 1) < 0.02


def traced(function: Callable[..., object], *inputs: torch.Tensor) -> torch.fx.GraphModule:
    from torch.fx.experimental.proxy_tensor import make_fx

    return make_fx(function)(*inputs)


def test_references_are_kept_in_float64_and_dropped_after_use():
    gm = traced(
        lambda x: (x.sin().to(torch.bfloat16).float() + torch.zeros(3, dtype=torch.float16)).cos(), torch.ones(3)
    )
    x = torch.randn(3)
    cos, sin = (NodeState(node) for name in ("cos", "sin") for node in gm.graph.nodes if node.name == name)
    references = Interpreter.from_inputs(OrderedGraph(gm), [x], {cos.node: 1, sin.node: 1})
    both = references.value(cos)
    assert both.exact.dtype == torch.float64 and both.own.dtype == torch.float32
    torch.testing.assert_close(both.exact, x.double().sin().cos(), rtol=1e-15, atol=0)
    assert torch.equal(both.own, (x.sin().bfloat16().float() + 0).cos())
    assert references.value(sin).own.dtype == torch.float32
    references.release(sin)
    with pytest.raises(NotComputable):
        references.value(sin)


def branch(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, lambda x: (x.sin(),), lambda x: (x.cos(),), (x,))[0]


def loop(x: torch.Tensor) -> torch.Tensor:
    from torch._higher_order_ops.while_loop import while_loop

    start = torch.zeros((), dtype=torch.int64)
    return while_loop(lambda count, x: count < 3, lambda count, x: (count + 1, x * 1.1), (start, x))[1]


def running(x: torch.Tensor) -> torch.Tensor:
    from torch._higher_order_ops.scan import scan

    return scan(lambda last, x: ((last + x).clone(), last * x), x[0], x)[1]


@pytest.mark.parametrize("function", [branch, loop, running])
def test_graphs_inside_of_an_op_are_computed_in_float64(function: Callable[..., object]) -> None:
    x = torch.rand(4, 5).bfloat16()
    gm = traced(function, x)
    (result,) = gm.graph.output_node().all_input_nodes
    reference = Interpreter.from_inputs(OrderedGraph(gm), [x], {result: 1}).value(NodeState(result))
    assert reference.own.dtype == torch.bfloat16 and torch.equal(reference.own, gm(x))
    torch.testing.assert_close(reference.exact, function(x.double()), rtol=1e-12, atol=0)


def test_an_op_without_a_kernel_for_float64_is_computed_in_float64_another_way() -> None:
    x, weights, ends = torch.randn(6, 16).bfloat16(), torch.randn(2, 16, 8).bfloat16(), torch.tensor([2, 6]).int()
    gm = traced(torch.ops.aten._grouped_mm, x, weights, ends)
    (result,) = gm.graph.output_node().all_input_nodes
    reference = Interpreter.from_inputs(OrderedGraph(gm), [x, weights, ends], {result: 1}).value(NodeState(result))
    groups = [x[:2].double() @ weights[0].double(), x[2:].double() @ weights[1].double()]
    torch.testing.assert_close(reference.exact, torch.cat(groups), rtol=1e-12, atol=0)
    assert torch.equal(reference.own, gm(x, weights, ends))


def test_changes_in_place_come_after_what_reads_the_value_before() -> None:
    def changing(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x.sin()
        before = y * 2
        y.t().add_(1)
        return before, y, y * 3

    x = torch.randn(3, 3)
    gm = traced(changing, x)
    before, changed, after = gm.graph.output_node().all_input_nodes
    (change,) = (node for node in gm.graph.nodes if node.name == "add_")
    wanted = [NodeState(after), NodeState(changed, (change,)), NodeState(before)]  # as launches may be in another order
    nodes = Counter(node for state in wanted for node in state.nodes)
    interpreter = Interpreter.from_inputs(OrderedGraph(gm), [x], nodes)
    found = {state.node: interpreter.value(state) for state in wanted}
    for node, right in zip((before, changed, after), changing(x.double()), strict=True):
        torch.testing.assert_close(found[node].exact, right, rtol=1e-12, atol=0)
        torch.testing.assert_close(found[node].own, right.float())


def test_attention_without_dropout_is_compared_and_its_generators_state_is_not():
    def attention(q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        result = torch.ops.aten._scaled_dot_product_flash_attention(q, q, q)
        return result[0], result[6]

    with torch._subclasses.FakeTensorMode():
        gm = traced(attention, torch.empty(1, 2, 8, 16, dtype=torch.float16, device="cuda"))
    found = {node.name: comparing.is_random(node) for node in gm.graph.nodes}
    assert not found["_scaled_dot_product_flash_attention"] and not found["getitem"]
    assert found["getitem_6"]


def test_inputs_that_share_memory_share_it_in_the_copy():
    base = torch.arange(12.0).reshape(3, 4)
    whole, part, number = copied([base, base[1:, ::2], 5])
    assert number == 5 and part.stride() == (4, 2)  # type: ignore[attr-defined]
    whole[1, 0] = 100  # type: ignore[index]
    assert part[0, 0] == 100 and base[1, 0] == 4  # type: ignore[index]
