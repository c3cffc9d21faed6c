"""Find what is before and after what a row reports: two graphs of a run, or two texts."""

from collections.abc import Hashable
from functools import partial

from idbg.analysis.provenance import Provenance
from idbg.schema.diff import DiffReport
from idbg.schema.graphs import Graph
from idbg.schema.runs import Run
from idbg.views import diagnostics, kernel_edits
from idbg.views.blame import maker_name
from idbg.views.frame_graphs import graph_words
from idbg.views.tree import Sides
from idbg_tui.messages import SidesRequest
from idbg_tui.state.same_computation import SameComputation
from idbg_tui.state.state import State
from idbg_tui.widgets.line_pairs import EqualLines, PairedText
from idbg_tui.widgets.section_rows import Row

NOTHING = "this row has no before and after"
NO_STAGE = "which stage made the numbers wrong is not known: D finds it"


def of_row(state: State, run: Run | None, row: Row | None) -> SidesRequest | str:
    """What is before and after what the row, or one around it, reports of this run; else why there is nothing."""
    if row is None:
        return NOTHING
    if row.sides is not None:
        return of_sides(row.sides)
    if run is not None and row.before in run.graphs and row.after in run.graphs:
        one, other = run.graphs[row.before], run.graphs[row.after]
        if one.id.frame == other.id.frame:
            return _same_frame(run, one, other)
        return _texts(one, other, f"before the break, {one.id}", f"after it, {other.id}")
    found = (found for key in (row.key, *reversed(row.inside)) if (found := of_key(state, key, run)))
    return next(found, NOTHING)


def of_sides(sides: Sides) -> SidesRequest:
    """Two texts, or the one that there is."""
    named = ((sides.name_before, sides.before), (sides.name_after, sides.after))
    texts = tuple(PairedText(name, text, name, sides.language) for name, text in named if text)
    both = len(texts) == 2
    return SidesRequest(texts, partial(EqualLines, sides.before, sides.after) if both else None)


def of_key(state: State, key: Hashable, run: Run | None = None) -> SidesRequest | str | None:
    """The same of the row with this key, or the row whose keys it lists."""
    match key:
        case ("keys", of):
            return of_key(state, of, run)
        case ("finding", "mismatch" | "change", str(finding)):
            return _of_numbers(state, finding)
        case ("compile", str(frame)) if run is not None:
            return _compiled_again(run, frame)
        case tuple() if key[:1] == ("version",):
            return _edited(state, key)
        case ("stage", *_) if run is not None and run.diff is not None:
            report = run.diff
            stage = next((each for each in report.stages if ("stage", each.frame, each.stage, each.part) == key), None)
            return _stage(run, report, report.stages.index(stage)) if stage is not None else None
    return None


def _of_numbers(state: State, finding: str) -> SidesRequest | str:
    """The stage that made the numbers wrong, beside the one before it."""
    for run in reversed(state.history.runs.values()):
        report = run.diff
        if report is not None and any(each.key == finding for each in diagnostics.wrong(run)):
            stage = report.first_wrong_stage or report.changed_stage
            found = _stage(run, report, report.stages.index(stage)) if stage is not None else None
            return found or _kernel(run, report) or NO_STAGE
    return NO_STAGE


def _stage(run: Run, report: DiffReport, at: int) -> SidesRequest | None:
    """A stage of a comparison beside what it was made of: the graph before the pass that made it wrong, the stage
    before, or, of the kernels, the graph that the wrong one computes.
    """
    stage = report.stages[at]
    if stage.made_by is not None and stage.made_by.diff:
        name = maker_name(stage.made_by)
        return of_sides(sides_of_diff(stage.made_by.diff, f"before {name}", f"after {name}"))
    if stage.stage == "kernels":
        return _kernel(run, report)
    above = [each.graph for each in reversed(report.stages[:at]) if each.frame == stage.frame]
    before = next((each for each in (stage.above_graph, *above) if each in run.graphs), None)
    if before is None or stage.graph not in run.graphs:
        return None
    return _same_frame(run, run.graphs[before], run.graphs[stage.graph])


def _kernel(run: Run, report: DiffReport) -> SidesRequest | None:
    """The source of the first wrong kernel beside the graph that it computes a part of."""
    wrong = report.culprit
    if wrong is None or wrong.graph not in run.graphs:
        return None
    key = wrong.frame, wrong.part, wrong.name
    kernel = next((each for each in run.kernels if each.key == key and each.source), None)
    if kernel is None:
        return None
    graph = run.graphs[wrong.graph]
    node = next((found for name in wrong.nodes if (found := graph.by_name.get(name))), None)
    words = graph_words(graph.id)
    texts = (
        PairedText(words, graph.code, words),
        PairedText(kernel.name, kernel.source, kernel.name, kernel.language),
    )
    return SidesRequest(texts, None, node.code_line if node is not None else 0)


def _compiled_again(run: Run, frame: str) -> SidesRequest | None:
    """The graph of a compile beside that of the compile before it; of the first, beside the next."""
    function = frame.partition("/")[0]
    graphs = [graph for id, graph in run.graphs.items() if id.stage == "dynamo" and id.frame.startswith(f"{function}/")]
    graphs.sort(key=lambda graph: int(graph.id.frame.partition("/")[2] or 0))
    at = next((at for at, graph in enumerate(graphs) if graph.id.frame == frame), None)
    if at is None or len(graphs) < 2:
        return None
    one, other = graphs[max(at - 1, 0)], graphs[max(at, 1)]
    named = (f"compile {graph.id.frame.partition('/')[2]}, {graph.id}" for graph in (one, other))
    return _texts(one, other, *named, pairs=True)


def _edited(state: State, key: tuple[Hashable, ...]) -> SidesRequest | None:
    """A version of an edited kernel beside the original."""
    number, of_kernel, version = kernel_edits.version_of(key)
    run = state.history.runs.get(number)
    kernel = next((each for each in run.kernels if each.key == of_kernel), None) if run is not None else None
    edits = run.edits_of(*of_kernel) if run is not None else []
    edit = next((each for each in edits if each.version == (version or 1)), None)
    if kernel is None or edit is None:
        return None
    return of_sides(
        Sides(kernel.source, edit.text, f"{kernel.name}: original", f"version {edit.version}", kernel.language)
    )


def sides_of_diff(diff: str, name_before: str, name_after: str) -> Sides:
    """The two texts of which a unified diff is, as far as it has them."""
    lines = [line for line in diff.splitlines() if not line.startswith(("--- ", "+++ "))]
    before, after = (
        "\n".join(line if line[:1] == "@" else line[1:] for line in lines if line[:1] != other) for other in "+-"
    )
    return Sides(before, after, name_before, name_after, "python")


def _same_frame(run: Run, one: Graph, other: Graph) -> SidesRequest:
    words = (graph_words(one.id), graph_words(other.id))
    request = _texts(one, other, *words)
    return SidesRequest(request.texts, partial(SameComputation, one, other, Provenance(run)))


def _texts(one: Graph, other: Graph, *names: str, pairs: bool = False) -> SidesRequest:
    both = zip(names, (one, other), strict=True)
    texts = tuple(PairedText(name, graph.code, name) for name, graph in both)
    return SidesRequest(texts, partial(EqualLines, one.code, other.code) if pairs else None)
