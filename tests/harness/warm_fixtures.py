"""Fixtures of the tests that compile: what they start has imported torch already, where they are not marked `cold`."""

import subprocess
from collections.abc import Iterator

import pytest

from tests.harness import warm

as_a_user_does = subprocess.Popen


@pytest.fixture(scope="module", autouse=True)
def _warm() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", warm.WarmPopen)
        yield


@pytest.fixture(autouse=True)
def _cold(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("cold"):
        monkeypatch.setattr(subprocess, "Popen", as_a_user_does)
