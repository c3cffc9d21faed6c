"""Where do sessions lie for this command, and which of them does the command line name?"""

import argparse
import os
from pathlib import Path

from idbg.config import places, settings

SESSION = "a session's folder, its name in the output folder, or `last` for the newest there"


def add_output(parser: argparse.ArgumentParser) -> None:
    """The flag that says where sessions lie."""
    parser.add_argument("--output", metavar="FOLDER", help="where sessions are kept (debug_artifacts)")


def output_folder(given: str | None = None) -> Path:
    """Where sessions are kept: what --output says, or the settings. Raises SettingsError."""
    return places.expanded(given or settings.load(os.environ).output).absolute()


def find(text: str, given: str | None = None) -> Path:
    """The session that a command line names (`SESSION`); `given` is its --output. Raises OutputError."""
    from idbg.session.find import find

    return find(text, output_folder(given))


def named(text: str, given: str | None = None) -> Path | None:
    """The same where it may name a program instead: None then. Raises OutputError for a folder that is no session."""
    from idbg.session.find import find, named

    folder = output_folder(given)
    return named(text, folder) or (find(text, folder) if places.expanded(text).is_dir() else None)
