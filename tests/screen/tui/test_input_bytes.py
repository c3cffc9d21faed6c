"""Whatever bytes a terminal sends, the screen goes on and can be left."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from idbg_tui.terminal import input_bytes
from idbg_tui.terminal.input_bytes import PASTED, InputDecoder
from tests.harness.recorded import RECORDINGS
from tests.harness.terminal import Terminal

BEGIN, END = b"\x1b[200~", b"\x1b[201~"


def decoded(*parts: bytes) -> str:
    decode = InputDecoder().decode
    return "".join(map(decode, parts))


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([b"a\xb4b"], "a\ufffdb"),
        (["é漢".encode()[:2], "é漢".encode()[2:3], "é漢".encode()[3:]], "é漢"),
        ([b"\x1b[M !!j"], "\x1b[<0;1;1Mj"),  # the left button in the upper left corner
        ([b"\x1b[M#\xff\xb4"], "\x1b[<0;223;148m"),  # released, far to the right
        ([b"j\x1b[M", b"`!", b"!k"], "j\x1b[<64;1;1Mk"),  # the wheel, in pieces
        ([b"\x1b"], "\x1b"),  # the key: nothing may come after it
        ([b"j\x1b", b"[A"], "j\x1b[A"),
        ([BEGIN[:4], BEGIN[4:] + b"x" * PASTED, b"y\x1b", END[1:] + b"z"], f"\x1b[200~{'x' * PASTED}\x1b[201~z"),
        ([BEGIN + b"x" * PASTED, b"y" * 10 + END + b"z"], f"{BEGIN.decode()}{'x' * PASTED}{END.decode()}z"),
    ],
)
def test_what_comes_is_decoded(parts: list[bytes], text: str) -> None:
    assert decoded(*parts) == text


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_a_paste_ends_however_it_comes_in_pieces(size: int) -> None:
    sent = BEGIN + b"x" * (PASTED + 9) + END + b"j" + BEGIN + b"y" + END + b"k"
    parts = [sent[at : at + size] for at in range(0, len(sent), size)]
    if size == 1:
        parts[:6] = [BEGIN]  # esc alone is a key, where nothing is pasted
        parts[parts.index(b"j") + 1 : parts.index(b"y")] = [BEGIN]
    assert decoded(*parts) == sent.decode().replace("x" * 9 + END.decode(), END.decode())


def test_a_paste_that_does_not_end_is_ended_by_a_key_that_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(input_bytes, "time", type("Clock", (), {"monotonic": lambda: now[0]}))
    decode = InputDecoder().decode
    assert decode(BEGIN + b"a") + decode(b"\x11") == BEGIN.decode() + "a\x11"  # it is pasted
    now[0] = 5.0
    assert decode(b"b") == "b"
    now[0] = 10.0
    assert decode(b"\x11") == END.decode() + "\x11"
    assert decode(b"\x11") == "\x11"


@pytest.fixture
def screen(tmp_path: Path) -> Callable[[], Terminal]:
    shutil.copy(RECORDINGS / "attention.jsonl", tmp_path / "events.jsonl")
    env = {"PYTHONPATH": os.pathsep.join(sys.path)}
    return lambda: Terminal([sys.executable, "-m", "idbg_tui", str(tmp_path)], cwd=tmp_path, env=env)


def test_a_screen_takes_every_byte_and_is_left(screen: Callable[[], Terminal]) -> None:
    terminal = screen()
    try:
        terminal.until("permute_1")
        # a click in the header; one beyond the screen would take the focus from the filter, as Textual has it
        terminal.press("/")
        terminal.until("esc leaves it")
        for sent in (b"\xb4\xff\x80", b"\x1b[M !!", BEGIN + b"add " * 262_144 + END):
            while sent:  # a terminal takes so much at a time
                sent = sent[os.write(terminal.fd, sent[:2048]) :]
                terminal.pump(0.0)
        terminal.until("add add add")
        os.write(terminal.fd, b"\x1b" + BEGIN + b"never ends")
        terminal.settle()
        time.sleep(1.5)
        os.write(terminal.fd, b"\x11")
        assert terminal.wait() == 0
        assert b"Traceback" not in terminal.raw
    finally:
        terminal.close()


def test_ctrl_c_before_there_is_a_screen_ends_it_without_a_traceback(tmp_path: Path) -> None:
    command = tmp_path / "idbg-tui"
    command.write_text("import idbg_tui, os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, str(command)], env=env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")
