"""Where do sessions lie for this command, and which of them does the command line name?"""

import argparse
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from idbg.config import places, settings
from idbg.schema.errors import BadInput

if TYPE_CHECKING:
    from idbg.schema.runs import History, Run
    from idbg.session.session import Session

log = logging.getLogger(__name__)
SESSION = "a session's folder, its name in the output folder, or `last` for the newest there"


def add_output(parser: argparse.ArgumentParser) -> None:
    """The flag that says where sessions lie."""
    parser.add_argument("--output", metavar="FOLDER", help="where sessions are kept (debug_artifacts)")


def output_folder(given: str | None = None) -> Path:
    """Where sessions are kept: what --output says, or the settings. Raises SettingsError, and BadInput for "", which a
    script means by a variable that is not set.
    """
    if given == "":
        raise BadInput("--output names no folder", hint="leave it out for that of the settings (idbg config)")
    return places.expanded(given or settings.load(os.environ).output).absolute()


def find(text: str, given: str | None = None) -> Path:
    """The session that a command line names (`SESSION`); `given` is its --output. Raises OutputError."""
    from idbg.session.index import find

    return find(text, output_folder(given))


def named(text: str, given: str | None = None) -> Path | None:
    """The same where it may name a program instead: None then. Raises OutputError for a folder that is no session."""
    from idbg.session.index import find, named

    folder = output_folder(given)
    return named(text, folder) or (find(text, folder) if places.expanded(text).is_dir() else None)


def opened(folder: Path) -> "Session":
    """The saved session; what it lacks is warned of. Raises OutputError where it cannot be read."""
    from idbg.session.session import Session

    saved = Session.open(folder)
    _warn_of_missing(folder, saved.history)
    return saved


def _warn_of_missing(folder: Path, history: "History") -> None:
    from idbg.format.plain_text import one_line

    for text in history.missing[:3]:
        log.warning("%s: %s", folder.name, one_line(text))


def add_run(parser: argparse.ArgumentParser) -> None:
    """The flag that says which of a session's runs is told."""
    parser.add_argument("--run", metavar="N", type=int, help="the session's Nth run (the last)")


def run_of(args: argparse.Namespace) -> "Run":
    """The run that `session`, `run` and `output` name. Raises BadInput where there is none."""
    from idbg.schema.runs import fold
    from idbg.session.reading import load

    folder = find(args.session, args.output)
    history = fold(load(folder))
    _warn_of_missing(folder, history)
    return numbered(history, args.run, folder.name)


def numbered(history: "History", number: int | None, name: str) -> "Run":
    """The run of this number of the session `name`, or its last. Raises BadInput where there is none."""
    from idbg.schema.errors import BadInput

    found = history.last if number is None else history.runs.get(number)
    if found is None:
        there = ", ".join(map(str, sorted(history.runs)[:20]))
        what = "has no run" if not there else f"has no run {number}"
        raise BadInput(f"the session {name} {what}", hint=f"it has {there}" if there else "nothing was run in it")
    return found
