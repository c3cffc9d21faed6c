"""Show any text in a browser, whatever characters it has, and however many."""

from idbg.format.plain_text import plain

LONGEST = 200  # characters of a name that are shown

_CONTROLS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"} | {0x7F: 0x2421}


def clean(text: str) -> str:
    """The text as a browser can show it: controls by their signs ("␛"), half characters and what reverses the order of
    writing as Python writes them ("\\udc80").
    """
    if text.isascii() and text.isprintable():
        return text
    return plain(text.replace("\r\n", "\n").translate(_CONTROLS))


def middle(text: str, most: int) -> str:
    """A name in a column: its beginning and its end, which tell it from those beside it."""
    return text if len(text) <= most else f"{text[: most // 2]}…{text[-(most - most // 2 - 1) :]}"


def short(text: str, most: int = LONGEST) -> str:
    """A name that may be of any length: its beginning and its end, and how long it is."""
    if len(text) <= most:
        return text
    return f"{text[: most * 2 // 3]}…{text[-(most // 3) :]} ({len(text):,} characters)"
