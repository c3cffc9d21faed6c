"""Which calls became CUDA graphs, which did not, and why?"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, cast

from idbg.analysis.decisions.cuda_graphs import read
from idbg.engine.capture.run import RunCapture
from idbg.engine.compat.cuda_graphs import Said, cuda_graphs_told
from idbg.engine.decisions.hearing import harmless
from idbg.schema import events
from idbg.schema.decisions.caches import CudaGraph
from idbg.schema.graphs import Part

MOST_REASONS = 500  # of a run; what is beyond is told as "other reasons"


class _About(NamedTuple):
    frame: str  # the session's name of it
    part: Part
    outcome: Literal["ready", "captured", "rerecorded", "split", "skipped"]
    reason: str
    file: str
    line: int


@contextmanager
def heard(capture: RunCapture) -> Iterator[None]:
    """Each decision becomes an event: at once, but for what may still be said again, which is counted."""
    hearing = _CudaGraphs(capture)
    safely = harmless(capture, "what became of the CUDA graphs")
    with cuda_graphs_told(hearing.said, safely):
        try:
            yield
        finally:
            safely(hearing.end)()


@dataclass
class _CudaGraphs:
    capture: RunCapture
    _told: set[_About] = field(default_factory=set)
    _times: dict[_About, int] = field(default_factory=dict)
    _nodes: dict[_About, dict[str, None]] = field(default_factory=dict)

    def said(self, said: Said) -> None:
        """Torch decided something."""
        if not said.frame:
            return
        frame = self.capture.frame(said.frame)
        part = cast("Part", said.part) or frame.part_in_hand
        reason, file, line = read(said.message)
        if len(self._told) + len(self._times) > MOST_REASONS:
            reason, file, line = "other reasons", "", 0
        about = _About(frame.frame, part, said.outcome, reason, file, line)
        if said.outcome == "split":
            self._nodes.setdefault(about, {})[said.node] = None
        elif said.outcome == "rerecorded":
            self._times[about] = self._times.get(about, 0) + 1
        else:
            self._split(frame.frame, part)
            self._once(about)

    def _once(self, about: _About, nodes: tuple[str, ...] = (), times: int = 1) -> None:
        if about in self._told:
            return
        self._told.add(about)
        graph = CudaGraph(
            outcome=about.outcome,
            part=about.part,
            reason=about.reason,
            file=about.file,
            line=about.line,
            nodes=nodes,
            times=times,
        )
        self.capture.emit(events.CudaGraphDecided(run=self.capture.run, frame=about.frame, graph=graph))

    def _split(self, frame: str, part: Part) -> None:
        """The graph that these ops are left out of is compiled: all of them are known."""
        for about in [about for about in self._nodes if (about.frame, about.part) == (frame, part)]:
            nodes = tuple(name for name in self._nodes.pop(about) if name)
            self._once(about, nodes, max(1, len(nodes)))

    def end(self) -> None:
        """Tell how often what was recorded was recorded again."""
        for about in list(self._nodes):
            self._split(about.frame, about.part)
        for about, times in self._times.items():
            self._once(about, times=times)
