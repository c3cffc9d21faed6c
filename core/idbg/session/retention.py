"""Which sessions are not kept any longer, and when do they go?

When another begins, and only as far as the user's settings say so (`keep_sessions`, `keep_days`, `keep_size`): by
default all are kept.
"""

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from idbg.config.keeping import Keeping
from idbg.format.amounts import counted, size
from idbg.schema.errors import OutputError
from idbg.schema.summaries import SessionSummary
from idbg.session import removal
from idbg.session.index import sessions
from idbg.session.summarizing import bytes_within

log = logging.getLogger(__name__)
GRACE = 600.0
"""Seconds: a session that was written to not longer ago is kept: who was told of it may be about to look."""


def superfluous(found: Sequence[SessionSummary], keeping: Keeping, now: float) -> Iterator[SessionSummary]:
    """Those of the sessions (newest first) that are not to be kept, oldest first.

    Never a live one, a new one, or one of which it is not known when it began: a newer idbg may have written it.
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
    """Remove what is not to be kept, beside the work: no run waits for it. Where the process ends meanwhile, the next
    session goes on with it. The thread is None where the settings keep all.
    """
    if not (keeping.sessions or keeping.days or keeping.size):
        return None
    thread = threading.Thread(target=apply, args=(output, keeping), name="idbg-retention", daemon=True)
    thread.start()
    return thread


def apply(output: Path, keeping: Keeping) -> None:
    """Remove what is not to be kept; what went, and what cannot go, is logged."""
    removal.sweep(output)
    gone, freed = 0, 0
    try:
        found = sessions(output)
        if keeping.size:  # what a session says of its own size may be anybody's word, and others would go for it
            found = [replace(each, bytes=bytes_within(Path(each.folder))) for each in found]
    except OutputError as error:
        log.warning("%s", error.in_one_line)
        return
    for each in superfluous(found, keeping, time.time()):
        try:
            freed += removal.remove(Path(each.folder))
            gone += 1
        except OutputError as error:
            log.info("%s", error.in_one_line)
    if gone:
        log.info("%s removed, as the settings say (idbg config): %s", counted(gone, "old session"), size(freed))
