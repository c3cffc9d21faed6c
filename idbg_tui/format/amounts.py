"""How are bytes and counts said?"""


def size(count: int) -> str:
    """ "61.2 MiB", "784 KiB", "12 B"."""
    return column_size(count).replace(".0 ", " ")


def column_size(count: int) -> str:
    """The same for a column, where points stand below one another: "784.0 KiB"."""
    for unit, step in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= step:
            return f"{count / step:,.1f} {unit}"
    return f"{count} B"


def and_unsized(count: int, unsized: int) -> str:
    """The bytes, and how many tensors they leave out: "61.2 MiB and 2 of unknown size"; "size not known"."""
    if not unsized:
        return size(count)
    return f"{size(count)} and {unsized:,} of unknown size" if count else "size not known"


def counted(number: int, word: str) -> str:
    """ "1 node", "2 nodes", "3 boundaries"."""
    if number == 1:
        return f"1 {word}"
    return f"{number:,} {word[:-1]}ies" if word.endswith("ry") else f"{number:,} {word}s"
