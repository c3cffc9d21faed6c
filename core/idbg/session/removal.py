"""Remove sessions: those that the user names, and those that the settings do not keep.

A session is removed if nobody writes to it and its folder holds nothing but what idbg puts there. The folder is renamed
first, so that no reader finds half of a session; links in it are removed, not followed. The settings (`keep_sessions`,
`keep_days`, `keep_size`) are applied when another session begins; by default all are kept.
"""

import contextlib
import logging
import os
import re
import shutil
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from idbg.config.settings import Keeping
from idbg.format.amounts import counted, size
from idbg.format.plain_text import one_line
from idbg.schema.errors import OutputError, output_errors
from idbg.schema.summaries import SessionSummary
from idbg.session import files, reading
from idbg.session.files import LOG
from idbg.session.index import sessions
from idbg.session.summaries import bytes_within

log = logging.getLogger(__name__)
GRACE = 600.0
"""Seconds after its last event during which a session is never removed: somebody may be about to open it."""
GOING = ".idbg-removed-"
"""Prefix of the name of a folder that is being removed."""
_OURS = re.compile(
    r"events\.jsonl|summary\.json|run-\d+|processes|repros|report\.html|trace-run-\d+\.json|bench-.*\.(csv|json|png)"
    r"|error-.*\.png|\..*\.part|imported(\.txt)?|(comparison|digest)\.json",
    re.DOTALL,
)


def why_not(folder: Path) -> str:
    """The reason not to remove this folder, as a clause; "" if it may be removed."""
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            return "it is no folder"
        with open(files.opened(folder / LOG), "rb") as log:
            if not reading.is_opening(log):
                return "it is not a session"
        if files.is_live(folder):
            return "it is live: a process writes to it"
        others = sorted(name for name in os.listdir(folder) if not _OURS.fullmatch(name))
    except FileNotFoundError:
        return "it is not a session"
    except OSError as error:
        return f"it cannot be read: {error.strerror or error}"
    return f"it has what idbg did not put there: {one_line(others[0], 100)}" if others else ""


def remove(folder: Path) -> int:
    """Remove the session and return its size in bytes. Raises OutputError if it must not or cannot be removed."""
    if why := why_not(folder):
        raise OutputError(f"{folder} is left as it is: {why}", hint="remove by hand what idbg does not")
    size = bytes_within(folder)
    with output_errors(f"{folder} cannot be removed", "check the permissions of the folder"):
        with open(files.opened(folder / LOG), "rb") as log:
            files.claim(log.fileno())
            going = folder.with_name(f"{GOING}{os.getpid()}-{folder.name}"[:255])
            os.rename(folder, going)
        _empty(going)
    return size


def _empty(folder: Path) -> None:
    """Remove the folder, its log last, so that an interrupted removal can be recognized and finished."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            elif entry.name != LOG:
                os.unlink(entry.path)
    (folder / LOG).unlink(missing_ok=True)
    folder.rmdir()


def sweep(output: Path) -> None:
    """Finish removals that another process began and did not finish; errors are ignored."""
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


def superfluous(found: Sequence[SessionSummary], keeping: Keeping, now: float) -> Iterator[SessionSummary]:
    """The sessions (given newest first) that the settings do not keep, oldest first.

    Live and recent sessions are kept, and those without a start time, which a newer idbg may have written.
    """
    kept, total = 0, 0
    going = []
    for each in found:
        total += each.bytes
        is_old = bool(keeping.days) and now - each.started > keeping.days * 86400
        is_many = bool(keeping.sessions) and kept >= keeping.sessions
        is_much = bool(keeping.size) and total > keeping.size
        may_go = not each.live and each.started and now - (each.started + each.seconds) > GRACE
        if may_go and (is_old or is_many or is_much):
            going.append(each)
        else:
            kept += 1
    yield from reversed(going)


def begin(output: Path, keeping: Keeping) -> threading.Thread | None:
    """Apply the settings on a thread, so that no run waits; a later session finishes what this process does not.
    Returns None if the settings keep all sessions.
    """
    if not (keeping.sessions or keeping.days or keeping.size):
        return None
    thread = threading.Thread(target=apply, args=(output, keeping), name="idbg-retention", daemon=True)
    thread.start()
    return thread


def apply(output: Path, keeping: Keeping) -> None:
    """Remove the sessions that the settings do not keep, and log each result."""
    sweep(output)
    gone, freed = 0, 0
    try:
        found = sessions(output)
        if keeping.size:  # a summary may state any size, and other sessions would be removed because of it
            found = [replace(each, bytes=bytes_within(Path(each.folder))) for each in found]
    except OutputError as error:
        log.warning("%s", error.in_one_line)
        return
    for each in superfluous(found, keeping, time.time()):
        try:
            freed += remove(Path(each.folder))
            gone += 1
        except OutputError as error:
            log.info("%s", error.in_one_line)
    if gone:
        log.info("%s removed, as the settings say (idbg config): %s", counted(gone, "old session"), size(freed))
