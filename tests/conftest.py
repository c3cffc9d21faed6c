"""What is so in every process of a test run: how many there are, and how many threads each has."""

import gc
import os
import subprocess
from collections.abc import Iterator

import pytest

from tests.harness import warm as warm_processes


def pytest_configure(config: pytest.Config) -> None:
    """One thread of OpenMP for each of the processes that run tests side by side, and for what they start.

    Two wait for each other while another process has their processor: planted convolutions took 111 s with two, and
    18 s with one. OpenMP reads it when torch is imported.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    warm_processes.server.environ = dict(os.environ)
    gc.set_threshold(20_000, 20, 50)  # garbage of what is imported, or of a test's end, can wait: see below


def pytest_collection_finish(session: pytest.Session) -> None:
    """Look for garbage not in what was imported, and not often: it took 28 to 48 % of the screen's tests."""
    gc.collect()
    gc.freeze()


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
