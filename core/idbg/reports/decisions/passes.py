"""What did each pass do to a graph, and what does the backward compute again?"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from idbg.analysis.decisions.frames import spoken
from idbg.analysis.decisions.partitioner import Held, Partition, partition
from idbg.format.amounts import counted, seconds, size
from idbg.format.file_names import near_place
from idbg.schema.decisions.decision import Decision
from idbg.schema.decisions.passes import PassRun, PhaseRun
from idbg.schema.graphs import Frame, GraphId, NodeId, Part
from idbg.schema.runs import Run

NAMES = 8  # in a line
LINES = 12  # of a pass's diff, in text
_PHASES = {"pre_grad": "pre-grad", "joint": "joint", "post_grad": "post-grad", "other": "elsewhere"}
_VERBS = (("made", "came"), ("removed", "went"), ("moved", "moved"), ("changed", "changed"))


class DiffLine(NamedTuple):
    """One line of a pass's diff. `before` and `after` are the node on either side, "" where it is on one only."""

    sign: str
    before: str
    after: str
    text: str


def text(run: Run) -> Iterable[str]:
    """Frame by frame: its phases, the passes that changed something with what they changed, and the partition."""
    if not run.decided.passes:
        yield "no pass was seen: nothing was compiled, or by a backend that runs none of Inductor's"
    for frame, phases in run.decided.passes.items():
        known = run.frames.get(frame, Frame(frame, "?"))
        yield f"{frame} {spoken(known)}   {near_place(known.file, known.line)}".rstrip()
        for phase in phases:
            yield f"  {phase_line(phase)}"
            for each in phase.passes:
                yield f"    {pass_line(each)}"
                yield from (f"      {line.sign} {line.text}" for line in _shortened(diff_lines(each)))
        yield from (f"  {line}" for line in not_run(run, frame))
        if (cut := partition(run, frame)) is not None:
            yield from (f"  {line}" for line in partition_lines(cut))


def as_json(run: Run) -> object:
    """All phases and the partition of each frame."""
    return [
        {"frame": frame, "phases": phases, "not_run": not_run(run, frame), "partition": partition(run, frame)}
        for frame, phases in run.decided.passes.items()
    ]


def about(run: Run) -> Iterator[Decision]:
    """What each pass did to which nodes, and what the partitioner decided of values."""
    for frame, phases in run.decided.passes.items():
        for phase in phases:
            for each in phase.passes:
                yield from _of_pass(run, frame, phase, each)
        if (cut := partition(run, frame)) is not None:
            yield from _of_partition(run, cut)


def phase_name(phase: PhaseRun) -> str:
    """ "joint", "post-grad (forward)", "post-grad (inference) of true_graph_0"."""
    part = f" ({phase.part})" if phase.part else ""
    return f"{_PHASES[phase.phase]}{part}" + (f" of {phase.graph}" if phase.graph else "")


def phase_line(phase: PhaseRun) -> str:
    """How many passes ran, how many of them changed the graph, and by how many nodes."""
    changed = f"{len(phase.passes):,} changed the graph" if phase.passes else "nothing changed"
    took = f", {seconds(phase.seconds)}" if phase.seconds is not None else ""
    return f"{phase_name(phase)}: {counted(phase.ran, 'pass')}, {changed}, {_nodes(phase.nodes)}{took}"


def pass_line(each: PassRun) -> str:
    """Its name, whose it is, and what came, went, moved and changed."""
    whose = f"{each.by} at " if each.by else ""
    whose = f" ({whose}{near_place(each.file, each.line)})" if each.own else ""
    return f"{each.name}{whose}: {counts(each)}"


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
            lines.append(DiffLine("…", "", "", counted(row.skipped, "node")))
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
        lines.append(DiffLine("…", "", "", f"{counted(each.dropped, 'row')} more, not kept"))
    return lines


def not_run(run: Run, frame: str) -> list[str]:
    """Which parts of a frame have code, though no post-grad passes ran for it, and why."""
    ran = {phase.part for phase in run.decided.passes.get(frame, ()) if phase.phase == "post_grad"}
    parts = [part for of, part in run.codes if of == frame and part not in ran and run.decided.passes.get(frame)]
    return [f"post-grad{_of_part(part)}: not run, its code was found in a cache (--cold compiles it)" for part in parts]


def partition_lines(cut: Partition) -> list[str]:
    """What is kept for the backward, what is computed again, and what either costs."""
    kept = [held for held in cut.kept if not held.argument]
    lines = [
        f"kept for the backward: {size(cut.nbytes)} in {counted(len(kept), 'value')}" + _these(map(_held, kept)),
    ]
    if arguments := [held.node for held in cut.kept if held.argument]:
        lines.append(f"and {size(cut.argument_bytes)} of inputs and weights, there anyway{_these(arguments)}")
    again = f"computed again in the backward: {counted(len(cut.recomputed), 'node')}{_these(cut.recomputed)}"
    lines.append(again if cut.recomputed else "nothing is computed again in the backward")
    if cut.everything > cut.nbytes:
        saved = f"it saves {size(cut.everything - cut.nbytes)}: "
    elif cut.everything < cut.nbytes:
        saved = f"it costs {size(cut.nbytes - cut.everything)}: "
    else:
        saved = "the same: "
    lines.append(f"{saved}kept, nothing computed again, would be {size(cut.everything)}")
    if cut.unknown:
        lines.append(f"{counted(cut.unknown, 'value')} of unknown size left out")
    return lines


def _of_pass(run: Run, frame: str, phase: PhaseRun, each: PassRun) -> Iterator[Decision]:
    graphs = graphs_of(run, frame, phase)
    of = dict(each.of)
    place = (each.file, each.line) if each.own else ("", 0)
    for verb, field in _VERBS:
        names: tuple[str, ...] = getattr(each, field)
        nodes = tuple(NodeId(graph, name) for graph in graphs for name in names if name in run.graphs[graph].by_name)
        if not nodes:
            continue
        olds = dict.fromkeys(old for name in names for old in of.get(name, ()))
        why = f"in the place of {_few(olds)}" if verb == "made" and olds else ""
        words = f"{verb} by the {_PHASES[phase.phase]} pass {each.name}"
        yield Decision(kind="pass", words=words, why=why, frame=frame, file=place[0], line=place[1], nodes=nodes)


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


def _of_partition(run: Run, cut: Partition) -> Iterator[Decision]:
    stages = [graph for graph in (GraphId(cut.frame, "forward"), GraphId(cut.frame, "backward")) if graph in run.graphs]
    for held in cut.kept:
        nodes = tuple(NodeId(graph, held.node) for graph in stages)
        words = "an argument that the backward reads" if held.argument else "kept for the backward"
        takes = "size not known" if held.nbytes is None else size(held.nbytes)
        yield Decision(kind="partition", words=words, why=takes, frame=cut.frame, nodes=nodes)
    for name in cut.recomputed:
        nodes = tuple(NodeId(graph, name) for graph in stages)
        words, why = "computed again in the backward", "so that its value need not be kept"
        yield Decision(kind="partition", words=words, why=why, frame=cut.frame, nodes=nodes)


def _shortened(lines: Sequence[DiffLine]) -> Iterator[DiffLine]:
    """Without what stands around, and only so many."""
    differing = [line for line in lines if line.sign in "+-"]
    yield from differing[:LINES]
    if len(differing) > LINES:
        yield DiffLine("…", "", "", f"{len(differing) - LINES:,} lines more (--json has them)")


def _nodes(nodes: tuple[int, int]) -> str:
    before, after = nodes
    return counted(after, "node") if before == after else f"{before:,} to {counted(after, 'node')}"


def _held(held: Held) -> str:
    takes = "size not known" if held.nbytes is None else size(held.nbytes)
    return f"{held.node} {takes}" + (", an output too" if held.output else "")


def _these(names: Iterable[str]) -> str:
    few = _few(names)
    return f" ({few})" if few else ""


def _few(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - NAMES:,} more" if len(listed) > NAMES else ""
    return ", ".join(listed[:NAMES]) + more


def _of_part(part: Part) -> str:
    return f" ({part})" if part else ""
