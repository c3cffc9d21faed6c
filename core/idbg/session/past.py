"""How long did each phase of this program's compile take in earlier sessions?"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec

from idbg.schema import event_log, events
from idbg.schema.programs import Program
from idbg.session.files import LOG

MOST = 5  # sessions: the newest; older ones tell of a program that has changed since
LOOKED_AT = 200  # sessions: an output folder may hold any number, most of other programs
_READ = (b'{"type":"session_opened"', b'{"type":"run_started"', b'{"type":"phase_changed"', b'{"type":"run_ended"')


def phases_of_earlier(folder: Path, program: Program, backend: str) -> list[dict[str, float]]:
    """Seconds of each phase, of each whole run of this program for this backend in the newest sessions that lie beside
    `folder`. Takes some tens of milliseconds for each. What cannot be read tells nothing.
    """
    found: list[dict[str, float]] = []
    beside = (each for each in folder.parent.glob("*/" + LOG) if each.parent != folder)
    sessions = 0
    for log in islice(sorted(beside, key=_changed, reverse=True), LOOKED_AT):
        try:
            runs = list(_runs(log, program, backend))
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            continue
        found += runs
        sessions += bool(runs)
        if sessions >= MOST:
            break
    return found


def _changed(log: Path) -> float:
    try:
        return log.stat().st_mtime
    except OSError:
        return 0.0


def _runs(log: Path, program: Program, backend: str) -> Iterator[dict[str, float]]:
    runs: dict[int, dict[str, float]] = {}
    with log.open("rb") as lines:
        for number, line in enumerate(lines):
            if not line.startswith(_READ):
                continue
            event = event_log.decode(line)
            match event:
                case events.SessionOpened() if number == 0 and not _is_same(event.program, program):
                    return
                case events.RunStarted() if _is_same(event.program, program) and event.target.backend == backend:
                    runs[event.run] = {}
                case events.PhaseChanged(seconds=float(seconds)) if event.run in runs:
                    phases = runs[event.run]
                    phases[event.phase] = phases.get(event.phase, 0.0) + seconds
                case events.RunEnded(failure=None) if event.run in runs:
                    yield runs.pop(event.run)
                case _:
                    pass


def _is_same(one: Program, other: Program) -> bool:
    """Whatever arguments it was given."""
    return (one.path, one.name, one.module, one.cwd) == (other.path, other.name, other.module, other.cwd)
