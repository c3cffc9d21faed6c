"""Each line is asked about again at the end: smaller sizes and plainer values may have made it needless."""

import re
from dataclasses import replace

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


def test_an_operand_takes_the_place_of_what_is_computed_of_it():
    lines = ["# net.py:3: y = x.tanh()", "y = x.tanh()", "# net.py:4: z", "z = y.t().add(k)", "w = z.erfinv()"]
    first = candidate(lines, "(w, z)", {"x": torch.randn(4, 4), "k": torch.randn(4, 4)})

    def fails(named: dict[str, object]) -> bool:
        """Whether an erfinv is computed of a tanh."""
        made = dict(line.split(" = ") for line in str(named["lines"]).splitlines() if line[0] != "#")
        feeding = [name for name, text in made.items() if "erfinv" in text]
        for name in feeding:
            feeding += [read for read in made if re.search(rf"\b{read}\b", made[name]) and read not in feeding]
        return any("tanh" in made[name] for name in feeding)

    for definitions in ((), ("def lowered(x): ...",)):  # nothing is known of what such a program gives
        given = replace(first, draft=replace(first.draft, definitions=definitions))
        found, _ = shrink(given, where(fails))
        assert [line for line in found.draft.statements if line[0] != "#"] == ["y = x.tanh()", "w = y.erfinv()"]
        assert found.draft.result == "(w, y,)"
        assert [each.name for each in found.draft.arguments] == ["x"]


def test_lines_that_are_needed_stay():
    lines = ["y = x.tanh()", "z = y.exp()"]
    first = candidate(lines, "(z,)", {"x": torch.randn(16)})
    found, told = shrink(first, where(lambda named: "tanh" in named["lines"] and "exp" in named["lines"]))
    assert found.draft.statements == tuple(lines)
    assert len(told.asked) <= 5
