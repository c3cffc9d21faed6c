"""A failed compile is shown again by plain torch: the graph that failed, with its lines, options and settings."""

from pathlib import Path

import pytest
import torch

from idbg.engine.repro.error_message import fragment, shortened
from tests.harness.repro_bench import Bench, run

RELU = "cpp.inject_relu_bug_TESTING_ONLY"  # Inductor writes C++ that does not compile
SETTING = f"import torch._inductor.config as config\nconfig.{RELU} = 'compile_error'\n"
OPTION = f"options={{'{RELU}': 'compile_error'}}"


FAILING = {
    "a setting": SETTING + "torch.compile(lambda x: x.relu() + 1)(torch.randn(4, 6))",
    "an option": f"torch.compile(lambda x: x.relu() + 1, {OPTION})(torch.randn(4, 6))",
    "dynamic": f"torch.compile(lambda x, n: x.view(x.shape[0] * 2, -1).relu() * n, dynamic=True, {OPTION})"
    "(torch.randn(4, 6), 3)",
    "modes": SETTING + "with torch.autocast('cpu', dtype=torch.bfloat16), torch.no_grad():\n"
    "    torch.compile(lambda x: (x @ x.T).relu())(torch.randn(4, 6))",
    "numpy": SETTING + "import numpy as np\n"
    "torch.compile(lambda x: torch.relu(torch.as_tensor(np.sin(x).T.sum(axis=0))))(np.ones((4, 6)))",
    "branches": SETTING
    + "torch.compile(lambda x: torch.cond(x.sum() > 0, torch.relu, torch.cos, (x,)))(torch.ones(4))",
    "training": SETTING + "net = torch.nn.Linear(6, 6)\n"
    "torch.compile(lambda x: net(x).relu().sum())(torch.ones(4, 6)).backward()",
    "swallowed": SETTING
    + "try:\n    torch.compile(lambda x: x.relu())(torch.randn(4, 6))\nexcept Exception:\n    pass\n"
    "torch.compile(lambda x: x.sin())(torch.randn(4, 6))",
    "suppressed": SETTING + "torch._dynamo.config.suppress_errors = True\n"
    "torch.compile(lambda x: x.relu())(torch.randn(4, 6))",
}


@pytest.mark.slow
@pytest.mark.parametrize("why", FAILING)
def test_it_fails_again_with_the_same_words(tmp_path: Path, why: str) -> None:
    script = Bench(tmp_path, FAILING[why], backend="aot").script()
    torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = None
    torch._dynamo.config.suppress_errors = False
    status, out = run(script)
    assert status == 1, out
    assert "REPRODUCED CppCompileError 'compile' was not declared in this scope" in out
    text = script.read_text()
    assert "idbg." not in text.replace("idbg 0", "").replace(str(tmp_path), "")
    assert "import idbg" not in text
    assert "g++" not in text.replace(str(tmp_path), "")
    assert "error: ‘compile’ was not declared" in text.splitlines()[0]
    assert f"    # {tmp_path}/subject.py:" in text


@pytest.mark.slow
def test_of_several_graphs_it_is_the_one_that_failed(tmp_path: Path) -> None:
    text = SETTING + (
        "def f(x):\n    y = x.relu()\n    return y\n"
        "kept = None\ntry:\n    torch.compile(f)(torch.randn(4, 6))\nexcept Exception as error:\n    kept = error\n"
        "torch.compile(lambda x: x.sin())(torch.randn(4, 6))\nraise kept\n"
    )
    script = Bench(tmp_path, text, backend="inductor").script()
    body = script.read_text().partition("def program(")[2].partition("def inputs")[0]
    assert ".relu()" in body
    assert ".sin()" not in body


@pytest.mark.slow
def test_another_failure_is_not_taken_for_it(tmp_path: Path) -> None:
    script = Bench(tmp_path, FAILING["an option"], backend="aot").script()
    text = script.read_text()
    mended = text.replace("'compile_error'", "None")
    script.write_text(mended)
    assert run(script)[0] == 0
    script.write_text(text.replace("l_x_.relu()", "l_x_.nothing()"))
    assert run(script)[0] == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("y = torch.compile(torch.sin)(torch.ones(4))\nassert y.sum() > 99, 'mine'", "AssertionError: mine"),
        ("torch.compile(lambda x: x @ x)(torch.ones(4, 6))", "RuntimeError: a and b must have same reduction dim"),
        ("torch.compile(torch.sin)(torch.ones(4))", "did not fail"),
    ],
)
def test_what_is_no_failed_compile_is_refused_in_words(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Bench(tmp_path, text, backend="eager").script()


def test_a_strict_refusal_is_shown_by_the_violation(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "torch.compile(lambda x: x.sin())(torch.ones(4))", strict=True)
    assert bench.ended.failure.kind == "constraints"
    assert run(bench.script())[0] == 1


def test_a_message_is_told_by_what_stays_of_it() -> None:
    message = "C++ error\n\nCommand:\ng++ /tmp/a.cpp -O3\n\nOutput:\n/tmp/a.main.cpp:15:33: error: ‘x’ was not declared"
    assert shortened(message) == ["a.main.cpp:15:33: error: ‘x’ was not declared"]
    assert fragment(shortened(message)) == "'x' was not declared", "another name is another failure"
    assert fragment([str(KeyError("no entry for tanh"))]) == "no entry for tanh"
    assert fragment(["Constraints violated (L['x'])! For more information, run with TORCH_LOGS=\"+dynamic\"."]) == (
        "Constraints violated"
    )
    assert fragment(["sources must not be empty for symbol s75"]) == "sources must not be empty for symbol"
    assert fragment(["'s75'"]) == ""
    assert fragment(["no unit for 's75'", "While executing %a_longer_line : [num_users=2]"]) == "no unit for"
    assert len(shortened("\n".join(map(str, range(99))))) < 15


FAULT = """
import os
def faulty(graph):
    raise RuntimeError("CUDA error: " + os.environ.get("FAULT", "an illegal memory access was encountered"))
torch._inductor.config.post_grad_custom_post_pass = faulty
torch.compile(lambda x: x.sin())(torch.ones(4))
"""


@pytest.mark.slow
def test_a_memory_fault_is_the_same_by_whatever_name_cuda_gives_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with torch._inductor.config.patch(post_grad_custom_post_pass=None):
        script = Bench(tmp_path, FAULT, backend="inductor").script()
    for words, expected in (("operation not supported on global/shared address space", 1), ("out of memory", 2)):
        monkeypatch.setenv("FAULT", words)
        status, out = run(script)
        assert status == expected, out


OF_TRITON = "at 3:37:\ndef k(x):\n    tl.store(x, tl.foo(x))\n                ^\n"


@pytest.mark.parametrize(
    ("message", "piece"),
    [
        ("name 'foo' is not defined", "name 'foo' is not defined"),
        ("'Foo' object has no attribute 'bar'", "'Foo' object has no attribute 'bar'"),
        ("'bar'", "'bar'"),
        ("cannot import name 'foo' from 'a.b' (/x/y.py)", "cannot import name 'foo' from 'a.b'"),
        ("missing lowering\n  target: aten.foo.default\n  args[0]: 3", "target: aten.foo.default"),
        ("KeyError: 'foo'\n  target: aten.foo.default", "KeyError: 'foo'"),
        (OF_TRITON + "NameError('foo is not defined')", "NameError('foo is not defined'"),
        (
            OF_TRITON + """AttributeError("module 'tl' has no attribute 'foo'")""",
            """AttributeError("module 'tl' has no attribute 'foo'\"""",
        ),
        ("/a.cpp:1:2: error: no member ‘foo’ in ‘class Vec<float>’", "no member 'foo' in 'class Vec<float>'"),
        ("CUDA error: misaligned address\nCUDA kernel errors might be", "an illegal memory access was encountered"),
        # names that torch chooses, or a search changes
        ("no kernel for 'buf0'", "no kernel for"),
        ("'arg0_1' has no value", "has no value"),
        ("it wanted 'bfloat16' of 'l_x_'", "it wanted"),
        ("Constraints violated (L['x'].size()[0])!", "Constraints violated"),
        ("/a.cpp:1:2: error: ‘tmp0’ was not declared", "was not declared"),
        ("'c3f9ab12d0'", ""),
        (
            "/a.cpp:1:2: error: no match for ‘V<float>::rsqrt2(const float&)’",
            "no match for 'V<float>::rsqrt2(const float&)'",
        ),
        ("/a.cpp:1:2: error: no match for ‘V<float, 2>::at(tmp3)’", "no match for"),
    ],
)
def test_a_name_that_is_missing_tells_one_failure_from_another(message: str, piece: str) -> None:
    assert fragment(shortened(message)) == piece
