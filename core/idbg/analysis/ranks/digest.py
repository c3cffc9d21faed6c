"""Reduce the run of one rank to what it is compared by."""

from collections import Counter
from collections.abc import Iterator

from idbg.analysis.decisions.frames import spoken
from idbg.analysis.ranks.normal import fingerprint, of_graph, plain, relative
from idbg.schema.collectives import Collective
from idbg.schema.decisions.dynamo import BreakAgain, FrameGuards, FrameResult, Stack, StackLine
from idbg.schema.decisions.inductor import CacheAnswer
from idbg.schema.diff import TensorDiff
from idbg.schema.events import Recompiled
from idbg.schema.graphs import Frame
from idbg.schema.node_values import CallValues
from idbg.schema.ranks import (
    CallKind,
    Ended,
    Fingerprint,
    FrameDigest,
    GroupCalls,
    NodePlace,
    RankDigest,
    WrongTensor,
)
from idbg.schema.runs import CollectiveLog, Run

MOST_CALLS = 2000
"""Collectives of a group that are compared; of later ones the last alone is known."""
MOST_WRONG = 5
"""Tensors with wrong numbers that a digest names."""


def digest(
    run: Run | None, name: str, rank: int, *, world_size: int | None = None, host: str = "", pid: int = 0
) -> RankDigest:
    """The digest of a rank's run; of None, which nothing is known of yet, an empty one."""
    known = RankDigest(name=name, rank=rank, world_size=world_size, host=host, pid=pid)
    if run is None:
        return known
    seconds = [result.seconds for result in run.decided.last(FrameResult).values() if result.seconds is not None]
    log, cause = run.collectives, run.cause
    kinds: dict[CallKind, int] = {}
    groups = tuple(_groups(log, kinds))
    return RankDigest(
        name=name,
        rank=rank,
        program=run.program.label,
        world_size=world_size,
        host=host,
        pid=pid,
        frames=tuple(_frames(run)),
        compile_seconds=sum(seconds) if seconds else None,
        recorded=log.recorded,
        calls=tuple(kinds),
        groups=groups,
        pending=log.pending,
        lost=log.lost,
        stands=users_line(log.stack),
        phase=run.phase if run.frames.keys() - run.decided.last(FrameResult).keys() else "",
        ended=_ended(run),
        exit_status=run.exit_status if run.ended is not None else None,
        failure=cause.message.strip().partition("\n")[0] if cause else "",
        failed_at=StackLine(cause.file, cause.line) if cause and cause.file else None,
        numbers=run.numbers,
        not_comparable=run.diff.not_comparable if run.diff is not None else "",
        compared=sum(each.judged for each in _compared(run)),
        wrong=tuple(_wrong(run)),
    )


def _compared(run: Run) -> tuple[TensorDiff, ...]:
    return (*run.diff.outputs, *run.diff.gradients) if run.diff is not None else ()


def _wrong(run: Run) -> Iterator[WrongTensor]:
    """The first tensors that are wrong; their names begin with the function and the id of the frame."""
    for diff in [each for each in _compared(run) if each.failed][:MOST_WRONG]:
        frame = run.frames.get(diff.name.partition(": ")[0].rpartition(" ")[2])
        yield WrongTensor(name=diff.name, file=frame.file if frame else "", line=frame.line if frame else 0)


def users_line(stack: Stack) -> StackLine | None:
    """The innermost line that is of no installed package and not of Python's own; None where there is none."""
    own = [line for line in stack if not is_library(line.file)]
    return own[-1] if own else None


def is_library(file: str) -> bool:
    """Whether a file is of an installed package, of Python's library or of no file."""
    return (
        not file
        or file.startswith("<")
        or any(part in file for part in ("/site-packages/", "/dist-packages/", "/lib/python"))
    )


def _ended(run: Run) -> Ended:
    if run.ended is None:
        return "running"
    return "failed" if run.failure is not None or run.exit_status else "ended"


def _frames(run: Run) -> Iterator[FrameDigest]:
    """In the order in which they were compiled, each the nth of its code."""
    seen: Counter[tuple[str, int, str]] = Counter()
    guards = {each.frame: each for each in run.recompiles}
    values: dict[str, list[CallValues]] = {}
    for call in run.node_values:
        values.setdefault(call.frame, []).append(call)
    for frame in run.frames.values():
        path = relative(frame.file, run.program.cwd)
        function = spoken(frame)
        nth = seen[path, frame.line, function]
        seen[path, frame.line, function] += 1
        result = run.decided.last(FrameResult).get(frame.id)
        again = guards.get(frame.id)
        yield FrameDigest(
            id=frame.id,
            function=function,
            file=frame.file,
            path=path,
            line=frame.line,
            nth=nth,
            end=result.end if result else "",
            seconds=result.seconds if result else None,
            graphs=tuple(_graphs(run, frame)),
            guards=_guards(run, frame),
            kernels=_kernels(run, frame),
            recompiled=_guard_that_failed(again) if again else "",
            breaks=tuple(_breaks(run, frame)),
            caches=_cache_answers(run, frame),
            nodes=tuple(_nodes(run, frame)) if frame.id in values else (),
            values=tuple(values.get(frame.id, ())),
        )


def _guard_that_failed(again: Recompiled) -> str:
    return plain((again.failed[0].text if again.failed else again.reason).partition("\n")[0])


def _cache_answers(run: Run, frame: Frame) -> tuple[str, ...]:
    return tuple(sorted({f"{each.cache} {each.outcome}" for each in run.decided.of(CacheAnswer).get(frame.id, ())}))


def _nodes(run: Run, frame: Frame) -> Iterator[NodePlace]:
    graph = run.graph(frame.id, "dynamo")
    for node in graph.nodes if graph is not None else ():
        yield NodePlace(node.name, tuple(node.inputs), node.file, node.line)


def _graphs(run: Run, frame: Frame) -> Iterator[tuple[str, Fingerprint]]:
    for key, graph in run.graphs.items():
        if key.frame == frame.id and graph.nodes:
            yield " ".join(filter(None, (key.stage, key.part))), of_graph(graph)


def _guards(run: Run, frame: Frame) -> Fingerprint | None:
    found = run.decided.last(FrameGuards).get(frame.id)
    return (
        fingerprint(sorted(plain(f"{guard.kind} {' '.join(guard.code)}") for guard in found.guards)) if found else None
    )


def _kernels(run: Run, frame: Frame) -> Fingerprint | None:
    codes = [code for (owner, _), code in run.codes.items() if owner == frame.id]
    texts = [kernel.source or f"{kernel.language} {kernel.name}" for code in codes for kernel in code.kernels]
    return fingerprint(texts) if codes else None


def _breaks(run: Run, frame: Frame) -> Iterator[str]:
    for each in run.breaks:
        if each.frame == frame.id:
            yield f"{relative(each.file, run.program.cwd)}:{each.line}: {plain(each.reason)}"
    for again in run.decided.every(BreakAgain):
        if again.frame == frame.id and again.first < len(run.breaks):
            first = run.breaks[again.first]
            yield f"{relative(first.file, run.program.cwd)}:{first.line}: {plain(first.reason)}"


def _groups(log: CollectiveLog, kinds: dict[CallKind, int]) -> Iterator[GroupCalls]:
    """Those of each group up to the first that is not recorded; `kinds` gets each call once."""
    by_group: dict[str, list[Collective]] = {name: [] for name in log.groups}
    for each in log.began:
        if not each.peer_to_peer:
            by_group.setdefault(each.group, []).append(each)
    for name, calls in by_group.items():
        group, last = log.groups.get(name), log.last.get(name)
        if group is None or last is None:
            continue
        order: list[int] = []
        first = calls[0].number if calls else last.number
        for each in calls[:MOST_CALLS]:
            if each.number != first + len(order):
                break
            kind = CallKind(each.op, each.inputs, each.outputs, each.file, each.line, each.function)
            order.append(kinds.setdefault(kind, len(kinds)))
        yield GroupCalls(group, first, tuple(order), last.number)
    for name, count in log.counts.items():
        if not log.recorded and name in log.groups:
            yield GroupCalls(log.groups[name], first=count + 1, begun=count)
