"""Collect the graphs, code and links of one compiled frame from the records of torch's trace."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

from idbg.analysis.extern_nodes import with_extern_nodes
from idbg.analysis.graph_text import read_graph
from idbg.analysis.output_code import part_of, read_output_code, resolved
from idbg.checking.check import ONLY_PRINTED
from idbg.schema import events
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import Graph, GraphId, Links, Part, Stage
from idbg.traces import links
from idbg.traces.enrich import symbols_of, with_modules

Emit = Callable[[SessionEvent], None]
Mapped = Mapping[str, Mapping[str, list[str]]]

PRINTED: dict[str, Stage] = {
    "dynamo_output_graph": "dynamo",
    "aot_joint_graph": "joint",
    "aot_forward_graph": "forward",
    "aot_backward_graph": "backward",
    "aot_inference_graph": "inference",
}
"""The kinds of records with a graph of a frame as text, and its stage."""
UNREADABLE = (ValueError, RecursionError, SyntaxError, MemoryError)
"""What reading a text raises; MemoryError is Python's parser's of a text that is nested too deep."""
PARTS: tuple[Part, ...] = ("forward", "inference", "backward")


@dataclass
class InductorOutput:
    """Inductor's output for one ATen graph: its post-grad form, its code, and the nodes of each kernel."""

    post_grad: str = ""
    code: str = ""
    mapping: Mapped = field(default_factory=dict)


class TracedFrame:
    """One compiled frame; `emit` takes its events. Each graph becomes an event as soon as it is complete; the joint
    graph and the links when the frame's compile ends.
    """

    is_foreign = False  # what is not read of it is missing, and not only a line of the log

    def __init__(self, frame: str, run: int, emit: Emit) -> None:
        self.frame = frame
        self.run = run
        self.emit = emit
        self.graphs: dict[GraphId, Graph] = {}
        self.printed: dict[Stage, str] = {}
        self.pieces: list[InductorOutput] = []
        self.handles: dict[str, list[str]] = {}  # Inductor's debug handles, and the post-grad nodes of each
        self.finished = False
        self.check: Callable[[Graph], None] | None = None  # checks the rules on a joint or post-grad graph

    # Input from the trace

    def graph_printed(self, kind: str, text: str) -> None:
        """Store a graph's text until its part is known; `kind` is torch's name of the record."""
        if kind == "inductor_post_grad_graph":
            self._piece("post_grad").post_grad = text
        else:
            self.printed[PRINTED[kind]] = text

    def code_written(self, text: str) -> None:
        """Store Inductor's output code of the current part."""
        self._piece("code").code = text

    def code_continued(self, text: str) -> None:
        """Append to the last output code."""
        if self.pieces:
            self.pieces[-1].code += f"\n{text}"

    def nodes_mapped(self, mapping: Mapped) -> None:
        """Store the post-grad nodes of each kernel of the current part."""
        self._piece("mapping").mapping = mapping
        self.handles.update(mapping.get("cppCodeToPost", {}))

    def _piece(self, slot: str) -> InductorOutput:
        """The current piece, or a new one if the slot is filled: fields of a piece come in any order."""
        if not self.pieces or getattr(self.pieces[-1], slot):
            self.pieces.append(InductorOutput())
        return self.pieces[-1]

    def part_done(self, part: Part) -> None:
        """The inner compile of this part is over, successful or not: its printed output belongs to it."""
        for piece in self.pieces:
            self._finish_piece(piece, part)
        self.pieces.clear()

    def finish(self) -> None:
        """The frame's compile is over, successful or not: read the remaining data and link the stages, once."""
        if self.finished:
            return
        self.finished = True
        self.flush()

    def flush(self) -> None:
        """Read the data that came so far, and link the stages."""
        for stage, text in list(self.printed.items()):
            if GraphId(self.frame, stage) not in self.graphs:
                self.read(text, GraphId(self.frame, stage), self.graphs.values())
        self.printed.clear()
        for piece in self.pieces:
            self._finish_piece(piece, part_of(piece.code) or self.part_without_name())
        self.pieces.clear()
        self._link()

    def part_without_name(self) -> Part:
        """The part of code that does not name it."""
        return ""

    def _finish_piece(self, piece: InductorOutput, part: Part) -> None:
        above = self.graphs.get(GraphId(self.frame, cast("Stage", part)))
        post_grad = GraphId(self.frame, "post_grad", part)
        graph = self.read(piece.post_grad, post_grad, [above] if above else []) if piece.post_grad else None
        if graph and above:
            self.linked(links.through_passes(above, graph))
        if piece.code:
            handles = piece.mapping.get("cppCodeToPost", {})
            try:
                code = read_output_code(piece.code, frame=self.frame, part=part, handles=handles)
                if graph:
                    dynamo = self.graphs.get(GraphId(self.frame, "dynamo"))
                    code = with_extern_nodes(resolved(code, graph), graph, dynamo)
            except UNREADABLE as error:
                self._unreadable(f"the {part} output code", error)
            else:
                self.emit(events.CodeCaptured(run=self.run, code=code))

    def read(self, text: str, graph_id: GraphId, donors: Iterable[Graph]) -> Graph | None:
        """Read a printed graph; `donors` are graphs of the frame that have more of the same nodes."""
        donors = list(donors)
        try:
            graph = self.parsed(text, graph_id, donors)
        except UNREADABLE as error:
            self._unreadable(f"the {graph_id.stage} graph", error)
            return None
        graph = self.captured(self.enriched(graph, donors))
        if self.check is not None and graph_id.stage in ONLY_PRINTED:
            self.check(graph)
        return graph

    def parsed(self, text: str, graph_id: GraphId, donors: list[Graph]) -> Graph:
        """The nodes of a printed graph. Raises ValueError for another text."""
        return read_graph(text, graph_id, symbols_of(donors))

    def enriched(self, graph: Graph, donors: list[Graph]) -> Graph:
        """The graph with what other graphs of the frame tell of its nodes."""
        return with_modules(graph, donors)

    def _unreadable(self, what: str, error: Exception) -> None:
        why = "nested too deep" if isinstance(error, RecursionError | MemoryError) else error
        text = f"{what} of frame {self.frame} could not be read ({why}); the rest of the run is complete"
        self.emit(events.Noted(level="warning", text=text, missing=self.is_foreign))

    def captured(self, graph: Graph) -> Graph:
        """Record a graph."""
        self.graphs[graph.id] = graph
        self.emit(events.GraphCaptured(run=self.run, graph=graph))
        return graph

    def linked(self, linked: Links) -> None:
        """Record links, if there are any."""
        if linked.pairs:
            self.emit(events.LinksCaptured(run=self.run, links=linked))

    def pairs_from_dynamo(self, graph: Graph) -> links.Pairs | None:
        """The pairs of Dynamo's and this graph's nodes, as they were traced; None where only text is known."""
        return None

    def _link(self) -> None:
        dynamo, joint = (self.graphs.get(GraphId(self.frame, stage)) for stage in ("dynamo", "joint"))
        to_joint: list[tuple[str, str]] = []
        for part in PARTS:
            graph = self.graphs.get(GraphId(self.frame, cast("Stage", part)))
            if graph is None:
                continue
            pairs = self.pairs_from_dynamo(graph)
            if pairs is None and dynamo is not None:
                pairs = links.by_line(dynamo, graph).pairs
            if joint is not None:
                self.linked(links.same_names(joint, graph))
                to_joint += [pair for pair in pairs or () if pair[1] in joint.by_name]
            if dynamo is not None:  # also with a joint graph, which lacks the nodes that passes create
                self.linked(Links(dynamo.id, graph.id, pairs or ()))
        if dynamo is not None and joint is not None:
            self.linked(Links(dynamo.id, joint.id, tuple(dict.fromkeys(to_joint))))
