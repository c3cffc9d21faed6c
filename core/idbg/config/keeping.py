"""How much is kept of sessions, and for how long?"""

import re
from typing import NamedTuple

UNITS = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgt", 1):
    UNITS |= {_letter: 1000**_power, f"{_letter}b": 1000**_power, f"{_letter}ib": 1024**_power}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")


class Keeping(NamedTuple):
    """0 is without end. `sessions`: the newest so many, `days`: those that are not older, `size`: the newest that take
    so many bytes together. `session_size`: bytes that one session writes at most.
    """

    sessions: int = 0
    days: float = 0.0
    size: int = 0
    session_size: int = 1 << 30


ALL = Keeping()
"""Every session, each as large as is usual."""


def bytes_of(text: int | str) -> int:
    """A number of bytes as a user writes it: 500000, "500 MB", "2 GiB". Raises ValueError."""
    if isinstance(text, int):
        if text < 0:
            raise ValueError(f"{text} is less than nothing")
        return text
    found = _SIZE.fullmatch(text.strip().lower())
    if found is None or found[2] not in UNITS:
        raise ValueError(f"{text!r} is no size: write it as 500 MB or 2 GiB")
    return int(float(found[1]) * UNITS[found[2]])
