"""`idbg`, `idbg info`: what is installed, what is read and written, without waiting for torch."""

import json
from pathlib import Path

import pytest

from idbg import cli, constraints, plugins
from idbg.cli import verbs


def test_help_lists_every_command_in_the_folder(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    written = capsys.readouterr().out
    for name, command in ((name, verbs.load(name)) for name in verbs.names()):
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


def test_a_plug_in_that_does_not_work_is_named_with_what_is_wrong(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = ("constraints", "accelerators", "backends")
    (tmp_path / "other-1.0.dist-info").mkdir()
    (tmp_path / "other-1.0.dist-info" / "entry_points.txt").write_text(
        "".join(f"[idbg.{group}]\nbad-{group} = no_such_module_of_others\n" for group in groups)
    )
    (tmp_path / "other-1.0.dist-info" / "METADATA").write_text("Name: other\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    cached = (plugins.load, plugins.names, constraints.kinds)
    try:
        for function in cached:
            function.cache_clear()
        assert cli.main(["info"]) == 0
    finally:
        for function in cached:
            function.cache_clear()
    written = capsys.readouterr().out
    for group in groups:
        line = next(line for line in written.splitlines() if f"idbg.{group}: bad-{group}" in line)
        assert "No module named 'no_such_module_of_others'" in line


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
