"""How many sessions are kept, how long, and how large they may become."""

import re
from typing import NamedTuple

UNITS = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgt", 1):
    UNITS |= {_letter: 1000**_power, f"{_letter}b": 1000**_power, f"{_letter}ib": 1024**_power}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")


class Keeping(NamedTuple):
    """Limits; 0: no limit. `sessions`: their number, `days`: their age, `size`: their bytes together, `session_size`:
    the bytes of one session.
    """

    sessions: int = 0
    days: float = 0.0
    size: int = 0
    session_size: int = 1 << 30


ALL = Keeping()
"""Keep every session, each with the default size."""


def bytes_of(text: int | str) -> int:
    """Parse a number of bytes: 500000, "500 MB", "2 GiB". Raises ValueError."""
    if isinstance(text, int):
        if text < 0:
            raise ValueError(f"{text} is negative")
        return text
    found = _SIZE.fullmatch(text.strip().lower())
    if found is None or found[2] not in UNITS:
        raise ValueError(f"{text!r} is no size: write it as 500 MB or 2 GiB")
    return int(float(found[1]) * UNITS[found[2]])
