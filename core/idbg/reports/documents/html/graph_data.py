"""Collect what the page's script needs of the graphs: nodes, groups, drawings, kernels and violations.

Data is by columns, with each text once (`strings`, by number), and without what is empty. The script makes elements
only of what is looked at.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from idbg.analysis.decisions.frames import spoken
from idbg.analysis.provenance import Provenance
from idbg.constraints import Finding
from idbg.format import file_names
from idbg.format.shown import clean, short
from idbg.render.html import links
from idbg.reports.documents.html.grouped import Drawing, Group, drawings, groups
from idbg.schema.graphs import Frame, Graph, GraphId, NodeId
from idbg.schema.runs import Run
from idbg.schema.violations import problem

MOST_NODES = 50_000  # in one page: more are heavy to send and to open
MOST_OF_ONE = 200_000  # in one graph, where it is the only one
LONGEST_ARGS = 300
_PLAIN = re.compile(r"[A-Za-z0-9_.~/-]{1,120}")  # a name that is its own address

Sparse = dict[str, list[int]]  # a node's index -> numbers; JSON's keys are texts


class GroupData(msgspec.Struct, array_like=True):
    """See `grouped.Group`."""

    title: int
    kind: int
    parent: int
    first: int
    last: int
    twin: int
    items: list[int]


class PlacingData(msgspec.Struct, array_like=True):
    """Where boxes and lines stand: `boxes` are x, y, width, one after the other, `points` x, y of each line."""

    width: int
    height: int
    boxes: list[int]
    lines: tuple[tuple[int, int], ...]
    points: list[list[int]]


class DrawingData(msgspec.Struct, array_like=True):
    """See `grouped.Drawing`; `placing` is the number of one that several may have."""

    placing: int
    outside: tuple[int, ...]
    more: tuple[int, int]


class GraphData(msgspec.Struct, kw_only=True):
    """One graph. Columns have an entry for each node; `addresses`, `kernels`, `violations` for those that have some.

    `others`: graph's number -> node -> the same computation's nodes there.
    """

    key: str
    title: str
    detail: str
    names: list[str]
    addresses: dict[str, str]
    ops: list[int]
    targets: list[int]
    args: list[int]
    tensors: list[int]
    modules: list[int]
    files: list[int]
    lines: list[int]
    codes: list[int]
    roles: list[int]
    inputs: list[list[int]]
    kernels: Sparse
    violations: dict[str, list[list[int]]]
    others: dict[str, Sparse]
    groups: list[GroupData]
    drawings: list[DrawingData]


class FileData(msgspec.Struct):
    """A file of the user's: its short name, and its part of addresses."""

    short: str
    address: str


class GraphsData(msgspec.Struct):
    """The whole island. `kernels`: address and name of each."""

    strings: list[str]
    files: list[FileData]
    kernels: list[list[str]]
    placings: list[PlacingData]
    graphs: list[GraphData]


@dataclass
class Collected:
    """As many graphs as there is room for, those of the newest run first, and those that are left out."""

    data: GraphsData
    shown: list[tuple[Run, Graph]]
    left_out: list[tuple[Run, Graph]]


@dataclass
class _Texts:
    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))

    def column(self, texts: Iterable[str]) -> list[int]:
        return [self.numbers.setdefault(text, len(self.numbers)) for text in texts]


def collected(runs: Sequence[Run]) -> Collected:
    """The graphs of these runs."""
    newest_first = sorted(runs, key=lambda run: -run.number)
    shown: list[tuple[Run, Graph]] = []
    left_out: list[tuple[Run, Graph]] = []
    nodes = 0
    everything = [(run, graph) for run in newest_first for graph in run.graphs.values()]
    for run, graph in everything:
        fits = nodes + len(graph.nodes) <= (MOST_NODES if shown else MOST_OF_ONE)
        (shown if fits else left_out).append((run, graph))
        nodes += len(graph.nodes) if fits else 0
    texts, files = _Texts(), _Texts()
    texts.number("")
    data = GraphsData([], [], [], [], [])
    for run in newest_first:
        own = {graph.id: graph for of, graph in shown if of is run}
        if own:
            _RunData(run, own, data, texts, files).add()
    everyone = frozenset(files.numbers)
    data.strings = [clean(text) for text in texts.numbers]
    data.files = [
        FileData(clean(short(file_names.short(file, everyone))) if file else "", links.spelt(file))
        for file in files.numbers
    ]
    return Collected(data, shown, left_out)


class _RunData:
    """The data of one run's graphs, of those that are shown."""

    def __init__(self, run: Run, graphs: dict[GraphId, Graph], data: GraphsData, texts: _Texts, files: _Texts) -> None:
        self._run, self._graphs, self._data, self._texts, self._files = run, graphs, data, texts, files
        self._provenance = Provenance(run)
        self._first = len(data.graphs)
        self._kernels: dict[str, int] = {}
        self._placings: dict[object, int] = {}

    def add(self) -> None:
        for kernel in self._run.kernels:
            address = links.kernel(self._run.number, kernel)
            if address not in self._kernels:
                self._kernels[address] = len(self._data.kernels)
                self._data.kernels.append([address, clean(short(kernel.name))])
        self._data.graphs += [self._graph(graph) for graph in self._graphs.values()]

    def _graph(self, graph: Graph) -> GraphData:
        found = groups(graph)
        nodes, number = graph.nodes, self._texts.number
        place = {node.name: index for index, node in enumerate(nodes)}
        frame = self._run.frames.get(graph.id.frame, Frame(graph.id.frame, ""))
        names = [short(node.name) for node in nodes]
        return GraphData(
            key=links.graph_key(self._run.number, graph.id),
            title=clean(f"run {self._run.number}: {graph.id}"),
            detail=clean(f"{short(spoken(frame)) or 'a frame'}, {file_names.place(frame.file, frame.line)}")
            if frame.file
            else clean(short(spoken(frame))),
            names=[clean(name) for name in names],
            addresses={
                str(at): links.spelt(node.name) for at, node in enumerate(nodes) if not _PLAIN.fullmatch(node.name)
            },
            ops=[number(node.op) for node in nodes],
            targets=[number(short(node.target)) for node in nodes],
            args=[number(short(node.args, LONGEST_ARGS)) for node in nodes],
            tensors=[number(_tensors(node.tensors)) for node in nodes],
            modules=[
                number(short(f"{node.module} ({node.module_class})" if node.module_class else node.module))
                for node in nodes
            ],
            files=self._files.column(node.file for node in nodes),
            lines=[node.line for node in nodes],
            codes=[number(short(node.code, LONGEST_ARGS)) for node in nodes],
            roles=[number(node.role) for node in nodes],
            inputs=[[place[name] for name in dict.fromkeys(node.inputs) if name in place] for node in nodes],
            kernels=self._kernels_of(graph),
            violations=self._violations_of(graph, place),
            others=self._others(graph),
            groups=[self._group(each) for each in found],
            drawings=[self._drawing(each) for each in drawings(graph, found)],
        )

    def _kernels_of(self, graph: Graph) -> Sparse:
        kernels: Sparse = {}
        for at, node in enumerate(graph.nodes):
            uses = self._provenance.kernels_of(graph.node_id(node.name))
            if uses:
                numbers = (self._kernels[links.kernel(self._run.number, kernel)] for kernel, _ in uses)
                kernels[str(at)] = list(dict.fromkeys(numbers))
        return kernels

    def _violations_of(self, graph: Graph, place: dict[str, int]) -> dict[str, list[list[int]]]:
        violations: dict[str, list[list[int]]] = {}
        for each in self._run.violations:
            if each.node.graph == graph.id and each.node.name in place:
                words = (each.severity, each.rule, problem(each.found, each.wanted), Finding.of(each).advice)
                violations.setdefault(str(place[each.node.name]), []).append(
                    self._texts.column(short(word, 400) for word in words)
                )
        return violations

    def _others(self, graph: Graph) -> dict[str, Sparse]:
        """The nodes of other graphs of the frame that are the same computations."""
        others: dict[str, Sparse] = {}
        for number, other in enumerate(self._graphs.values(), self._first):
            if other.id == graph.id or other.id.frame != graph.id.frame:
                continue
            place = {node.name: index for index, node in enumerate(other.nodes)}
            column: Sparse = {}
            for at, node in enumerate(graph.nodes):
                same = [
                    place[each.name] for each in self._counterparts(graph, node.name, other.id) if each.name in place
                ]
                if same:
                    column[str(at)] = same
            if column:
                others[str(number)] = column
        return others

    def _counterparts(self, graph: Graph, name: str, other: GraphId) -> list[NodeId]:
        return self._provenance.counterparts(graph.node_id(name), other)

    def _group(self, group: Group) -> GroupData:
        number = self._texts.number
        title, kind, twin = (number(short(text)) for text in (group.title, group.kind, group.twin))
        return GroupData(title, kind, group.parent, group.first, group.last, twin, group.items)

    def _drawing(self, drawing: Drawing) -> DrawingData:
        same = drawing.widths, drawing.lines  # which its placing follows from
        if same not in self._placings:
            self._placings[same] = len(self._data.placings)
            self._data.placings.append(_placing(drawing))
        return DrawingData(self._placings[same], drawing.outside, drawing.more)


def _placing(drawing: Drawing) -> PlacingData:
    placed = drawing.placing
    boxes = [
        round(figure) for (x, y), width in zip(placed.boxes, drawing.widths, strict=True) for figure in (x, y, width)
    ]
    points = [[round(figure) for point in line for figure in point] for line in placed.lines]
    return PlacingData(round(placed.width), round(placed.height), boxes, drawing.lines, points)


def _tensors(tensors: Sequence[object]) -> str:
    return short(", ".join(str(tensor) for tensor in tensors))
