"""Copy text to the user's clipboard, also through tmux and SSH.

Measured: a plain OSC 52 is dropped by a default tmux, while `tmux load-buffer -w -` passes it on. A terminal never
reports whether it took an OSC 52, so those known to ignore it, and texts too long for most of them, go to a file.
"""

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

# xterm, and others after it, drop a sequence whose base64 is longer than this many bytes
_OSC52_LIMIT = 74_994
_TMUX_PATIENCE = 2.0  # seconds


@dataclass(frozen=True)
class Copied:
    """Where a copied text went."""

    by: Literal["tmux", "terminal", "file"]
    path: str = ""

    def sentence(self, what: str) -> str:
        """The sentence for the user; `what` is what was copied: "3 lines"."""
        if self.by == "file":
            return f"{what} written to {self.path}: no clipboard can be reached from here"
        return f"copied {what}" + (" (tmux buffer and clipboard)" if self.by == "tmux" else "")


def copy(text: str, environ: Mapping[str, str], send: Callable[[str], None], folder: Path) -> Copied:
    """Put `text` on the clipboard. `send` writes an OSC 52 to the terminal; `folder` takes what no clipboard can.

    Raises OSError if the folder cannot be written.
    """
    if environ.get("TMUX") and _load_into_tmux(text):
        return Copied("tmux")
    if not environ.get("TMUX") and _takes_osc52(environ) and len(text.encode()) * 4 / 3 < _OSC52_LIMIT:
        send(text)
        return Copied("terminal")
    path = folder / "copied.txt"
    path.write_text(text, encoding="utf-8")
    return Copied("file", str(path))


def _load_into_tmux(text: str) -> bool:
    command = ["tmux", "load-buffer", "-w", "-"]
    try:
        done = subprocess.run(command, input=text.encode(), capture_output=True, timeout=_TMUX_PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _takes_osc52(environ: Mapping[str, str]) -> bool:
    """False for the Linux console, Apple's Terminal and GNU screen, which are known to drop it."""
    term = environ.get("TERM", "")
    dropped = term in ("", "dumb", "linux") or environ.get("TERM_PROGRAM") == "Apple_Terminal" or "STY" in environ
    return not dropped
