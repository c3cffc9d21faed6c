"""Record what Inductor's scheduler fuses, what it refuses to fuse, and why."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

from msgspec.structs import replace

from idbg.engine.capture.run import RunCapture
from idbg.engine.compat import scheduling, tracing
from idbg.schema.decisions.inductor import FusionLog, Refusal
from idbg.schema.graphs import Part

MAX_REFUSALS = 5_000  # of one graph, between the ops that remain

_Key = tuple[str, Part]


def record(capture: RunCapture) -> AbstractContextManager[None]:
    """While it lasts, the decisions of each scheduler become an event as soon as it is done."""
    logs: dict[_Key, dict[str, FusionLog]] = {}  # a graph inside of a frame's has a scheduler of its own

    def done(scheduler: Any, seen: scheduling.SchedulerRecord) -> None:
        compile_id = tracing.current_frame()
        if not compile_id:
            return
        frame = capture.frame(compile_id)
        key = frame.frame, frame.current_part
        graph = scheduling.graph_name()
        known = logs.setdefault(key, {})
        if not graph:
            known.clear()  # another compile of the same: a recompile after a restart
        known[graph] = _log(scheduler, seen)
        capture.decided(frame.frame, replace(_merged(known.values()), part=frame.current_part))

    return scheduling.observe_schedulers(capture.feature("fusion"), done)


def _log(scheduler: Any, seen: scheduling.SchedulerRecord) -> FusionLog:
    groups = scheduling.groups_of(scheduler)
    number = {op: at for at, ops in enumerate(groups) for op in ops}
    refused: dict[tuple[int, int, str], int] = {}
    for ones, others, reason, times in seen.refusals():
        one, other = number.get(ones[0], -1), number.get(others[0], -1)
        if min(one, other) >= 0 and one != other:  # else one of them is gone, or they are fused after all
            key = min(one, other), max(one, other), reason
            refused[key] = refused.get(key, 0) + times
    refusals = [Refusal(*key, times) for key, times in refused.items()]
    return FusionLog(
        ops=tuple(scheduling.ops_of(scheduler)),
        groups=tuple(map(tuple, groups)),
        refusals=tuple(refusals[:MAX_REFUSALS]),
        pairs_tried=seen.pairs,
        dropped=seen.dropped + max(len(refusals) - MAX_REFUSALS, 0),
    )


def _merged(logs: Iterable[FusionLog]) -> FusionLog:
    """All graphs of a frame as one log: the names of their ops are unique."""
    merged = FusionLog()
    for log in logs:
        first = len(merged.groups)
        moved = (replace(each, one=each.one + first, other=each.other + first) for each in log.refusals)
        merged = FusionLog(
            ops=(*merged.ops, *log.ops),
            groups=(*merged.groups, *log.groups),
            refusals=(*merged.refusals, *moved),
            pairs_tried=merged.pairs_tried + log.pairs_tried,
            dropped=merged.dropped + log.dropped,
        )
    return merged
