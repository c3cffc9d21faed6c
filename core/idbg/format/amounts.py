"""Write bytes, counts, times, shares and errors with their units."""

import sys
import time
from collections.abc import Iterable

from idbg.schema.decisions.dynamo import LEAST_SECONDS

NOT_MEASURED = "not measured"
NOTHING = "-"
"""The same where a column has no room for words."""


def size(count: int) -> str:
    """Bytes, rounded to what a person reads: "61.2 MiB", "784 KiB", "12 B"."""
    return column_size(count).replace(".0 ", " ")


def column_size(count: int) -> str:
    """The same for a column, where points stand below one another: "784.0 KiB"."""
    for unit, step in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= step:
            return f"{count / step:,.1f} {unit}"
    return f"{count} B"


def exact_size(count: int) -> str:
    """Every byte, as a limit is given, and from 1 MiB on what that comes to: "1048576 bytes (1.0 MiB)"."""
    return f"{count} bytes" if count < 1 << 20 else f"{count} bytes ({column_size(count)})"


def and_unsized(count: int, unsized: int) -> str:
    """The bytes, and how many tensors they leave out: "61.2 MiB and 2 of unknown size"; "size not known"."""
    if not unsized:
        return size(count)
    return f"{size(count)} and {unsized:,} of unknown size" if count else "size not known"


def few(names: Iterable[str], most: int, more: str = ", +{:,}", joint: str = ", ") -> str:
    """The first names, and how many more there are: "add, mul, +4"."""
    listed = list(names)
    return joint.join(listed[:most]) + (more.format(len(listed) - most) if len(listed) > most else "")


def counted(number: int, noun: str) -> str:
    """ "1 node", "2,000 nodes", "3 boundaries", "2 launches"."""
    return f"{number:,} {noun if number == 1 else _plural(noun)}"


def _plural(noun: str) -> str:
    if noun.endswith("ry"):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("ch", "sh", "ss", "x")) else f"{noun}s"


def percentage(value: float) -> str:
    """Of a value in percent, two digits or more: "0.52 %", "12 %", "1,180 %"."""
    return f"{value:.2g} %" if abs(value) < 10 else f"{value:,.0f} %"


def share(part: float) -> str:
    """The same of a fraction: "3.1 %" for 0.031."""
    return percentage(100 * part)


def column_share(part: float | None) -> str:
    """The same for a column, where points stand below one another: "12.0 %"."""
    return NOTHING if part is None else f"{100 * part:.1f} %"


def figure(value: float | None) -> str:
    """An error to three digits; the largest float stands for those that JSON has no number for: "inf"."""
    if value is None:
        return NOT_MEASURED
    return "inf" if value >= sys.float_info.max else f"{value:.3g}"


def column_figure(value: float | None) -> str:
    """The same in at most 9 cells: "0", "3.1e-07", "0.0123"; "-" where it was not measured."""
    if value is None:
        return NOTHING
    if value == 0 or value != value or 1e-3 <= abs(value) < 1e5:
        return figure(value)
    return "inf" if value >= sys.float_info.max else f"{value:.1e}"


def duration(milliseconds: float) -> str:
    """Three digits, in the unit that shows them: "12.3 ms", "830 µs", "1.5 s"."""
    if milliseconds >= 1000:
        return f"{milliseconds / 1000:.3g} s"
    return f"{milliseconds:.3g} ms" if milliseconds >= 1 else f"{milliseconds * 1000:.3g} µs"


def seconds(value: float) -> str:
    """Three digits, in the unit that shows them: "12.3 s", "0.42 s", "3.1 ms", "830 µs"."""
    if value < 0:
        return f"-{seconds(-value)}"
    return f"{value:.2f} s" if 0.1 <= value < 10 else f"{value:,.1f} s" if value >= 10 else duration(1000 * value)


def evaluation(seconds: float | None) -> str:
    """How long a guard takes: "52 ns", "1.3 µs"; "under 10 ns" of 0.0, which is less than can be measured."""
    if seconds is None:
        return NOT_MEASURED
    if seconds < LEAST_SECONDS:
        return f"under {LEAST_SECONDS * 1e9:.0f} ns"
    return f"{seconds * 1e9:.0f} ns" if seconds < 1e-6 else duration(seconds * 1000)


def elapsed(seconds: float) -> str:
    """How long something took, for whoever waits: "3.2 s"."""
    return f"{seconds:.1f} s"


def wait(seconds: float) -> str:
    """How long somebody waits, in whole numbers: "8 s", "2 min 5 s", "1 h 12 min"."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s".replace(" 0 s", "")
    return f"{whole // 3600} h {whole % 3600 // 60} min".replace(" 0 min", "")


def day(at: float) -> str:
    """A time in seconds since the epoch as "20 Nov 15:02", by this machine's clock."""
    return time.strftime("%d %b %H:%M", time.localtime(at))


def moment(at: float) -> str:
    """The same to the minute, with its year: "2026-11-22 19:15"; "not known" where that cannot be."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(at)) if at else "not known"
    except (ValueError, OverflowError, OSError):
        return "not known"
