"""Show what a backend compiles of each graph, what it leaves to eager, why, and what that costs."""

from collections.abc import Hashable
from typing import NamedTuple

from msgspec.structs import replace

from idbg.format.amounts import counted, seconds, share
from idbg.format.glyphs import SEVERITY_SIGNS, VERDICT_SIGNS
from idbg.schema.decisions.backends import GraphSplit, NativeCall, SplitCalls
from idbg.schema.graphs import NodeId
from idbg.schema.runs import Run
from idbg.views.tree import NO_OPTIONS, Options, Place, Refs, Row, Section, Table, Tone, words

TITLE = "Partitions of the backend"
NOTHING = "no backend reported which nodes it compiles: Inductor and eager take all of a graph"


_LOOKS: dict[bool, tuple[str, Tone]] = {
    True: (SEVERITY_SIGNS["fallback"], "fallback"),
    False: (VERDICT_SIGNS["clean"], "clean"),
}
"""By whether eager runs some of it."""


class Native(NamedTuple):
    """How much of what was split eager runs: calls of all calls, and its share of the time where that is known."""

    calls: int
    of: int
    of_time: float | None


def native(run: Run) -> Native | None:
    """Over all split graphs of a run; None where no backend split one."""
    every = [(split, run.decided.last(SplitCalls).get(split.number)) for split in run.decided.every(GraphSplit)]
    if not every:
        return None
    known = [calls for _, calls in every if calls is not None]
    times = [(calls.native_seconds, calls.seconds) for calls in known if calls.seconds is not None]
    whole = sum(second or 0 for _, second in times)
    is_known = len(times) == len(every) and whole > 0
    of_time = sum(first or 0 for first, _ in times) / whole if is_known else None
    return Native(sum(len(_native(*each)) for each in every), sum(split.calls for split, _ in every), of_time)


def in_short(run: Run) -> str:
    """ "3 of 14 nodes in eager (8 % of the time)"; "" where a backend took all, or split nothing."""
    found = native(run)
    if found is None or not found.calls:
        return ""
    of_time = f" ({share(found.of_time)} of the time)" if found.of_time is not None else ""
    return f"{found.calls:,} of {counted(found.of, 'node')} in eager{of_time}"


def view(run: Run, options: Options = NO_OPTIONS) -> Section:
    """A row a graph, below it what eager runs of it by reason, and the partitions."""
    found = native(run)
    if found is None:
        return Section(TITLE, NOTHING)
    rows = [_row(run, *each) for each in run.decided.with_frames(GraphSplit)]
    backends = ", ".join(dict.fromkeys(split.backend for split in run.decided.every(GraphSplit)))
    summary = f"{backends}: {in_short(run) or 'all of ' + counted(found.of, 'node')}"
    return Section(TITLE, summary, found.calls, "warning" if found.calls else "ok", tuple(rows))


def findings(run: Run) -> Section:
    """As `view`, the graphs alone of which eager runs something, as one table."""
    whole = view(run)
    rows = [row for row in whole.body if isinstance(row, Row) and row.open]
    return replace(whole, body=(Table((), rows, "graph"),) if rows else ())


def count(run: Run) -> int:
    """The calls that eager runs."""
    found = native(run)
    return found.calls if found else 0


def as_json(run: Run) -> object:
    """Each split, whole, with its calls."""
    calls = run.decided.last(SplitCalls)
    return [
        split.facts(frame=frame, calls=calls[split.number].facts("number") if split.number in calls else None)
        for frame, split in run.decided.with_frames(GraphSplit)
    ]


def _native(split: GraphSplit, calls: SplitCalls | None) -> list[NativeCall]:
    """What eager runs, with the nodes of partitions that failed when they were called."""
    failed = [
        NativeCall(name, "", "fallback", message)
        for index, message in (calls.failed if calls else ())
        for name in split.compiled[index]
    ]
    return [*split.native, *failed]


def _row(run: Run, frame: str, split: GraphSplit) -> Row:
    calls = run.decided.last(SplitCalls).get(split.number)
    left = _native(split, calls)
    sign, tone = _LOOKS[bool(left)]
    compiled = split.calls - len(left)
    parts = len(split.compiled) - len(calls.failed if calls else ())
    inside = f" in {counted(parts, 'partition')}" if parts else ""
    head = f"{split.backend} compiles {compiled:,} of {counted(split.calls, 'node')}{inside}"
    key = ("split", split.number)
    by_reason: dict[tuple[str, str], list[NativeCall]] = {}
    for each in left:
        by_reason.setdefault((each.why, each.detail), []).append(each)
    rows = [_reason(run, frame, (key, number), split, group) for number, group in enumerate(by_reason.values())]
    failed = dict(calls.failed if calls else ())
    rows += [
        _partition(run, frame, (key, "part", index), f"partition {index + 1}{', not run' * (index in failed)}", names)
        for index, names in enumerate(split.compiled)
    ]
    return Row(
        key,
        words((f"{sign} ", tone), (f"{frame}  ", "accent"), (head, "strong"), (_time_words(calls), "dim")),
        rows=rows,
        open="all" if left else "",
        refs=Refs(frame=frame),
    )


def _time_words(calls: SplitCalls | None) -> str:
    match calls:
        case None:
            return "  never called"
        case SplitCalls(calls=0):
            return "  called once: how the time is shared is not known, as that call compiles"
        case SplitCalls(seconds=float(whole), native_seconds=float(native)) if whole:
            return f"  eager takes {share(native / whole)} of {seconds(whole)} in {counted(calls.calls, 'call')}"
        case _:
            return f"  {counted(calls.calls + 1, 'call')}: how the time is shared is not known on this device"


def _why(split: GraphSplit, call: NativeCall) -> str:
    match call.why:
        case "unsupported":
            why = f"{split.backend} does not support the op"
        case "alone":
            why = f"{split.backend} makes no partition of a single node"
        case "fallback":
            why = f"what {split.backend} compiled of it was not run"
        case "host":
            why = f"{split.backend} leaves it to the host"
    return f"{why}: {call.detail}" if call.detail else why


def _reason(run: Run, frame: str, key: Hashable, split: GraphSplit, group: list[NativeCall]) -> Row:
    head = f"{counted(len(group), 'node')} in eager: {_why(split, group[0])}"
    rows = [_call(run, frame, (key, call.name), call) for call in group]
    return Row(key, words((head, "fallback")), rows=rows, open="all")


def _call(run: Run, frame: str, key: Hashable, call: NativeCall) -> Row:
    place = ("  ", Place(call.file, call.line)) if call.file else ()
    nodes = _nodes(run, frame, call.name, call.file, call.line)
    op = f"{call.target}  " if call.target else ""
    shown = words((op, "strong"), (call.name, "dim"), *place)
    refs = Refs(nodes=nodes, frame=frame, file=call.file, line=call.line)
    return Row(key, shown, refs=refs, opens="node" if nodes else "edit" if call.file else "")


def _partition(run: Run, frame: str, key: Hashable, title: str, names: tuple[str, ...]) -> Row:
    ends = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
    shown = words((f"{title}  ", "dim"), (f"{counted(len(names), 'node')}: {ends}", ""))
    nodes = _nodes(run, frame, names[0])
    return Row(key, shown, refs=Refs(nodes=nodes, frame=frame), opens="node" if nodes else "")


def _nodes(run: Run, frame: str, name: str, file: str = "", line: int = 0) -> tuple[NodeId, ...]:
    """The node of this name in the first graph of the frame that has it, or the nodes of its line in Dynamo's."""
    graphs = [graph for id, graph in run.graphs.items() if id.frame == frame]
    if (graph := next((graph for graph in graphs if name in graph.by_name), None)) is not None:
        return (graph.node_id(name),)
    dynamo = next((graph for graph in graphs if graph.id.stage == "dynamo"), None)
    if dynamo is None or not file:
        return ()
    return tuple(dynamo.node_id(node.name) for node in dynamo.nodes if (node.file, node.line) == (file, line))
