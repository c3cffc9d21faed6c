"""Write what became of a process in a few words."""

from collections.abc import Iterable
from typing import TypeVar

from idbg.schema.events import WorkerStarted
from idbg.schema.processes import ORDERLY, ProcessEnd, ProcessReport

Report = TypeVar("Report", bound=ProcessReport)
NO_END = "it never came to its end"
"""What became of a process whose end nobody saw, and whose log nobody writes."""

CAPTURES = {"all": "", "untried": "untried torch", "trace": "torch's trace alone"}
"""What limits the captures of a process, in the words of a header."""


def capture_words(worker: WorkerStarted | None) -> str:
    """What limits the captures of this process, as a sentence; "" where nothing does."""
    match worker:
        case WorkerStarted(captures="trace", torch=torch, why=why):
            captured = "graphs, code, graph breaks, recompiles and times"
            return f"idbg does not load with torch {torch}, and captures its trace alone ({captured}): {why}"
        case WorkerStarted(captures="untried", torch=torch):
            return f"torch {torch} is newer than each that idbg was tried with: records may be missing or wrong"
        case _:
            return ""


def end_words(ended: ProcessEnd | None) -> str:
    """ "killed by SIGKILL in codegen of 0/0", "exited with status 1 while it compiled 0/0", "ended", "running"."""
    if ended is None:
        return "running"
    frame = f" of {ended.last_frame}" if ended.last_frame else ""
    phase = f" in {ended.last_phase}{frame}" if ended.last_phase else ""
    if ended.last_frame and not ended.last_phase:  # between two phases, or in the program's own backend
        phase = f" while it compiled {ended.last_frame}"
    if ended.signal:
        return f"{'ended' if ended.signal in ORDERLY else 'killed'} by {ended.signal}{phase}"
    if ended.exit_status:
        return f"exited with status {ended.exit_status}{phase}"
    return f"ended{phase}" if ended.exit_status == 0 else f"ended{phase}, exit status not known"


def rank_words(process: ProcessReport) -> str:
    """ "rank 3 of 8"; "" of a process that is none."""
    if process.rank is None:
        return ""
    return f"rank {process.rank}" + (f" of {process.world_size}" if process.world_size else "")


def in_order(processes: Iterable[Report]) -> list[Report]:
    """Ranks by their numbers, then the others as they began."""
    return sorted(processes, key=lambda each: (each.rank is None, each.rank or 0))
