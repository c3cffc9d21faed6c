"""Show what each pass did to a graph, node by node, and what the backward computes again."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from idbg.analysis.decisions.partitioner import Held, Partition, partition
from idbg.format.amounts import counted, size
from idbg.format.file_names import near_place
from idbg.format.glyphs import MARKS
from idbg.schema.decisions.inductor import PassRun, PhaseRun
from idbg.schema.graphs import GraphId, NodeId, Part
from idbg.schema.runs import Run
from idbg.views.frame_graphs import compile_words
from idbg.views.tree import NO_OPTIONS, Cell, Column, Options, Refs, Row, Section, Table, Tone, words

TITLE = "Passes"
_PHASES = {"pre_grad": "pre-grad", "joint": "joint", "post_grad": "post-grad", "other": "other"}
_COLUMNS = (Column("nodes", rank=3), Column("changed", rank=2), Column("time", "seconds", 1))
_TONES: dict[str, Tone] = {"+": "clean", "-": "reject", MARKS["ellipsis"]: "dim", " ": "dim"}


class DiffLine(NamedTuple):
    """One line of a pass's diff. `before` and `after` are the node on either side, "" where it is on one only."""

    sign: str
    before: str
    after: str
    text: str


@dataclass(frozen=True)
class _Phase:
    """A phase of a frame, and the graphs that hold the nodes that it works on."""

    run: Run
    frame: str
    number: int
    ran: PhaseRun
    graphs: Sequence[GraphId]

    def nodes(self, names: Iterable[str]) -> tuple[NodeId, ...]:
        """The nodes of these names that the run's graphs have, those of the later graph first."""
        later = list(reversed(self.graphs))
        return tuple(NodeId(at, name) for name in names for at in later if name in self.run.graphs[at].by_name)


def view(run: Run, options: Options = NO_OPTIONS) -> Section:
    """A row a frame; below it its phases, the passes that changed something with their diffs, and the partition."""
    if not run.decided.of(PhaseRun):
        return Section(TITLE, "no passes: nothing was compiled, or the backend runs none of Inductor's")
    rows = [_frame(run, frame, phases) for frame, phases in run.decided.of(PhaseRun).items()]
    ran = sum(phase.ran for phases in run.decided.of(PhaseRun).values() for phase in phases)
    summary = f"{counted(ran, 'pass')}, {count(run):,} changed a graph"
    return Section(TITLE, summary, count(run), "ok", (Table(_COLUMNS, rows, "pass"),))


def count(run: Run) -> int:
    """Passes that changed a graph."""
    return sum(len(phase.passes) for phases in run.decided.of(PhaseRun).values() for phase in phases)


def _frame(run: Run, frame: str, phases: Sequence[PhaseRun]) -> Row:
    known = run.frames.get(frame)
    ran, changed = sum(phase.ran for phase in phases), sum(len(phase.passes) for phase in phases)
    rows = [
        _phase(_Phase(run, frame, number, phase, graphs_of(run, frame, phase))) for number, phase in enumerate(phases)
    ]
    rows += [Row(("not run", frame, text), words((text, "dim"))) for text in not_run(run, frame)]
    if (cut := partition(run, frame)) is not None:
        rows.append(_partition(run, cut))
    return Row(
        ("frame", frame),
        (*compile_words(run, frame), *words((f"  {counted(ran, 'pass')}, {changed:,} changed a graph", "dim"))),
        rows=rows,
        open="all",
        refs=Refs(frame=frame, file=known.file if known else "", line=known.line if known else 0),
        opens="fold",
    )


def _phase(phase: _Phase) -> Row:
    ran = phase.ran
    changed = f"{len(ran.passes):,} of {counted(ran.ran, 'pass')}" if ran.passes else "nothing"
    before, after = (phase.graphs[0], phase.graphs[-1]) if phase.graphs else (None, None)
    return Row(
        ("phase", phase.frame, phase.number),
        words((phase_name(ran), "accent")),
        (Cell(_nodes(ran.nodes)), Cell(changed, "dim"), Cell(ran.seconds)),
        rows=[_pass(phase, each, at) for at, each in enumerate(ran.passes)],
        open="all",
        refs=Refs(frame=phase.frame, before=before, after=after),
        opens="fold" if ran.passes else "",
    )


def _pass(phase: _Phase, each: PassRun, at: int) -> Row:
    whose = f"  {each.by} at {near_place(each.file, each.line)}" if each.own else ""
    key = ("pass", phase.frame, phase.number, at)
    file, line = (each.file, each.line) if each.own else ("", 0)
    return Row(
        key,
        words((each.name, "strong"), (whose.replace("   at ", "  "), "dim")),
        (Cell(_nodes(each.nodes)), Cell(counts(each)), Cell(each.seconds)),
        rows=partial(_diff, phase, each, key),
        open="text",
        refs=Refs(
            nodes=phase.nodes((*each.came, *each.changed, *each.moved, *each.went)),
            frame=phase.frame,
            file=file,
            line=line,
        ),
        opens="fold",
    )


def _diff(phase: _Phase, each: PassRun, key: tuple[object, ...]) -> Iterator[Row]:
    for number, line in enumerate(diff_lines(each)):
        names = [name for name in dict.fromkeys((line.after, line.before)) if name]
        nodes = phase.nodes(names if line.sign != "-" else names[::-1])
        yield Row(
            (*key, number),
            words((f"{line.sign} {line.text}", _TONES[line.sign])),
            refs=Refs(nodes=nodes, frame=phase.frame),
            opens="node" if nodes else "",
            copied=line.text,
        )


def _partition(run: Run, cut: Partition) -> Row:
    """What is saved for the backward and what is computed again, each value with its bytes."""
    first, *facts = partition_lines(cut)
    key = ("partition", cut.frame)
    forward, backward = (GraphId(cut.frame, stage) for stage in ("forward", "backward"))
    graphs = [graph for graph in (backward, forward) if graph in run.graphs]

    def value(name: str, why: str, nbytes: int | None, *, again: bool = False) -> Row:
        nodes = tuple(NodeId(graph, name) for graph in graphs if name in run.graphs[graph].by_name)
        takes = "size not known" if nbytes is None else size(nbytes)
        return Row(
            (*key, "again", name) if again else (*key, name),
            words((name, "strong"), (f"  {why}, ", "fallback" if again else "dim"), takes),
            refs=Refs(nodes=nodes, frame=cut.frame),
            opens="node" if nodes else "",
            copied=name,
        )

    def rows() -> Iterator[Row]:
        yield from (Row((*key, at), words((text, "dim"))) for at, text in enumerate(facts))
        for held in sorted(cut.kept, key=lambda held: -(held.nbytes or 0)):
            yield value(held.node, _why_saved(held), held.nbytes)
        known = run.graphs[forward].by_name if forward in run.graphs else {}
        for name in cut.recomputed:
            tensor = known[name].tensor if name in known else None
            yield value(name, "computed again", tensor.nbytes if tensor is not None else None, again=True)

    return Row(
        key,
        words(("min-cut  ", "accent"), first),
        rows=rows,
        open="all",
        refs=Refs(
            frame=cut.frame,
            before=forward if forward in run.graphs else None,
            after=backward if backward in run.graphs else None,
        ),
        opens="fold",
        copied=first,
    )


def _why_saved(held: Held) -> str:
    return "an argument, already in memory" if held.argument else "saved" + (", an output too" if held.output else "")


def as_json(run: Run) -> object:
    """All phases and the partition of each frame."""
    return [
        {
            "frame": frame,
            "phases": [phase.facts() for phase in phases],
            "not_run": not_run(run, frame),
            "partition": partition(run, frame),
        }
        for frame, phases in run.decided.of(PhaseRun).items()
    ]


def phase_name(phase: PhaseRun) -> str:
    """ "joint", "post-grad (forward)", "post-grad (inference) of true_graph_0"."""
    part = f" ({phase.part})" if phase.part else ""
    return f"{_PHASES[phase.phase]}{part}" + (f" of {phase.graph}" if phase.graph else "")


def counts(each: PassRun) -> str:
    """ "+2 -1 nodes, 3 changed"."""
    signed = [f"{sign}{len(names):,}" for sign, names in (("+", each.came), ("-", each.went)) if names]
    words = [f"{' '.join(signed)} {'nodes' if len(each.came) + len(each.went) != 1 else 'node'}"] if signed else []
    words += [f"{len(names):,} {verb}" for verb, names in (("moved", each.moved), ("changed", each.changed)) if names]
    return ", ".join(words)


def diff_lines(each: PassRun) -> list[DiffLine]:
    """The pass's diff: "-" and "+" lines, what stands around them, and "…" for what is left out."""
    of = dict(each.of)
    lines: list[DiffLine] = []
    for row in each.rows:
        if row.skipped and lines:
            lines.append(DiffLine(MARKS["ellipsis"], "", "", counted(row.skipped, "node")))
        if row.before == row.after:
            lines.append(DiffLine(" ", row.name, row.name, row.before))
            continue
        both = bool(row.before and row.after)
        if row.before:
            lines.append(DiffLine("-", row.name, row.name if both else "", row.before))
        if row.after:
            olds = of.get(row.name, ())
            before = row.name if both else (olds[0] if olds else "")
            lines.append(DiffLine("+", before, row.name, row.after))
    if each.dropped:
        lines.append(DiffLine(MARKS["ellipsis"], "", "", f"{counted(each.dropped, 'row')} more, not recorded"))
    return lines


def not_run(run: Run, frame: str) -> list[str]:
    """Which parts of a frame have code, though no post-grad passes ran for it, and why."""
    ran = {phase.part for phase in run.decided.of(PhaseRun).get(frame, ()) if phase.phase == "post_grad"}
    parts = [part for of, part in run.codes if of == frame and part not in ran and run.decided.of(PhaseRun).get(frame)]
    return [f"post-grad{_of_part(part)}: not run, its code was found in a cache (--cold compiles it)" for part in parts]


def partition_lines(cut: Partition) -> list[str]:
    """What is saved for the backward, what is computed again, and what either costs."""
    saved = sum(not held.argument for held in cut.kept)
    lines = [f"saved for the backward: {size(cut.nbytes)} in {counted(saved, 'value')}"]
    if saved < len(cut.kept):
        lines.append(f"and {size(cut.argument_bytes)} of inputs and weights, already in memory")
    again = f"computed again in the backward: {counted(len(cut.recomputed), 'node')}"
    lines.append(again if cut.recomputed else "nothing is computed again in the backward")
    everything = f"saving all values, and computing none again, takes {size(cut.everything)}"
    if cut.everything > cut.nbytes:
        lines.append(f"{size(cut.everything - cut.nbytes)} less: {everything}")
    elif cut.everything < cut.nbytes:
        lines.append(f"{size(cut.nbytes - cut.everything)} more: {everything}")
    if cut.unknown:
        lines.append(f"{counted(cut.unknown, 'value')} of unknown size left out")
    return lines


def graphs_of(run: Run, frame: str, phase: PhaseRun) -> list[GraphId]:
    """The graphs of the run that hold the nodes that a phase works on."""
    match phase.phase:
        case "pre_grad":
            wanted = [GraphId(frame, "dynamo")]
        case "post_grad":
            stages = [phase.part] if phase.part else []
            wanted = [*(GraphId(frame, stage) for stage in stages), GraphId(frame, "post_grad", phase.part)]
        case _:
            wanted = [GraphId(frame, stage) for stage in ("joint", "forward", "backward", "inference")]
    return [graph for graph in wanted if graph in run.graphs]


def _nodes(nodes: tuple[int, int]) -> str:
    before, after = nodes
    return f"{before:,}" if before == after else f"{before:,} {MARKS['arrow']} {after:,}"


def _of_part(part: Part) -> str:
    return f" ({part})" if part else ""
