"""What does a session come to, in one line of a list?"""

import os
from pathlib import Path

from msgspec.structs import replace

from idbg.format.verdicts import session_words
from idbg.schema.events import SessionOpened
from idbg.schema.runs import History
from idbg.schema.summaries import SessionSummary


def summary(folder: Path, opened: SessionOpened, history: History, last: float) -> SessionSummary:
    """The session as far as `history` tells it; `last` is when its last event was, in seconds since the epoch.

    What is to be found out beside that (`bytes`, `live`) is the caller's to say.
    """
    facts = SessionSummary(
        folder=str(folder),
        name=folder.name,
        program=opened.program.label,
        version=opened.version,
        started=opened.at,
        seconds=max(0.0, last - opened.at),
        ended=not history.missing and all(run.ended is not None for run in history.runs.values()),
        runs=len(history.runs),
        damaged=history.missing[0] if history.missing else "",
    )
    run, telling = history.last, history.telling
    if run is None or telling is None:
        return facts
    return replace(
        facts,
        program=run.program.label,
        backend=run.backend,
        accelerator=run.target.accelerator,
        device=run.target.device,
        verdict=telling.verdict,
        looks=telling.looks,
        said=session_words(history),
        graphs=len(run.graphs),
        kernels=len(run.kernels),
        violations=len(run.violations) if run.asked_rules else None,
        breaks=run.times_broken,
    )


def bytes_within(folder: Path) -> int:
    """How many bytes the files below the folder take. Links are not followed; what cannot be read counts nothing."""
    total = 0
    pending = [os.fspath(folder)]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        total += entry.stat(follow_symlinks=False).st_size
        except OSError:
            continue
    return total
