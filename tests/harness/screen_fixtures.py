"""Fixtures of the tests of the screen; importing it makes a pilot wait until the event loop is idle."""

from pathlib import Path

import pytest

from tests.harness import idle
from tests.harness.rule_bench import Bench
from tests.harness.screen import ReadyScreen

idle.ask_the_loop()


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.chdir(tmp_path)
    return Bench(tmp_path)


@pytest.fixture
def painted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each frame is painted, as a user's screen is: for tests that read what was painted, and when."""
    monkeypatch.setattr(ReadyScreen, "paints", True)
