"""Show the user's lines with the nodes and kernels that come from each, and what is wrong with it."""

from dataclasses import dataclass, field

from markupsafe import Markup

from idbg.analysis.provenance import Provenance
from idbg.format.file_names import short
from idbg.render.html import links
from idbg.render.html.templating import fill
from idbg.reports.documents import SessionData
from idbg.schema.code import Kernel
from idbg.schema.graphs import NodeId
from idbg.schema.runs import Run
from idbg.views.diagnostics import Diagnostic, diagnostics

TITLE = "Your source"
ANCHOR = "source"
MOST = 6  # nodes, kernels and findings that are named beside a line
LINES_AT_ONCE = 150  # of a file that is shown unfolded
Place = tuple[str, int]


@dataclass
class Line:
    """A line of which something is known. `code` is empty where torch gave only its number."""

    number: int
    address: str
    code: str = ""
    run: Run | None = None  # the last that has nodes of it, which are these
    nodes: list[NodeId] = field(default_factory=list)
    kernels: dict[str, Kernel] = field(default_factory=dict)
    found: dict[str, Diagnostic] = field(default_factory=dict)

    @property
    def named(self) -> list[NodeId]:
        """One node of each name: the graphs of a frame have many of the same, and inputs say least."""
        return sorted({node.name: node for node in reversed(self.nodes)}.values(), key=self._says_least)

    def _says_least(self, node: NodeId) -> bool:
        graph = self.run.graphs.get(node.graph) if self.run else None
        return graph is not None and graph.by_name[node.name].op == "placeholder"

    @property
    def graphs(self) -> int:
        """In how many graphs it has nodes."""
        return len({node.graph for node in self.nodes})


@dataclass
class File:
    """A file with its lines, in order."""

    path: str
    name: str
    lines: list[Line]
    own: bool


def section(session: SessionData) -> Markup | None:
    """The files of the program first, then those of installed packages."""
    lines: dict[Place, Line] = {}
    for run in session.history.runs.values():
        _nodes(run, lines)
        for each in diagnostics(run):
            if each.file and each.line:
                _line(lines, (each.file, each.line)).found.setdefault(each.key, each)
    if not lines:
        return None
    return fill("source.html", files=_files(lines), most=MOST, at_once=LINES_AT_ONCE)


def _line(lines: dict[Place, Line], place: Place) -> Line:
    if place not in lines:
        lines[place] = Line(place[1], links.line(*place))
    return lines[place]


def _nodes(run: Run, lines: dict[Place, Line]) -> None:
    provenance = Provenance(run)
    for graph in run.graphs.values():
        for node in graph.nodes:
            if not node.file:
                continue
            line = _line(lines, (node.file, node.line))
            if line.run is not run:
                line.run, line.nodes, line.kernels = run, [], {}
            line.code = line.code or node.code
            node_id = graph.node_id(node.name)
            line.nodes.append(node_id)
            for kernel, _ in provenance.kernels_of(node_id):
                line.kernels.setdefault(links.kernel(run.number, kernel), kernel)


def _files(lines: dict[Place, Line]) -> list[File]:
    by_file: dict[str, list[Line]] = {}
    for (file, _), line in sorted(lines.items()):
        by_file.setdefault(file, []).append(line)
    everyone = frozenset(by_file)
    files = [
        File(path, short(path, everyone), of, own="site-packages" not in path and "dist-packages" not in path)
        for path, of in by_file.items()
    ]
    return sorted(files, key=lambda file: not file.own)
