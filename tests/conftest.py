"""What is so in every process of a test run: how many there are, and how many threads each has."""

import gc
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest

from tests.harness import compiled_once
from tests.harness import warm as warm_processes

hypothesis.settings.register_profile("idbg", deadline=None)  # how long an example takes is the machine's affair
hypothesis.settings.load_profile("idbg")
QUICK = pytest.StashKey[bool]()
COMPILED = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """One thread of OpenMP for each of the processes that run tests side by side, and for what they start.

    Two wait for each other while another process has their processor: planted convolutions took 111 s with two, and
    18 s with one. OpenMP reads it when torch is imported.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process parses all of our code, and the tests, anew
    sys.dont_write_bytecode = False
    if "PYTEST_XDIST_WORKER" in os.environ:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    if compiled_once.FOLDER not in os.environ:  # else the processes of pytest-xdist share one
        config.stash[COMPILED] = tempfile.mkdtemp(prefix="compiled-once-")
        compiled_once.begin(config.stash[COMPILED])
    warm_processes.server.environ = dict(os.environ)
    config.stash[QUICK] = getattr(config, "workerinput", {}).get("quick", wants_quick(config))
    gc.disable()  # until what is collected is imported, torch in a third of the files
    gc.set_threshold(20_000, 20, 50)  # garbage of a test's end can wait: see below


def pytest_unconfigure(config: pytest.Config) -> None:
    """The process that created the folder of compiled files removes it."""
    if folder := config.stash.get(COMPILED, ""):
        shutil.rmtree(folder, ignore_errors=True)
        del os.environ[compiled_once.FOLDER]


def wants_quick(config: pytest.Config) -> bool:
    """Whether this is `pytest` without paths and `-m`: slow tests in tests/unit and tests/screen are left out."""
    return config.args_source == pytest.Config.ArgsSource.TESTPATHS and not config.option.markexpr


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """A quick run is side by side unless `-n` or `-s` is on the command line; with `--pdb`, `auto` is one process."""
    is_worker = hasattr(config, "workerinput") or "PYTEST_XDIST_WORKER" in os.environ  # else each starts others
    side_by_side = getattr(config.option, "numprocesses", 0) is None and config.option.capture != "no"
    if wants_quick(config) and side_by_side and not is_worker:
        config.option.numprocesses, config.option.dist = "auto", "worksteal"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """The processes of pytest-xdist collect what was asked of the first one."""
    node.workerinput["quick"] = node.config.stash[QUICK]


def pytest_report_header(config: pytest.Config) -> str:
    """Say what is left out."""
    left_out = "tests/unit and tests/screen; `pytest tests` runs all, with those that compile or are marked slow"
    return left_out if config.stash[QUICK] else "all tests of the paths given"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A quick run leaves out slow tests in files that are quick otherwise."""
    if config.stash[QUICK]:
        slow = [item for item in items if item.get_closest_marker("slow")]
        items[:] = [item for item in items if not item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Look for garbage not in what was imported, and not often: it took 28 to 48 % of the screen's tests."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture
def two_threads() -> Iterator[None]:
    """Kernels are compiled for two threads, and run on them: with one, Inductor writes no parallel loops."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.hookimpl(optionalhook=True)  # without pytest-xdist the tests run one after another
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """`-n auto`: one process more than processors, for the screen's tests wait as long as they compute."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture
def warm(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this test starts with this Python has imported torch already, where it would import it as it is here."""
    monkeypatch.setattr(subprocess, "Popen", warm_processes.WarmPopen)


@pytest.fixture
def compiles_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """g++ runs as ever in this test, which is about compiling: killed, torn, failing or timed builds."""
    monkeypatch.delenv(compiled_once.FOLDER)
