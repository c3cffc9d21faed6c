"""What did each pass do to a graph, node by node, and what is kept or computed again for the backward?"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from idbg.analysis.decisions.partitioner import Held, Partition, partition
from idbg.format.amounts import NOTHING, column_size, counted, elapsed
from idbg.format.file_names import near_place
from idbg.format.glyphs import MARKS
from idbg.reports.decisions import passes as report
from idbg.reports.decisions.passes import DiffLine
from idbg.schema.decisions.passes import PassRun, PhaseRun
from idbg.schema.graphs import GraphId, NodeId
from idbg.schema.runs import Run
from idbg_tui.panes.why.table import Column, Table
from idbg_tui.widgets.section_rows import INDENT, Look, Row, Rows, fixed, said, sign

FILTERS = False
NONE = "no pass was seen: nothing was compiled, or by a backend that runs none of Inductor's (b chooses another)"
_LOOKS = {"+": "clean", "-": "reject", "…": "dim", " ": "dim"}
_TABLE = Table((Column("nodes", 13, 3, right=True), Column("changed", 24, 2), Column("time", 8, 1, right=True)), "pass")


@dataclass(frozen=True)
class _Place:
    """A pass in its frame, and the graphs that hold the nodes that it works on."""

    frame: str
    phase: PhaseRun
    graphs: tuple[GraphId, ...]
    inside: tuple[object, ...]


def count(run: Run) -> int:
    """Passes that changed a graph."""
    return sum(len(phase.passes) for phases in run.decided.passes.values() for phase in phases)


def rows(run: Run, look: Look) -> Sequence[Row]:
    """Frame by frame: its phases, the passes of each that changed something with their diffs, and the partition."""
    if not run.decided.passes:
        return []
    found = Rows()
    found.add(_TABLE.heads())
    for frame, phases in run.decided.passes.items():
        fold = ("frame", frame)
        is_open = look.is_open(fold, at_first=True)
        found.add(_frame_row(run, frame, phases, is_open))
        if not is_open:
            continue
        for number, phase in enumerate(phases):
            _add_phase(
                found, run, look, _Place(frame, phase, tuple(report.graphs_of(run, frame, phase)), (fold,)), number
            )
        for place, line in enumerate(report.not_run(run, frame)):
            for row in said(line, look, key=("not run", frame, place), depth=1, style="dim", inside=(fold,)):
                found.add(row)
        if (cut := partition(run, frame)) is not None:
            _add_partition(found, run, cut, look, (fold,))
    return found


def _frame_row(run: Run, frame: str, phases: Sequence[PhaseRun], is_open: bool) -> Row:
    known = run.frames.get(frame)
    name = f"{known.function} " if known is not None else ""
    place = f"  {near_place(known.file, known.line)}" if known is not None and known.file else ""
    ran, changed = sum(phase.ran for phase in phases), sum(len(phase.passes) for phase in phases)
    told = f"  {counted(ran, 'pass')}, {changed:,} changed a graph{place}"
    words = [(f"{sign(is_open=is_open)} {name}", "strong"), (frame, ""), (told, "dim")]
    where = (known.file, known.line) if known is not None else ("", 0)
    return Row(("frame", frame), fixed(words), "fold", ("frame", frame), is_open, (), frame, *where)


def _add_phase(found: Rows, run: Run, look: Look, place: _Place, number: int) -> None:
    """A phase, and under it each pass that changed the graph."""
    phase = place.phase
    fold = ("phase", place.frame, number)
    is_open = look.is_open(fold, at_first=True)
    mark = sign(is_open=is_open) if phase.passes else " "
    words = [(f"{' ' * INDENT}{mark} ", ""), (report.phase_name(phase), "accent")]
    ran = f"{len(phase.passes):,} of {counted(phase.ran, 'pass')}" if phase.passes else "nothing"
    cells = [(_nodes(phase.nodes), ""), (ran, "dim"), (_seconds(phase.seconds), "")]
    edges = (place.graphs[0], place.graphs[-1]) if place.graphs else (None, None)
    folds = fold if phase.passes else None
    enter = "fold" if phase.passes else ""
    found.add(
        Row(
            fold,
            _TABLE.row(words, cells),
            "fold" if enter else "",
            folds,
            is_open,
            place.inside,
            place.frame,
            before=edges[0],
            after=edges[1],
        )
    )
    if is_open:
        inside = (*place.inside, fold)
        for at, each in enumerate(phase.passes):
            _add_pass(found, run, look, _Place(place.frame, phase, place.graphs, inside), each, (number, at))


def _add_pass(found: Rows, run: Run, look: Look, place: _Place, each: PassRun, at: tuple[int, int]) -> None:
    """A pass, and under it its diff."""
    fold = ("pass", place.frame, *at)
    is_open = look.is_open(fold)
    nodes = _known(run, place, (*each.came, *each.changed, *each.moved, *each.went))
    whose = f"  {each.by} {near_place(each.file, each.line)}".rstrip() if each.own else ""
    words = [(f"{' ' * 2 * INDENT}{sign(is_open=is_open)} ", ""), (each.name, "strong"), (whose, "dim")]
    changed = report.counts(each)
    table = _TABLE.row(words, [(_nodes(each.nodes), ""), (changed, ""), (_seconds(each.seconds), "")])
    file, line = (each.file, each.line) if each.own else ("", 0)
    found.add(Row(fold, table, "fold", fold, is_open, place.inside, place.frame, file, line, nodes))
    if is_open:
        inside = (*place.inside, fold)
        for number, diff in enumerate(report.diff_lines(each)):
            found.add_later((*fold, number), partial(_diff_row, run, place, diff, (*fold, number), inside))


def _diff_row(run: Run, place: _Place, diff: DiffLine, key: tuple[object, ...], inside: tuple[object, ...]) -> Row:
    look = _LOOKS.get(diff.sign, "")
    text = f"{MARKS['ellipsis']} {diff.text}" if diff.sign == "…" else f"{diff.sign} {diff.text}"
    names = [name for name in dict.fromkeys((diff.after, diff.before)) if name]
    nodes = _known(run, place, names if diff.sign != "-" else [*names[::-1]])
    drawn = fixed([(" " * (3 * INDENT + 2), ""), (text, look)])
    return Row(key, drawn, "node" if nodes else "", None, False, inside, place.frame, nodes=nodes, copied=diff.text)


def _known(run: Run, place: _Place, names: Sequence[str]) -> tuple[NodeId, ...]:
    """The nodes of these names that the run's graphs have, those of the later graph first."""
    graphs = [graph for graph in reversed(place.graphs) if graph in run.graphs]
    return tuple(NodeId(graph, name) for name in names for graph in graphs if name in run.graphs[graph].by_name)


def _nodes(nodes: tuple[int, int]) -> str:
    before, after = nodes
    return f"{before:,}" if before == after else f"{before:,} {MARKS['arrow']} {after:,}"


def _seconds(seconds: float | None) -> str:
    return NOTHING if seconds is None else elapsed(seconds) if seconds >= 1 else f"{1000 * seconds:.0f} ms"


# ---------------------------------------------------------------- kept, and computed again


def _add_partition(found: Rows, run: Run, cut: Partition, look: Look, inside: tuple[object, ...]) -> None:
    """What is kept for the backward and what is computed again, with bytes, each a fold of its values."""
    title, *lines = report.partition_lines(cut)
    fold = ("partition", cut.frame)
    is_open = look.is_open(fold, at_first=True)
    words = [(f"{' ' * INDENT}{sign(is_open=is_open)} ", ""), ("min-cut", "accent"), (f"  {title}", "")]
    graphs = (GraphId(cut.frame, "forward"), GraphId(cut.frame, "backward"))
    edges = [graph if graph in run.graphs else None for graph in graphs]
    found.add(
        Row(fold, fixed(words), "fold", fold, is_open, inside, cut.frame, before=edges[0], after=edges[1], copied=title)
    )
    if not is_open:
        return
    inside = (*inside, fold)
    for place, line in enumerate(lines):
        for row in said(line, look, key=(*fold, place), depth=3, style="dim", inside=inside):
            found.add(row)
    for held in sorted(cut.kept, key=lambda held: -(held.nbytes or 0)):
        found.add_later((*fold, held.node), partial(_held_row, run, cut, held, inside))
    for name in cut.recomputed:
        found.add_later((*fold, "again", name), partial(_again_row, run, cut, name, inside))


def _held_row(run: Run, cut: Partition, held: Held, inside: tuple[object, ...]) -> Row:
    why = "an argument, there anyway" if held.argument else "kept" + (", an output too" if held.output else "")
    return _value_row(run, cut, ("partition", cut.frame, held.node), held.node, why, held.nbytes, inside)


def _again_row(run: Run, cut: Partition, name: str, inside: tuple[object, ...]) -> Row:
    forward = run.graphs.get(GraphId(cut.frame, "forward"))
    node = forward.by_name.get(name) if forward is not None else None
    nbytes = node.tensor.nbytes if node is not None and node.tensor is not None else None
    return _value_row(run, cut, ("partition", cut.frame, "again", name), name, "computed again", nbytes, inside)


def _value_row(
    run: Run,
    cut: Partition,
    key: tuple[object, ...],
    name: str,
    why: str,
    nbytes: int | None,
    inside: tuple[object, ...],
) -> Row:
    graphs = [graph for graph in (GraphId(cut.frame, "backward"), GraphId(cut.frame, "forward")) if graph in run.graphs]
    nodes = tuple(NodeId(graph, name) for graph in graphs if name in run.graphs[graph].by_name)
    size = "not known" if nbytes is None else column_size(nbytes)
    again = why == "computed again"
    words = [(" " * 3 * INDENT, ""), (name, "strong"), (f"  {why}", "fallback" if again else "dim")]
    drawn = _TABLE.row(words, [(size, ""), ("", ""), ("", "")])
    return Row(key, drawn, "node" if nodes else "", None, False, inside, cut.frame, nodes=nodes, copied=name)
