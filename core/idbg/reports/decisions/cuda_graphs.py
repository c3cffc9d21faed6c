"""Which calls became CUDA graphs, which did not, and why, at which line?"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec import to_builtins

from idbg.analysis.decisions.cuda_graphs import meaning, ways_out
from idbg.format.amounts import counted
from idbg.format.file_names import near_place
from idbg.reports.decisions.cache import place_of
from idbg.schema.decisions.caches import CudaGraph
from idbg.schema.decisions.decision import Decision
from idbg.schema.graphs import GraphId, NodeId, Part
from idbg.schema.runs import Run

NOTHING = (
    "no CUDA graph was asked for (mode reduce-overhead, or the option triton.cudagraphs), "
    "or nothing was lowered by Inductor"
)


class Row(NamedTuple):
    """One decision: of which frame and part, what became of it, why and where, and what to do."""

    frame: str
    part: Part
    words: str
    why: str
    file: str
    line: int
    to_do: str
    graph: CudaGraph


def rows(run: Run) -> list[Row]:
    """What became of each graph, the last word on it alone: what was recorded, or was not, is no more ready."""
    return [
        Row(frame, each.part, _words(each), why(run, frame, each), each.file, each.line, ways_out(each.reason), each)
        for frame, graphs in run.decided.cuda_graphs.items()
        for each in graphs
        if each.outcome != "ready" or not _was_decided(graphs, each.part)
    ]


def _was_decided(graphs: list[CudaGraph], part: Part) -> bool:
    return any(graph.part == part and graph.outcome in ("captured", "skipped") for graph in graphs)


def _words(graph: CudaGraph) -> str:
    match graph.outcome:
        case "ready":
            return "ready to be recorded at its second call, as torch warms up first: it was called once"
        case "captured":
            return "recorded" if graph.times == 1 else f"recorded {counted(graph.times, 'time')}"
        case "rerecorded":
            return f"recorded again, {counted(graph.times, 'time')}"
        case "split":
            return f"{counted(len(graph.nodes) or graph.times, 'op')} left out of it"
        case "skipped":
            return "no CUDA graph"


def why(run: Run, frame: str, graph: CudaGraph) -> str:
    """The reason in plain words, and torch's own where those are others; what is not known, and how to know it."""
    if graph.reason == "no op of it can be in one" and not _split(run, frame, graph.part):
        found = "the graph was found in the FX graph cache"
        return f"no op of it can be in one; which, and why, is not known, as {found}: compile it with that off"
    words = meaning(graph.reason)
    return words if words == graph.reason or not graph.reason else f"{words} (torch: {graph.reason})"


def _split(run: Run, frame: str, part: Part) -> bool:
    return any(graph.part == part and graph.outcome == "split" for graph in run.decided.cuda_graphs.get(frame, ()))


def text(run: Run) -> Iterable[str]:
    """Each graph, what became of it, and why."""
    every = rows(run)
    if not every:
        yield NOTHING
    for frame, part in dict.fromkeys((row.frame, row.part) for row in every):
        yield place_of(run, frame, part)
        for row in every:
            if (row.frame, row.part) == (frame, part):
                yield from _lines(row)


def _lines(row: Row) -> Iterator[str]:
    place = f"   {near_place(row.file, row.line)}" if row.file else ""
    nodes = f" ({', '.join(row.graph.nodes[:4])}{', …' if len(row.graph.nodes) > 4 else ''})" if row.graph.nodes else ""
    yield f"  {row.words}{nodes}{f': {row.why}' if row.why else ''}{place}"
    if row.to_do:
        yield f"    {row.to_do}"


def as_json(run: Run) -> object:
    """Each decision, whole, with its sentence."""
    return [
        {"frame": row.frame, **to_builtins(row.graph), "words": row.words, "why": row.why, "to_do": row.to_do}
        for row in rows(run)
    ]


def about(run: Run) -> Iterable[Decision]:
    """Each, at its line and nodes; what is said of a whole graph, of all its kernels."""
    for row in rows(run):
        graph = GraphId(row.frame, "post_grad", row.part)
        of_all = not row.file and not row.graph.nodes
        kernels = [kernel for kernel in run.kernels if (kernel.frame, kernel.part) == (row.frame, row.part)]
        yield Decision(
            kind="cuda graph",
            words=f"CUDA graph: {row.words}",
            why=". ".join(each for each in (row.why, row.to_do) if each),
            frame=row.frame,
            file=row.file,
            line=row.line,
            nodes=tuple(NodeId(graph, name) for name in row.graph.nodes),
            kernels=tuple((kernel.frame, kernel.name) for kernel in kernels) if of_all else (),
        )
