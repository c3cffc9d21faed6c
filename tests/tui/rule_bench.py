"""Drives the rules pane, and reads what it shows and asks."""

from pathlib import Path

import pytest
from test_rules import Bench
from textual.pilot import Pilot
from textual.widgets import Input, Static

from idbg_tui.messages import Flash
from idbg_tui.widgets.lines import Lines
from idbg_tui.widgets.prompt import Prompt

SIZE = (60, 20)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.chdir(tmp_path)
    return Bench(tmp_path)


def shown(lines: Lines) -> list[str]:
    """The rows as they read on the screen."""
    width = lines.line_width
    return ["".join(text for text, _ in lines.row(index, width)).rstrip() for index in range(lines.row_count)]


def told(bench: Bench) -> list[str]:
    return [message.text for message in bench.app.posted if isinstance(message, Flash)]


def question(bench: Bench) -> str:
    return str(bench.pane.query_one(Prompt).query_one(Static).render())


async def answer(pilot: Pilot[None], bench: Bench, text: str) -> None:
    bench.pane.query_one(Prompt).query_one(Input).value = text
    await bench.press(pilot, "enter")
