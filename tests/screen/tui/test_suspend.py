"""In a real terminal: ctrl+z leaves the screen to the shell, fg brings it back, q leaves with the session's path."""

import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from idbg.schema.errors import BadInput
from idbg_tui.terminal import suspend
from tests.harness.recorded import RECORDINGS, app_of
from tests.harness.screen import SMALL, bar, settle
from tests.harness.terminal import Terminal

LONGEST = 60.0  # seconds


def wait(terminal: Terminal, holds: Callable[[bytes], bool]) -> None:
    """Read until what the terminal got since the last key holds."""
    deadline = time.monotonic() + LONGEST
    while not holds(bytes(terminal.raw)) and time.monotonic() < deadline:
        terminal.settle(0.1, 0.5)
    assert holds(bytes(terminal.raw)), bytes(terminal.raw[-2000:])


def send(terminal: Terminal, text: str) -> None:
    terminal.raw.clear()
    os.write(terminal.fd, text.encode())


def test_the_shell_has_the_terminal_while_it_is_suspended_and_a_line_when_it_was_left(tmp_path: Path) -> None:
    saved = tmp_path / "my session"
    saved.mkdir()
    shutil.copy(RECORDINGS / "attention.jsonl", saved / "events.jsonl")
    env = {"XDG_CONFIG_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    terminal = Terminal(["bash", "--norc", "-i"], cwd=tmp_path, env=env, columns=80, rows=24)
    try:
        send(terminal, f"{sys.executable} -m idbg_tui 'my session'\r")
        wait(terminal, lambda raw: b"stage" in raw and b"permute_1" in raw)
        send(terminal, "\x1a")
        wait(terminal, lambda raw: b"\x1b[?1049l" in raw and b"Stopped" in raw)
        send(terminal, "echo $((40 + 2))\r")
        wait(terminal, lambda raw: b"42" in raw)
        send(terminal, "fg\r")
        wait(terminal, lambda raw: b"\x1b[?1049h" in raw and b"permute_1" in raw)  # painted anew
        send(terminal, "q")
        wait(terminal, lambda raw: b"idbg open 'my session'" in raw)
        left = bytes(terminal.raw)
        assert b"session  my session" in left[left.rindex(b"\x1b[?1049l") :]
        send(terminal, "exit\r")
    finally:
        os.close(terminal.fd)


async def test_what_leads_its_terminals_session_is_not_suspended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        monkeypatch.setattr(os, "getpgrp", lambda: os.getsid(0))
        with pytest.raises(BadInput):
            suspend.stop(app)
        await pilot.press("ctrl+z")
        await settle(pilot)
        assert "there is no shell to go back to" in bar(app, "footer")
