"""Where does the compiled kernel of a comparison come from, and what if it cannot be built?"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from idbg.engine.kerneldiff.tensors import native, native_build

pytestmark = pytest.mark.usefixtures("compiles_anew")

SLOW_COMPILER = """#!/bin/sh
echo $$ >> "$TOLD"
sleep "$SLOW" & wait
exit 1
"""
BUILD = "from idbg.engine.kerneldiff.tensors import native; native.wait(); print(native.problem())"


@pytest.mark.slow
def test_a_corrupt_cached_kernel_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    if not native.wait():
        pytest.skip(native.problem())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(native_build, "FLAGS", tuple(flag.replace("-O3", "-O0") for flag in native_build.FLAGS))
    for content in (None, b"", b"\x7fELF" + bytes(5000)):
        if content is not None:
            (path,) = tmp_path.glob("idbg/native/*.so")
            path.unlink()  # what is loaded stays as it is
            path.write_bytes(content)
        build = native.Build()
        build.thread.join()
        assert build.kernel is not None, build.problem
    assert [path.suffix for path in tmp_path.glob("idbg/native/*")] == [".so"]


def test_without_a_compiler_torch_does_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    build = native.Build()
    build.thread.join()
    assert build.kernel is None
    assert "C++ compiler" in build.problem


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compiler that takes SLOW seconds, fails, and tells its process id in this file."""
    program = tmp_path / "slow"
    program.write_text(SLOW_COMPILER)
    program.chmod(0o755)
    for name, value in {"CXX": program, "TOLD": tmp_path / "told", "XDG_CACHE_HOME": tmp_path / "cache"}.items():
        monkeypatch.setenv(name, str(value))
    return tmp_path / "told"


def _wait_for(what: object, seconds: float = 60.0) -> None:
    assert callable(what)
    deadline = time.monotonic() + seconds
    while not what() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert what()


def _is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
def test_a_killed_process_leaves_no_compiler_and_no_folder(compiler: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SLOW", "600")
    with subprocess.Popen((sys.executable, "-c", BUILD)) as process:
        _wait_for(lambda: compiler.exists() and compiler.read_text().strip())
        process.send_signal(signal.SIGKILL)
    (started,) = map(int, compiler.read_text().split())
    _wait_for(lambda: not _is_alive(started))
    native = Path(os.environ["XDG_CACHE_HOME"], "idbg", "native")
    _wait_for(lambda: not list(native.iterdir()))


def test_one_process_builds_at_a_time_and_what_dead_ones_left_goes(compiler: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SLOW", "0")
    folder = Path(os.environ["XDG_CACHE_HOME"], "idbg", "native")
    for left in ("tmpabc", "build-xyz"):
        (folder / left).mkdir(parents=True)
    with native_build._alone(folder):
        build = native.Build()
        build.thread.join(0.5)
        assert build.thread.is_alive() and not compiler.exists()  # it waits for the other
    build.thread.join()
    assert compiler.exists() and "non-zero exit status 1" in build.problem
    assert list(folder.iterdir()) == []
