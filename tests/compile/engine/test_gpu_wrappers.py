"""Which launches has a wrapper that Inductor writes for a GPU, and what work does a Triton kernel do, by their text?"""

import ast

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from idbg.analysis.output_code import read_output_code
from idbg.engine.bench.launches import AROUND, LaunchSite
from idbg.engine.bench.work import WorkProbe
from idbg.engine.compat import comparing
from idbg.engine.instrument.wrapper_lines import Launch, routed
from idbg.schema.code import Kernel

WRAPPER = """
class Runner:
    def partition_0(self, args):
        return args

    def call(self, args):
        arg0_1, arg1_1 = args
        args.clear()
        with torch.cuda._DeviceGuard(0):
            buf0 = empty_strided_cuda((8, 8), (8, 1), torch.float32)
            # [Provenance debug handles] extern_kernels.mm:1
            extern_kernels.mm(arg0_1, reinterpret_tensor(arg1_1, (8, 8), (1, 8), 0), out=buf0)
            buf1 = buf0; del buf0  # reuse
            # [Provenance debug handles] triton_poi_fused_sin_0:2
            stream0 = get_raw_stream(0)
            triton_poi_fused_sin_0.run(buf1, 64, stream=stream0)
            for number in range(2):
                buf2 = torch.ops.aten.sort.stable(buf1, stable=False)
        return (buf1, )
"""
TRITON = """
@triton.jit
def _triton_helper_fn_add0(arg0_0, arg1_0):
    return arg0_0 + arg1_0

@triton_heuristics.pointwise(size_hints={'x': 64}, filename=__file__)
@triton.jit
def triton_poi_fused_sin_0(in_out_ptr0, in_ptr0, out_ptr1, xnumel, XBLOCK : tl.constexpr):
    xnumel = 64
"""


def test_launches_on_a_gpu_are_found_and_made_by_way_of_us():
    code = read_output_code(WRAPPER, frame="0/0", part="", handles={"extern_kernels.mm:1": ["mm"]})
    module, found = routed(code, AROUND, first=5)
    assert [(launch.name, launch.handle, launch.nodes) for launch in found] == [
        ("extern_kernels.mm", "extern_kernels.mm:1", ("mm",)),
        ("triton_poi_fused_sin_0", "triton_poi_fused_sin_0:2", ()),
        ("torch.ops.aten.sort.stable", "", ()),
    ]
    assert [WRAPPER.splitlines()[launch.line - 1].strip()[:6] for launch in found] == ["extern", "triton", "buf2 ="]
    text = ast.unparse(module)
    view = "reinterpret_tensor(arg1_1, (8, 8), (1, 8), 0)"
    assert f"{AROUND}(5, extern_kernels.mm, arg0_1, {view}, out=buf0)" in text
    assert f"{AROUND}(6, triton_poi_fused_sin_0.run, buf1, 64, stream=stream0)" in text
    assert f"buf2 = {AROUND}(7, torch.ops.aten.sort.stable, buf1, stable=False)" in text
    before, after = (ast.unparse(routed(code, AROUND, place)[0]) for place in ("before", "after"))
    run = "triton_poi_fused_sin_0.run"
    assert f"{AROUND}(1, {run}, buf1, 64, stream0)(buf1, 64, stream=stream0)" in before
    assert f"{AROUND}(1, {run}(buf1, 64, stream=stream0))" in after
    assert f"buf2 = {AROUND}(2, torch.ops.aten.sort.stable(buf1, stable=False))" in after


def looked_at(*nodes: tuple[str, ...]) -> WorkProbe:
    """At Triton kernels that stand for these nodes, each launched once with three tensors."""
    x = torch.randn(8, 8)
    gm = make_fx(lambda x, w: torch.mm(x, w).sin(), tracing_mode="fake")(x, x)
    graph = comparing.InductorGraph(gm, "inference", (), (), {}, None, False)  # type: ignore[arg-type]
    kernel = Kernel(frame="0/0", part="inference", name="triton_", language="triton", source=TRITON)
    look = WorkProbe([LaunchSite("0/0", graph, Launch("triton_", "", 1, each, ()), kernel) for each in nodes])
    for number in range(len(nodes)):
        look(number, lambda *args, stream: None, x.clone(), x.bfloat16(), torch.randn(8, 1).expand(8, 8), 64, stream=0)
    return look


def test_a_triton_kernels_source_tells_what_is_read_and_written():
    (work,) = looked_at(("sin",)).seen.values()
    assert work.bytes == 2 * 4 * 64 + 2 * 64 + 4 * 8  # in place; bfloat16; expanded
    assert work.flops is None and work.dtype == "float32"


def test_a_product_is_counted_in_the_one_kernel_that_computes_it():
    assert [work.flops for work in looked_at(("mm", "sin")).seen.values()] == [2 * 8**3]
    assert [work.flops for work in looked_at(("mm",), ("mm", "sin")).seen.values()] == [None, None]
