"""Arrange frames as a tree, with the parts of one function beside each other, and fold those that are alike.

A function that broke is several frames: itself, and one for each place where it resumes. They stand beside each other,
below the frame whose compiled code called the function.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from idbg.schema.decisions.dynamo import BreakAgain, FrameEnd, FrameResult
from idbg.schema.decisions.inductor import CacheAnswer
from idbg.schema.graphs import Frame, Graph
from idbg.schema.runs import Run

_RESUMED = re.compile(r"^torch_dynamo_resume_in_(.+)_at_(\d+)$")


@dataclass(frozen=True)
class FrameRow:
    """A frame in the tree, or several that are alike (`ids`, in the order in which they were compiled): those of one
    function with the same ops, whose own frames are alike too. Numbers are of all of them: seconds (None where torch
    reported none), times that their bytecode was traced, breaks, and how many cache lookups hit.
    `ops` and `end` are of the first; `end` is "" while it is compiled.
    """

    ids: tuple[str, ...]
    depth: int
    function: str
    file: str
    line: int
    resumed: int = 0
    end: FrameEnd | str = ""
    why: str = ""
    seconds: float | None = None
    ops: int | None = None
    guards: int | None = None
    attempts: int = 0
    restarts: tuple[str, ...] = ()
    breaks: int = 0
    graphs: int = 0
    kernels: int = 0
    hits: int = 0
    lookups: int = 0

    @property
    def name(self) -> str:
        """ "f", or of what runs on after a break "f, after line 20"."""
        return f"{self.function}, after line {self.resumed}" if self.resumed else self.function

    @property
    def count(self) -> int:
        """How many frames it stands for."""
        return len(self.ids)


def resumed(function: str) -> tuple[str, int] | None:
    """Which function goes on in a frame of this name, and after which line; None if it is none that goes on."""
    found = _RESUMED.match(function)
    return (found[1], int(found[2])) if found else None


def spoken(frame: Frame) -> str:
    """ "f", "Block.forward", or "f, after line 20"."""
    return spoken_name(frame.function, frame.label)


def spoken_name(function: str, label: str = "") -> str:
    """The same, of a function's name; `label` stands for the function where there is one."""
    rest = resumed(function)
    return f"{label or rest[0]}, after line {rest[1]}" if rest else label or function


def children(run: Run) -> dict[str, list[str]]:
    """Frame -> those that its compiled code called, in order."""
    found: dict[str, list[str]] = {}
    for frame in run.frames.values():
        if frame.parent:
            found.setdefault(frame.parent, []).append(frame.id)
    return found


def rows(run: Run, *, folded: bool = True) -> list[FrameRow]:
    """The tree, each frame before those below it; with `folded`, those that are alike are one row."""
    below: dict[str, list[FrameRow]] = {}
    above = _aboves(run)
    for row in _rows(run):
        below.setdefault(above[row.ids[0]], []).append(row)
    groups = _alike(run, below) if folded else {name: [[row] for row in listed] for name, listed in below.items()}
    return list(_flat(groups))


def breaks_of(run: Run) -> dict[str, int]:
    """Frame -> how often it broke."""
    counts: dict[str, int] = {}
    for frame in (*(each.frame for each in run.breaks), *(each.frame for each in run.decided.every(BreakAgain))):
        counts[frame] = counts.get(frame, 0) + 1
    return counts


def _aboves(run: Run) -> dict[str, str]:
    """Frame -> the one below which it stands: that which called the function that it is a part of; "" for none."""
    above: dict[str, str] = {}
    for frame in run.frames.values():  # a parent was compiled before what it calls
        rest, parent = resumed(frame.function), run.frames.get(frame.parent)
        if parent is None or parent.id not in above:
            above[frame.id] = ""
        elif rest is not None and _is_part(parent, rest[0], frame.file):
            above[frame.id] = above[parent.id]
        else:
            above[frame.id] = parent.id
    return above


def _is_part(frame: Frame, function: str, file: str) -> bool:
    rest = resumed(frame.function)
    return (rest[0] if rest else frame.function) == function and frame.file == file


def _rows(run: Run) -> Iterator[FrameRow]:
    breaks, answered, results = breaks_of(run), run.decided.of(CacheAnswer), run.decided.last(FrameResult)
    graphs: dict[str, int] = {}
    kernels: dict[str, int] = {}
    for graph in run.graphs:
        graphs[graph.frame] = graphs.get(graph.frame, 0) + 1
    for (frame_id, _), code in run.codes.items():
        kernels[frame_id] = kernels.get(frame_id, 0) + len(code.kernels)
    for frame in run.frames.values():
        rest = resumed(frame.function)
        answers = [answer.outcome for answer in answered.get(frame.id, ())]
        row = FrameRow(
            ids=(frame.id,),
            depth=0,
            function=frame.label or (rest[0] if rest else frame.function),
            file=frame.file,
            line=frame.line,
            resumed=rest[1] if rest else 0,
            breaks=breaks.get(frame.id, 0),
            graphs=graphs.get(frame.id, 0),
            kernels=kernels.get(frame.id, 0),
            hits=answers.count("hit"),
            lookups=sum(outcome in ("hit", "miss") for outcome in answers),
        )
        result = results.get(frame.id)
        if result is not None:
            row = replace(
                row,
                end=result.end,
                why=result.why,
                seconds=result.seconds,
                ops=result.ops,
                guards=result.guards,
                attempts=result.attempts,
                restarts=result.restarts,
            )
        yield row


def _alike(run: Run, below: dict[str, list[FrameRow]]) -> dict[str, list[list[FrameRow]]]:
    """Frame -> the groups of those below it. What is called is compiled later: the last come first."""
    order = {name: at for at, name in enumerate(run.frames)}
    numbers: dict[object, int] = {}  # of each form of a frame
    form: dict[str, int] = {}
    groups: dict[str, list[list[FrameRow]]] = {}
    for name in sorted(below, key=lambda name: order.get(name, -1), reverse=True):
        by_form: dict[int, list[FrameRow]] = {}
        for row in sorted(below[name], key=lambda row: order[row.ids[0]], reverse=True):
            frame = row.ids[0]
            own = (row.function, row.file, row.line, row.resumed, row.end, _ops(run.graph(frame, "dynamo"), row.ops))
            inner = tuple(form[group[0].ids[0]] for group in groups.get(frame, ()))
            form[frame] = numbers.setdefault((own, inner), len(numbers))
            by_form.setdefault(form[frame], []).append(row)
        found = [list(reversed(group)) for group in by_form.values()]
        groups[name] = sorted(found, key=lambda group: order[group[0].ids[0]])
    return groups


def _ops(graph: Graph | None, count: int | None) -> object:
    if graph is None:
        return count
    return tuple(node.target for node in graph.nodes if node.op.startswith("call_"))


def _flat(groups: dict[str, list[list[FrameRow]]]) -> Iterator[FrameRow]:
    """Rows in the order of the tree. What is below frames that are alike is alike too, and counted together."""
    pending = [(0, group) for group in reversed(groups.get("", []))]
    while pending:
        depth, group = pending.pop()
        yield _together(group, depth)
        inner = zip(*(groups.get(row.ids[0], []) for row in group), strict=True)
        pending += reversed([(depth + 1, [row for rows in each for row in rows]) for each in inner])


def _together(group: list[FrameRow], depth: int) -> FrameRow:
    seconds = [row.seconds for row in group if row.seconds is not None]
    return replace(
        group[0],
        ids=tuple(row.ids[0] for row in group),
        depth=depth,
        seconds=sum(seconds) if seconds else None,
        attempts=sum(row.attempts for row in group),
        breaks=sum(row.breaks for row in group),
        graphs=sum(row.graphs for row in group),
        kernels=sum(row.kernels for row in group),
        hits=sum(row.hits for row in group),
        lookups=sum(row.lookups for row in group),
    )
