"""Collect the graphs, code and links of one compiled frame.

Graph modules come from the backend as it compiles; printed graphs and code come from torch's trace (`idbg.traces`).
"""

import time
from typing import cast

from torch.fx import GraphModule

from idbg.engine.capture.fx import graph_of
from idbg.engine.capture.links import Trail
from idbg.schema.graphs import Graph, GraphId, Part, Stage
from idbg.traces.enrich import with_arguments
from idbg.traces.frame import Emit, TracedFrame
from idbg.traces.links import Pairs


class FrameCapture(TracedFrame):
    """One compiled frame; `emit` takes its events."""

    def __init__(self, frame: str, run: int, emit: Emit) -> None:
        super().__init__(frame, run, emit)
        self.trail: dict[Stage, Pairs] = {}
        self._trail: Trail | None = None
        self.current_part: Part = ""  # whose inner compile runs
        self.current_part_began = 0.0  # seconds since the epoch
        self.backward_ran: bool | None = None  # None: it was not lowered through idbg

    # Input from the backend

    def dynamo(self, gm: GraphModule) -> Graph:
        """Record Dynamo's graph; later ATen graphs are linked to it."""
        graph = graph_of(gm, GraphId(self.frame, "dynamo"), self.printed.pop("dynamo", ""))
        self._trail = Trail(graph)
        return self.captured(graph)

    def part(self, gm: GraphModule, part: Part) -> Graph:
        """Record one ATen graph, before it is compiled."""
        self.current_part, self.current_part_began = part, time.time()
        stage = cast("Stage", part)
        graph = graph_of(gm, GraphId(self.frame, stage), self.printed.pop(stage, ""))
        dynamo = self.graphs.get(GraphId(self.frame, "dynamo"))
        if dynamo is not None and self._trail is not None:
            self.trail[stage] = self._trail.pairs(gm, graph)
            graph = with_arguments(graph, dynamo, self.graphs.get(GraphId(self.frame, "forward")))
        return self.captured(graph)

    def part_done(self, part: Part) -> None:
        self.current_part = ""
        super().part_done(part)

    def backward_called(self) -> None:
        """The program has run the backward of this frame."""
        self.backward_ran = True

    def pairs_from_dynamo(self, graph: Graph) -> Pairs | None:
        return self.trail.get(graph.id.stage)
