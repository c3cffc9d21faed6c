"""The list of names that globs are held against has every operator of this torch."""

import op_names

from idbg.accelerators.lint import op_names as known


def test_every_operator_of_this_torch_is_listed() -> None:
    assert op_names.of_operators() - known() == set(), "run: python tests/op_names.py"
