"""Fixtures of the tests that compile: what they start has imported torch already, where they are not marked `cold`."""

import contextlib
import gc
import importlib
import subprocess
from collections.abc import Iterator

import pytest

from tests.harness import warm

as_a_user_does = subprocess.Popen


@pytest.fixture(scope="session", autouse=True)
def _imported() -> None:
    """What every compile imports is there, and no search for garbage looks through it: 0.2 s at each program's end."""
    from idbg.engine.compat import warming

    gc.disable()
    for name in warming.IMPORTED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    warming.evaluate_guards_warm()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def _warm() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", warm.WarmPopen)
        yield


@pytest.fixture(autouse=True)
def _cold(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("cold"):
        monkeypatch.setattr(subprocess, "Popen", as_a_user_does)
