"""Prepare stdin, stdout and stderr before anything is written."""

import contextlib
import io
import os
import sys
from typing import TextIO

from idbg.cli import exits


def prepare() -> None:
    """Open closed streams to /dev/null, and replace characters that a stream cannot encode.

    Otherwise a file opened later gets the number of the closed stream, and printed text ends up in it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if number else os.O_RDONLY)  # takes the lowest free number
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def silence(stream: TextIO | None = None) -> None:
    """Send stdout (or `stream`) to /dev/null, so that Python's flush at exit does not fail and change the status."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), (stream or sys.stdout).fileno())


def print_page(page: str) -> int:
    """Write a help page to stdout, and return the exit status."""
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
