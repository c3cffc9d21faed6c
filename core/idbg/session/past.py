"""Read from earlier sessions how long this program's runs, and the phases of its compiles, took."""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from idbg.schema import event_log, events
from idbg.schema.diff import Comparison
from idbg.schema.programs import Program, Target
from idbg.schema.runs import Run
from idbg.session import files
from idbg.session.files import LOG

MOST = 5  # sessions: the newest; older ones tell of a program that has changed since
LOOKED_AT = 200  # sessions: an output folder may hold any number, most of other programs
_LONGEST = 64 << 20  # bytes of a line: the logs beside ours may be anybody's
_READ = (b'{"type":"session_opened"', b'{"type":"run_started"', b'{"type":"phase_changed"', b'{"type":"run_ended"')


def phases_of_earlier(folder: Path, program: Program, backend: str) -> list[dict[str, float]]:
    """Seconds of each phase, of each whole run of this program for this backend in the newest sessions that lie beside
    `folder`. Takes some tens of milliseconds for each. What cannot be read tells nothing.
    """
    return _newest(folder, lambda log: [run.phases for run in _runs(log, program) if run.target.backend == backend])


def seconds_of_earlier(folder: Path, program: Program, target: Target, comparison: Comparison | None) -> list[float]:
    """Seconds of each whole run of this program with the same request (see `asks_the_same`), from the same sessions as
    `phases_of_earlier`, without the start of the worker.
    """

    def read(log: Path) -> list[float]:
        runs = _runs(log, program)
        return [run.seconds for run in runs if asks_the_same((run.target, run.comparison), (target, comparison))]

    return _newest(folder, read)


def asks_the_same(one: tuple[Target, Comparison | None], other: tuple[Target, Comparison | None]) -> bool:
    """Whether two runs do the same work; the rules that they are held against take no time to speak of."""
    return one[1] == other[1] and _work(one[0]) == _work(other[0])


def _work(target: Target) -> Target:
    return replace(target, rules="", accelerator="", strict=False)


_Found = TypeVar("_Found")


def _newest(folder: Path, read: Callable[[Path], list[_Found]]) -> list[_Found]:
    found: list[_Found] = []
    beside = (each for each in folder.parent.glob("*/" + LOG) if each.parent != folder)
    sessions = 0
    for log in islice(sorted(beside, key=_changed, reverse=True), LOOKED_AT):
        try:
            of_session = read(log)
        except (OSError, ValueError, RecursionError):
            continue
        found += of_session
        sessions += bool(of_session)
        if sessions >= MOST:
            break
    return found


def _changed(log: Path) -> float:
    try:
        return log.stat().st_mtime
    except OSError:
        return 0.0


def _runs(log: Path, program: Program) -> Iterator[Run]:
    """The whole runs of a program in a session of its own; in another's there are none."""
    runs: dict[int, Run] = {}
    with open(files.opened(log), "rb") as lines:
        for number, line in enumerate(iter(lambda: lines.readline(_LONGEST), b"")):
            if len(line) == _LONGEST:
                return
            if not line.startswith(_READ):
                continue
            event = event_log.decode(line)
            match event:
                case events.SessionOpened() if number == 0 and not _is_same(event.program, program):
                    return
                case events.RunStarted() if _is_same(event.program, program):
                    runs[event.run] = Run(event.run, event.program, event.target, event.at, event.comparison)
                case events.PhaseChanged() if event.run in runs:
                    runs[event.run].apply(event)
                case events.RunEnded(failure=None) if event.run in runs:
                    runs[event.run].apply(event)
                    yield runs.pop(event.run)
                case _:
                    pass


def _is_same(one: Program, other: Program) -> bool:
    """Whether the programs are the same, apart from their arguments."""
    return (one.path, one.name, one.module, one.cwd) == (other.path, other.name, other.module, other.cwd)
