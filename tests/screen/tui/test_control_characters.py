"""What a session of others says is shown, and never obeyed by the terminal."""

import json
import os
import sys
from pathlib import Path

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from idbg_tui.widgets.control_characters import ControlCharacterFilter
from tests.harness.recorded import RECORDINGS
from tests.harness.terminal import Terminal

TURNS = "\u202e"
TITLE, ASKS, COPIES = "\x1b]0;TITLE\x07", "\x1b[6n", "\x1b]52;c;UFdO\x07"


def test_controls_are_left_out_and_all_else_stays() -> None:
    black, bold = Color(0, 0, 0), Style(bold=True)
    given = [Segment(f"a{TITLE}b", bold), Segment("é漢 ✔"), Segment("\x9b2J\x7f\x00"), Segment("\x1b[H", None, [(1,)])]  # type: ignore[list-item]
    found = ControlCharacterFilter().apply(given, black)
    assert [segment.text for segment in found] == ["a]0;TITLEb", "é漢 ✔", "2J", "\x1b[H"]
    assert found[0].style == bold
    (turned,) = ControlCharacterFilter().apply([Segment("a\u202eb\u2066c\u2028d\ud800e\uffff")], black)
    assert turned.text == "abcd?e?"  # as many cells as before
    plain = [Segment("all", bold), Segment("of it")]
    assert ControlCharacterFilter().apply(plain, black) is plain


@pytest.mark.slow
def test_no_pane_writes_what_the_terminal_would_obey(tmp_path: Path) -> None:
    events = [json.loads(line) for line in (RECORDINGS / "attention.jsonl").read_text().splitlines()]
    for event in events:
        for node in event.get("graph", {}).get("nodes", ()):
            node["target"] += ASKS + "\x9b2J" + TURNS
            node["args"] = node.get("args", "") + TITLE
            node["module"] = node.get("module", "") + TITLE
            node["code"] = COPIES
        for violation in event.get("violations", ()):
            violation["found"] = violation["wanted"] = TITLE
        if "program" in event:
            event["program"]["path"] = f"{TITLE}{TURNS}\x9b.py"
        if event["type"] in ("output_written", "noted"):
            event["text"] += TITLE + TURNS + "\x9b"
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    env = {"PYTHONPATH": os.pathsep.join(sys.path)}
    terminal = Terminal([sys.executable, "-m", "idbg_tui", str(tmp_path)], cwd=tmp_path, env=env)
    try:
        terminal.until("Graph")
        terminal.press("j", "3", "2", "l", "l", "4", "7", "8", "1", "M", "esc", "?", "esc", "/", "a", "enter")
        assert "TITLE" in terminal.text
        for obeyed in (TITLE, ASKS, COPIES, "\x9b", TURNS):
            assert obeyed.encode() not in terminal.raw
    finally:
        terminal.close()
