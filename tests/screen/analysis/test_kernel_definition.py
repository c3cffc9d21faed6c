"""A kernel's source is replaced in its definition alone, and an error of its build is found at its line."""

import pytest
from msgspec.structs import replace

from idbg.analysis.kernel_definition import (
    build_error,
    check_edit,
    first_line,
    function_of,
    parameters,
    redefined,
    without_warnings,
)
from idbg.analysis.output_code import read_output_code
from idbg.schema.code import Kernel, OutputCode
from idbg.schema.errors import BadInput
from idbg.schema.runs import fold
from tests.harness import recorded

CODES = [
    code
    for name in ("mlp_train_cuda", "resnet")
    for run in fold(recorded.log(name)).runs.values()
    for code in run.codes.values()
]


def triton_code() -> tuple[OutputCode, Kernel]:
    found = ((code, kernel) for code in CODES for kernel in code.kernels if kernel.language == "triton")
    return next(found)


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.text.count("\n"))
def test_the_definition_has_the_new_source_and_all_else_as_it_was(code: OutputCode):
    edited = [kernel for kernel in code.kernels if kernel.source]
    assert edited, "this recording has no kernels"
    for kernel in edited:
        text = kernel.source.replace("\n", "\n\n", 3) + "# '''quotes''' and \\n\n"
        statement = redefined(code.text, kernel.name, text)
        (again,) = read_output_code(statement, frame="", part="").kernels
        assert (again.name, again.language, again.source) == (kernel.name, kernel.language, text)
        back = redefined(code.text, kernel.name, kernel.source)
        (original,) = read_output_code(back, frame="", part="").kernels
        assert original.source == kernel.source
        assert statement.replace(repr(text), "") == back.replace(repr(kernel.source), "")


def test_an_edit_that_the_program_could_not_call_is_refused():
    code, kernel = triton_code()
    first, *_ = parameters(kernel.name, kernel.source) or ()
    check_edit(kernel, code, kernel.source.replace("tl.load", "tl.load", 1) + "# another\n")
    with pytest.raises(BadInput, match="as the compiler wrote it"):
        check_edit(kernel, code, kernel.source)
    with pytest.raises(BadInput, match=f"its parameters are not the original's: .*{first}2"):
        check_edit(kernel, code, kernel.source.replace(f"({first},", f"({first}2,"))
    with pytest.raises(BadInput, match="defines no kernel"):
        check_edit(kernel, code, "x = 1\n")
    with pytest.raises(BadInput, match="op of a library"):
        check_edit(replace(kernel, language="extern", source=""), code, "x")
    with pytest.raises(BadInput, match="cannot be replaced: no statement"):
        check_edit(kernel, replace(code, text="// C++\n"), kernel.source + "# another\n")


USERS = """\
import triton
import triton.language as tl

@triton.jit
def scaled(x, out, n, BLOCK: tl.constexpr):
    tl.store(out, helper(x, 2))

@triton.jit
def helper(x, by):
    return tl.load(x) * by
"""


def test_a_users_triton_kernel_is_known_by_its_function_and_not_by_its_helpers():
    kernel = Kernel(frame="0/0", part="", name="scaled_0", language="triton", source=USERS)
    code = OutputCode("0/0", "", f"scaled_0 = async_compile.triton('scaled', {USERS!r}, device_str='cuda')\n")
    check_edit(kernel, code, USERS.replace("by", "times"))
    with pytest.raises(BadInput, match="its parameters are not"):
        check_edit(kernel, code, USERS.replace("n, BLOCK", "BLOCK"))
    output = TRITON.replace("triton_(in_ptr0, out_ptr0, xnumel, XBLOCK", "scaled(x, out, n, BLOCK").replace(
        "at 3:", "at 2:"
    )
    assert build_error(function_of(code.text, kernel.name), USERS, output)[1] == 6


CPP = """\
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void kernel(const float* in_ptr0,
                       float* out_ptr0)
{
    out_ptr0[0] = in_ptr0[0];
}
"""


DIVIDES = """\
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  kernel(float* in_out_ptr0,
                       const float* in_ptr1)
{
    std::atomic<int> inductor_cpu_integer_div_error{0};
    inductor_cpu_integer_div_error_flag = &inductor_cpu_integer_div_error;
    auto out_ptr0 = in_out_ptr0;
    {
        #pragma GCC ivdep
        for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(8L); x0+=static_cast<int64_t>(1L))
        {
            float tmp_acc0 = 0;
            auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr1 + static_cast<int64_t>(x0), static_cast<int64_t>(8));
        }
    }
}
"""


def test_a_cpp_kernel_begins_at_its_first_computation_and_not_at_its_flags():
    lines = DIVIDES.split("\n")
    assert "auto tmp0 =" in lines[first_line(DIVIDES) - 1]
    without = "\n".join(line for line in lines if "tmp0" not in line)  # a template of a GEMM has no such names
    assert without.split("\n")[first_line(without) - 1] == "    {"
    assert CPP.split("\n")[first_line(CPP) - 1] == "    out_ptr0[0] = in_ptr0[0];"


def test_names_of_cpp_parameters_are_the_kernels_own_and_types_are_not():
    kernel = Kernel(frame="0/0", part="", name="k", language="cpp", source=CPP)
    code = OutputCode("0/0", "", f"k = async_compile.cpp_pybinding(['const float*', 'float*'], {CPP!r})\n")
    check_edit(kernel, code, CPP.replace("in_ptr0", "x"))
    check_edit(kernel, code, CPP.replace("const float* in_ptr0,\n", "const float *in_ptr0, "))
    with pytest.raises(BadInput, match=r"\(const double\*, float\*\) in place of \(const float\*, float\*\)"):
        check_edit(kernel, code, CPP.replace("const float", "const double"))


SPECS = "k = async_compile.sdsc('k', [OpSpec('add', 'x', 'y'), OpSpec('relu', 'y')])\n"


def test_a_kernel_without_a_source_of_its_own_is_edited_as_the_statement_that_defines_it():
    kernel = Kernel(frame="0/0", part="", name="k", language="sdsc", source=SPECS)
    code = OutputCode("0/0", "", SPECS)
    edited = SPECS.replace("relu", "gelu")
    check_edit(kernel, code, edited)
    assert redefined(code.text, "k", f"# another op\n{edited}") == edited.strip()
    for text in ("x = 1\n", "k = 1\n", "def k(: pass\n"):
        with pytest.raises(BadInput, match=r"must be Python, `k = "):
            check_edit(kernel, code, text)


GPP = """\
/tmp/x/cabc.main.cpp: In function ‘void kernel(const float*, float*)’:
/tmp/x/cabc.main.cpp:5:30: error: expected ‘;’ before ‘}’ token
    5 |     out_ptr0[0] = in_ptr0[0]
/tmp/x/cabc.main.cpp:9:1: error: another
"""
WARNED = """\
In file included from /v/torch/include/vec.h:3:
/v/torch/include/vec.h:1870:7: warning: overflow in conversion
 1870 |       0x80,
"""
TRITON_SOURCE = """\
import triton
import triton.language as tl

@triton.jit
def triton_(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    x = tl.load(in_ptr0)
    tl.store(out_ptr0, x + nosuch)
"""
TRITON = """\
torch._inductor.compile_worker.subproc_pool.SubprocException: An exception occurred in a subprocess:

Traceback (most recent call last):
  File "/v/lib/python3.12/site-packages/torch/_inductor/runtime/triton_heuristics.py", line 790, in _precompile_config
    binary = triton.compile(*compile_args, **compile_kwargs)
triton.compiler.errors.CompilationError: at 3:27:
def triton_(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    x = tl.load(in_ptr0)
    tl.store(out_ptr0, x + nosuch)
                           ^
NameError("nosuch is not defined")

"""
SYNTAX = """\
Traceback (most recent call last):
  File "/v/lib/python3.12/site-packages/torch/_inductor/codecache.py", line 3300, in load_by_key_path
    mod = _reload_python_module(key, path, set_sys_modules=in_toplevel)
  File "/tmp/torchinductor_me/ab/cabc.py", line 6
    x = tl.load(in_ptr0
               ^
SyntaxError: '(' was never closed
"""


def test_warnings_of_torchs_headers_are_left_out_of_what_a_compiler_printed():
    errors = GPP.partition("\n")[2]
    assert without_warnings(WARNED + GPP + WARNED.partition("\n")[2]) == errors
    assert without_warnings(TRITON) == TRITON


@pytest.mark.parametrize(
    ("text", "output", "said", "line"),
    [
        (CPP, GPP, "expected ‘;’ before ‘}’ token", 5),
        (CPP, GPP.replace(":5:30:", ":50:1:"), "expected ‘;’ before ‘}’ token", 0),  # in what binds it to Python
        (CPP, "ImportError: k.so: undefined symbol: f\n", "ImportError: k.so: undefined symbol: f", 0),
        (TRITON_SOURCE, TRITON, 'NameError("nosuch is not defined")', 7),
        (TRITON_SOURCE, SYNTAX, "SyntaxError: '(' was never closed", 6),
        (TRITON_SOURCE, "", "", 0),
    ],
)
def test_the_first_error_of_a_build_is_found_at_its_line(text: str, output: str, said: str, line: int):
    assert build_error("triton_poi_fused_0", text, output) == (said, line)
