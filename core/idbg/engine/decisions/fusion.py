"""What did Inductor's scheduler make one, what did it refuse, and why?"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from idbg.engine.capture.run import RunCapture
from idbg.engine.compat import scheduling, tracing
from idbg.engine.decisions.hearing import harmless
from idbg.schema import events
from idbg.schema.decisions.fusion import FusionLog, Refusal
from idbg.schema.graphs import Part

MOST_REFUSALS = 5_000  # of one graph, between what was left in the end

_Key = tuple[str, Part]


@contextmanager
def heard(capture: RunCapture) -> Iterator[None]:
    """While it lasts, what each scheduler decided is told as soon as it is done."""
    logs: dict[_Key, dict[str, FusionLog]] = {}  # a graph inside of a frame's has a scheduler of its own

    @harmless(capture, "what the scheduler decided")
    def decided(scheduler: Any, heard: scheduling.Heard) -> None:
        compile_id = tracing.current_frame()
        if not compile_id:
            return
        frame = capture.frame(compile_id)
        key = frame.frame, frame.part_in_hand
        graph = scheduling.graph_name()
        known = logs.setdefault(key, {})
        if not graph:
            known.clear()  # another compile of the same: a recompile after a restart
        known[graph] = _log(scheduler, heard)
        fusion = _merged(known.values())
        capture.emit(events.FusionDecided(run=capture.run, frame=key[0], part=key[1], fusion=fusion))

    with scheduling.schedulers_heard(decided):
        yield


def _log(scheduler: Any, heard: scheduling.Heard) -> FusionLog:
    groups = scheduling.groups_of(scheduler)
    number = {op: at for at, ops in enumerate(groups) for op in ops}
    refused: dict[tuple[int, int, str], int] = {}
    for ones, others, reason, times in heard.refusals():
        one, other = number.get(ones[0], -1), number.get(others[0], -1)
        if min(one, other) >= 0 and one != other:  # else one of them is gone, or they became one after all
            key = min(one, other), max(one, other), reason
            refused[key] = refused.get(key, 0) + times
    refusals = [Refusal(*key, times) for key, times in refused.items()]
    return FusionLog(
        ops=tuple(scheduling.ops_of(scheduler)),
        groups=tuple(map(tuple, groups)),
        refusals=tuple(refusals[:MOST_REFUSALS]),
        pairs_tried=heard.asked,
        dropped=heard.dropped + max(len(refusals) - MOST_REFUSALS, 0),
    )


def _merged(logs: Iterable[FusionLog]) -> FusionLog:
    """All graphs of a frame as one log: their ops have names of their own."""
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
