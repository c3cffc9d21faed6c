"""Parse a time that a user writes: a date, or an age."""

import re
import time
from datetime import datetime, timedelta

from idbg.schema.errors import BadInput

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
_SPAN = re.compile(rf"(\d+(?:\.\d+)?)\s*([{''.join(UNITS)}])")
HOW = "write an age (30m, 12h, 3d, 2w) or a date (2026-11-01, 2026-11-01T15:30, today, yesterday)"


def span(text: str) -> float:
    """Seconds: "30d", "12h". Raises BadInput."""
    found = _SPAN.fullmatch(text.strip().lower())
    if found is None:
        raise BadInput(f"{text!r} is no duration", hint="write it as 30m, 12h, 3d or 2w")
    return float(found[1]) * UNITS[found[2]]


def since(text: str, now: float | None = None) -> float:
    """Seconds since the epoch; for a day its start. Raises BadInput."""
    return _moment(text, time.time() if now is None else now)[0]


def until(text: str, now: float | None = None) -> float:
    """The same; for a day its end."""
    return _moment(text, time.time() if now is None else now)[1]


def _moment(text: str, now: float) -> tuple[float, float]:
    word = text.strip().lower()
    if _SPAN.fullmatch(word):
        return now - span(word), now - span(word)
    try:
        midnight = datetime.fromtimestamp(now).replace(hour=0, minute=0, second=0, microsecond=0)
        if word in ("today", "yesterday"):
            begins = midnight - timedelta(days=word == "yesterday")
        else:
            begins = datetime.fromisoformat(text.strip())
        whole_day = word in ("today", "yesterday") or re.fullmatch(r"\d{4}-\d\d-\d\d", word)
        ends = begins + timedelta(days=1, microseconds=-1) if whole_day else begins
        return begins.timestamp(), ends.timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise BadInput(f"{text!r} is no time", hint=HOW) from error
