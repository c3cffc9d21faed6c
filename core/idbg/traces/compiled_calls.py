"""Read from torch's trace which collectives each compiled graph contains, and the order in which graphs were called.

Both become collectives of a group of their own, so that ranks are compared by them: ranks whose graphs have other
collectives, or call them in another order, wait for one another for ever.
"""

import json

from idbg.analysis.ranks.collectives import GRAPH_CALLS, IN_GRAPH
from idbg.schema import events
from idbg.schema.collectives import Collective, ProcessGroup
from idbg.schema.graphs import Frame
from idbg.traces.frame import TracedFrame
from idbg.traces.run import TracedRun

_SCHEDULE, _ORDER, _CALL = "inductor_collective_schedule", "graph_execution", "inductor_graph_execution"
MOST = 4000  # of a group
_NO_FRAME = Frame("", "")


class CompiledCalls:
    """What a trace has of one process."""

    def __init__(self, run: "TracedRun[TracedFrame]") -> None:
        self._run = run
        self._counts: dict[str, int] = {}  # of each group

    def seen(self, artifact: str, frame: str, text: str) -> events.CollectivesSeen | None:
        """What an artifact of this name has; None of another. Raises ValueError, TypeError or KeyError."""
        if artifact == _SCHEDULE:
            known = self._run.started(self._run.named(frame)) or Frame(frame, "?")
            names = [str(op).removeprefix("torch.ops._c10d_functional.").removesuffix(".default") for op in _list(text)]
            return self._group(f"{IN_GRAPH} {self._run.named(frame)}", names, known)
        if artifact == _ORDER:
            return self._group(GRAPH_CALLS, [f"graph {each['compile_id']}" for each in _list(text)])
        if artifact == _CALL:  # torch 2.9 wrote one for each
            return self._group(GRAPH_CALLS, [str(json.loads(text)["graph"])])
        return None

    def _group(self, name: str, ops: list[str], frame: Frame = _NO_FRAME) -> events.CollectivesSeen:
        """The next calls of the group."""
        first = 1 + self._counts.get(name, 0)
        began = tuple(
            Collective(group=name, number=first + at, op=op, file=frame.file, line=frame.line, function=frame.function)
            for at, op in enumerate(ops[:MOST])
        )
        self._counts[name] = first + len(began) - 1
        return events.CollectivesSeen(run=self._run.run, began=began, groups=(ProcessGroup(name, name),))


def _list(text: str) -> list[dict[str, object]]:
    found = json.loads(text)
    if isinstance(found, dict):
        found = found["graph_execution_order"]
    if not isinstance(found, list):
        raise TypeError(f"{type(found).__name__} is no list")
    return found
