"""The repros of a session, as a fold of its events."""

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from idbg.schema import events
from idbg.schema.attribution import KernelAttribution
from idbg.schema.events import SessionEvent
from idbg.schema.programs import Failure
from idbg.schema.repros import Minified, MinifyProgress, Sought
from idbg.schema.strict_json import picked
from idbg.schema.violations import Violation

REPRO = (
    events.ReproStarted
    | events.ReproEnded
    | events.MinifyStarted
    | events.MinifyProgressed
    | events.MinifyEnded
    | events.OwnerEnded
    | events.FrameFailed
    | events.RunEnded
)
"""The events that change something here."""


class SessionRepro(msgspec.Struct, frozen=True, omit_defaults=True):
    """A script of a session that shows a failure of `run`, as far as it has come; `at`: seconds since the epoch.

    `origin`: it was requested as it is ("written"), searched for ("minified"), written by strict rules as they stopped
    a compile ("strict"), or for the error of one launch ("kernel"). `ended` is when that was done, 0.0 before.
    `reproduced`: whether it failed so in a fresh process, whose exit status is `status` (None: it was not run).
    `path` is "" while there is no script, and where none could be written: `failure` says why. Of a search `progress`
    is the last progress event, and `minified` the result.
    """

    run: int
    at: float
    origin: Literal["written", "minified", "strict", "kernel"]
    sought: Sought
    ended: float = 0.0
    path: str = ""
    reproduced: bool | None = None
    status: int | None = None
    printed: str = ""
    seconds: float = 0.0
    failure: Failure | None = None
    progress: MinifyProgress | None = None
    minified: Minified | None = None

    @property
    def stopped(self) -> bool:
        """Whether it was cancelled; what was found until then is kept."""
        return self.failure is not None and self.failure.kind == "cancelled"


def with_event(
    kept: list[SessionRepro], event: SessionEvent, violations: Sequence[Violation] = ()
) -> list[SessionRepro]:
    """The repros after this event, oldest first. What is in hand is the last: the worker does one thing at a time.

    `violations` are those of the event's run so far.
    """
    match event:
        case events.ReproStarted():
            sought = Sought("violation", event.node, event.rule) if event.node else Sought()
            return [*kept, SessionRepro(event.run, event.at, "written", sought)]
        case events.MinifyStarted():
            return [*kept, SessionRepro(event.run, event.at, "minified", event.sought)]
        case events.MinifyProgressed():
            before, last = _in_hand(kept)
            return [*before, *(replace(each, progress=event.progress, path=event.progress.best) for each in last)]
        case events.ReproEnded():
            before, last = _in_hand(kept)
            return [*before, *(_written(each, event) for each in last)]
        case events.MinifyEnded():
            before, last = _in_hand(kept)
            return [*before, *(_searched(each, event) for each in last)]
        case events.OwnerEnded(owner=KernelAttribution(script=str(script)) as owner) if script:
            return [*kept, _of_kernel(event, owner)]
        case events.FrameFailed(failure=Failure() as failure) | events.RunEnded(failure=Failure() as failure):
            return [*kept, *_of_strict(kept, event, failure, violations)]
        case _:
            return kept


def _in_hand(kept: list[SessionRepro]) -> tuple[list[SessionRepro], list[SessionRepro]]:
    """Those that are done, and the one that is not; none where the log has lost its beginning."""
    return (kept[:-1], kept[-1:]) if kept and not kept[-1].ended else (kept, [])


def _written(repro: SessionRepro, event: events.ReproEnded) -> SessionRepro:
    ending = picked(event, "path reproduced status seconds failure")
    return replace(repro, ended=event.at, printed=event.output, **ending)


def _searched(repro: SessionRepro, event: events.MinifyEnded) -> SessionRepro:
    """Its end; where the worker was lost on the way, what had failed until then is still there."""
    ended = replace(repro, ended=event.at, failure=event.failure, seconds=event.at - repro.at)
    if (found := event.minified) is None:
        return ended
    return replace(ended, minified=found, **picked(found, "path reproduced status printed"))


def _of_kernel(event: events.OwnerEnded, owner: KernelAttribution) -> SessionRepro:
    """The script of one launch: it reproduces where its verdict on the launch is the one found here."""
    reproduced = None if owner.status not in (0, 1) else (owner.status == 1) == (owner.kind == "compiler")
    return SessionRepro(
        event.run,
        event.at,
        "kernel",
        Sought("wrong", launch=owner.launch),
        ended=event.at,
        path=owner.script,
        reproduced=reproduced,
        status=owner.status,
        printed=owner.printed,
        failure=event.failure,
    )


def _of_strict(
    kept: list[SessionRepro],
    event: events.FrameFailed | events.RunEnded,
    failure: Failure,
    violations: Sequence[Violation],
) -> Iterator[SessionRepro]:
    """What strict rules wrote by themselves, once: the frame and the run may both tell of it. It is of the first
    violation that rejects.
    """
    if not failure.repro or any(failure.repro == repro.path for repro in kept):
        return
    frame = event.frame if isinstance(event, events.FrameFailed) else ""
    rejects = [each for each in violations if each.severity == "reject" and frame in ("", each.node.graph.frame)]
    sought = Sought("violation", rejects[0].node, rejects[0].rule) if rejects else Sought("violation")
    yield SessionRepro(event.run, event.at, "strict", sought, ended=event.at, path=failure.repro)
