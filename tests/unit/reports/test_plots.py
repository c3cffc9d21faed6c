"""The error over a slice as a picture in a file."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from idbg.reports.drawings.files import write_error_map
from idbg.schema.diff import LARGEST, ErrorMap
from idbg.schema.errors import BadInput, OutputError

FOUND = ErrorMap('out["a/b"]', (1,), (2, 3), ((0.0, 1e-6, LARGEST), (1e-3, 0.0, 0.5)))


@pytest.mark.parametrize("cells", [FOUND.cells, ((0.5,),)])
def test_a_map_becomes_a_picture(tmp_path: Path, cells: tuple[tuple[float, ...], ...]) -> None:
    path = tmp_path / "error.svg"
    write_error_map(ErrorMap("out", (), (len(cells), len(cells[0])), cells), path)
    drawn = ElementTree.parse(path).getroot().iter("{http://www.w3.org/2000/svg}path")
    assert len(list(drawn)) == len({0.0 if cell == 0 else cell for row in cells for cell in row})


def test_a_slice_without_an_error_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "error.svg"
    with pytest.raises(BadInput, match="every element of this slice is equal"):
        write_error_map(ErrorMap("out", (), (1, 2), ((0.0, 0.0),)), path)
    assert not path.exists()


def test_a_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot write"):
        write_error_map(FOUND, tmp_path / "gone" / "error.svg")
