"""Escape untrusted text so that it stays text wherever it is read.

Names, messages and outputs come from programs and from sessions of others. A terminal obeys what begins with ESC, XML
has no sign for most control characters, UTF-8 none for a lone surrogate, and marks of direction make a line read as
another than it is.
"""

import re

_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, but for tabs and ends of line
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # what changes the direction of writing
    "\u2028\u2029"  # ends of line to some readers alone
    "\ud800-\udfff\ufffe\uffff]"
)
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_].*?(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
LONGEST = 2_000  # characters of one name or message: beyond that nobody reads it


def plain(text: str) -> str:
    """The text with each character spelled that is none for the eye: "\\x1b", "\\udcff". Ends of line are "\\n"."""
    return _UNPRINTABLE.sub(_spelled, text.replace("\r\n", "\n"))


def for_cells(text: str) -> str:
    """A piece of a line of the screen, as many cells wide as it was: what takes none is left out, else it is a "?"."""
    return _UNPRINTABLE.sub(lambda found: "?" if found[0] >= "\ud800" else "", text.replace("\t", "").replace("\n", ""))


def one_line(text: str, most: int = LONGEST) -> str:
    """The same on one line, cut after `most` characters with a mark that says so."""
    cut = len(text) > 4 * most  # the rest is not looked at: a name may have a million characters
    line = " ".join(plain(text[: 4 * most] if cut else text).split())
    return shortened(line, most, len(text)) if cut or len(line) > most else line


def shortened(text: str, most: int, length: int = 0) -> str:
    """At most `most` characters of a text that has `length`, and how many it has: "aaa… (1,000,000 characters)"."""
    length = length or len(text)
    if length <= most:
        return text
    mark = f"… ({length:,} characters)"
    return text[: max(most - len(mark), 0)] + mark


def _spelled(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def uncoloured(text: str) -> str:
    """One line of a program's output as a terminal would leave it: no colours, no cursor moves, and of a line that was
    written over with carriage returns the last state."""
    text = _ESCAPES.sub("", text).rstrip("\r").rpartition("\r")[2]
    return _CONTROL.sub("", text.expandtabs(8))
