"""Compile native.cpp once for all processes of a machine, without leftovers if this process is killed."""

import ctypes
import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from idbg.config import places
from idbg.engine.compat.builds.scratch import move, private
from idbg.engine.kerneldiff.tensors.figures import HEADER

SOURCE = Path(__file__).with_name("native.cpp")
# No -ffast-math: it would take NaN for impossible
FLAGS = ("-std=c++17", "-O3", "-march=native", "-fno-math-errno", "-Wno-psabi", "-fPIC", "-shared", "-pthread")
SECONDS = 300
BUILD = "build-"  # how folders begin that a build is made in
# Its stdin is open for as long as we live: at its end the whole group goes, and with it the folder, $0.
_GUARDED = """
exec 3<&0
"$@" </dev/null 3<&- & compiler=$!
(read -r word || { trap '' TERM; kill -TERM 0; sleep 1; rm -rf -- "$0"; }) <&3 & guard=$!
wait "$compiler"; code=$?
kill -KILL "$guard"
exit "$code"
"""


def built() -> ctypes.CDLL:
    """The library, compiled if necessary, by one process at a time.

    Raises OSError or SubprocessError where it cannot be.
    """
    compiler = _compiler()
    path = _place(compiler)
    if (library := _load(path)) is not None:
        return library
    path.parent.mkdir(parents=True, exist_ok=True)
    with _alone(path.parent):
        if (library := _load(path)) is None:  # else another process has made it meanwhile
            _compile(compiler, path)
            library = _load(path)
    if library is None:
        raise OSError(f"{path} cannot be loaded")
    return library


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, which the system releases when this process ends; without support for locks, none."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _compiler() -> str:
    """The compiler that Inductor uses."""
    names = (os.environ.get("CXX"), "g++", "clang++", "c++")
    compiler = next((path for name in names if name and (path := shutil.which(name))), None)
    if compiler is None:
        raise OSError("there is no C++ compiler: set CXX, or install g++")
    return compiler


def _place(compiler: str) -> Path:
    """The path for this source, compiler and processor."""
    status = Path(compiler).resolve().stat()
    key = hashlib.sha256(SOURCE.read_bytes())
    key.update(repr((compiler, status.st_size, status.st_mtime_ns, FLAGS, platform.machine(), _processor())).encode())
    return places.cache() / "native" / f"{key.hexdigest()[:24]}.so"


def _processor() -> str:
    """What -march=native depends on: a home folder may be shared by machines that differ."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return " ".join(sorted({line for line in lines if line.startswith(("flags", "model name", "Features"))}))


def _compile(compiler: str, path: Path) -> None:
    """Compile to another name first, with a digest at the end, so that an existing file is complete."""
    for left in (*path.parent.glob("tmp*/"), *path.parent.glob(f"{BUILD}*/")):  # nobody else is building
        shutil.rmtree(left, ignore_errors=True)
    nice = [program, "-n", "10"] if (program := shutil.which("nice")) else []
    with tempfile.TemporaryDirectory(dir=private.folder or path.parent, prefix=BUILD) as folder:
        made = Path(folder, "native.so")
        _run([*nice, compiler, *FLAGS, str(SOURCE), "-o", str(made)], folder)
        code = made.read_bytes()
        made.write_bytes(code + hashlib.sha256(code).digest())
        move(made, path)


def _run(command: Sequence[str], folder: str) -> None:
    """Run a compiler in a group of its own, which ends with this process. Raises SubprocessError where it fails."""
    with (
        Path(folder, "errors").open("wb") as errors,
        subprocess.Popen(
            ("/bin/sh", "-c", _GUARDED, folder, *command),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
            env={**os.environ, "TMPDIR": folder},
        ) as process,
    ):
        if code := process.wait(SECONDS):  # of one that takes longer the group ends as its stdin is closed
            raise subprocess.CalledProcessError(code, command, stderr=Path(folder, "errors").read_bytes())


def _load(path: Path) -> ctypes.CDLL | None:
    """None where there is no such file, or it is not what was written: loading a broken one can kill the process."""
    if not path.exists():
        return None
    content = path.read_bytes()
    if hashlib.sha256(content[:-32]).digest() != content[-32:]:
        return None
    library = ctypes.CDLL(str(path))
    return library if library.idbg_header() == HEADER else None
