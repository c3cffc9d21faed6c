"""Record what Inductor's scheduler fuses, what it refuses, and the reasons that it logs."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from idbg.engine.compat.hooks import Feature, hooked
from idbg.engine.compat.names import instead_of, internals
from idbg.schema.decisions.inductor import JUDGED, SILENT, OpKind, SchedulerOp

MAX_REFUSALS = 20_000  # different refusals of one graph
_Key = tuple[str, str, str]  # names of both nodes, and the reason before its arguments are filled in


class SchedulerRecord:
    """What one scheduler did. Reasons are formatted only when they are read."""

    def __init__(self) -> None:
        self.pairs = 0  # that were considered for fusion
        self.dropped = 0
        self.total = 0  # refusals
        self.nodes: dict[str, Any] = {}  # by name, fused nodes too
        self.refused: dict[_Key, list[Any]] = {}  # how often, and the arguments of the reason the first time

    def refuse(self, one: str, other: str, reason: str, arguments: tuple[object, ...] = ()) -> None:
        """Record one refusal."""
        self.total += 1
        entry = self.refused.get((one, other, reason))
        if entry is not None:
            entry[0] += 1
        elif len(self.refused) < MAX_REFUSALS:
            self.refused[one, other, reason] = [1, arguments]
        else:
            self.dropped += 1

    def refuse_nodes(self, one: Any, other: Any, reason: str) -> None:
        """Record a refusal for which the scheduler logs no reason."""
        names = one.get_name(), other.get_name()
        self.nodes.update(zip(names, (one, other), strict=True))
        self.refuse(*names, reason)

    def refusals(self) -> Iterator[tuple[list[str], list[str], str, int]]:
        """The names of the ops on both sides, the reason, and how often."""
        for (one, other, reason), (times, arguments) in self.refused.items():
            if one in self.nodes and other in self.nodes:
                text = reason % arguments if arguments else reason
                yield _op_names(self.nodes[one]), _op_names(self.nodes[other]), text, times


def observe_schedulers(feature: Feature, done: Callable[[Any, SchedulerRecord], None]) -> AbstractContextManager[None]:
    """While it lasts, `done` gets each scheduler when it has finished, with its record."""
    observer = _Observer(done)
    wrappers = {
        "Scheduler._init": observer.init,
        "Scheduler.can_fuse": observer.can_fuse,
        "Scheduler.speedup_by_fusion": observer.speedup_by_fusion,
        "WhyNoFuse.__init__": observer.name_nodes,
        "WhyNoFuse.__call__": observer.log,
    }
    return hooked(feature, wrappers)


class _Observer:
    def __init__(self, done: Callable[[Any, SchedulerRecord], None]) -> None:
        self._done = done
        # the innermost last: a graph inside of another has a scheduler of its own
        self._active: list[SchedulerRecord] = []

    def init(self, call: Callable[..., None], scheduler: Any, *args: Any, **kwargs: Any) -> None:
        record = SchedulerRecord()
        self._active.append(record)
        try:
            call(scheduler, *args, **kwargs)
        finally:
            self._active.pop()
        self._done(scheduler, record)

    def can_fuse(
        self, call: Callable[..., bool], scheduler: Any, one: Any, other: Any, *args: Any, **kwargs: Any
    ) -> bool:
        """Backends refuse without a log: no refusal was logged during the call."""
        if not self._active:
            return call(scheduler, one, other, *args, **kwargs)
        record = self._active[-1]
        record.pairs += 1
        before = record.total
        answer = call(scheduler, one, other, *args, **kwargs)
        if not answer and record.total == before and one is not other:
            record.refuse_nodes(one, other, SILENT)
        return answer

    def speedup_by_fusion(self, call: Callable[..., Any], scheduler: Any, one: Any, other: Any) -> Any:
        result = call(scheduler, one, other)
        if not self._active:
            return result
        record, measure = self._active[-1], result.callable_fn
        if measure is None:
            if not result.should_fuse:
                record.refuse_nodes(one, other, JUDGED)
            return result

        def measured() -> bool:
            is_faster = bool(measure())
            if not is_faster:
                record.refuse_nodes(one, other, JUDGED)
            return is_faster

        result.callable_fn = measured
        return result

    def name_nodes(self, call: Callable[..., None], why: Any, one: Any, other: Any) -> None:
        call(why, one, other)
        if self._active:
            self._active[-1].nodes.update({why.name1: one, why.name2: other})

    def log(self, call: Callable[..., None], why: Any, reason: str, *args: Any) -> None:
        call(why, reason, *args)
        if self._active:
            self._active[-1].refuse(why.name1, why.name2, reason, args)


def groups_of(scheduler: Any) -> list[list[str]]:
    """The names of the ops of each fused group, in the order in which they run."""
    return [_op_names(node) for node in scheduler.nodes]


def ops_of(scheduler: Any) -> Iterator[SchedulerOp]:
    """Each op that remains, as a record."""
    order = {node: at for at, node in enumerate(internals._inductor.virtualized.V.graph.graph.nodes)}
    graph = graph_name()
    for node in scheduler.nodes:
        for each in node.get_nodes():
            yield _op(each, order, graph)


@instead_of("")
def graph_name() -> str:
    """The name of the graph that is being lowered; "" for the outermost graph of a frame."""
    return str(internals._inductor.virtualized.V.graph.name or "")


def _op_names(node: Any) -> list[str]:
    return [str(each.get_name()) for each in node.get_nodes()]


def _op(node: Any, order: dict[Any, int], graph: str) -> SchedulerOp:
    buffer = node.node
    data = getattr(buffer, "data", None)
    kind = _kind(node)
    calls = getattr(buffer, "python_kernel_name", None) or type(buffer).__name__ if kind == "extern" else ""
    return SchedulerOp(
        name=str(node.get_name()),
        kind=kind,
        nodes=tuple(str(origin.name) for origin in sorted(_origins(buffer, kind, order), key=order.__getitem__)),
        loops=_texts(getattr(data, "ranges", None)),
        reduced=_texts(getattr(data, "reduction_ranges", None)),
        reads=tuple(sorted({str(read.name) for read in node.read_writes.reads})),
        writes=tuple(sorted(map(str, node.get_buffer_names()))),
        calls=str(calls),
        device=str(node.get_device() or ""),
        graph=graph,
    )


def _origins(buffer: Any, kind: OpKind, order: dict[Any, int]) -> list[Any]:
    """The nodes of this graph that an op computes. For a library call `origins` includes its producers too."""
    origin = getattr(buffer, "origin_node", None)
    if kind == "extern" and origin in order:
        return [origin]
    return [each for each in getattr(buffer, "origins", None) or () if each in order]


def _kind(node: Any) -> OpKind:
    if node.is_template():
        return "template"
    if isinstance(node, internals._inductor.scheduler.NopKernelSchedulerNode):
        return "nop"
    if node.is_extern():
        return "extern"
    return "reduction" if node.is_reduction() else "loops"


def _texts(sizes: Iterable[object] | None) -> tuple[str, ...]:
    return tuple(map(str, sizes or ()))
