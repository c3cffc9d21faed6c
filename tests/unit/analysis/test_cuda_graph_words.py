"""Torch's messages of CUDA graphs, as both versions write them, are read into a reason, a line and plain words."""

import pytest

from idbg.analysis.decisions.cuda_graphs import meaning, read, ways_out

STACK = '  File "/home/me/model.py", line 12, in forward\n    x.add_(1)\n'
TORCHS = '  File "/v/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 9, in forward\n    return 1\n'


@pytest.mark.parametrize(
    "message",
    [
        f"skipping cudagraphs due to mutated inputs (2 instances). Found from : \n {STACK}",
        2 * "skipping cudagraphs due to " + f"mutated inputs (2 instances). Found from : \n {STACK}{TORCHS}",
    ],
)
def test_a_message_is_its_reason_and_the_users_innermost_line(message: str):
    found = read(message)
    assert found == ("mutated inputs (2 instances)", "/home/me/model.py", 12)
    assert meaning(found.reason) == "an input is changed in place (2 in all)"
    assert "clone()" in ways_out(found.reason)


def test_a_line_of_torchs_is_better_than_none():
    assert read(f"cpu device (arg0). Found from : \n {TORCHS}").line == 9


def test_what_changes_from_call_to_call_is_no_part_of_the_reason():
    first, second = (
        read(
            "static input data pointer changed.\ninput name: primals_1. data pointer changed from "
            f"{pointer} to {pointer + 512}. input stack trace: {STACK}\n"
        )
        for pointer in (140_000, 160_000)
    )
    assert first == second and first.line == 12
    assert meaning(first.reason) == "a weight or buffer is in other memory than when it was recorded"


def test_what_nobody_knows_stays_as_torch_has_it():
    assert meaning("of a new kind.") == "of a new kind" and ways_out("of a new kind") == ""
    assert read("") == ("", "", 0)
