"""Each line is asked about again at the end: smaller sizes and plainer values may have made it needless."""

import torch

from tests.harness.shrinking import candidate, shrink, where


def test_a_line_that_only_sizes_needed_goes_and_what_it_gave_is_made():
    lines = [
        "# net.py:3: y = x.tanh()",
        "y = x.tanh()",
        "# net.py:4: z = y @ w",
        "z = y @ w",
        "# net.py:5: z.relu()",
        "r = z.relu()",
    ]
    first = candidate(lines, "(r,)", {"x": torch.randn(8, 16), "w": torch.randn(16, 4)})
    found, _ = shrink(first, where(lambda named: "z" in named and "relu" in named["lines"]))
    assert found.draft.statements == ("# net.py:5: z.relu()", "r = z.relu()")
    assert [(each.name, each.text) for each in found.draft.arguments] == [("z", "torch.ones(1, 1)")]
    assert found.draft.result == "(r,)"


def test_a_last_line_goes_and_what_it_read_is_returned():
    lines = ["y = x.tanh()", "z = y.view(4, 4)"]
    first = candidate(lines, "(z,)", {"x": torch.randn(16)})
    found, _ = shrink(first, where(lambda named: "tanh" in named["lines"]))
    assert (found.draft.statements, found.draft.result) == (("y = x.tanh()",), "(y,)")


def test_lines_that_are_needed_stay():
    lines = ["y = x.tanh()", "z = y.exp()"]
    first = candidate(lines, "(z,)", {"x": torch.randn(16)})
    found, told = shrink(first, where(lambda named: "tanh" in named["lines"] and "exp" in named["lines"]))
    assert found.draft.statements == tuple(lines)
    assert len(told.asked) <= 5
