"""Record the candidates that torch measures, their times, and which one it chooses."""

from contextlib import AbstractContextManager

from msgspec.structs import replace

from idbg.engine.capture.run import RunCapture
from idbg.engine.compat.autotuning import observe_autotuning
from idbg.schema.decisions.inductor import Autotuned
from idbg.schema.graphs import Part

MAX_CHOICES = 200  # of one op; the slowest are dropped
_PARTS: tuple[Part, ...] = ("forward", "inference")


def record(capture: RunCapture) -> AbstractContextManager[None]:
    """Each choice that torch makes by measuring becomes an event."""

    def done(compile_id: str, tuned: Autotuned) -> None:
        if not compile_id:
            return  # torch measures kernels of its own too
        frame = capture.frame(compile_id)
        stages = {graph.stage for graph in frame.graphs}
        part = tuned.part or next((part for part in _PARTS if part in stages), "")
        dropped = max(0, len(tuned.choices) - MAX_CHOICES)
        tuned = replace(tuned, part=part, choices=tuned.choices[:MAX_CHOICES], dropped=dropped)
        capture.decided(frame.frame, tuned)

    return observe_autotuning(capture.feature("autotuning"), done)
