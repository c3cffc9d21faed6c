"""Does the program leave when its terminal goes away without a word?"""

import os
import pty
import signal
from types import FrameType

import pytest

from idbg_tui.terminal.runner import watch_terminal


@pytest.mark.parametrize(("ended", "heard"), [([], 1), ([signal.SIGHUP], 0)])
def test_a_terminal_that_is_gone_hangs_up_unless_the_kernel_did(ended: list[int], heard: int) -> None:
    signals: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        signals.append(number)

    before = signal.signal(signal.SIGHUP, hear)
    master, terminal = pty.openpty()
    try:
        os.close(master)
        watch_terminal(terminal, ended)
    finally:
        signal.signal(signal.SIGHUP, before)
        os.close(terminal)
    assert len(signals) == heard
