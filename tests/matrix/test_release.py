"""Is what is published whole: does it install and run where there is nothing but what it says that it needs?

The environment is an empty one, with idbg installed in it from the wheel by pip, and beside it links to the
distributions that its metadata asks for, and those that these ask for: no others. So it proves that no file is missing
in the wheel, and no requirement in the metadata; not that pip finds versions of them, which every CI run does.
"""

import json
import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterable, Iterator
from email import message_from_string
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import idbg
from tests.harness.terminal import Terminal

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "tests" / "recordings" / "mlp_train.jsonl"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the sdist, and the wheel that was made of it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(published: Path) -> Path:
    return next(published.glob("*.whl"))


@pytest.fixture(scope="module")
def empty(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel in it, and what it requires; its folder of scripts."""
    place = tmp_path_factory.mktemp("environment")
    venv.create(place, with_pip=False, symlinks=True)
    python = place / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-index", "--no-deps", str(wheel)]
    done = subprocess.run(pip, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    installed = next(place.glob("lib/python*/site-packages"))
    for name in {part for each in required(asked_for(wheel)) for part in top_level(each)}:
        found = next((Path(folder, name) for folder in sys.path if Path(folder, name).exists()), None)
        if found is not None and not (installed / name).exists():
            (installed / name).symlink_to(found)
    return place / "bin"


def asked_for(wheel: Path) -> list[str]:
    """What the wheel's metadata requires."""
    with zipfile.ZipFile(wheel) as archive:
        metadata = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_string(archive.read(metadata).decode()).get_all("Requires-Dist", [])


def required(lines: Iterable[str]) -> list[Distribution]:
    """The distributions that are asked for, without extras, and those that they ask for."""
    found: dict[str, Distribution] = {}

    def add(lines: Iterable[str]) -> None:
        for line in lines:
            wanted = Requirement(line)
            if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
                continue
            try:
                other = distribution(wanted.name)
            except PackageNotFoundError:  # torch's own, for a GPU that is not here
                continue
            assert wanted.specifier.contains(other.version, prereleases=True), (line, other.version)
            if wanted.name not in found:
                found[wanted.name] = other
                add(other.requires or ())

    add(lines)
    return list(found.values())


def top_level(of: Distribution) -> Iterator[str]:
    """The names that it has in a folder of packages."""
    for file in of.files or ():
        if ".." not in file.parts:
            yield file.parts[0]


def ran(scripts: Path, *command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(
        [str(scripts / command[0]), *command[1:]], cwd=cwd, env=environ, capture_output=True, text=True
    )


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A recorded session, as a folder."""
    folder = tmp_path / "session"
    folder.mkdir()
    (folder / "events.jsonl").write_bytes(RECORDING.read_bytes())
    return folder


def test_what_is_published_is_as_registries_want_it(published: Path) -> None:
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, published.iterdir())]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.count("PASSED") == 2, done.stdout


def test_the_changelog_has_this_version_first(published: Path) -> None:
    heads = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert heads[0] == "[Unreleased]" or heads[0].startswith(f"[{idbg.__version__}] - ")
    assert all(re.fullmatch(r"\[Unreleased\]|\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", head) for head in heads), heads
    assert {path.name.split("-")[1].removesuffix(".tar.gz") for path in published.iterdir()} == {idbg.__version__}


def test_every_file_that_git_has_of_it_is_in_it(published: Path, wheel: Path) -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.splitlines()
    with tarfile.open(next(published.glob("*.tar.gz"))) as sdist:
        there = {name.partition("/")[2] for name in sdist.getnames()}
    assert [name for name in listed if name not in there] == []
    inside = set(zipfile.ZipFile(wheel).namelist())
    homes = {
        "core/idbg/": "idbg/",
        "idbg_tui/": "idbg_tui/",
        "themes/": "idbg_tui/_themes/",
        "examples/": "idbg/_examples/",
    }
    of_wheel = [(name, old, new) for name in listed for old, new in homes.items() if name.startswith(old)]
    assert [name for name, old, new in of_wheel if name.replace(old, new, 1) not in inside] == []


def test_it_runs_in_an_empty_environment(empty: Path, session: Path, tmp_path: Path) -> None:
    told = ran(empty, "idbg", "--version", cwd=tmp_path)
    assert told.stdout == f"idbg {idbg.__version__}\n", told.stderr
    info = ran(empty, "idbg", "info", cwd=tmp_path)
    assert info.returncode == 0 and "trainium2" in ran(empty, "idbg", "accelerators", cwd=tmp_path).stdout, info.stderr
    done = ran(empty, "idbg", "report", str(session), "-o", "a.html", "-o", "a.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert (
        "<style>" in page
        and "mlp_train" in page
        and json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["schema"]
    )
    where = ran(empty, "python", "-c", "import idbg, idbg_tui; print(idbg.__file__, idbg_tui.__file__)", cwd=tmp_path)
    assert where.returncode == 0 and str(ROOT) not in where.stdout, where.stderr
    assert ran(empty, "python", "-c", "import pytest", cwd=tmp_path).returncode == 1  # it has nothing else


def test_it_compiles_in_an_empty_environment(empty: Path, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "import torch\n\ndef program():\n    return torch.nn.Linear(10, 16), (torch.randn(4, 10),)\n"
    )
    done = ran(empty, "idbg", "run", "model.py", "--backend", "mock", "--warn", cwd=tmp_path)
    assert done.returncode == 0 and "model.py" in done.stdout, done.stdout + done.stderr


def test_the_screen_opens_a_session_in_an_empty_environment(empty: Path, session: Path, tmp_path: Path) -> None:
    environ = {"PYTHONPATH": "", "HOME": str(tmp_path)}
    terminal = Terminal([str(empty / "idbg-tui"), str(session)], cwd=tmp_path, env=environ)
    try:
        terminal.until("1 Graph")
        terminal.until(lambda screen: re.search(r"saved", screen.splitlines()[0]) is not None)
        terminal.press("7")
        terminal.until("Log")
        terminal.press("q")
        assert terminal.wait() == 0, terminal.text
    finally:
        terminal.close()


def test_its_types_reach_who_uses_it(empty: Path, tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(
        "from pathlib import Path\n\n"
        "import idbg\n\n\n"
        "def verdict(folder: Path) -> str:\n"
        "    session = idbg.Session.open(folder)\n"
        "    last = session.history.last\n"
        "    reveal_type(last)\n"
        '    return last.verdict if last is not None else "none"\n\n\n'
        'run = idbg.run_program("model.py", accelerator="npu.toml")\n'
        "reveal_type(run.violations[0].rule)\n"
        'idbg.run_program("model.py", accelerater="npu.toml")\n'
    )
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = True\n[mypy-torch.*]\nfollow_imports = skip\n")
    command = [sys.executable, "-m", "mypy", "--python-executable", str(empty / "python"), "user.py"]
    environ = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert 'Revealed type is "idbg.schema.runs.Run | None"' in done.stdout, done.stdout
    assert 'Revealed type is "str"' in done.stdout.replace("builtins.", "")
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert len(errors) == 1 and "accelerater" in errors[0], done.stdout
