"""What is so in every process of a test run: how many there are, and how many threads each has."""

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import hypothesis
import platformdirs
import pytest

from tests.harness import compiled_once, tiers
from tests.harness import warm as warm_processes

hypothesis.settings.register_profile("idbg", deadline=None)  # how long an example takes is the machine's affair
hypothesis.settings.load_profile("idbg")
FIRST = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    """One thread of OpenMP for each of the processes that run tests side by side, and for what they start.

    Two wait for each other while another process has their processor: planted convolutions took 111 s with two, and
    18 s with one. OpenMP reads it when torch is imported.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as for what a shell runs in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process parses all of our code, and the tests, anew
    sys.dont_write_bytecode = False
    if "PYTEST_XDIST_WORKER" in os.environ:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    if compiled_once.FOLDER not in os.environ and not os.environ.get("REAL_COMPILER"):
        compiled_once.begin(compiled_folder())
    warm_processes.server.environ = dict(os.environ)
    config.stash[FIRST] = getattr(config, "workerinput", {}).get("first", wants_first(config))
    if config.stash[FIRST]:  # syrupy fails a run for snapshots that it thinks unused: the exhaustive tests have them
        config.option.disable_unused_snapshots = True
    gc.disable()  # until what is collected is imported, torch in a third of the files
    gc.set_threshold(20_000, 20, 50)  # garbage of a test's end can wait: see below


def compiled_folder() -> str:
    """Where g++'s results are stored for later runs with this torch; what no run has used for three days is removed."""
    folder = platformdirs.user_cache_path("idbg-tests") / f"torch-{version('torch')}"
    folder.mkdir(parents=True, exist_ok=True)
    oldest = time.time() - 3 * 24 * 3600
    for file in folder.iterdir():
        if file.stat().st_mtime < oldest:
            file.unlink(missing_ok=True)
    return str(folder)


def wants_first(config: pytest.Config) -> bool:
    """Whether this is `pytest` without paths and `-m`, which runs the first tier."""
    return config.args_source == pytest.Config.ArgsSource.TESTPATHS and not config.option.markexpr


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Without paths tests run side by side unless `-n` or `-s` is on the command line; with `--pdb`, `auto` is one."""
    is_worker = hasattr(config, "workerinput") or "PYTEST_XDIST_WORKER" in os.environ  # else each starts others
    side_by_side = getattr(config.option, "numprocesses", 0) is None and config.option.capture != "no"
    if config.args_source == pytest.Config.ArgsSource.TESTPATHS and side_by_side and not is_worker:
        config.option.numprocesses, config.option.dist = "auto", "worksteal"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """The processes of pytest-xdist collect what was asked of the first one."""
    node.workerinput["first"] = node.config.stash[FIRST]


def pytest_report_header(config: pytest.Config) -> str:
    """Name the tier."""
    first = "the first tier: unit, screen and tests/contract.txt; `pytest -m exhaustive` runs all others"
    return first if config.stash[FIRST] else "all tests of the paths and marks on the command line"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file without tests of the first tier is not imported for it: torch takes 4 s in each process."""
    is_test = collection_path.suffix == ".py" and collection_path.name.startswith("test_")
    return True if config.stash[FIRST] and is_test and not tiers.has_first(collection_path) else None


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is not of the first tier, and leave it out where only that is wanted."""
    if gone := tiers.not_found([item.nodeid for item in items]) if is_whole(config) else []:
        raise pytest.UsageError(
            f"tests/contract.txt or tests/left_out.txt lists tests that do not exist: {', '.join(gone)}"
        )
    later = [item for item in items if not tiers.is_first(item.nodeid, bool(item.get_closest_marker("slow")))]
    for item in later:
        item.add_marker(pytest.mark.exhaustive)
    if config.stash[FIRST]:
        items[:] = [item for item in items if not item.get_closest_marker("exhaustive")]
        config.hook.pytest_deselected(items=later)


def is_whole(config: pytest.Config) -> bool:
    """Whether files are collected whole, and no single tests of them."""
    return not any("::" in argument for argument in config.args)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Look for garbage not in what was imported, and not often: it took 28 to 48 % of the screen's tests."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def folders_of_tested_pytests(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A pytest that a test starts has its folders below ours: beside them it would look at all, and remove old ones."""
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(tmp_path_factory.mktemp("pytest"))


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
    monkeypatch.delenv(compiled_once.FOLDER, raising=False)
