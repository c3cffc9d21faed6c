"""Decode what the terminal sends, also where it is not UTF-8, an old report of the mouse, or a paste without an end."""

import re
import time
from codecs import getincrementaldecoder
from contextlib import suppress

PASTED = 20_000
"""Characters of one paste that are taken: it is parsed one by one."""
_SILENT = 1.0  # seconds, after which a key ends a paste that the terminal has not ended
_BEGINS, _ENDS = "\x1b[200~", "\x1b[201~"
_KEYS = ("\x03", "\x11", "\x1b")
"""ctrl+c, ctrl+q and esc: those by which a user wants out."""
_MOUSE = re.compile(rb"\x1b\[M(.)(.)(.)", re.DOTALL)
_TORN = re.compile(rb"\x1b(\[(M.{0,2}|20?[01]?)?)?$", re.DOTALL)


class InputDecoder:
    """A decoder of UTF-8, as Textual's driver calls it."""

    def __init__(self) -> None:
        self._utf8 = getincrementaldecoder("utf-8")("replace")
        self._torn = b""  # the beginning of a sequence whose end has not come
        self._pasted: int | None = None  # how many characters so far
        self._at = 0.0  # when something came last

    def decode(self, data: bytes, final: bool = False) -> str:
        """The characters of the bytes that came, what is too much of a paste left out."""
        before, self._at = self._at, time.monotonic()
        silent = self._at - before > _SILENT
        data, self._torn = self._torn + data, b""
        torn = _TORN.search(data)
        is_key = torn is not None and torn[0] == b"\x1b" and (self._pasted is None or silent)
        if torn is not None and not is_key and not final:
            data, self._torn = data[: torn.start()], torn[0]
        text = self._utf8.decode(_MOUSE.sub(_as_sgr, data), final)
        if self._pasted is not None and silent and text in _KEYS:
            self._pasted = None
            return _ENDS + text
        return "".join(self._within(text))

    def _within(self, text: str) -> "list[str]":
        """The parts of the text, with no more of a paste than is taken."""
        parts = []
        for part in re.split(f"({re.escape(_BEGINS)}|{re.escape(_ENDS)})", text):
            if part in (_BEGINS, _ENDS):
                self._pasted = 0 if part == _BEGINS else None
            elif self._pasted is not None:
                part = part[: max(PASTED - self._pasted, 0)]
                self._pasted += len(part)
            parts.append(part)
        return parts


def _as_sgr(report: "re.Match[bytes]") -> bytes:
    """A report of the mouse in X10's three bytes, in the digits that Textual reads. A release names no button there."""
    button, x, y = (ord(each) - 32 for each in report.groups())
    released = button & 0b1100011 == 3
    return f"\x1b[<{button & ~3 if released else button};{x};{y}{'m' if released else 'M'}".encode()


def use() -> None:
    """Have Textual's driver decode so. One that decodes otherwise is left as it is."""
    with suppress(ImportError):  # there is none on Windows
        from textual.drivers import linux_driver

        if hasattr(linux_driver, "getincrementaldecoder"):
            vars(linux_driver)["getincrementaldecoder"] = lambda encoding: InputDecoder
