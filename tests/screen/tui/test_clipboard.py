"""Does a copied text end up where the user can paste it?"""

import os
from pathlib import Path

import pytest

from idbg_tui.terminal.clipboard import copy


@pytest.fixture
def sent() -> list[str]:
    return []


def fake_tmux(folder: Path, status: int) -> dict[str, str]:
    """A tmux that keeps what it is given, and its arguments, and ends with `status`."""
    tmux = folder / "tmux"
    tmux.write_text(f'#!/bin/sh\necho "$@" > {folder}/args\ncat > {folder}/buffer\nexit {status}\n')
    tmux.chmod(0o755)
    return {"TMUX": "/tmp/tmux-0/default,1,0", "TERM": "tmux-256color"}


def test_inside_tmux_the_text_goes_to_tmux_and_no_sequence_to_the_terminal(
    tmp_path: Path, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = fake_tmux(tmp_path, 0)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    copied = copy("päste\n", environ, sent.append, tmp_path)
    assert copied.by == "tmux"
    assert (tmp_path / "buffer").read_text() == "päste\n"
    assert (tmp_path / "args").read_text().split() == ["load-buffer", "-w", "-"]
    assert sent == []


def test_a_tmux_that_refuses_leaves_the_text_in_a_file_whose_path_is_told(
    tmp_path: Path, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = fake_tmux(tmp_path, 1)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    copied = copy("text", environ, sent.append, tmp_path)
    assert copied.by == "file"
    assert Path(copied.path).read_text() == "text"
    assert copied.path in copied.sentence("1 line")
    assert sent == []


def test_outside_tmux_the_terminal_is_asked(tmp_path: Path, sent: list[str]) -> None:
    assert copy("text", {"TERM": "xterm-256color"}, sent.append, tmp_path).by == "terminal"
    assert sent == ["text"]


@pytest.mark.parametrize(
    "environ",
    [{"TERM": "linux"}, {"TERM": "xterm", "TERM_PROGRAM": "Apple_Terminal"}, {"TERM": "screen", "STY": "1.pts"}, {}],
)
def test_terminals_that_drop_the_sequence_get_a_file(tmp_path: Path, sent: list[str], environ: dict[str, str]) -> None:
    assert copy("text", environ, sent.append, tmp_path).by == "file"
    assert sent == []


def test_a_text_too_long_for_terminals_goes_to_a_file(tmp_path: Path, sent: list[str]) -> None:
    copied = copy("x" * 80_000, {"TERM": "xterm-256color"}, sent.append, tmp_path)
    assert copied.by == "file"
    assert len(Path(copied.path).read_text()) == 80_000
