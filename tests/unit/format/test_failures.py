"""Is a failure told in one line that says what is wrong and where?"""

import pytest

from idbg.format.failures import headline
from idbg.schema.faults import CrashSite
from idbg.schema.programs import Failure

FAKE = """RuntimeError when making fake tensor call
  Explanation: Dynamo failed to run FX node: call_function linear(*(FakeTensor(..., size=(3, 5)),), **{}): got \
RuntimeError('a and b must have same reduction dim, but got [3, 5] X [4, 4].')

from user code:
   File "/home/me/model.py", line 12, in forward
    return self.linear(x)
  File "/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 134, in forward
    return F.linear(input, self.weight, self.bias)
"""


def test_the_error_that_torch_met_is_said_and_the_users_line() -> None:
    line = headline(Failure(kind="torch", type="TorchRuntimeError", message=FAKE))
    assert line.cause == "RuntimeError: a and b must have same reduction dim, but got [3, 5] X [4, 4]"
    assert line.place == "model.py:12"
    assert str(line).startswith("torch could not compile it: RuntimeError: a and b")


def test_the_first_line_that_says_something_is_the_cause_and_the_place_is_said_once() -> None:
    failure = Failure(kind="user", type="ValueError", message="\n  no such layer:\nmore", file="/x/m.py", line=3)
    assert str(headline(failure)) == "the program raised ValueError: no such layer (m.py:3)"
    failure = Failure(kind="user", type="SyntaxError", message="bad (m.py:3)", file="/x/m.py", line=3)
    assert str(headline(failure)) == "the program raised SyntaxError: bad (m.py:3)"


def test_an_error_of_code_that_the_compiler_calls_is_not_told_as_the_programs_own() -> None:
    failure = Failure(kind="user", type="ValueError", message="odd", file="/x/m.py", line=3, called_back=True)
    assert str(headline(failure)) == "code of yours that the compiler calls raised ValueError: odd (m.py:3)"
    launched = Failure(
        kind="torch", type="AssertionError", message="other strides", crash=CrashSite(cause="AssertionError")
    )
    assert str(headline(launched)) == "the compiled code failed: AssertionError: other strides"


@pytest.mark.parametrize(
    ("type", "what"),
    [
        ("ProgramError", "the program cannot be used"),
        ("AcceleratorError", "the accelerator cannot be used"),
        ("BadInput", "this cannot be used"),
    ],
)
def test_bad_input_says_what_cannot_be_used(type: str, what: str) -> None:
    assert str(headline(Failure(kind="input", type=type, message="no main"))) == f"{what}: no main"
