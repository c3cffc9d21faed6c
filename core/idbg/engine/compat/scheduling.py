"""What does Inductor's scheduler fuse, what does it refuse, and what does it say of it as it does?

Run on torch 2.14 (CPU, and one H100) and 2.11 (CPU).
"""

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from idbg.engine.compat.passes import replaced
from idbg.engine.compat.patched import when_lowering
from idbg.schema.decisions.fusion import JUDGED, SILENT, OpKind, SchedulerOp

MOST_HEARD = 20_000  # different refusals of one graph
_Said = tuple[str, str, str]  # names of both, and the reason before it is filled in


class Heard:
    """What one scheduler did, while it did it. Nothing is made into text before somebody asks."""

    def __init__(self) -> None:
        self.asked = 0
        self.dropped = 0
        self.said = 0
        self.nodes: dict[str, Any] = {}  # by their names, fused ones too
        self.refused: dict[_Said, list[Any]] = {}  # how often, and what the reason is filled in with, the first time

    def refuse(self, one: str, other: str, reason: str, given: tuple[object, ...] = ()) -> None:
        """One refusal more."""
        self.said += 1
        entry = self.refused.get((one, other, reason))
        if entry is not None:
            entry[0] += 1
        elif len(self.refused) < MOST_HEARD:
            self.refused[one, other, reason] = [1, given]
        else:
            self.dropped += 1

    def refuse_nodes(self, one: Any, other: Any, reason: str) -> None:
        """The same of nodes for which the scheduler gave no reason."""
        names = one.get_name(), other.get_name()
        self.nodes.update(zip(names, (one, other), strict=True))
        self.refuse(*names, reason)

    def refusals(self) -> Iterator[tuple[list[str], list[str], str, int]]:
        """The names of the ops on both sides, the reason in words, and how often."""
        for (one, other, reason), (times, given) in self.refused.items():
            if one in self.nodes and other in self.nodes:
                words = reason % given if given else reason
                yield _op_names(self.nodes[one]), _op_names(self.nodes[other]), words, times


Decided = Callable[[Any, Heard], None]


@contextmanager
def schedulers_heard(decided: Decided) -> Iterator[None]:
    """While it lasts, `decided` is told of each scheduler when it is done, with what was heard of it."""
    with when_lowering(lambda: _patched(decided)):
        yield


@contextmanager
def _patched(decided: Decided) -> Iterator[None]:
    from torch._inductor.scheduler import Scheduler, WhyNoFuse

    going: list[Heard] = []  # the innermost last: a graph inside of another has a scheduler of its own
    scheduler: Any = Scheduler
    why: Any = WhyNoFuse
    with ExitStack() as stack:
        stack.enter_context(replaced(scheduler, "_init", _init(scheduler._init, going, decided)))
        stack.enter_context(replaced(scheduler, "can_fuse", _can_fuse(scheduler.can_fuse, going)))
        judged = _judged(scheduler.speedup_by_fusion, going)
        stack.enter_context(replaced(scheduler, "speedup_by_fusion", judged))
        stack.enter_context(replaced(why, "__init__", _named(why.__init__, going)))
        stack.enter_context(replaced(why, "__call__", _said(why.__call__, going)))
        yield


def _init(original: Callable[..., None], going: list[Heard], decided: Decided) -> Callable[..., None]:
    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        heard = Heard()
        going.append(heard)
        try:
            original(self, *args, **kwargs)
        finally:
            going.pop()
        decided(self, heard)

    return init


def _can_fuse(original: Callable[..., bool], going: list[Heard]) -> Callable[..., bool]:
    """Backends refuse without a word: who heard nothing since the question was asked notes that."""

    @functools.wraps(original)
    def can_fuse(self: Any, one: Any, other: Any, *args: Any, **kwargs: Any) -> bool:
        if not going:
            return original(self, one, other, *args, **kwargs)
        heard = going[-1]
        heard.asked += 1
        before = heard.said
        answer = original(self, one, other, *args, **kwargs)
        if not answer and heard.said == before and one is not other:
            heard.refuse_nodes(one, other, SILENT)
        return answer

    return can_fuse


def _judged(original: Callable[..., Any], going: list[Heard]) -> Callable[..., Any]:
    @functools.wraps(original)
    def speedup_by_fusion(self: Any, one: Any, other: Any) -> Any:
        result = original(self, one, other)
        if not going:
            return result
        heard = going[-1]
        measure = result.callable_fn
        if measure is None:
            if not result.should_fuse:
                heard.refuse_nodes(one, other, JUDGED)
            return result

        def measured() -> bool:
            better = bool(measure())
            if not better:
                heard.refuse_nodes(one, other, JUDGED)
            return better

        result.callable_fn = measured
        return result

    return speedup_by_fusion


def _named(original: Callable[..., None], going: list[Heard]) -> Callable[..., None]:
    def init(self: Any, one: Any, other: Any) -> None:
        original(self, one, other)
        if going:
            known = going[-1].nodes
            known[self.name1] = one
            known[self.name2] = other

    return init


def _said(original: Callable[..., None], going: list[Heard]) -> Callable[..., None]:
    def call(self: Any, reason: str, *args: Any) -> None:
        original(self, reason, *args)
        if going:
            going[-1].refuse(self.name1, self.name2, reason, args)

    return call


def groups_of(scheduler: Any) -> list[list[str]]:
    """What became one, by the names of its ops, in the order in which they run."""
    return [_op_names(node) for node in scheduler.nodes]


def ops_of(scheduler: Any) -> Iterator[SchedulerOp]:
    """Each op that is left, as a record."""
    from torch._inductor.virtualized import V

    order = {node: at for at, node in enumerate(V.graph.graph.nodes)}
    graph = graph_name()
    for node in scheduler.nodes:
        for each in node.get_nodes():
            yield _op(each, order, graph)


def graph_name() -> str:
    """Of the graph that is being lowered: "" of a frame's own, the name of one inside of it."""
    from torch._inductor.virtualized import V

    return str(V.graph.name or "")


def _op_names(node: Any) -> list[str]:
    return [str(each.get_name()) for each in node.get_nodes()]


def _op(node: Any, order: dict[Any, int], graph: str) -> SchedulerOp:
    made = node.node
    data = getattr(made, "data", None)
    kind = _kind(node)
    calls = getattr(made, "python_kernel_name", None) or type(made).__name__ if kind == "extern" else ""
    return SchedulerOp(
        name=str(node.get_name()),
        kind=kind,
        nodes=tuple(str(origin.name) for origin in sorted(_origins(made, kind, order), key=lambda each: order[each])),
        loops=_texts(getattr(data, "ranges", None)),
        reduced=_texts(getattr(data, "reduction_ranges", None)),
        reads=tuple(sorted({str(read.name) for read in node.read_writes.reads})),
        writes=tuple(sorted(map(str, node.get_buffer_names()))),
        calls=str(calls),
        device=str(node.get_device() or ""),
        graph=graph,
    )


def _origins(made: Any, kind: OpKind, order: dict[Any, int]) -> list[Any]:
    """The nodes of this graph that an op computes. Of a call into a library torch names all that leads to it too."""
    origin = getattr(made, "origin_node", None)
    if kind == "extern" and origin in order:
        return [origin]
    return [each for each in getattr(made, "origins", None) or () if each in order]


def _kind(node: Any) -> OpKind:
    from torch._inductor.scheduler import NopKernelSchedulerNode

    if node.is_template():
        return "template"
    if isinstance(node, NopKernelSchedulerNode):
        return "nop"
    if node.is_extern():
        return "extern"
    return "reduction" if node.is_reduction() else "loops"


def _texts(sizes: Iterable[object] | None) -> tuple[str, ...]:
    return tuple(map(str, sizes or ()))
