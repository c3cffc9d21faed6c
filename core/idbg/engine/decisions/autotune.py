"""Which candidates did torch measure, how long does each take, and which did it choose?"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from idbg.engine.capture.run import RunCapture
from idbg.engine.compat.autotuning import Tuned, tuning_told
from idbg.engine.decisions.hearing import harmless
from idbg.schema import events
from idbg.schema.decisions.caches import Autotuned, Choice
from idbg.schema.graphs import Part

MOST_CHOICES = 200  # of one op; the slowest are left out
_PARTS: tuple[Part, ...] = ("forward", "inference")


@contextmanager
def heard(capture: RunCapture) -> Iterator[None]:
    """Each choice that torch makes by measuring becomes an event."""

    def told(tuned: Tuned) -> None:
        if not tuned.frame:
            return  # of no frame: torch measures kernels of its own too
        frame = capture.frame(tuned.frame)
        stages = {graph.stage for graph in frame.graphs}
        part = tuned.part or next((part for part in _PARTS if part in stages), "")
        choices = tuple(Choice(each.name, each.seconds, each.about, each.error) for each in tuned.candidates)
        record = Autotuned(
            op=tuned.op,
            part=cast("Part", part),
            choices=choices[:MOST_CHOICES],
            dropped=max(0, len(choices) - MOST_CHOICES),
            chosen=tuned.chosen,
            kernel=tuned.kernel,
            nodes=(tuned.node,) if tuned.node else (),
            inputs=tuned.inputs,
            seconds=tuned.seconds,
            cached=tuned.cached,
        )
        capture.emit(events.Autotuning(run=capture.run, frame=frame.frame, tuned=record))

    with tuning_told(told, harmless(capture, "the choices of autotuning")):
        yield
