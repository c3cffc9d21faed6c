"""How does a command say what it has to say: its report on stdout, all else on stderr?

With --json there is exactly one JSON object on stdout, whatever happens: the report, or why there is none
(`idbg.error/1`). `begin` is called once, before a command runs.
"""

import contextlib
import io
import logging
import os
import sys
from collections.abc import Iterator
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


class _How:
    """What the shared flags come to. One for the process, as its streams are."""

    as_json = False
    quiet = False
    color = "auto"
    told = False  # the JSON is written
    lost_session = False
    bar: "Bar | None" = None


def begin(*, as_json: bool = False, verbose: int = 0, quiet: bool = False, when: str = "auto") -> None:
    """Take the shared flags; what is logged goes to stderr: warnings, with `verbose` 1 information, with 2 all; with
    `quiet` errors alone.
    """
    _How.as_json, _How.quiet, _How.color = as_json, quiet, when
    _How.told = _How.lost_session = False
    if _How.bar is not None:
        _How.bar.close()
    _How.bar = None
    if "utf" not in (getattr(sys.stdout, "encoding", "") or "").lower():
        from idbg.format import glyphs

        glyphs.use_ascii()
    level = logging.ERROR if quiet else _LEVELS[min(verbose, len(_LEVELS) - 1)]
    for name in ("idbg", "idbg_tui"):
        logger = logging.getLogger(name)
        logger.handlers = [each for each in logger.handlers if not isinstance(each, _ToStderr)]
        logger.addHandler(_ToStderr(wordy=verbose > 1))
        logger.setLevel(level)


class _ToStderr(logging.Handler):
    """A line of stderr for each, as stderr is now: "idbg: warning: ..."."""

    def __init__(self, *, wordy: bool) -> None:
        super().__init__()
        self._wordy = wordy

    def emit(self, record: logging.LogRecord) -> None:
        """Write it; nobody may read stderr, and then it is lost."""
        try:
            from_where = f"{record.name}: " if self._wordy else ""
            style = "red" if record.levelno >= logging.ERROR else "yellow" if record.levelno >= logging.WARNING else ""
            line(f"idbg: {from_where}{record.getMessage()}", style)
            if record.exc_info and self._wordy:
                line(logging.Formatter().formatException(record.exc_info))
        except (OSError, ValueError):
            pass


def line(text: str, style: str = "") -> None:
    """A line of stderr, whatever the flags say. Where nobody reads stderr it is lost."""
    told = plain(text)
    if style and color.is_wanted(sys.stderr, os.environ, _How.color):
        told = color.paint(told, style)
    try:
        with _How.bar.aside() if _How.bar else contextlib.nullcontext():
            print(told, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        streams.silence(sys.stderr)


def fault(message: str, hint: str) -> None:
    """Why it cannot be done, on stderr whatever the flags say."""
    first, _, rest = message.partition("\n")
    line(f"idbg: {shortened(first, LONGEST)}", "red")
    if rest:
        line(rest)
    if hint:
        line(f"  {shortened(hint, LONGEST)}")


def note(text: str) -> None:
    """A line of stderr for whoever watches: where the session is, what is next. With --quiet there is none."""
    if not _How.quiet:
        line(text)


def session(folder: "Path") -> None:
    """Where the session is, as a note. One that somebody removed meanwhile is nowhere: that is an error, and the
    command's status says it too (`has_lost_session`).
    """
    if (folder / "events.jsonl").exists():
        note(f"session: {folder}")
        return
    _How.lost_session = True
    fault(f"no session is kept: {folder} was removed meanwhile", "run it again to have one")


def has_lost_session() -> bool:
    """Whether the session that the command was to leave behind is gone."""
    return _How.lost_session


def bar() -> "Bar":
    """The line of stderr that says how far it is. There is one for the process, as there is one stderr."""
    from idbg.cli.bar import Bar

    if _How.bar is None:
        _How.bar = Bar(sys.stderr, quiet=_How.quiet)
    return _How.bar


def say(text: str) -> None:
    """The report, or a part of it, on stdout; the signs that begin its lines are coloured where colours are wanted."""
    if _How.bar is not None:
        _How.bar.clear()  # both may be the same terminal
    with printing():
        told = plain(text)
        print(color.painted_signs(told) if color.is_wanted(sys.stdout, os.environ, _How.color) else told)


def say_json(report: object) -> None:
    """The report as JSON on stdout: what is JSON already, or what msgspec can encode. It has a `schema`."""
    encoded = report.encode() if isinstance(report, str) else report
    if not isinstance(encoded, bytes):
        from idbg.schema import strict_json

        encoded = strict_json.formatted(report)
    say_bytes(encoded)


def say_bytes(content: bytes) -> None:
    """A whole document on stdout, as it is; with --json that is the object."""
    _How.told = True
    if _How.bar is not None:
        _How.bar.clear()
    with printing():
        if isinstance(buffer := getattr(sys.stdout, "buffer", None), io.BufferedIOBase):
            sys.stdout.flush()
            buffer.write(content.rstrip(b"\n") + b"\n")
            buffer.flush()
        else:
            print(content.decode().rstrip("\n"))


def say_error(failure: Failure, status: int) -> None:
    """Why there is no report, as JSON, where --json asks for JSON and none is written."""
    if _How.as_json and not _How.told:
        say_json({"schema": ERROR, "status": status, "error": _spelled(failure)})


def _spelled(failure: Failure) -> dict[str, object]:
    return {"kind": failure.kind, "type": failure.type, "message": failure.message, "hint": failure.hint}


def width() -> int | None:
    """The cells of the terminal that takes stdout; None where it is none: nothing need be cut then."""
    import shutil

    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


@contextlib.contextmanager
def printing() -> Iterator[None]:
    """While this lasts, our output is written, all of it. Raises IdbgError if stdout cannot take it."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        streams.silence()
        raise IdbgError(
            f"cannot write to stdout: {error.strerror or error}", hint="send it where there is room, and do it again"
        ) from error
