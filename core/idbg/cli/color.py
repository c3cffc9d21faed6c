"""Is what is written coloured, and how?

Only on a terminal, unless the user says otherwise: --color, then NO_COLOR (no-color.org), then FORCE_COLOR and
CLICOLOR_FORCE, then CLICOLOR=0 and a dumb terminal; the first that says something wins.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TextIO

WHEN = ("auto", "always", "never")
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_SIGNS = {"✘": "red", "⚠": "yellow", "✔": "green", "◇": "cyan"}
_SIGN = re.compile(rf"(?m)^(\s*)([{''.join(_SIGNS)}])(?=\s)")


def is_wanted(stream: TextIO, environ: Mapping[str, str], when: str = "auto") -> bool:
    """Whether what goes to `stream` is to be coloured; `when` is what --color says."""
    if when != "auto":
        return when == "always"
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR", "0") not in ("", "0") or environ.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    if environ.get("CLICOLOR") == "0" or environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def asked(argv: Sequence[str]) -> str:
    """What --color says in a command line that is not parsed yet; "auto" where it says nothing that is known."""
    said = "auto"
    for at, text in enumerate(argv):
        value = text.partition("=")[2] if text.startswith("--color=") else ""
        if text == "--color":
            value = argv[at + 1] if at + 1 < len(argv) else ""
        said = value if value in WHEN else said
    return said


def paint(text: str, *styles: str) -> str:
    """The text in these styles of the terminal's own: bold, dim, red, green, yellow, cyan."""
    return f"\x1b[{';'.join(_CODES[style] for style in styles)}m{text}\x1b[0m" if text else text


def painted_signs(text: str) -> str:
    """A report with the signs that begin its lines in their colour: ✘ red, ⚠ yellow, ✔ green."""
    return _SIGN.sub(lambda found: found[1] + paint(found[2], _SIGNS[found[2]]), text)
