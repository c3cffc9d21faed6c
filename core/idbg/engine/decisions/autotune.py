"""Record the candidates that torch measures, their times, and which one it chooses."""

from contextlib import AbstractContextManager
from typing import cast

from idbg.engine.capture.run import RunCapture
from idbg.engine.compat.autotuning import Tuned, observe_autotuning
from idbg.schema import events
from idbg.schema.decisions.inductor import Autotuned, Choice
from idbg.schema.graphs import Part

MAX_CHOICES = 200  # of one op; the slowest are dropped
_PARTS: tuple[Part, ...] = ("forward", "inference")


def record(capture: RunCapture) -> AbstractContextManager[None]:
    """Each choice that torch makes by measuring becomes an event."""

    def done(tuned: Tuned) -> None:
        if not tuned.frame:
            return  # torch measures kernels of its own too
        frame = capture.frame(tuned.frame)
        stages = {graph.stage for graph in frame.graphs}
        part = tuned.part or next((part for part in _PARTS if part in stages), "")
        choices = tuple(Choice(each.name, each.seconds, each.about, each.error) for each in tuned.candidates)
        event = Autotuned(
            op=tuned.op,
            part=cast("Part", part),
            choices=choices[:MAX_CHOICES],
            dropped=max(0, len(choices) - MAX_CHOICES),
            chosen=tuned.chosen,
            kernel=tuned.kernel,
            nodes=(tuned.node,) if tuned.node else (),
            inputs=tuned.inputs,
            seconds=tuned.seconds,
            cached=tuned.cached,
        )
        capture.emit(events.Autotuning(run=capture.run, frame=frame.frame, tuned=event))

    return observe_autotuning(capture.feature("autotuning"), done)
