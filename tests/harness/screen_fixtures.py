"""Fixtures of the tests of the screen; importing it makes their apps cheap, see `cheap_apps`."""

from pathlib import Path

import pytest

from tests.harness import cheap_apps, idle
from tests.harness.rule_bench import Bench

idle.ask_the_loop()
cheap_apps.install()


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.chdir(tmp_path)
    return Bench(tmp_path)


@pytest.fixture
def painted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each frame is painted, as a user's screen is: for tests that read what was painted, and when."""
    monkeypatch.setattr(cheap_apps.Painting, "on", True)
