"""`idbg open` and `idbg tour` become the screen, or say why they cannot."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from idbg.cli import main, screen
from tests.harness.recorded import RECORDINGS


@pytest.fixture
def became(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The command lines that this process would have gone on as."""
    lines: list[list[str]] = []

    def execv(path: str, argv: list[str]) -> None:
        assert path == argv[0] == sys.executable
        lines.append(argv[1:])

    monkeypatch.setattr(os, "execv", execv)
    return lines


def test_a_session_is_opened_by_its_folder_or_its_name(tmp_path: Path, became: list[list[str]]) -> None:
    (tmp_path / "events.jsonl").write_bytes((RECORDINGS / "attention.jsonl").read_bytes())
    main(["open", str(tmp_path)])
    main(["open", tmp_path.name, "--output", str(tmp_path.parent)])
    opened = ["-P", "-m", "idbg_tui", str(tmp_path)]
    assert became == [opened, [*opened, f"--output={tmp_path.parent}"]]


def test_without_one_the_screen_offers_what_there_is(became: list[list[str]]) -> None:
    main(["open"])
    main(["open", "--output", "elsewhere"])
    main(["tour"])
    screen = ["-P", "-m", "idbg_tui"]
    assert became == [screen, [*screen, "--output=elsewhere"], [*screen, "--tour"]]


def test_what_is_no_session_is_refused_before_there_is_a_screen(
    tmp_path: Path, became: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["open", str(tmp_path)]) == 2
    assert became == [] and "is not a session" in capsys.readouterr().err


def test_without_the_screen_it_is_said_how_to_get_it(
    became: list[list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(screen, "PACKAGES", ("idbg_tui_that_is_not_there",))
    assert main(["tour"]) == 2
    told = capsys.readouterr().err
    assert became == [] and "the screen is not installed" in told and "pip install" in told


def test_without_a_terminal_it_says_what_can_be_opened() -> None:
    done = subprocess.run([sys.executable, "-m", "idbg", "open"], capture_output=True, text=True)
    assert done.returncode == 0 and "idbg-tui SESSION_FOLDER" in done.stdout
