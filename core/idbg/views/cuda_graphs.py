"""Show which calls became CUDA graphs, and of the others why not, at which line."""

from idbg.analysis.decisions.cuda_graphs import meaning, ways_out
from idbg.format.amounts import counted
from idbg.format.glyphs import MARKS, SEVERITY_SIGNS, VERDICT_SIGNS
from idbg.schema.decisions.inductor import CudaGraph
from idbg.schema.graphs import Part
from idbg.schema.runs import Run
from idbg.views.advice import MAY
from idbg.views.frame_graphs import nodes_of
from idbg.views.tree import NO_OPTIONS, Options, Place, Refs, Row, Section, Tone, words

TITLE = "CUDA graphs"
NOTHING = (
    "no CUDA graphs: neither mode reduce-overhead nor the option triton.cudagraphs is on, or Inductor lowered nothing"
)
_LOOKS: dict[str, tuple[str, Tone]] = {
    "captured": (VERDICT_SIGNS["clean"], "clean"),
    "ready": (VERDICT_SIGNS["waiting"], "dim"),
    "rerecorded": (SEVERITY_SIGNS["fallback"], "fallback"),
    "split": (SEVERITY_SIGNS["fallback"], "fallback"),
    "skipped": (VERDICT_SIGNS["failed"], "reject"),
}
_NODES = 4  # named in a row


def outcomes(run: Run) -> list[tuple[str, CudaGraph]]:
    """The last outcome of each graph, with its frame: one that was recorded or skipped is no longer ready."""
    by_frame = run.decided.of(CudaGraph)
    every = run.decided.with_frames(CudaGraph)
    return [each for each in every if each[1].outcome != "ready" or not _was_decided(by_frame[each[0]], each[1].part)]


def _was_decided(graphs: list[CudaGraph], part: Part) -> bool:
    return any(graph.part == part and graph.outcome in ("captured", "skipped") for graph in graphs)


def sentence(graph: CudaGraph) -> str:
    """What became of it."""
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
    return any(graph.part == part and graph.outcome == "split" for graph in run.decided.of(CudaGraph).get(frame, ()))


def view(run: Run, options: Options = NO_OPTIONS) -> Section:
    """A row a decision, its reason and what to do below it."""
    every = outcomes(run)
    if not every:
        return Section(TITLE, NOTHING)
    bad = count(run)
    summary = f"CUDA graphs: {counted(len(every), 'decision')}, {bad:,} of them not a whole graph"
    rows = tuple(_row(run, number, *each) for number, each in enumerate(every))
    return Section(TITLE, summary, bad, "warning" if bad else "ok", rows)


def count(run: Run) -> int:
    """Graphs that were skipped, split or recorded again."""
    return sum(graph.outcome in ("skipped", "split", "rerecorded") for _, graph in outcomes(run))


def _row(run: Run, number: int, frame: str, graph: CudaGraph) -> Row:
    sign, tone = _LOOKS[graph.outcome]
    key = ("cuda graph", number)
    nodes = nodes_of(run, frame, graph.part, graph.nodes)
    more = ", …" if len(graph.nodes) > _NODES else ""
    names = f" ({', '.join(graph.nodes[:_NODES])}{more})" if graph.nodes else ""
    reason, to_do = why(run, frame, graph), ways_out(graph.reason)
    below = [Row((key, "why"), words(reason))] if reason else []
    below += [Row((key, "do"), words((f"{MARKS['arrow']} {MAY}{to_do}", "accent")))] if to_do else []
    place = ("  ", Place(graph.file, graph.line)) if graph.file else ()
    head = f"{sentence(graph)}{names}"
    return Row(
        key,
        words((f"{sign} ", tone), (f"{frame} {graph.part}  ", "accent"), (head, "strong"), *place),
        rows=below,
        open="all",
        refs=Refs(nodes=nodes, frame=frame, file=graph.file, line=graph.line),
        opens="edit" if graph.file else "node" if nodes else "",
    )


def as_json(run: Run) -> object:
    """Each decision, whole, with its sentence."""
    return [
        graph.facts(frame=frame, words=sentence(graph), why=why(run, frame, graph), to_do=ways_out(graph.reason))
        for frame, graph in outcomes(run)
    ]
