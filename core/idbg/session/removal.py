"""What may be removed of an output folder, and how does it go such that nothing else does?

A session is removed where it is one, nobody writes to it, and all that lies in its folder is what idbg puts there. It
is moved out of sight first, so that nobody meets half of one; links in it are removed and not followed.
"""

import contextlib
import os
import re
import shutil
import stat
from pathlib import Path

from idbg.format.plain_text import one_line
from idbg.schema.errors import OutputError
from idbg.session import files, liveness, reading
from idbg.session.files import LOG
from idbg.session.summarizing import bytes_within

GOING = ".idbg-removed-"
"""How the name of a folder begins that is being removed."""
_OURS = re.compile(
    r"events\.jsonl|summary\.json|run-\d+|repros|report\.html|trace-run-\d+\.json|bench-.*\.(csv|json|png)"
    r"|error-.*\.png|\..*\.part",
    re.DOTALL,
)


def why_not(folder: Path) -> str:
    """Why this folder is not to be removed, as a clause; "" where it may be."""
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            return "it is no folder"
        with open(files.opened(folder / LOG), "rb") as log:
            if not reading.is_opening(log):
                return "it is not a session"
        if liveness.is_live(folder):
            return "it is live: a process writes to it"
        others = sorted(name for name in os.listdir(folder) if not _OURS.fullmatch(name))
    except FileNotFoundError:
        return "it is not a session"
    except OSError as error:
        return f"it cannot be read: {error.strerror or error}"
    return f"it has what idbg did not put there: {one_line(others[0], 100)}" if others else ""


def remove(folder: Path) -> int:
    """Remove the session, and give the bytes that it took. Raises OutputError where it is not to be, or cannot be."""
    if why := why_not(folder):
        raise OutputError(f"{folder} is left as it is: {why}", hint="remove by hand what idbg does not")
    size = bytes_within(folder)
    try:
        with open(files.opened(folder / LOG), "rb") as log:
            liveness.claim(log.fileno())
            going = folder.with_name(f"{GOING}{os.getpid()}-{folder.name}"[:255])
            os.rename(folder, going)
        _empty(going)
    except OSError as error:
        raise OutputError(
            f"{folder} cannot be removed: {error.strerror or error}", hint="check the permissions of the folder"
        ) from error
    return size


def _empty(folder: Path) -> None:
    """Remove the folder, its log last: until then it can be seen what it was."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            elif entry.name != LOG:
                os.unlink(entry.path)
    (folder / LOG).unlink(missing_ok=True)
    folder.rmdir()


def sweep(output: Path) -> None:
    """Remove what others have begun to remove, and did not come to the end of. What cannot be is left."""
    try:
        with os.scandir(output) as entries:
            begun = [
                entry.path for entry in entries if entry.name.startswith(GOING) and entry.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return
    for path in begun:
        with contextlib.suppress(OSError):
            if files.is_session(Path(path)) or not os.listdir(path):
                _empty(Path(path))
