"""The error over a slice as a PNG."""

import sys
from pathlib import Path

import pytest

from idbg.reports.plots import save_error_map
from idbg.schema.diff import LARGEST, ErrorMap
from idbg.schema.errors import BadInput, OutputError

FOUND = ErrorMap('out["a/b"]', (1,), (2, 3), ((0.0, 1e-6, LARGEST), (1e-3, 0.0, 0.5)))


@pytest.mark.parametrize("cells", [FOUND.cells, ((0.5,),)])
def test_a_map_becomes_a_png(tmp_path: Path, cells: tuple[tuple[float, ...], ...]) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "error.png"
    save_error_map(ErrorMap("out", (), (len(cells), len(cells[0])), cells), path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_slice_without_an_error_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "error.png"
    with pytest.raises(BadInput, match="every element of this slice is equal"):
        save_error_map(ErrorMap("out", (), (1, 2), ((0.0, 0.0),)), path)
    assert not path.exists()


def test_a_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(OutputError, match="cannot write"):
        save_error_map(FOUND, tmp_path / "gone" / "error.png")


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.colors", None)
    with pytest.raises(BadInput, match="pictures need matplotlib") as raised:
        save_error_map(FOUND, tmp_path / "error.png")
    assert "idbg[plots]" in raised.value.hint
