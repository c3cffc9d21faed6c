"""Record which graphs become CUDA graphs, which do not, and why."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, cast

from idbg.analysis.decisions.cuda_graphs import read
from idbg.engine.capture.run import RunCapture
from idbg.engine.compat.cuda_graphs import Decision, observe_cuda_graphs
from idbg.schema import events
from idbg.schema.decisions.inductor import CudaGraph
from idbg.schema.graphs import Part

MAX_REASONS = 500  # of a run; further ones are recorded as "other reasons"


class _About(NamedTuple):
    frame: str  # the session's name of it
    part: Part
    outcome: Literal["ready", "captured", "rerecorded", "split", "skipped"]
    reason: str
    file: str
    line: int


@contextmanager
def record(capture: RunCapture) -> Iterator[None]:
    """Each decision becomes an event: at once, or at the end where it may repeat and is counted."""
    recorder = _CudaGraphs(capture)
    graphs, recordings = capture.feature("cuda graphs"), capture.feature("cuda graph recordings")
    with observe_cuda_graphs(graphs, recordings, recorder.decided):
        try:
            yield
        finally:
            graphs.safe(recorder.end)()


@dataclass
class _CudaGraphs:
    capture: RunCapture
    _emitted: set[_About] = field(default_factory=set)
    _times: dict[_About, int] = field(default_factory=dict)
    _nodes: dict[_About, dict[str, None]] = field(default_factory=dict)

    def decided(self, decision: Decision) -> None:
        """Record a decision of torch's."""
        if not decision.frame:
            return
        frame = self.capture.frame(decision.frame)
        part = cast("Part", decision.part) or frame.current_part
        reason, file, line = read(decision.message)
        if len(self._emitted) + len(self._times) > MAX_REASONS:
            reason, file, line = "other reasons", "", 0
        about = _About(frame.frame, part, decision.outcome, reason, file, line)
        if decision.outcome == "split":
            self._nodes.setdefault(about, {})[decision.node] = None
        elif decision.outcome == "rerecorded":
            self._times[about] = self._times.get(about, 0) + 1
        else:
            self._split(frame.frame, part)
            self._once(about)

    def _once(self, about: _About, nodes: tuple[str, ...] = (), times: int = 1) -> None:
        if about in self._emitted:
            return
        self._emitted.add(about)
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
        """Record the ops outside of a CUDA graph: its compile is over, and all of them are known."""
        for about in [about for about in self._nodes if (about.frame, about.part) == (frame, part)]:
            nodes = tuple(name for name in self._nodes.pop(about) if name)
            self._once(about, nodes, max(1, len(nodes)))

    def end(self) -> None:
        """Record how often graphs were recorded again."""
        for about in list(self._nodes):
            self._split(about.frame, about.part)
        for about, times in self._times.items():
            self._once(about, times=times)
