"""Do all themes load, and does a bad one stop nothing?"""

import shutil
from pathlib import Path

import pytest
from textual.theme import Theme

from idbg.schema.errors import SettingsError
from idbg_tui import __main__, theming
from idbg_tui.app import IdbgApp
from idbg_tui.terminal import runner, watchdog
from tests.harness.recorded import RECORDINGS


def test_the_shipped_themes_are_themes() -> None:
    found = list(theming.themes((theming.shipped(),)))
    assert all(isinstance(theme, Theme) for theme in found)
    assert {theme.name for theme in found if isinstance(theme, Theme)} >= {"idbg-dark", "idbg-light", "ansi"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("primary = ", "Invalid"),
        ("dark = true", "primary"),
        ('primary = "blue"\nprimery = "red"', "primery"),
        ('primary = "bleu-ish"', '"bleu-ish" is not a colour'),
    ],
)
def test_a_file_that_is_no_theme_says_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=said) as caught:
        theming.read(path)
    assert str(path) in caught.value.message


def test_a_bad_theme_is_reported_and_the_others_are_there(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("primary = 3")
    (tmp_path / "good.toml").write_text('primary = "#123456"')
    bad, good = theming.themes((tmp_path, tmp_path / "nowhere"))
    assert isinstance(bad, SettingsError)
    assert isinstance(good, Theme) and good.name == "good"


@pytest.mark.parametrize(
    ("environ", "asked", "theme"),
    [
        ({"TERM": "linux"}, [], "ansi"),
        ({"TERM": "xterm-16color"}, [], "ansi"),
        ({"TERM": "linux"}, ["--theme", "idbg-light"], "idbg-light"),
        ({"TERM": "xterm-256color"}, [], "idbg-dark"),
        ({"TERM": "linux", "COLORTERM": "truecolor"}, [], "idbg-dark"),
        ({"TERM": "linux", "NO_COLOR": "1"}, [], "ansi"),
    ],
)
def test_a_terminal_of_16_colours_takes_the_theme_that_is_made_for_it(
    environ: dict[str, str], asked: list[str], theme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []

    class Seen:
        """In place of what shows the app, and takes the signals of this process."""

        def show(self, app: IdbgApp, watchdog: object) -> int:
            shown.append(app.theme)
            return 0

    for name in ("COLORTERM", "NO_COLOR", "TEXTUAL_COLOR_SYSTEM", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(runner, "AppRunner", Seen)
    monkeypatch.setattr(watchdog, "ScreenWatchdog", lambda: None)  # it asks the terminal
    monkeypatch.setattr(__main__, "_check_terminal", lambda: None)
    monkeypatch.setattr("idbg_tui.app.plain_signs.use", lambda _: None)  # the signs stay for the whole process
    (tmp_path / "settings.toml").touch()
    monkeypatch.setenv("IDBG_SETTINGS", str(tmp_path / "settings.toml"))
    saved = tmp_path / "saved"
    saved.mkdir()
    shutil.copy(RECORDINGS / "mlp_train.jsonl", saved / "events.jsonl")
    assert __main__.main([str(saved), *asked]) == 0
    assert shown == [theme]
