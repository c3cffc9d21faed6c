"""Show what the compiler wrote: each kernel with its source, its launches, and the nodes and lines it computes."""

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from idbg.analysis.provenance import Provenance
from idbg.format.kernels import language_of, resource_words
from idbg.format.shown import short
from idbg.render import html
from idbg.render.html import links
from idbg.render.html.code import Listing, listings
from idbg.render.html.templating import fill
from idbg.reports.documents import SessionData
from idbg.schema.code import Kernel, Lowered
from idbg.schema.graphs import NodeId
from idbg.schema.runs import Run
from idbg.views import kernel_edits

TITLE = "Kernels"
ANCHOR = "kernels"
MOST_NODES = 24  # named beside a kernel; the graph shows all


@dataclass(frozen=True)
class KernelEntry:
    """A kernel with what it belongs to. `same_as`: the address of one before it with the same source."""

    kernel: Kernel
    address: str
    language: str
    nodes: list[NodeId]
    lines: list[tuple[str, int]]
    lowered: Lowered | None
    resources: str
    same_as: str


def section(session: SessionData) -> Markup | None:
    """The kernels of each run, in the order in which their code came; each source is shown once."""
    runs = [run for run in session.history.runs.values() if run.kernels]
    if not runs:
        return None
    sources: dict[str, str] = {}
    return fill(
        "kernels.html",
        runs=[(run, _of(run, sources), _edits(run)) for run in runs],
        most=MOST_NODES,
        wrappers=listings(_wrappers(runs)),
    )


def _edits(run: Run) -> Markup:
    """The edited versions of its kernels."""
    return html.section(kernel_edits.view(run), run, "version") if run.edits else Markup()


def _wrappers(runs: list[Run]) -> Iterator[Listing]:
    """The code around the kernels, that launches them."""
    for run in runs:
        for code in run.codes.values():
            yield Listing(f"run {run.number}: the wrapper of {code.frame} {code.part}".rstrip(), code.text)


def _of(run: Run, sources: dict[str, str]) -> list[KernelEntry]:
    provenance = Provenance(run)
    entries: dict[str, KernelEntry] = {}
    for kernel in run.kernels:
        address = links.kernel(run.number, kernel)
        if address in entries:  # of a damaged log: one frame has a kernel of a name once
            continue
        nodes = provenance.nodes_of(kernel)
        lowered = run.lowered.get((kernel.frame, kernel.part, kernel.name))
        same = sources.setdefault(kernel.source, address) if kernel.source else address
        entries[address] = KernelEntry(
            kernel=kernel,
            address=address,
            language=short(language_of(kernel), 40),
            nodes=nodes,
            lines=_lines(run, nodes),
            lowered=lowered,
            resources=" · ".join(resource_words(lowered.resources)) if lowered else "",
            same_as="" if same == address else same,
        )
    return list(entries.values())


def _lines(run: Run, nodes: list[NodeId]) -> list[tuple[str, int]]:
    """The user's lines that the nodes come from, each once."""
    found = (run.graphs[each.graph].by_name.get(each.name) for each in nodes if each.graph in run.graphs)
    return list(dict.fromkeys((node.file, node.line) for node in found if node is not None and node.file))
