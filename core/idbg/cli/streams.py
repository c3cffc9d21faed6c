"""Are stdin, stdout and stderr there, and can they take what is written? Asked before anything else is done."""

import contextlib
import io
import os
import sys
from typing import TextIO

from idbg.cli import exits


def hold() -> None:
    """Open what is closed, to nothing, and let no letter be one that a stream cannot write.

    A file opened later would get the number of a closed stream, and be written to by whoever prints.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if number else os.O_RDONLY)  # gets the lowest number that is free
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without UTF-8 still gets its report


def silence(stream: TextIO | None = None) -> None:
    """Nobody takes what goes to stdout (or `stream`): say nothing more there, also not when Python flushes at its end,
    which would make an exit status of its own of it.
    """
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), (stream or sys.stdout).fileno())


def printed(page: str) -> int:
    """Print a page to stdout, and give the exit status: nobody may read it."""
    try:
        sys.stdout.write(page)
        sys.stdout.flush()
    except BrokenPipeError:
        silence()
        return exits.SIGNALLED + 13
    except OSError as error:
        silence()
        print(f"idbg: cannot write to stdout: {error.strerror or error}", file=sys.stderr)
        return exits.FAILED
    return exits.DONE
