"""Collect the graphs, code and links of one compiled frame.

Graph modules come from the backend as it compiles; printed graphs and code come from torch's trace. Each graph becomes
an event as soon as it is complete; the joint graph and the links when the frame's compile ends.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

import msgspec
from torch.fx import GraphModule

from idbg.analysis.graph_text import read_graph
from idbg.analysis.output_code import part_of, read_output_code, resolved
from idbg.checking.check import ONLY_PRINTED
from idbg.engine.capture import links
from idbg.engine.capture.fx import graph_of, symbols_of, with_weights
from idbg.schema import events
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import Graph, GraphId, Links, Node, Opcode, Part, Stage

Emit = Callable[[SessionEvent], None]
Mapped = Mapping[str, Mapping[str, list[str]]]

_PRINTED: dict[str, Stage] = {
    "dynamo_output_graph": "dynamo",
    "aot_joint_graph": "joint",
    "aot_forward_graph": "forward",
    "aot_backward_graph": "backward",
    "aot_inference_graph": "inference",
}
_PARTS: tuple[Part, ...] = ("forward", "inference", "backward")


@dataclass
class InductorOutput:
    """Inductor's output for one ATen graph: its post-grad form, its code, and the nodes of each kernel."""

    post_grad: str = ""
    code: str = ""
    mapping: Mapped = field(default_factory=dict)


class FrameCapture:
    """One compiled frame; `emit` takes its events."""

    def __init__(self, frame: str, run: int, emit: Emit) -> None:
        self.frame = frame
        self.run = run
        self.emit = emit
        self.graphs: dict[GraphId, Graph] = {}
        self.printed: dict[Stage, str] = {}
        self.pieces: list[InductorOutput] = []
        self.trail: dict[Stage, links.Pairs] = {}
        self.handles: dict[str, list[str]] = {}  # Inductor's debug handles, and the post-grad nodes of each
        self._trail: links.Trail | None = None
        self.finished = False
        self.current_part: Part = ""  # whose inner compile runs
        self.current_part_began = 0.0  # seconds since the epoch
        self.check: Callable[[Graph], None] | None = None  # checks the rules on a joint or post-grad graph
        self.backward_ran: bool | None = None  # None: it was not lowered through idbg

    # Input from the trace

    def graph_printed(self, kind: str, text: str) -> None:
        """Store a graph's text until its part is known; `kind` is torch's name of the record."""
        if kind == "inductor_post_grad_graph":
            self._piece("post_grad").post_grad = text
        else:
            self.printed[_PRINTED[kind]] = text

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

    # Input from the backend

    def dynamo(self, gm: GraphModule) -> Graph:
        """Record Dynamo's graph; later ATen graphs are linked to it."""
        graph = graph_of(gm, GraphId(self.frame, "dynamo"), self.printed.pop("dynamo", ""))
        self._trail = links.Trail(graph)
        return self._captured(graph)

    def part(self, gm: GraphModule, part: Part) -> Graph:
        """Record one ATen graph, before it is compiled."""
        self.current_part, self.current_part_began = part, time.time()
        stage = cast("Stage", part)
        graph = graph_of(gm, GraphId(self.frame, stage), self.printed.pop(stage, ""))
        dynamo = self.graphs.get(GraphId(self.frame, "dynamo"))
        if dynamo is not None and self._trail is not None:
            self.trail[stage] = self._trail.pairs(gm, graph)
            graph = _with_arguments(graph, dynamo, self.graphs.get(GraphId(self.frame, "forward")))
        return self._captured(graph)

    def part_done(self, part: Part) -> None:
        """The inner compile of this part is over, successful or not: its printed output belongs to it."""
        self.current_part = ""
        for piece in self.pieces:
            self._finish_piece(piece, part)
        self.pieces.clear()

    def backward_called(self) -> None:
        """The program has run the backward of this frame."""
        self.backward_ran = True

    def finish(self) -> None:
        """The frame's compile is over, successful or not: read the remaining data and link the stages, once."""
        if self.finished:
            return
        self.finished = True
        for stage, text in list(self.printed.items()):
            if GraphId(self.frame, stage) not in self.graphs:
                self._read(text, GraphId(self.frame, stage), self.graphs.values())
        self.printed.clear()
        for piece in self.pieces:
            self._finish_piece(piece, part_of(piece.code))
        self.pieces.clear()
        self._link()

    def _finish_piece(self, piece: InductorOutput, part: Part) -> None:
        above = self.graphs.get(GraphId(self.frame, cast("Stage", part)))
        post_grad = GraphId(self.frame, "post_grad", part)
        graph = self._read(piece.post_grad, post_grad, [above] if above else []) if piece.post_grad else None
        if graph and above:
            self._linked(links.through_passes(above, graph))
        if piece.code:
            handles = piece.mapping.get("cppCodeToPost", {})
            try:
                code = read_output_code(piece.code, frame=self.frame, part=part, handles=handles)
            except ValueError as error:
                self._unreadable(f"the {part} output code", error)
            else:
                self.emit(events.CodeCaptured(run=self.run, code=resolved(code, graph) if graph else code))

    def _read(self, text: str, graph_id: GraphId, donors: Iterable[Graph]) -> Graph | None:
        donors = list(donors)
        try:
            graph = read_graph(text, graph_id, symbols_of(donors))
        except ValueError as error:
            self._unreadable(f"the {graph_id.stage} graph", error)
            return None
        graph = self._captured(_with_modules(graph, donors))
        if self.check is not None and graph_id.stage in ONLY_PRINTED:
            self.check(graph)
        return graph

    def _unreadable(self, what: str, error: ValueError) -> None:
        text = f"{what} of frame {self.frame} could not be read ({error}); the rest of the run is complete"
        self.emit(events.Noted(level="warning", text=text))

    def _captured(self, graph: Graph) -> Graph:
        self.graphs[graph.id] = graph
        self.emit(events.GraphCaptured(run=self.run, graph=graph))
        return graph

    def _linked(self, linked: Links) -> None:
        if linked.pairs:
            self.emit(events.LinksCaptured(run=self.run, links=linked))

    def _link(self) -> None:
        dynamo, joint = (self.graphs.get(GraphId(self.frame, stage)) for stage in ("dynamo", "joint"))
        to_joint: list[tuple[str, str]] = []
        for part in _PARTS:
            graph = self.graphs.get(GraphId(self.frame, cast("Stage", part)))
            if graph is None:
                continue
            pairs = self.trail.get(graph.id.stage)
            if pairs is None and dynamo is not None:
                pairs = links.by_line(dynamo, graph).pairs
            if joint is not None:
                self._linked(links.same_names(joint, graph))
                to_joint += [pair for pair in pairs or () if pair[1] in joint.by_name]
            if dynamo is not None:  # also with a joint graph, which lacks the nodes that passes create
                self._linked(Links(dynamo.id, graph.id, pairs or ()))
        if dynamo is not None and joint is not None:
            self._linked(Links(dynamo.id, joint.id, tuple(dict.fromkeys(to_joint))))


def _with_arguments(graph: Graph, dynamo: Graph, forward: Graph | None) -> Graph:
    """Copy the roles and modules of Dynamo's arguments to those of an ATen graph."""
    if graph.id.stage == "backward":
        known = {node.name: node for node in forward.nodes} if forward else {}
    else:
        known = {below: dynamo.by_name[above] for above, below in links.arguments(dynamo, graph)}

    def with_role(node: Node) -> Node:
        source = known.get(node.name)
        is_held = node.op == "get_attr" and source is not None
        if (node.op != "placeholder" and not is_held) or node.role == "tangent":
            return node
        if source is None or (source.op != "placeholder" and source.role not in ("weight", "buffer")):
            return msgspec.structs.replace(node, role="saved" if graph.id.stage == "backward" else node.role)
        return msgspec.structs.replace(node, role=source.role, module=source.module, module_class=source.module_class)

    return with_weights(Graph(graph.id, tuple(with_role(node) for node in graph.nodes), graph.code))


def _with_modules(graph: Graph, donors: Iterable[Graph]) -> Graph:
    """A printed graph has no modules, roles and memory: copy them, and the tensors of tuples, from nodes of the same
    name and target; or the module from other nodes of the same line of the program.
    """
    donors = list(donors)
    known = _known(donor for donor in donors if donor.id.stage != "dynamo")
    modules: dict[tuple[str, int], set[tuple[str, str]]] = {}
    for donor in donors:
        for node in donor.nodes:
            modules.setdefault((node.file, node.line), set()).add((node.module, node.module_class))
    unchanged: set[str] = set()  # names of nodes whose memory, and that of their inputs, is the donor's

    def enriched(node: Node) -> Node:
        donor = known.get((node.name, node.op))
        if donor is None:
            at_line = modules.get((node.file, node.line), set()) if node.line else set()
            if len(at_line) != 1:
                return node
            module, module_class = next(iter(at_line))
            return msgspec.structs.replace(node, module=module, module_class=module_class)
        node = msgspec.structs.replace(node, module=donor.module, module_class=donor.module_class, role=donor.role)
        if donor.target != node.target:
            return node
        if len(donor.tensors) > len(node.tensors):
            node = msgspec.structs.replace(node, tensors=donor.tensors)
        if (
            donor.inputs == node.inputs
            and unchanged.issuperset(node.inputs)
            and len(donor.tensors) == len(node.tensors)
        ):
            unchanged.add(node.name)
            node = msgspec.structs.replace(node, storages=donor.storages, storage_bytes=donor.storage_bytes)
        return msgspec.structs.replace(node, unknown=node.unknown and donor.unknown)

    return Graph(graph.id, tuple(enriched(node) for node in graph.nodes), graph.code)


def _known(donors: Iterable[Graph]) -> dict[tuple[str, Opcode], Node]:
    """These graphs' nodes by name and opcode. Memory is numbered over all graphs: what one graph passes to the next has
    one number.
    """
    known: dict[tuple[str, Opcode], Node] = {}
    number_of: dict[str, tuple[int, ...]] = {}
    count = 0
    for donor in donors:
        numbers: dict[int, int] = {}
        for node in donor.nodes:
            for old, new in zip(node.storages, number_of.get(node.name, ()), strict=False):
                numbers.setdefault(old, new)
            for old in node.storages:
                if old not in numbers:
                    numbers[old], count = count, count + 1
            storages = tuple(numbers[old] for old in node.storages)
            number_of.setdefault(node.name, storages)
            known.setdefault((node.name, node.op), msgspec.structs.replace(node, storages=storages))
    return known
