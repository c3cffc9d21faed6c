"""Draw where the time of a compile went, as a flame graph."""

from collections.abc import Sequence

from markupsafe import Markup

from idbg.analysis.decisions import times
from idbg.analysis.decisions.times import Timing
from idbg.format.amounts import seconds, share
from idbg.reports.drawings.flame import FlameBox, flame
from idbg.schema.runs import Run
from idbg.views.earlier_times import USES
from idbg.views.time import color, span_words

CELLS = 1000
"""Of the width: what takes less than one has a box where one is free."""


def compile_flame(run: Run, timings: Sequence[Timing]) -> Markup | None:
    """The spans of a run as boxes in one another, what went on beside below them; None of a run that has none."""
    boxes = times.layout(timings, CELLS)
    if not boxes:
        return None
    begin = min(timing.span.began for timing in timings)
    whole = max(timing.span.began + timing.seconds for timing in timings) - begin
    uses = {timing.span.id: use for timing, use in zip(timings, times.uses(timings), strict=True)}
    drawn = []
    for box in boxes:
        timing = box.timing
        frame = run.frames.get(timing.span.frame)
        words = span_words(timing.span, frame)
        part = f", {share(timing.seconds / whole)}" if whole else ""
        beside = ", beside the thread that compiles" if timing.beside else ""
        open_words = ", not ended" if timing.lasts else ""
        use = uses[timing.span.id]
        tip = f"{words}: {seconds(timing.seconds)}{part}{beside}{open_words}\n{USES[use]}"
        name = f"{timing.span.name} {timing.span.what}".rstrip()
        drawn.append(FlameBox(box.row, box.start, box.length, name, tip, color(use)))
    return flame(drawn, CELLS, whole, title="Where the time of the compile went")
