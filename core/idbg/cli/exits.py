"""What does an exit status of `idbg` say? One table for all commands; each says which of them apply, and to what."""

from collections.abc import Mapping
from typing import NamedTuple

DONE, FAILED, BAD_USAGE, UNDECIDED = 0, 1, 2, 3
BUG = 70  # EX_SOFTWARE of sysexits.h: so that a defect of ours is never taken for a finding
SIGNALLED = 128  # and the signal's number on top
OWN = -1  # stands for a script's own, which may be any


class Exit(NamedTuple):
    """`shown` is how the status reads in help and docs; `meaning` holds for every command."""

    shown: str
    name: str
    meaning: str


TABLE: Mapping[int, Exit] = {
    DONE: Exit("0", "done", "it was done, and nothing that was asked about fails"),
    FAILED: Exit(
        "1", "failed", "it was done and found: a run that failed, broken rules, other numbers, what --fail-on names"
    ),
    BAD_USAGE: Exit("2", "bad usage", "what was given cannot be used: a flag, a file, a program, a session, a setting"),
    UNDECIDED: Exit("3", "undecided", "whether something fails, or how, could not be shown"),
    BUG: Exit("70", "bug", "idbg itself failed: a defect of ours, told with its traceback"),
    SIGNALLED: Exit("128 + N", "signalled", "signal N ended it: 130 Ctrl+C, 141 nobody reads its output, 143 SIGTERM"),
    OWN: Exit("N", "the script's own", "a script that runs here ended with this status"),
}
EVERYWHERE = (BAD_USAGE, BUG, SIGNALLED)
"""What every command may exit with, without saying so."""


def of_command(sentences: Mapping[int, str]) -> list[tuple[str, str]]:
    """What a command exits with and why, for its help: its own `sentences`, the table's where it has none."""
    told = {status: row.meaning for status, row in TABLE.items() if status in EVERYWHERE or status in sentences}
    told |= sentences
    return [(TABLE[status].shown, told[status]) for status in sorted(told, key=list(TABLE).index)]
