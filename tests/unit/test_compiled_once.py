"""The tests' g++ compiles the same source with the same options once, wherever the files are."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.harness import compiled_once

LOGGED = '#!/bin/sh\necho "$*" >>{log}\nexec {compiler} "$@"\n'
SOURCE = 'extern "C" int number() { return 42; }\n'


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The command of each g++ that runs, a line each."""
    here = os.path.dirname(compiled_once.__file__)
    path = [folder for folder in os.get_exec_path() if not folder.startswith(here)]
    compiler = shutil.which("g++", path=os.pathsep.join(path))
    if compiler is None:
        pytest.skip("there is no g++")
    for folder in ("bin", "compiled"):
        (tmp_path / folder).mkdir()
    logged = tmp_path / "bin" / "g++"
    logged.write_text(LOGGED.format(log=tmp_path / "log", compiler=compiler))
    logged.chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([f"{here}/compilers", str(logged.parent), *path]))
    monkeypatch.setenv(compiled_once.FOLDER, str(tmp_path / "compiled"))
    (tmp_path / "log").touch()
    return tmp_path / "log"


def compiled(folder: Path, source: str = SOURCE, *options: str) -> subprocess.CompletedProcess[str]:
    folder.mkdir(exist_ok=True)
    (folder / "it.cpp").write_text(source)
    command = ["g++", str(folder / "it.cpp"), "-shared", "-fPIC", *options, "-o", str(folder / "it.so")]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_same_source_is_compiled_once_for_all_folders(log: Path, tmp_path: Path) -> None:
    assert compiled(tmp_path / "a").returncode == compiled(tmp_path / "b").returncode == 0
    assert len(log.read_text().splitlines()) == 1
    assert (tmp_path / "b" / "it.so").read_bytes() == (tmp_path / "a" / "it.so").read_bytes()
    assert os.access(tmp_path / "b" / "it.so", os.X_OK)
    (tmp_path / "b" / "it.so").write_bytes(b"")  # as tests of torn files do
    compiled(tmp_path / "c")
    assert (tmp_path / "c" / "it.so").read_bytes() == (tmp_path / "a" / "it.so").read_bytes()


def test_a_kernel_is_linked_against_names_alone_and_a_test_that_compiles_anew_against_torchs_own(
    log: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What is loaded where torch is not there finds torch's libraries by itself, or needs none."""
    (tmp_path / "a.h").touch()
    kernel = ("-include", str(tmp_path / "a.h"), "-ltorch_of_a_test")
    assert compiled(tmp_path / "a", SOURCE, *kernel).returncode == 0
    needed = subprocess.run(["readelf", "-d", tmp_path / "a" / "it.so"], capture_output=True, text=True, check=False)
    assert "[libtorch_of_a_test.so]" in needed.stdout
    assert compiled(tmp_path / "b", SOURCE, "-ltorch_of_a_test").returncode == 1
    monkeypatch.delenv(compiled_once.FOLDER)
    assert compiled(tmp_path / "a", SOURCE, *kernel).returncode == 1
    compiled(tmp_path / "a")
    assert log.read_text().splitlines()[-1].split()[0] == str(tmp_path / "a" / "it.cpp"), "as it was written"


def test_what_writes_no_file_runs_without_python(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(compiled_once.PYTHON, "/bin/false")
    assert subprocess.run(["g++", "--version"], capture_output=True, check=False).returncode == 0
    assert log.read_text() == "--version\n"


def test_other_options_or_another_source_are_compiled(log: Path, tmp_path: Path) -> None:
    compiled(tmp_path / "a")
    compiled(tmp_path / "a", SOURCE, "-O2")
    compiled(tmp_path / "a", SOURCE.replace("42", "43"))
    assert len(log.read_text().splitlines()) == 3


def test_a_precompiled_header_is_shared_under_all_names(log: Path, tmp_path: Path) -> None:
    """Inductor names the same header after the options of its build, of which some change nothing."""
    for name in ("a.h", "b.h"):
        (tmp_path / name).write_text("#include <cstdint>\n")
        command = ["g++", "-x", "c++-header", str(tmp_path / name), "-o", str(tmp_path / f"{name}.gch")]
        assert subprocess.run(command, check=False).returncode == 0
    assert len(log.read_text().splitlines()) == 1
    command = ["g++", "-Winvalid-pch", "-Werror", "-H", "-c", str(tmp_path / "it.cpp"), "-o", str(tmp_path / "it.o")]
    (tmp_path / "it.cpp").write_text("int64_t number;\n")
    used = subprocess.run([*command, "-include", str(tmp_path / "b.h")], capture_output=True, text=True, check=False)
    assert used.returncode == 0 and f"! {tmp_path / 'b.h.gch'}" in used.stderr


def test_a_source_with_a_header_beside_it_is_compiled_each_time(log: Path, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "own.h").write_text(SOURCE)
    for _ in range(2):
        assert compiled(tmp_path / "a", '#include "own.h"\n').returncode == 0
    assert len(log.read_text().splitlines()) == 2


def test_a_failure_is_printed_each_time_with_the_files_of_the_command(log: Path, tmp_path: Path) -> None:
    first, second = (compiled(tmp_path / name, "int number( {}\n") for name in ("first", "second"))
    assert first.returncode == second.returncode == 1 and "expected" in first.stderr
    assert second.stderr == first.stderr.replace(str(tmp_path / "first"), str(tmp_path / "second"))
    assert len(log.read_text().splitlines()) == 1


def test_what_may_go_well_the_next_time_is_compiled_again(log: Path, tmp_path: Path) -> None:
    for _ in range(2):
        assert "fatal error" in compiled(tmp_path / "a", "#include <is_not_there>\n").stderr
    assert len(log.read_text().splitlines()) == 2


def test_warnings_are_printed_each_time_with_the_files_of_the_command(log: Path, tmp_path: Path) -> None:
    first, second = (compiled(tmp_path / name, "int number() {}\n", "-Wall") for name in ("first", "second"))
    assert first.returncode == second.returncode == 0 and "no return" in first.stderr
    assert second.stderr == first.stderr.replace(str(tmp_path / "first"), str(tmp_path / "second"))
    assert len(log.read_text().splitlines()) == 1


def test_preprocessed_text_is_shared_where_it_names_no_folder(log: Path, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        assert compiled(tmp_path / folder, SOURCE, "-E", "-P").returncode == 0
    assert len(log.read_text().splitlines()) == 1
    assert (tmp_path / "b" / "it.so").read_text() == SOURCE
    for folder in ("a", "b"):
        assert compiled(tmp_path / folder, SOURCE, "-E").returncode == 0
        assert str(tmp_path / folder) in (tmp_path / folder / "it.so").read_text()


def test_a_test_can_turn_it_off(log: Path, compiles_anew: None, tmp_path: Path) -> None:
    for _ in range(2):
        compiled(tmp_path / "a")
    assert len(log.read_text().splitlines()) == 2
