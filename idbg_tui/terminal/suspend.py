"""Leave the screen to the shell or to the user's editor; copy to the clipboard."""

import os
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from idbg.schema.errors import BadInput
from idbg_tui import user_files
from idbg_tui.terminal import clipboard, editor

if TYPE_CHECKING:
    from textual.app import App


def edit(app: "App[None]", path: str, line: int, chosen: str = "") -> None:
    """Leave the screen to the user's editor until it ends. Raises BadInput if it cannot be, or it is no file."""
    if why := user_files.not_editable(path):
        raise BadInput(f"{path} {why}", hint="the program may have moved since this session was saved")
    environ = os.environ | ({"VISUAL": chosen} if chosen else {})
    command = editor.command(os.path.abspath(path), line, environ)  # a name like -c is no option of the editor's
    try:
        with app.suspend():
            subprocess.run(command, check=False)
    except OSError as error:
        raise BadInput(f"{command[0]} cannot be started: {error.strerror}", hint="set $EDITOR") from None


def stop(app: "App[None]") -> None:
    """Leave the screen to the shell until it continues this process. Raises BadInput where no shell could."""
    if os.getpgrp() == os.getsid(0):
        raise BadInput("there is no shell to go back to", hint="q quits")
    try:
        with app.suspend():
            os.kill(0, signal.SIGTSTP)  # the whole job: what started us waits for us
    except SuspendNotSupported:
        raise BadInput("this terminal cannot be left", hint="q quits") from None
    app.refresh()


def edit_text(app: "App[None]", name: str, text: str, line: int, chosen: str = "") -> str:
    """What the user made of `text` in their editor. Raises BadInput as `edit` does."""
    with tempfile.TemporaryDirectory(prefix="idbg-") as folder:
        path = Path(folder) / os.path.basename(name)
        path.write_text(text, encoding="utf-8")
        edit(app, str(path), line, chosen)
        return path.read_text(encoding="utf-8", errors="replace")


def copy(app: "App[None]", text: str, what: str, folder: str) -> str:
    """Put text on the clipboard; returns the sentence about where it went."""
    place = Path(folder) if os.access(folder, os.W_OK) else Path(tempfile.gettempdir())
    try:
        return clipboard.copy(text, os.environ, app.copy_to_clipboard, place).sentence(what)
    except OSError as error:
        return f"{what} could not be copied: {error.strerror}"
