"""Decide whether output is coloured, and colour it.

Only a terminal gets colours, unless the user chooses. The first of these that is set wins: --color, NO_COLOR
(no-color.org), FORCE_COLOR and CLICOLOR_FORCE, CLICOLOR=0 and TERM=dumb.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TextIO

WHEN = ("auto", "always", "never")
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_SIGNS = {"✘": "red", "⚠": "yellow", "✔": "green", "◇": "cyan"}
_SIGN = re.compile(rf"(?m)^(\s*)([{''.join(_SIGNS)}])(?=\s)")


def is_wanted(stream: TextIO, environ: Mapping[str, str], when: str = "auto") -> bool:
    """Whether text written to `stream` is coloured. `when` is the value of --color."""
    if when != "auto":
        return when == "always"
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR", "0") not in ("", "0") or environ.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    if environ.get("CLICOLOR") == "0" or environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def requested(argv: Sequence[str]) -> str:
    """The value of --color in a command line that is not parsed yet; "auto" where it has no known value."""
    when = "auto"
    for at, text in enumerate(argv):
        value = text.partition("=")[2] if text.startswith("--color=") else ""
        if text == "--color":
            value = argv[at + 1] if at + 1 < len(argv) else ""
        when = value if value in WHEN else when
    return when


def paint(text: str, *styles: str) -> str:
    """The text in these styles: bold, dim, red, green, yellow, cyan."""
    return f"\x1b[{';'.join(_CODES[style] for style in styles)}m{text}\x1b[0m" if text else text


def painted_signs(text: str) -> str:
    """The report with the signs at the start of its lines in colour: ✘ red, ⚠ yellow, ✔ green."""
    return _SIGN.sub(lambda found: found[1] + paint(found[2], _SIGNS[found[2]]), text)
