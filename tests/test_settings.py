"""Settings come from a file, the environment and the command line; the later wins, and mistakes are named."""

from pathlib import Path

import pytest

from idbg.config import settings
from idbg.schema.errors import SettingsError


def environ(tmp_path: Path, text: str | None = None, **variables: str) -> dict[str, str]:
    """An environment whose settings file holds `text`."""
    file = tmp_path / "settings.toml"
    if text is None:
        return {"XDG_CONFIG_HOME": str(tmp_path), **variables}
    file.write_text(text)
    return {"IDBG_SETTINGS": str(file), **variables}


@pytest.fixture(autouse=True)
def no_settings_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def test_without_a_file_there_are_defaults(tmp_path: Path) -> None:
    found = settings.load({})
    assert (found.backend, found.accelerator, found.strict, found.output) == ("aot", "", None, "debug_artifacts")


def test_the_later_of_file_environment_and_command_line_wins(tmp_path: Path) -> None:
    where = environ(
        tmp_path, 'backend = "eager"\ndevice = "cpu"\ntheme = "ansi"\n', IDBG_BACKEND="mock", IDBG_DEVICE=""
    )
    assert settings.load(where).backend == "mock"
    found = settings.load(where, {"backend": "inductor"})
    assert (found.backend, found.device, found.theme) == ("inductor", "cpu", "ansi")


def test_mock_strict_loses_to_the_file_the_environment_and_the_command_line(tmp_path: Path) -> None:
    assert settings.load(environ(tmp_path, MOCK_STRICT="0")).strict is False
    assert settings.load(environ(tmp_path, "strict = true\n", MOCK_STRICT="0")).strict is True
    assert settings.load(environ(tmp_path, MOCK_STRICT="0", IDBG_STRICT="yes")).strict is True
    assert settings.load(environ(tmp_path, MOCK_STRICT="0"), {"strict": True}).strict is True


def test_keys_and_options_are_tables(tmp_path: Path) -> None:
    found = settings.load(environ(tmp_path, '[keys]\nrun = "R"\n[options]\nmax_autotune = true\ncutoff = 3\n'))
    assert found.keys == {"run": "R"}
    assert found.options == {"max_autotune": True, "cutoff": 3}


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('device = "cpu"\nbackand = "aot"\n', 2, "did you mean backend?"),
        ("\n\nzzz = 1\n", 3, "there are: backend, "),
        ('theme = "x"\nstrict = "yes"\n', 2, "strict: expected `bool | null`, got `str`"),
        ("[keys]\nrun = 3\n", 1, "keys: expected `str`, got `int`"),
    ],
)
def test_a_mistake_in_the_file_is_named_with_its_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        settings.load(environ(tmp_path, text))
    assert f"settings.toml:{line}: " in str(caught.value)
    assert said in str(caught.value)


def test_what_is_not_toml_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="line 1"):
        settings.load(environ(tmp_path, "strict yes\n"))


def test_a_file_that_is_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no settings file"):
        settings.load({"IDBG_SETTINGS": str(tmp_path / "gone.toml")})


@pytest.mark.parametrize(("text", "strict"), [("", None), (" ", None), ("off", False), ("1", True)])
def test_mock_strict_is_a_yes_or_a_no_or_left_open(text: str, strict: bool | None) -> None:
    assert settings.strict_from({"MOCK_STRICT": text}) is strict
    assert settings.strict_from({}) is None
    with pytest.raises(SettingsError):
        settings.strict_from({"MOCK_STRICT": "2"})


@pytest.mark.parametrize("variable", ["MOCK_STRICT", "IDBG_STRICT", "IDBG_DYNAMIC"])
def test_a_variable_that_is_neither_true_nor_false_is_refused(variable: str) -> None:
    with pytest.raises(SettingsError, match=f"{variable} is 'maybe'"):
        settings.load({variable: "maybe"})
