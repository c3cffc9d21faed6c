"""Read a repro's scripts."""

import os
from pathlib import Path, PurePath

from idbg_tui import user_files
from idbg_tui.widgets.line_pairs import PairedText


def read(path: str, folder: Path, title: str = "", name: str = "") -> PairedText:
    """The script at a path that a record names; of a session that was moved, the one in its `folder`."""
    found = path
    if not os.path.exists(path):
        parts = PurePath(path).parts
        places = [index for index, part in enumerate(parts) if part == "repros"]
        moved = folder.joinpath(*parts[places[-1] :]) if places else folder
        if places and moved.is_file():
            found = str(moved)
    text, problem = user_files.read(found, 0)
    if not os.path.lexists(found):
        problem = "it is not there any more: it was deleted, or moved"
    return PairedText(title, text, name, path=found, problem=problem)
