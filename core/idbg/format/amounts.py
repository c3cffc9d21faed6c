"""How are bytes, counts, times and shares said?"""


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


def counted(number: int, noun: str) -> str:
    """ "1 node", "2,000 nodes", "3 boundaries", "2 launches"."""
    return f"{number:,} {noun if number == 1 else _plural(noun)}"


def _plural(noun: str) -> str:
    if noun.endswith("ry"):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("ch", "sh", "x")) else f"{noun}s"


def percentage(value: float) -> str:
    """Of a value in percent, two digits or more: "0.52 %", "12 %", "1,180 %"."""
    return f"{value:.2g} %" if abs(value) < 10 else f"{value:,.0f} %"


def duration(milliseconds: float) -> str:
    """Three digits, in the unit that shows them: "12.3 ms", "830 µs", "1.5 s"."""
    if milliseconds >= 1000:
        return f"{milliseconds / 1000:.3g} s"
    return f"{milliseconds:.3g} ms" if milliseconds >= 1 else f"{milliseconds * 1000:.3g} µs"


def elapsed(seconds: float) -> str:
    """How long something took of which nobody compares the digits: "3.2 s"."""
    return f"{seconds:.1f} s"
