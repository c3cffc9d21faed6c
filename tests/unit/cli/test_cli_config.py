"""`idbg config` tells each setting and who gave it."""

import json
from pathlib import Path

import pytest

from idbg import cli


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("IDBG_OUTPUT", raising=False)
    monkeypatch.setenv("IDBG_SETTINGS", str(tmp_path / "mine.toml"))
    (tmp_path / "mine.toml").write_text('theme = "\\u001b[31m"\n')
    (tmp_path / "pyproject.toml").write_text('[tool.idbg]\nbackend = "inductor"\n')
    return tmp_path


def test_the_table_has_every_setting_and_no_control_character(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["config", "--device", "cpu"]) == 0
    written = capsys.readouterr()
    rows = {line.split()[0]: line.split()[1:] for line in written.out.splitlines()[1:]}
    assert rows["backend"] == ['"inductor"', f"{folder / 'pyproject.toml'}:2"]
    assert rows["device"] == ['"cpu"', "--device"]
    assert rows["output"] == ['"debug_artifacts"', "default"]
    assert rows["theme"][1] == f"{folder / 'mine.toml'}:1" and "\x1b" not in written.out
    assert f"[tool.idbg] of {folder / 'pyproject.toml'}" in written.err


def test_the_json_has_what_lost_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["config", "--json", "--backend", "eager"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "idbg.config/1" and told["file"] == str(folder / "mine.toml")
    assert told["settings"]["backend"] == {
        "value": "eager",
        "origin": "--backend",
        "lost": [
            {"value": "inductor", "origin": f"{folder / 'pyproject.toml'}:2"},
            {"value": "aot", "origin": "default"},
        ],
    }


def test_the_path_alone_is_for_scripts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "mine.toml").write_text("broken")
    assert cli.main(["config", "--path"]) == 0
    assert capsys.readouterr().out == f"{folder / 'mine.toml'}\n"


def test_settings_without_an_end_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("IDBG_SETTINGS", "/dev/zero")
    assert cli.main(["config"]) != 0
    assert "cannot read the settings file /dev/zero" in capsys.readouterr().err


def test_an_unknown_key_is_an_error_with_what_was_meant(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "mine.toml").write_text("\nthem = 1\n")
    assert cli.main(["config"]) == 2
    assert f"{folder / 'mine.toml'}:2: there is no setting 'them'\n  did you mean theme?" in capsys.readouterr().err
