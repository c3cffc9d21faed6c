"""Write the report to stdout and everything else to stderr.

With --json there is exactly one JSON object on stdout: the report, or the reason why there is none (`idbg.error/1`).
`begin` is called once, before a command runs.
"""

import contextlib
import io
import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from idbg.cli import color, streams
from idbg.format.plain_text import LONGEST, plain, shortened
from idbg.schema.errors import IdbgError
from idbg.schema.programs import Failure

if TYPE_CHECKING:
    from pathlib import Path

    from idbg.cli.bar import Bar

ERROR = "idbg.error/1"
_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)


class _State:
    """The shared flags, and what was written. There is one per process, as there is one stdout."""

    as_json = False
    quiet = False
    color = "auto"
    json_written = False
    lost_session = False
    bar: "Bar | None" = None


def begin(*, as_json: bool = False, verbose: int = 0, quiet: bool = False, when: str = "auto") -> None:
    """Apply the shared flags, and send log records to stderr: warnings, with `verbose` 1 also information, with 2
    everything, with `quiet` errors only.
    """
    _State.as_json, _State.quiet, _State.color = as_json, quiet, when
    _State.json_written = _State.lost_session = False
    if _State.bar is not None:
        _State.bar.close()
    _State.bar = None
    encoding = getattr(sys.stdout, "encoding", None)  # None of a stream in memory, which takes every character
    if encoding and "utf" not in encoding.lower():
        from idbg.format import glyphs

        glyphs.use("ascii")
    level = logging.ERROR if quiet else _LEVELS[min(verbose, len(_LEVELS) - 1)]
    for name in ("idbg", "idbg_tui"):
        logger = logging.getLogger(name)
        logger.handlers = [each for each in logger.handlers if not isinstance(each, _ToStderr)]
        logger.addHandler(_ToStderr(detailed=verbose > 1))
        logger.setLevel(level)


class _ToStderr(logging.Handler):
    """Writes each record as a line of the current stderr: "idbg: ..."."""

    def __init__(self, *, detailed: bool) -> None:
        super().__init__()
        self._detailed = detailed

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record. It is lost where nobody reads stderr."""
        try:
            name = f"{record.name}: " if self._detailed else ""
            style = "red" if record.levelno >= logging.ERROR else "yellow" if record.levelno >= logging.WARNING else ""
            line(f"idbg: {name}{record.getMessage()}", style)
            if record.exc_info and self._detailed:
                line(logging.Formatter().formatException(record.exc_info))
        except (OSError, ValueError):
            pass


def line(text: str, style: str = "") -> None:
    """Write a line to stderr, whatever the flags are. It is lost where nobody reads stderr."""
    text = plain(text)
    if style and color.is_wanted(sys.stderr, os.environ, _State.color):
        text = color.paint(text, style)
    try:
        with _State.bar.aside() if _State.bar else contextlib.nullcontext():
            print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        streams.silence(sys.stderr)


def fault(message: str, hint: str) -> None:
    """Write an error and its hint to stderr, whatever the flags are."""
    first, _, rest = message.partition("\n")
    line(f"idbg: {shortened(first, LONGEST)}", "red")
    if rest:
        line(rest)
    if hint:
        line(f"  {shortened(hint, LONGEST)}")


def note(text: str) -> None:
    """Write a line to stderr, but not with --quiet."""
    if not _State.quiet:
        line(text)


def session(folder: "Path") -> None:
    """Note where the session is. A session that was removed meanwhile is an error (`has_lost_session`)."""
    if (folder / "events.jsonl").exists():
        note(f"session: {folder}")
        return
    _State.lost_session = True
    fault(f"no session is kept: {folder} was removed meanwhile", "run it again to have one")


def has_lost_session() -> bool:
    """Whether the session that the command was to keep is gone."""
    return _State.lost_session


def bar() -> "Bar":
    """The progress line on stderr: one per process."""
    from idbg.cli.bar import Bar

    if _State.bar is None:
        _State.bar = Bar(sys.stderr, quiet=_State.quiet)
    return _State.bar


def report(json: Callable[[], object], text: Callable[[], str]) -> None:
    """Write the report: `json()` with --json (see `say_json`), else `text()`."""
    if _State.as_json:
        say_json(json())
    else:
        say(text())


def say(text: str) -> None:
    """Write text to stdout. The signs that begin its lines are coloured where colours are wanted."""
    if _State.bar is not None:
        _State.bar.clear()  # both may be the same terminal
    with printing():
        text = plain(text)
        print(color.painted_signs(text) if color.is_wanted(sys.stdout, os.environ, _State.color) else text)


def say_json(value: object) -> None:
    """Write what msgspec can encode as JSON to stdout."""
    from idbg.schema import strict_json

    say_bytes(strict_json.formatted(value))


def say_bytes(content: bytes) -> None:
    """Write a whole document to stdout."""
    _State.json_written = True
    if _State.bar is not None:
        _State.bar.clear()
    with printing():
        if isinstance(buffer := getattr(sys.stdout, "buffer", None), io.BufferedIOBase):
            sys.stdout.flush()
            buffer.write(content.rstrip(b"\n") + b"\n")
            buffer.flush()
        else:
            print(content.decode().rstrip("\n"))


def say_error(failure: Failure, status: int) -> None:
    """With --json, write why there is no report, unless JSON was written already."""
    if _State.as_json and not _State.json_written:
        error = {"kind": failure.kind, "type": failure.type, "message": failure.message, "hint": failure.hint}
        say_json({"schema": ERROR, "status": status, "error": error})


def width() -> int | None:
    """The columns of the terminal that stdout is; None where it is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


@contextlib.contextmanager
def printing() -> Iterator[None]:
    """Flush stdout at the end of the block. Raises IdbgError if stdout cannot be written."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        streams.silence()
        raise IdbgError(
            f"cannot write to stdout: {error.strerror or error}", hint="write to a place with free space"
        ) from error
