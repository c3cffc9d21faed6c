"""The exit statuses of `idbg`: one table for all commands. Each command names those that it uses, with when."""

from collections.abc import Mapping
from typing import NamedTuple

DONE, FAILED, BAD_USAGE, UNDECIDED = 0, 1, 2, 3
BUG = 70  # EX_SOFTWARE of sysexits.h: an error of idbg is never taken for a finding
SIGNALLED = 128  # plus the signal's number
OWN = -1  # stands for a script's own status, which may be any


class Exit(NamedTuple):
    """`shown`: how help and docs print the status. `meaning` holds for every command."""

    shown: str
    name: str
    meaning: str


TABLE: Mapping[int, Exit] = {
    DONE: Exit("0", "done", "it finished, and nothing that was checked fails"),
    FAILED: Exit(
        "1", "failed", "it finished and found: a failed run, broken rules, wrong numbers, or what --fail-on names"
    ),
    BAD_USAGE: Exit("2", "bad usage", "the input cannot be used: a flag, a file, a program, a session, a setting"),
    UNDECIDED: Exit("3", "undecided", "it could not be decided whether, or how, something fails"),
    BUG: Exit("70", "bug", "idbg itself failed: a bug, printed with its traceback"),
    SIGNALLED: Exit("128 + N", "signalled", "signal N ended it: 130 Ctrl+C, 141 nobody reads its output, 143 SIGTERM"),
    OWN: Exit("N", "the script's own", "a script that ran in this process ended with this status"),
}
EVERYWHERE = (BAD_USAGE, BUG, SIGNALLED)
"""The statuses that every command may exit with."""


def of_command(sentences: Mapping[int, str]) -> list[tuple[str, str]]:
    """Rows of a command's help: each status, with the command's own sentence or the table's."""
    rows = {status: row.meaning for status, row in TABLE.items() if status in EVERYWHERE or status in sentences}
    rows |= sentences
    return [(TABLE[status].shown, rows[status]) for status in sorted(rows, key=list(TABLE).index)]
