"""An error map shows where in a slice the error lies."""

import pytest
import torch

from idbg.engine.kerneldiff.tensors.error_map import COLUMNS, ROWS, error_map
from idbg.schema.diff import LARGEST
from idbg.schema.errors import BadInput


def test_one_wrong_element_is_the_only_cell_that_is_not_zero() -> None:
    reference = torch.randn(3, 5, 7)
    test = reference.clone()
    test[2, 4, 6] += 0.5
    found = error_map("out", reference, test, (2,))
    wrong = [(row, column) for row, cells in enumerate(found.cells) for column, cell in enumerate(cells) if cell]
    assert wrong == [(4, 6)]
    assert found.cells[4][6] == pytest.approx(0.5)
    assert not any(map(any, error_map("out", reference, test, (1,)).cells))


def test_a_large_slice_keeps_its_worst_elements_in_few_cells() -> None:
    reference = torch.zeros(1000, 3001)
    test = reference.clone()
    test[999, 3000] = 2.0
    found = error_map("out", reference, test, ())
    assert found.shape == (1000, 3001)
    assert len(found.cells) <= ROWS
    assert len(found.cells[0]) <= COLUMNS
    assert found.cells[-1][-1] == 2.0
    assert sum(map(sum, found.cells)) == 2.0


def test_one_sided_nan_is_the_largest_error_and_a_shared_one_none() -> None:
    nan = float("nan")
    found = error_map("out", torch.tensor([[1.0, nan, nan]]), torch.tensor([[nan, nan, 2.0]]), ())
    assert found.cells == ((LARGEST, 0.0, LARGEST),)


@pytest.mark.parametrize("value", [torch.tensor(3.0), torch.arange(5), torch.ones(4, dtype=torch.complex64)])
def test_scalars_vectors_integers_and_complex_numbers_are_one_row(value: torch.Tensor) -> None:
    found = error_map("out", value, value + 1, ())
    assert len(found.cells) == 1
    assert set(found.cells[0]) == {1.0}


def test_a_slice_that_is_not_there_is_refused() -> None:
    with pytest.raises(BadInput, match=r"no slice \[4\]"):
        error_map("out", torch.ones(3, 2, 2), torch.ones(3, 2, 2), (4,))
    with pytest.raises(BadInput, match="no error to map"):
        error_map("out", torch.ones(3), torch.ones(4), ())
