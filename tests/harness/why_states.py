"""Runs of which much was decided, without a compile: events as the worker tells them."""

from idbg.schema import events
from idbg.schema.decisions.dynamo import FailedGuard, FrameGuards, FrameResult, Guard
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import Frame
from idbg.schema.programs import Program, Target
from idbg.schema.runs import Run, fold

FILE = "/home/me/model.py"


def start() -> list[SessionEvent]:
    return [events.RunStarted(run=1, program=Program(FILE), target=Target())]


def guard(number: int, source: str = "") -> Guard:
    source = source or f"L['self'].layers[{number // 4}].weight"
    code = (f"check({source}, {number})",)
    return Guard(kind="TENSOR_MATCH", source=source, code=code, file=FILE, line=number % 90 + 1, seconds=1e-7)


def guarded(count: int, *, frames: int = 1) -> list[SessionEvent]:
    """So many guards over so many frames; the first of each frame failed, and had it compiled again."""
    made = start()
    for number in range(frames):
        frame = f"{number}/0"
        guards = tuple(guard(at) for at in range(count // frames))
        made += [
            events.FrameStarted(run=1, frame=Frame(frame, f"layer_{number % 12}", FILE, number % 12 + 1)),
            events.DecisionsRecorded(run=1, decisions=(FrameGuards(frame=frame, guards=guards, seconds=2e-6),)),
            events.DecisionsRecorded(
                run=1, decisions=(FrameResult(frame=frame, end="compiled", seconds=0.5, guards=len(guards)),)
            ),
        ]
        failed = FailedGuard(text="failed", against=frame, code=guards[0].code[0], source=guards[0].source)
        made.append(events.Recompiled(run=1, frame=f"{number}/1", reason="failed", failed=(failed,)))
    return [*made, events.RunEnded(run=1, verdict="clean", seconds=1.0)]


def run_of(happened: list[SessionEvent]) -> Run:
    return fold(happened).runs[1]
