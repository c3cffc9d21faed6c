"""How are numbers and places said in the reports for people?"""

from os.path import relpath


def count(number: int, noun: str, plural: str = "") -> str:
    """ "1 node", "2,000 nodes"."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def place(file: str, line: int) -> str:
    """file:line; the file relative to here if it is below, and without the way to an installed package."""
    if not file:
        return ""
    near = relpath(file)
    short = file.rpartition("site-packages/")[2] if near.startswith("..") else near
    return f"{short.rpartition('site-packages/')[2]}:{line}"
