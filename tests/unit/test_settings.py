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
        ('[keys]\nquit = "q"\nrun = 3\n', 3, "keys: expected `str`, got `int`"),
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


# ------------------------------------------------------------- the project, and who said what


def project(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(f'[project]\nname = "x"\n\n[tool.idbg]\n{text}')
    return folder


def test_a_project_wins_over_the_file_and_loses_to_the_environment(tmp_path: Path) -> None:
    here = project(tmp_path / "p", 'backend = "inductor"\ndevice = "cpu"\nmode = "default"\n')
    where = environ(tmp_path, 'backend = "eager"\ntheme = "ansi"\n', IDBG_DEVICE="cuda")
    found = settings.load(where, {"mode": "max-autotune"}, here)
    assert (found.backend, found.theme, found.device, found.mode) == ("inductor", "ansi", "cuda", "max-autotune")


def test_the_nearest_project_that_says_something_is_asked(tmp_path: Path) -> None:
    outer = project(tmp_path / "outer", 'backend = "eager"\n')
    inner = outer / "inner" / "deep"
    inner.mkdir(parents=True)
    (outer / "inner" / "pyproject.toml").write_text('[project]\nname = "idbg-plugin"\n')
    assert settings.load({}, cwd=inner).backend == "eager"
    assert settings.project(inner) == outer / "pyproject.toml"
    project(inner, 'backend = "mock"\n')
    assert settings.load({}, cwd=inner).backend == "mock"
    assert settings.project(tmp_path) is None


def test_paths_of_a_project_are_from_its_folder(tmp_path: Path) -> None:
    here = project(tmp_path / "p", 'output = "out"\naccelerator = "rules/mine.toml"\n')
    found = settings.load({}, cwd=here)
    assert (found.output, found.accelerator) == (str(here / "out"), str(here / "rules" / "mine.toml"))
    project(here, 'output = "/there"\naccelerator = "tpu"\n')
    found = settings.load({}, cwd=here)
    assert (found.output, found.accelerator) == ("/there", "tpu")


def test_a_project_does_not_say_which_command_is_your_editor(tmp_path: Path) -> None:
    here = project(tmp_path / "p", 'backend = "aot"\neditor = "rm -rf ~"\n')
    with pytest.raises(SettingsError, match=r"pyproject.toml:6: a project cannot choose your editor"):
        settings.load({}, cwd=here)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('backand = "aot"\n', 5, "did you mean backend?"),
        ("\n[tool.idbg.option]\nmax_autotune = true\n", 6, "did you mean options?"),
        ("[tool.idbg.options]\na = 1\nb = [1]\n", 7, "options: expected"),
        ("keep_sessions = -1\n", 5, "keep_sessions: expected `int` >= 0"),
        ('keep_size = "much"\n', 5, "keep_size: 'much' is no size"),
        ('float64 = "gpu"\n', 5, "float64: invalid enum value 'gpu'"),
    ],
)
def test_a_mistake_in_a_project_is_named_with_its_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        settings.load({}, cwd=project(tmp_path / "p", text))
    assert f"pyproject.toml:{line}: " in str(caught.value)
    assert said in str(caught.value)


def test_tables_are_put_together_key_by_key(tmp_path: Path) -> None:
    here = project(tmp_path / "p", "[tool.idbg.options]\na = 1\nb = 2\n")
    where = environ(tmp_path, '[options]\nb = 3\nc = 4\n[settings]\n"dynamo.recompile_limit" = 9\n')
    found = settings.load(where, cwd=here)
    assert found.options == {"a": 1, "b": 2, "c": 4} and found.settings == {"dynamo.recompile_limit": 9}
    told = settings.explained(where, cwd=here)
    assert [each.value for each in told["options.b"]] == [2, 3]
    assert told["settings.dynamo.recompile_limit"][0].origin == f"{tmp_path / 'settings.toml'}:5"


def test_each_value_says_who_gave_it(tmp_path: Path) -> None:
    here = project(tmp_path / "p", 'backend = "inductor"\n')
    where = environ(tmp_path, '# mine\nbackend = "eager"\n', IDBG_BACKEND="mock", MOCK_STRICT="1", IDBG_KEEP_DAYS="3")
    told = settings.explained(where, {"backend": "aot", "strict": False}, here)
    assert told["backend"] == [
        ("aot", "--backend"),
        ("mock", "IDBG_BACKEND"),
        ("inductor", f"{here / 'pyproject.toml'}:5"),
        ("eager", f"{tmp_path / 'settings.toml'}:2"),
        ("aot", "default"),
    ]
    assert told["strict"] == [(False, "--warn"), (True, "MOCK_STRICT"), (None, "default")]
    assert told["keep_days"] == [(3.0, "IDBG_KEEP_DAYS"), (0, "default")]
    assert told["device"] == [("", "default")]
    in_force = settings.load(where, {"backend": "aot", "strict": False}, here)
    assert all(getattr(in_force, name) == given[0].value for name, given in told.items())


def test_a_variable_that_is_misspelt_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    settings._warned.clear()
    for _ in range(2):
        settings.load({"IDBG_BACKAND": "aot", "IDBG_NICE": "3", "IDBG_TEST_X": "1", "MOCK_ALIGNMENT": "16"})
    assert [record.getMessage() for record in caplog.records] == [
        "IDBG_BACKAND has no effect: did you mean IDBG_BACKEND?"
    ]


@pytest.mark.parametrize(
    ("variable", "text", "said"),
    [
        ("IDBG_KEEP_SESSIONS", "few", "expected `int`"),
        ("IDBG_KEEP_SESSIONS", "-1", ">= 0"),
        ("IDBG_SESSION_SIZE", "lots", "is no size"),
    ],
)
def test_a_variable_that_cannot_be_is_refused(variable: str, text: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        settings.load({variable: text})
    assert f"{variable} is {text!r}" in str(caught.value) and said in str(caught.value)


def test_what_is_kept_follows_the_settings(tmp_path: Path) -> None:
    where = environ(tmp_path, 'keep_sessions = 5\nkeep_size = "2 GB"\n', IDBG_SESSION_SIZE="10 MiB")
    assert settings.load(where).keeping == (5, 0.0, 2_000_000_000, 10 << 20)
    assert settings.load({}).keeping == (0, 0.0, 0, 1 << 30)


def test_another_tools_broken_project_file_is_not_ours_to_mend(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.other\n")
    assert settings.load({}, cwd=tmp_path).backend == "aot"


@pytest.mark.parametrize(
    "text",
    [
        '[tool.idbg.options]\n"cpp.cxx" = "sh"\n',
        '[tool.idbg.options]\n"cpp.march" = "native -wrapper sh"\n',
        '[tool.idbg.options]\nmode = "./x"\n',
        '[tool.idbg.settings]\n"dynamo.debug_dir_root" = "there"\n',
    ],
)
def test_a_project_does_not_say_what_torch_runs_or_where_it_writes(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingsError, match=r"pyproject.toml:6: a project cannot choose a command or a folder"):
        settings.load({}, cwd=project(tmp_path / "p", text))
    own = environ(tmp_path, text.replace("tool.idbg.", ""))
    assert settings.load(own, cwd=tmp_path)
    harmless = project(tmp_path / "p", '[tool.idbg.options]\nmax_autotune_gemm_backends = "ATEN, TRITON"\n')
    assert settings.load({}, cwd=harmless).options == {"max_autotune_gemm_backends": "ATEN, TRITON"}


def test_a_project_says_which_sessions_go_of_its_own_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    here = project(tmp_path / "p", "keep_sessions = 1\n")
    assert settings.load({}, cwd=here).keep_sessions == 1
    assert settings.load({}, {"output": str(here / "inside")}, here).keep_sessions == 1
    elsewhere = environ(tmp_path, 'output = "/all/of/mine"\nkeep_sessions = 9\n')
    assert settings.load(elsewhere, cwd=here).keep_sessions == 9
    assert settings.load({}, {"output": "../q"}, here).keep_sessions == 0
    assert settings.load({"IDBG_OUTPUT": "/there"}, cwd=here).keep_sessions == 0
    project(here, 'keep_days = 1\noutput = "../.."\n')
    assert settings.load({}, cwd=here).keep_days == 0
    assert "limits sessions, but" in caplog.text


def test_a_number_that_python_does_not_read_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(f"keep_sessions = {'9' * 5000}\n")
    with pytest.raises(SettingsError, match="4300 digits"):
        settings.load({"IDBG_SETTINGS": str(tmp_path / "s.toml")}, cwd=tmp_path)
