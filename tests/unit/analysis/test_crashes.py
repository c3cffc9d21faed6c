"""A stack that Python's fault handler wrote is read, and a line of a wrapper says what it launches."""

import pytest

from idbg.analysis.crashes import LaunchLine, Place, is_wrapper, launch_at, launch_checked_at, stack_of, users_place

OTHER = """\
Thread 0x00007f735e0536c0 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 982 in run
"""
MAIN = """\
Thread 0x00007f7430fddb80 (most recent call first):
  File "/cache/mu/cmui.py", line 97 in call
  File "/venv/site-packages/torch/_inductor/output_code.py", line 828 in __call__
  File "/home/me/train.py", line 4 in model
  File "/home/me/run.py", line 11 in <module>
"""
FATAL = "Fatal Python error: Segmentation fault\n\n"
WRAPPER = """\
# AOT ID: ['0_inference']
class Runner:
    def call(self, args):
        buf0 = empty_strided_cpu((2, 3), (3, 1), torch.float32)
        # Topologically Sorted Source Nodes: [sin], Original ATen: [aten.sin]
        # [Provenance debug handles] cpp_fused_sin_0:1
        cpp_fused_sin_0(arg0_1, buf0)
        buf1 = extern_kernels.convolution(buf0, arg1_1, stride=(1, 1),
            groups=1)
        triton_poi_fused_1.run(buf1, buf0, 4096, stream=stream0)
        return (buf1, )
"""


def test_where_a_thread_without_python_crashed_the_main_one_is_told() -> None:
    stack = stack_of(FATAL + OTHER + "\n" + MAIN + "\nExtension modules: numpy (total: 1)\n")
    assert stack[0] == Place("/cache/mu/cmui.py", 97, "call") and stack[-1].function == "<module>"


def test_the_thread_that_crashed_is_told_before_the_main_one() -> None:
    stack = stack_of(FATAL + MAIN.replace("Thread", "Current thread", 1) + "\n" + OTHER)
    assert stack[0].file == "/cache/mu/cmui.py"


def test_of_several_stacks_the_last_counts() -> None:
    """A process that the program forked writes to the same file as it crashes."""
    assert stack_of(FATAL + OTHER + FATAL + MAIN)[0].line == 97
    assert stack_of("") == stack_of("nothing of the kind") == []


def test_the_users_place_is_the_innermost_line_of_no_library() -> None:
    stack = stack_of(FATAL + MAIN)
    assert users_place(stack, ["/cache/mu/cmui.py"]) == ("/home/me/train.py", 4)
    assert users_place(stack, ["/cache/mu/cmui.py", "/home/me/train.py"], "/home/me") == ("", 0)


@pytest.mark.parametrize(
    ("line", "launch"),
    [
        (7, LaunchLine("cpp_fused_sin_0", "cpp_fused_sin_0:1", ("arg0_1", "buf0"))),
        (8, LaunchLine("extern_kernels.convolution", "", ("buf0", "arg1_1"))),
        (10, LaunchLine("triton_poi_fused_1", "", ("buf1", "buf0", "stream0"))),
        (4, None),
        (11, None),
        (99, None),
    ],
)
def test_a_line_of_a_wrapper_says_what_it_launches(line: int, launch: LaunchLine | None) -> None:
    assert is_wrapper(WRAPPER) and not is_wrapper("import torch\n")
    assert launch_at(WRAPPER, line) == launch


def test_a_check_of_a_result_is_of_the_launch_above_it_and_one_of_an_argument_of_none() -> None:
    text = WRAPPER.replace("        buf0 =", "        assert_size_stride(arg0_1, (2, 3), (3, 1))\n        buf0 =")
    text = text.replace(
        "        triton", "        assert_tensor_metadata(buf1, (2, 3), (1, 2), torch.float32, 'op')\n        triton"
    )
    assert launch_checked_at(text, 11) == 9 and launch_checked_at(text, 4) == 4
    assert launch_checked_at(text, 5) == 5 and launch_checked_at(text, 99) == 99
