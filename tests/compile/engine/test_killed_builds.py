"""Whatever is killed in the middle of a build, nobody ever meets what it left; what others left torn is built again."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from idbg.engine.compat.builds.scratch import is_torn
from idbg.schema.events import PhaseChanged
from idbg.schema.programs import Program, Target
from idbg.session.session import Session
from tests.harness import compiled_once

pytestmark = pytest.mark.usefixtures("compiles_anew")

SHARED = os.environ.get(compiled_once.FOLDER, "")
SCRIPT = str(Path(__file__).parents[2] / "harness" / "small_builds.py")
# A compiler whose linker is stopped at the worst moment: its output is there, and empty. It leaves only to SIGKILL.
STOPPED = """#!/bin/sh
case "$*" in *-shared*) ;; *) exec g++ "$@" ;; esac
[ -e {go} ] && exec g++ "$@"
trap '' INT TERM
while [ $# -gt 0 ]; do [ "$1" = -o ] && : > "$2" && echo "$2" > {at}; shift; done
sleep 60
"""

PROGRAM = """import torch
from torch._inductor import config

config.cpp.cxx = (None, {compiler!r})
config.cpp_cache_precompile_headers, config.cpp.vec_isa_ok = False, True
print(torch.compile(lambda x: x.sin() + 1)(torch.zeros(8)).sum().item())
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "scratch").mkdir()
    return tmp_path


def small(*words: object, place: Path | None = None) -> subprocess.CompletedProcess[str]:
    """`small_builds.py`, as in a run of ours where it has a place, and as plain Python where it has none."""
    environ = {**os.environ, **({"IDBG_SCRATCH": str(place / "scratch")} if place else {})}
    command = [sys.executable, SCRIPT, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=environ, timeout=400)


def libraries(place: Path) -> list[Path]:
    return sorted((place / "cache").rglob("*.so"))


def test_a_run_cancelled_while_the_linker_writes_leaves_plain_python_a_cache_that_works(place: Path) -> None:
    compiler, program = place / "compiler", place / "program.py"
    compiler.write_text(STOPPED.format(go=place / "go", at=place / "at"))
    compiler.chmod(0o755)
    program.write_text(PROGRAM.format(compiler=str(compiler)))  # variables would start both processes without torch
    target = Target(backend="inductor", rules='name = "none"')
    with Session(Program(path=str(program)), target, output=place / "out") as session:
        session.run()
        until((place / "at").exists)
        session.cancel()
        assert session.wait(30)
        assert any(isinstance(event, PhaseChanged) for event in session.events)
    stopped_at = Path((place / "at").read_text().strip())
    assert not stopped_at.exists()
    (place / "go").touch()
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=300)
    assert done.stdout == "8.0\n", done.stderr
    assert [file for file in libraries(place) if is_torn(file)] == []
    assert libraries(place)


@pytest.mark.slow
def test_builds_killed_at_60_random_moments_leave_plain_python_a_cache_that_works(place: Path) -> None:
    done = small("kill", 60, 10, place=place)
    assert done.returncode == 0, done.stderr
    built = [file for file in libraries(place) if not is_torn(file)]
    assert libraries(place) == built
    assert 3 < len(built) < 57, "the moments do not lie in the builds"
    done = small("build", *range(20))
    assert done.returncode == 0, done.stderr


def test_a_torn_library_is_said_removed_and_built_again(place: Path) -> None:
    assert small("build", 7).stdout == "7 7\n"
    library = max(libraries(place), key=lambda file: file.stat().st_mtime_ns)
    library.write_bytes(b"")
    assert "file too short" in small("build", 7).stderr, "torch takes it for whole"
    done = small("build", 7, place=place)
    assert done.stdout == "7 7\n"
    assert f"built again: {library}" in done.stderr
    library.write_bytes(library.read_bytes()[:-400])
    assert small("build", 7, place=place).stdout == "7 7\n"
    assert "built again" not in small("build", 7, place=place).stderr


@pytest.mark.slow
@pytest.mark.cold
def test_a_torn_library_does_not_make_the_processor_unable(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(compiled_once.FOLDER, SHARED)  # whatever builds it again
    first = small("isa")
    assert first.returncode == 0, first.stderr
    torn = libraries(place)[0]  # one of some, each of which takes seconds
    torn.write_bytes(b"")
    torn.with_name(torn.name + ".load_ok").unlink(missing_ok=True)
    again = small("isa", place=place)
    assert again.stdout == first.stdout and f"built again: {torn}" in again.stderr


def test_builds_in_torch_s_pool_of_processes_write_privately_too(place: Path) -> None:
    assert small("pool", place=place).stdout.split() == ["_Compilers"]


def test_a_compiler_that_is_killed_is_not_waited_for_by_its_children(place: Path) -> None:
    done = small("driver", place=place)  # which has a child that outlasts the timeout of `small`
    child = done.stdout.split()[1]
    assert "was killed" in done.stdout, done.stderr
    until(lambda: not Path("/proc", child).exists())
    assert list((place / "scratch").iterdir()) == []


def test_what_a_compiler_prints_and_how_it_fails_comes_as_torch_expects_it(place: Path) -> None:
    assert "CppCompileError" in small("broken", place=place).stderr


def until(done) -> None:
    deadline = time.monotonic() + 120
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.02)
