"""Which kernels output code holds, whatever backend wrote it, and what each is made from."""

from pathlib import Path

import pytest

from idbg.analysis.output_code import is_cpp, read_output_code
from idbg.schema import events
from idbg.schema.code import Kernel
from tests.harness.event_lines import events_of

RECORDINGS = sorted((Path(__file__).parents[2] / "recordings").glob("*.jsonl"))

# As torch-spyre's scheduling writes them (define_kernel), cut down: a kernel is a list of specifications.
SPYRE = """\
from torch_spyre.execution.async_compile import SpyreAsyncCompile

async_compile = SpyreAsyncCompile()

# Topologically Sorted Source Nodes: [add], Original ATen: [aten.add]
sdsc_fused_add_0 = async_compile.sdsc('sdsc_fused_add_0',
    [
        OpSpec(
            op='add',
            is_reduction=False,
            iteration_space={sympify('c0'): (sympify('128'), 1), sympify('c1'): (sympify('4096'), 4)},
            args=[TensorArg(is_input=True, arg_index=0, device_size=[64, 1024, 64], allocation={'hbm': 0})],
        ),
    ]
)

async_compile.wait(globals())
del async_compile


def call(args):
    # [Provenance debug handles] sdsc_fused_add_0:1
    sdsc_fused_add_0.run(arg0_1, arg1_1, buf0)
    return (buf0,)
"""

# As torch_npu's MLIR codegen writes them, cut down: one that it runs op by op, with its graph above, and one in MLIR.
NPU = '''\
async_compile = CustomAsyncCompile()


"""
class <lambda>(torch.nn.Module):
    def forward(self, arg0_1: "f16[1, s3]"):
        _to_copy: "f32[1, s3]" = torch.ops.aten._to_copy.default(arg0_1, dtype = torch.float32);  arg0_1 = None
        return (_to_copy,)

"""
mlir_fused__to_copy_23 = async_compile.import_fx('mlir_fused__to_copy_23', kernel_meta={'device_str': 'npu', 'dynamic': True, 'traced_graph_hash': 'cq6opihlzxz26pnvp3xj7he2vynxp537rkctl7wqrhhsvapyfmj5'})
torch_npu.npu.set_device(0)


mlir_fused_mul_relu_25 = async_compile.mlir_auto_fallback('mlir_fused_mul_relu_25', \'\'\'
module {
  func.func @mlir_fused_mul_relu_25(%arg0: tensor<?x?xf32>) -> tensor<?x?xf32> {
    return %arg0 : tensor<?x?xf32>
  }
}
\'\'\', kernel_meta={'device_str': 'npu', 'signature': {0: '*f32'}})
'''  # noqa: E501

# As Inductor writes a kernel that it may run in several ways, and one of Metal's of a call that is not async_compile's
MANY = """\
triton_a_0 = async_compile.triton('triton_a_0', '''
@triton.jit
def triton_a_0(x): pass
''', device_str='cuda')
triton_a_1 = async_compile.triton(kernel_name='triton_a_1', source_code='''
def triton_a_1(x): pass
@triton.jit
''', device_str='cuda')
multi_kernel_0 = async_compile.multi_kernel('multi_kernel_0', [
    triton_a_0,
    triton_a_1,
])
mps_0 = compile_mps_shader('''
kernel void generated_kernel() {}
// end
''')
two_0 = async_compile.two('two_0', '''
host
code''', '''
device
code''')
assert_size_stride = torch._C._dynamo.guards.assert_size_stride
empty = make_empty('''
no
kernel''')

def call(args):
    # [Provenance debug handles] mps_0:1
    mps_0(buf0)
"""


def kernels(text: str) -> dict[str, Kernel]:
    return {kernel.name: kernel for kernel in read_output_code(text, frame="0/0", part="inference").kernels}


def test_a_kernel_of_specifications_is_kept_as_its_whole_definition():
    (kernel,) = kernels(SPYRE).values()
    assert kernel.source.startswith("sdsc_fused_add_0 = async_compile.sdsc('sdsc_fused_add_0',\n    [\n        OpSpec(")
    assert "args=[TensorArg(is_input=True, arg_index=0" in kernel.source and kernel.source.endswith("    ]\n)\n")
    assert (kernel.language, kernel.line) == ("sdsc", 6)
    assert [call.line for call in kernel.calls] == [23]


def test_a_kernel_that_is_run_op_by_op_is_kept_with_its_graph_and_what_is_known_of_it():
    kernel = kernels(NPU)["mlir_fused__to_copy_23"]
    assert "torch.ops.aten._to_copy.default(arg0_1, dtype = torch.float32)" in kernel.source
    assert kernel.source.startswith('"""\nclass <lambda>') and kernel.source.endswith("vapyfmj5'})\n")
    assert (kernel.language, kernel.line) == ("import_fx", 11)


def test_a_kernel_with_one_source_is_kept_as_that():
    kernel = kernels(NPU)["mlir_fused_mul_relu_25"]
    assert kernel.source.startswith("module {\n") and kernel.source.endswith("  }\n}\n")
    assert "kernel_meta" not in kernel.source


def test_the_source_may_be_given_by_name():
    found = kernels(MANY)
    assert found["triton_a_0"].source == "@triton.jit\ndef triton_a_0(x): pass\n"
    assert found["triton_a_1"].source == "def triton_a_1(x): pass\n@triton.jit\n"


def test_a_kernel_with_no_source_or_several_is_kept_as_its_definition():
    found = kernels(MANY)
    assert found["multi_kernel_0"].source.count("\n") == 4 and "    triton_a_1,\n" in found["multi_kernel_0"].source
    assert "host\ncode" in found["two_0"].source and "device\ncode" in found["two_0"].source


def test_what_is_launched_is_a_kernel_whatever_made_it_and_what_is_not_is_none():
    found = kernels(MANY)
    assert found["mps_0"].source == "kernel void generated_kernel() {}\n// end\n"
    assert found["mps_0"].language == "compile_mps_shader"
    assert "empty" not in found and "async_compile" not in kernels(SPYRE)


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_the_kernels_of_real_compiles_are_what_they_were(recording: Path):
    with recording.open("rb") as log:
        codes = [event.code for event in events_of(log) if isinstance(event, events.CodeCaptured)]
    for code in codes:
        again = read_output_code(code.text, frame=code.frame, part=code.part)
        assert {kernel.name: kernel.source for kernel in again.kernels if kernel.source} == {
            kernel.name: kernel.source for kernel in code.kernels if kernel.source
        }


AOT = """\
#include <torch/csrc/inductor/aoti_include/cpu.h>
void AOTInductorModel::run_impl() {
    // [Provenance debug handles] cpp_fused_relu_0:1
    cpp_fused_relu_0(buf0, buf1);
    // [Provenance debug handles] aoti_torch_cpu_mm_out:2
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_mm_out(buf2, buf1, w));
}

extern "C"  void  cpp_fused_relu_0(const float* in_ptr0,
                       float* out_ptr0)
{
    out_ptr0[0] = in_ptr0[0];
}
"""


def test_aotinductors_code_is_cpp_alone() -> None:
    code = read_output_code(AOT, frame="0/0", part="inference", handles={"cpp_fused_relu_0:1": ["relu"]})
    assert [(kernel.name, kernel.language, kernel.line) for kernel in code.kernels] == [
        ("cpp_fused_relu_0", "cpp", 9),
        ("aoti_torch_cpu_mm_out", "extern", 0),
    ]
    assert [(call.line, call.nodes) for call in code.kernels[0].calls] == [(4, ("relu",))]
    assert is_cpp(AOT) and not is_cpp("# AOT ID: ['0_forward']\nimport torch\n")
