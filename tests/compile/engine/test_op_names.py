"""The list of names that globs are held against has every operator of this torch."""

from idbg.accelerators.lint import op_names as known
from tests.harness import op_names


def test_every_operator_of_this_torch_is_listed() -> None:
    assert op_names.of_operators() - known() == set(), "run: python tests/harness/op_names.py"
