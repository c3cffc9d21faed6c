"""A user without a home, or without a cache that can be written, is told in a sentence or not at all: no traceback."""

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from idbg import cli
from idbg.config import places
from idbg.mcp.where import AllowedSessions
from idbg.schema.errors import BadInput
from idbg_tui import __main__ as tui

# As on a machine that does not know our uid, with nothing in the environment that would tell a home.
HOMELESS = """
import os, pwd, sys
def unknown(uid): raise KeyError(uid)
pwd.getpwuid = unknown
for name in list(os.environ):
    if name.startswith("XDG_") or name in ("HOME", "LOGNAME", "USER", "LNAME", "USERNAME"):
        del os.environ[name]
from importlib import import_module
sys.exit(import_module(sys.argv[1]).main(sys.argv[2:]))
"""
PROGRAM = "import torch\nprint(torch.compile(lambda x: x + 1)(torch.ones(3)))\n"


def homeless(place: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    (place / "program.py").write_text(PROGRAM)
    environ = {**os.environ, "TMPDIR": str(place), **variables}
    command = [sys.executable, "-c", HOMELESS, *words]
    return subprocess.run(command, cwd=place, env=environ, capture_output=True, text=True, timeout=200)


@pytest.mark.parametrize(
    "words",
    [("info",), ("accelerators",), ("run", "program.py", "--backend", "eager"), ("bench", "--resume")],
    ids=lambda words: words[0],
)
def test_every_verb_works_without_a_home(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = homeless(tmp_path, "idbg.cli", *words)
    assert "Traceback" not in done.stderr
    assert done.returncode == (2 if "--resume" in words else 0), done.stderr  # there is nothing to resume


def test_without_a_home_our_folder_is_ours_alone(tmp_path: Path) -> None:
    assert homeless(tmp_path, "idbg.cli", "info").returncode == 0
    folder = tmp_path / f"idbg-uid-{os.getuid()}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o777)
    done = homeless(tmp_path, "idbg.cli", "info")
    assert f"{folder}/" not in done.stdout, "another user may have put something there"


def test_a_home_that_is_not_there_is_named() -> None:
    with pytest.raises(BadInput, match="~nobody-knows/x: there is no such home folder"):
        places.expanded("~nobody-knows/x")


def test_a_cache_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = str(tmp_path / "file" / "cache")
    done = homeless(tmp_path, "idbg.cli", "run", "program.py", TORCHINDUCTOR_CACHE_DIR=cache)
    assert done.returncode == 1
    said = done.stdout + done.stderr
    assert said.count(f"the worker could not start: Inductor's cache {cache} cannot be made: Not a directory") == 1
    assert "name another with TORCHINDUCTOR_CACHE_DIR" in said
    assert "Traceback" not in said


def test_the_inductor_cache_is_where_torch_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    assert str(places.inductor_cache({})) == default_cache_dir()


def test_of_a_cache_kernels_are_kept_where_graphs_are_forgotten(tmp_path: Path) -> None:
    places.forget_graphs(tmp_path / "none")
    for name in ("fxgraph/ab/cd", "aotautograd/ab", "kl"):
        (tmp_path / name).mkdir(parents=True)
    places.forget_graphs(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["kl"]


def test_a_cache_that_refuses_to_be_written_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from idbg.engine.failures.describe import failure_of
    from idbg.schema.programs import Program

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    try:
        try:
            raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "ab" / "x.cpp"))
        except PermissionError as refused:
            raise RuntimeError("InductorError: PermissionError") from refused
    except RuntimeError as error:
        failure = failure_of(error, Program(path="program.py"))
    assert failure.message == f"Inductor's cache {tmp_path} cannot be written: Permission denied"
    assert (failure.kind, "TORCHINDUCTOR_CACHE_DIR" in failure.hint) == ("input", True)
    own = PermissionError(errno.EACCES, "Permission denied", "/the/program/s/own")
    assert failure_of(own, Program(path="program.py")).kind == "user"


LONG_NAMES = {"name": "x" * 300, "path": "y/" * 50_000}


@pytest.mark.parametrize("name", LONG_NAMES.values(), ids=LONG_NAMES)
@pytest.mark.parametrize(
    "words",
    [
        *(
            "show",
            "report --format text",
            "analyze",
            "graph",
            "kernel",
            "compare x.py",
            "replay",
            "repro",
            "run",
            "check",
        ),
        *("diff", "minify", "bench", "bisect", "open", "clean", "list --output", "accelerators show", "mcp"),
        *("run x.py --accelerator", "diff x.py --against", "replay x.py --python", "report debug --compare"),
    ],
)
def test_a_name_that_no_file_can_have_is_refused_in_a_sentence(
    words: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.py").write_text("def program(): ...\n")
    assert cli.main([*words.split(), name]) == 2
    err = capsys.readouterr().err
    assert "Traceback" not in err and err.startswith("idbg: ")


def test_a_server_for_assistants_refuses_it_too(tmp_path: Path) -> None:
    for name in LONG_NAMES.values():
        with pytest.raises(BadInput, match="is too long for a file"):
            AllowedSessions(tmp_path).session(name)


def test_where_the_folder_that_the_user_stands_in_was_removed_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for main, words in ((cli.main, ["run", "x.py"]), (cli.main, ["list"]), (tui.main, ["x.py"])):
        assert main(words) == 2
        err = capsys.readouterr().err
        assert "the working directory was removed" in err and "Traceback" not in err
