"""Do all themes load, and does a bad one stop nothing?"""

from pathlib import Path

import pytest
from textual.theme import Theme

from idbg.errors import SettingsError
from idbg_tui import theming


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
