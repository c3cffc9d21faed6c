"""Find the session that a command line names, and declare the arguments that name one."""

import argparse
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from idbg.config import places, settings
from idbg.schema.errors import BadInput

if TYPE_CHECKING:
    from idbg.schema.runs import History, Run
    from idbg.session.session import Session
    from idbg.views.processes import ProcessOverview

log = logging.getLogger(__name__)
SESSION = (
    "a session's folder, its name in the output folder, or `last` for the newest there; of one of its processes with "
    "its name after it: last/rank3"
)


def add_session(parser: argparse.ArgumentParser) -> None:
    """SESSION and --output."""
    parser.add_argument("session", metavar="SESSION", help=SESSION)
    add_output(parser)


def add_run(parser: argparse.ArgumentParser) -> None:
    """--run N: `run_of` reads it."""
    parser.add_argument("--run", metavar="N", type=int, help="the Nth run of the session (default: the last)")


def add_output(parser: argparse.ArgumentParser) -> None:
    """--output FOLDER."""
    parser.add_argument("--output", metavar="FOLDER", help="where sessions are kept (default: debug_artifacts)")


def output_folder(named: str | None = None) -> Path:
    """The folder of sessions: `named` (--output) or the setting. Raises SettingsError, and BadInput for ""."""
    if named == "":  # a variable of a script that is not set
        raise BadInput("--output names no folder", hint="leave it out to use the setting (idbg config)")
    return places.expanded(named or settings.load(os.environ).output).absolute()


def find(text: str, output: str | None = None) -> Path:
    """The folder of the session that `text` names; a trace is imported first. `output` is --output.

    Raises OutputError, and BadInput for a trace that cannot be imported.
    """
    from idbg.session.index import find, named

    folder = output_folder(output)
    return named(text, folder) or imported(text, output) or find(text, folder)


def find_or_none(text: str, output: str | None = None) -> Path | None:
    """As `find`, for an argument that may also name a program: None then.

    Raises OutputError for a folder that is not a session, and for `last` where there is none.
    """
    from idbg.session.index import LAST, find, named

    folder = output_folder(output)
    found = named(text, folder) or imported(text, output)
    return found or (find(text, folder) if text == LAST or places.expanded(text).is_dir() else None)


def imported(text: str, output: str | None) -> Path | None:
    """The session of the trace that `text` names, which is imported; None where it names none."""
    from idbg.traces.sources import kind_of

    path = places.expanded(text)
    return import_trace(path, output) if text and kind_of(path) is not None else None


def import_trace(path: Path, output: str | None = None, accelerator: str = "") -> Path:
    """Import a trace, unless it was imported before and has not changed since. Progress goes to stderr.

    Raises BadInput where there is none, OutputError where nothing can be written.
    """
    from idbg.cli.bar import Activity
    from idbg.cli.output import bar
    from idbg.cli.signals import raise_on_signal
    from idbg.format.amounts import size
    from idbg.session.importing import Import, imported_before

    folder = output_folder(output)
    if (before := imported_before(path, folder, accelerator)) is not None:
        return before
    progress, began = bar(), time.monotonic()
    with raise_on_signal():
        importing = Import(path, folder, accelerator=accelerator)

        def show(read: int) -> None:
            progress.show(Activity(f"importing {size(read)} of {size(importing.bytes)}", "import", since=began))

        try:
            importing.read(show)
        finally:
            progress.clear()
    return importing.folder


def saved(args: argparse.Namespace) -> Path | None:
    """The session that `args.program` names; None where it names a program."""
    return None if args.module else find_or_none(args.program, args.output)


def opened(folder: Path) -> "Session":
    """Open a saved session with its ranks compared, and warn of what it lacks. Raises OutputError where it cannot be
    read.
    """
    from idbg.session import ranks
    from idbg.session.session import Session

    session = Session.open(folder)
    with reading_ranks() as show:
        ranks.add(session.history, folder, show)
    _warn_of_missing(folder, session.history)
    return session


@contextmanager
def reading_ranks() -> Iterator[Callable[[int, int], None]]:
    """Reports on stderr how many ranks have been read, while their digests are made."""
    from idbg.cli.bar import Activity
    from idbg.cli.output import bar

    line, began = bar(), time.monotonic()

    def show(done: int, of: int) -> None:
        each = (time.monotonic() - began) / done if done else None
        line.show(Activity("reading the logs of ranks", "ranks", began, done=done, of=of, each=each))

    try:
        yield show
    finally:
        line.clear()


def processes_of(folder: Path, history: "History") -> "list[ProcessOverview]":
    """The processes of the session beside its main one, each with what came of it."""
    from idbg.session import processes, summaries
    from idbg.views.processes import overview

    every = processes.reports(folder, history.processes)
    return [overview(each, summaries.current(folder / processes.FOLDER / each.name)) for each in every]


def last_run(history: "History", folder: Path) -> "Run":
    """Raises BadInput where the session has no run."""
    if (last := history.last_as_requested) is None:
        raise BadInput(f"the session {folder} has no run", hint=_where_runs_are(history, folder.name))
    return last


def _where_runs_are(history: "History", name: str) -> str:
    """Of a session without a run the name of one of its processes, if it has any."""
    process = next(iter(history.processes), "")
    return f"its processes have: {name}/{process} is the first of {len(history.processes):,}" if process else "idbg run"


def run_of(args: argparse.Namespace) -> "Run":
    """The run that `session`, `run` and `output` name. Raises BadInput where there is none."""
    from idbg.schema.runs import fold
    from idbg.session.reading import load

    folder = find(args.session, args.output)
    history = fold(load(folder))
    _warn_of_missing(folder, history)
    return numbered(history, args.run, folder.name)


def numbered(history: "History", number: int | None, name: str) -> "Run":
    """The run of this number of the session `name`, or its last run. Raises BadInput where there is none."""
    found = history.last if number is None else history.runs.get(number)
    if found is None:
        known = ", ".join(map(str, sorted(history.runs)[:20]))
        what = "has no run" if not known else f"has no run {number}"
        raise BadInput(
            f"the session {name} {what}", hint=f"it has {known}" if known else _where_runs_are(history, name)
        )
    return found


def _warn_of_missing(folder: Path, history: "History") -> None:
    from idbg.format.plain_text import one_line
    from idbg.format.processes import capture_words

    for text in filter(None, [capture_words(history.worker), *history.missing[:3]]):
        log.warning("%s: %s", folder.name, one_line(text))
