"""Collect the graphs, code and links of one compiled frame.

Graph modules come from the backend as it compiles; printed graphs and code come from torch's trace (`idbg.traces`).
"""

import time
from collections import defaultdict
from collections.abc import Iterator
from typing import cast

from torch.fx import GraphModule
from torch.fx import Node as FxNode

from idbg.engine.capture.fx import graph_of
from idbg.engine.compat import fx
from idbg.schema.graphs import Graph, GraphId, Node, Part, Stage
from idbg.traces.enrich import with_arguments
from idbg.traces.frame import Emit, TracedFrame
from idbg.traces.links import Pairs, arguments

Code = tuple[str, str, int]
"""A code object by its name, file and first line: after a reset what follows a graph break is a new object."""


class Trail:
    """Find the Dynamo nodes from which ATen nodes were traced, for the graphs of one frame.

    A forward node has torch's `from_node`. A backward node often has none: it shares a sequence number with the
    forward nodes that it differentiates, and those of the same line of the program are its origin.
    """

    def __init__(self, dynamo: Graph) -> None:
        self.dynamo = dynamo
        self.of_sequence: defaultdict[int, set[str]] = defaultdict(set)

    def pairs(self, gm: GraphModule, graph: Graph) -> Pairs:
        """(Dynamo name, ATen name) for each node of an ATen graph; call it for the forward before the backward."""
        of_arguments = [*arguments(self.dynamo, graph)] if graph.id.stage != "backward" else []
        return (*of_arguments, *self._pairs(gm, graph, "", ""))

    def _pairs(self, gm: GraphModule, graph: Graph, above: str, below: str) -> Iterator[tuple[str, str]]:
        """The pairs of one graph module. Inside of another node, such as torch.cond, names have its prefix: `above` in
        Dynamo's graph, `below` in this one.
        """
        for node in gm.graph.nodes:
            if node.op in ("placeholder", "output"):
                continue
            sequence = node.meta.get("seq_nr")
            origins = {above + name for name in fx.origins(node)} & self.dynamo.by_name.keys()
            if origins and sequence is not None:
                self.of_sequence[sequence] |= origins
            elif sequence is not None:
                origins = set(self._same_line(self.of_sequence[sequence], above, graph.by_name[below + node.name]))
            yield from ((origin, below + node.name) for origin in sorted(origins))
            holders = [source for source in node.all_input_nodes if fx.inner_graph(gm, source) is not None]
            for origin in sorted(origins) if holders else ():
                yield from self._held_pairs(gm, graph, origin, holders, below)

    def _held_pairs(
        self, gm: GraphModule, graph: Graph, origin: str, holders: list[FxNode], below: str
    ) -> Iterator[tuple[str, str]]:
        """A higher-order op gets its graphs in the same order on both stages."""
        known = {name.rpartition(".")[0] for name in self.dynamo.by_name}
        above = [name for name in self.dynamo.by_name[origin].inputs if name in known]
        if len(above) != len(holders):
            return
        for holder, name in zip(holders, above, strict=True):
            if (inner := fx.inner_graph(gm, holder)) is not None:
                yield from self._pairs(inner, graph, f"{name}.", f"{below}{holder.name}.")

    def _same_line(self, names: set[str], above: str, node: Node) -> Iterator[str]:
        """A branch has its own sequence numbers: only nodes of the same graph match."""
        for name in names:
            if not name.startswith(above) or "." in name.removeprefix(above):
                continue
            if (self.dynamo.by_name[name].file, self.dynamo.by_name[name].line) == (node.file, node.line):
                yield name


class FrameCapture(TracedFrame):
    """One compiled frame; `emit` takes its events."""

    def __init__(self, frame: str, run: int, emit: Emit) -> None:
        super().__init__(frame, run, emit)
        self.trail: dict[Stage, Pairs] = {}
        self.code: Code | None = None  # that Dynamo compiles
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
