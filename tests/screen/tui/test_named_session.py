"""`idbg-tui` opens a session by its path, its name in the output folder, or as the last one."""

import shutil
from pathlib import Path

import pytest

from idbg_tui import __main__ as main
from idbg_tui.__main__ import Opened

RECORDING = Path(__file__).parents[2] / "recordings" / "mlp_train.jsonl"


@pytest.mark.parametrize("named", ["kept/mlp-1", "mlp-1", "last"])
def test_a_session_is_named_as_for_every_command(named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Path] = []

    def show(opened: Opened, runner: object) -> int:
        with opened.opener() as session:
            shown.append(session.folder)
        return 0

    (tmp_path / "kept" / "mlp-1").mkdir(parents=True)
    shutil.copy(RECORDING, tmp_path / "kept" / "mlp-1" / "events.jsonl")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(main, "_show", show)
    monkeypatch.setattr(main, "_check_terminal", lambda: None)
    monkeypatch.setattr("idbg_tui.terminal.runner.AppRunner", object)
    assert main.main([named, "--output", "kept"]) == 0
    assert [folder.resolve() for folder in shown] == [tmp_path / "kept" / "mlp-1"]


def test_what_is_neither_a_session_nor_a_program_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main.main(["mlp-1"]) == 2
    assert capsys.readouterr().err.startswith("idbg-tui: no file mlp-1\n")
    with pytest.raises(SystemExit) as caught:
        main.main(["--tuor"])
    assert caught.value.code == 2
    assert capsys.readouterr().err == "idbg-tui: there is no flag --tuor\n  did you mean --tour?\n"
