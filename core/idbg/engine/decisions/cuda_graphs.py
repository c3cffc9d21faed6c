"""Record which graphs become CUDA graphs, which do not, and why."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from msgspec.structs import replace

from idbg.analysis.decisions.cuda_graphs import read
from idbg.engine.capture.run import RunCapture
from idbg.engine.compat.cuda_graphs import Decision, observe_cuda_graphs
from idbg.schema.decisions.inductor import CudaGraph
from idbg.schema.graphs import Part

MAX_REASONS = 500  # of a run; further ones are recorded as "other reasons"
_Key = tuple[str, CudaGraph]
"""A decision's frame, as the session names it, and the decision without its nodes and times."""


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
    _emitted: set[_Key] = field(default_factory=set)
    _times: Counter[_Key] = field(default_factory=Counter)
    _nodes: dict[_Key, dict[str, None]] = field(default_factory=dict)

    def decided(self, decision: Decision) -> None:
        """Record a decision of torch's."""
        if not decision.frame:
            return
        frame = self.capture.frame(decision.frame)
        part = decision.part or frame.current_part
        reason, file, line = read(decision.message)
        if len(self._emitted) + len(self._times) > MAX_REASONS:
            reason, file, line = "other reasons", "", 0
        key = frame.frame, CudaGraph(outcome=decision.outcome, part=part, reason=reason, file=file, line=line)
        if decision.outcome == "split":
            self._nodes.setdefault(key, {})[decision.node] = None
        elif decision.outcome == "rerecorded":
            self._times[key] += 1
        else:
            self._split(frame.frame, part)
            self._once(key)

    def _once(self, key: _Key, nodes: tuple[str, ...] = (), times: int = 1) -> None:
        if key in self._emitted:
            return
        self._emitted.add(key)
        frame, graph = key
        self.capture.decided(frame, replace(graph, nodes=nodes, times=times))

    def _split(self, frame: str, part: Part) -> None:
        """Record the ops outside of a CUDA graph: its compile is over, and all of them are known."""
        for key in [key for key in self._nodes if (key[0], key[1].part) == (frame, part)]:
            nodes = tuple(name for name in self._nodes.pop(key) if name)
            self._once(key, nodes, max(1, len(nodes)))

    def end(self) -> None:
        """Record how often graphs were recorded again."""
        for frame, graph in list(self._nodes):
            self._split(frame, graph.part)
        for key, times in self._times.items():
            self._once(key, times=times)
