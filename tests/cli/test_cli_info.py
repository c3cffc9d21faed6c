"""`idbg`, `idbg info`: what is installed, what is read and written, without waiting for torch."""

import json
from pathlib import Path

import pytest

from idbg import cli


def test_help_lists_every_command_in_the_folder(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    written = capsys.readouterr().out
    for name, command in cli.commands().items():
        assert f"{name} " in written
        assert command.HELP in " ".join(written.split())


def test_info_names_versions_and_every_path(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.toml").write_text('output = "elsewhere"\n')
    monkeypatch.setenv("IDBG_SETTINGS", str(tmp_path / "mine.toml"))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/caches/inductor")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["info", "--json"]) == 0
    info = json.loads(capsys.readouterr().out)
    assert info["paths"]["settings"] == str(tmp_path / "mine.toml")
    assert info["paths"]["sessions"] == str(tmp_path / "elsewhere")
    assert info["paths"]["inductor cache"] == "/caches/inductor"
    assert Path(info["paths"]["presets"], "mock.toml").is_file()
    assert {"idbg", "python", "torch", "textual", "msgspec"} <= info["versions"].keys()
    assert "mock" in info["accelerators"]
    assert "sessions" in info["missing"] and "presets" not in info["missing"]
    assert cli.main(["info"]) == 0
    assert "not there yet" in capsys.readouterr().out


def test_a_command_is_required(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main([])
    assert caught.value.code == 2


def test_a_mistake_in_the_settings_is_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.toml").write_text("outptu = 3\n")
    monkeypatch.setenv("IDBG_SETTINGS", str(tmp_path / "mine.toml"))
    assert cli.main(["info"]) == 2
    assert "did you mean output?" in capsys.readouterr().err
