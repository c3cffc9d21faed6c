"""Record what each pass changes in a graph: Inductor's passes, the program's, and changes between passes."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from msgspec.structs import replace
from torch.fx import GraphModule

from idbg.analysis.decisions.side_by_side import Pair, aligned
from idbg.engine.capture.run import RunCapture
from idbg.engine.compat import fx, stages, tracing
from idbg.engine.compat.passes import Facts, Pass, Snapshot, name_within, observe_passes, observe_phases, value_of
from idbg.schema.decisions.inductor import BETWEEN, DiffRow, PassRun, Phase, PhaseRun
from idbg.schema.graphs import Part

MAX_ROWS = 1_000  # of one pass: a graph may have 100,000 nodes
MAX_TEXT = 400  # characters of a node's line
_AROUND = 2  # nodes that are shown around a difference


@contextmanager
def record(capture: RunCapture) -> Iterator[None]:
    """While it lasts, each phase of passes becomes an event, with what each pass changed."""
    recorder = _Passes(capture)
    with (
        observe_phases(capture.feature("pass phases"), recorder),
        observe_passes(capture.feature("traced passes"), recorder.pass_began, recorder.pass_ended),
    ):
        yield


@dataclass
class _Open:
    """A phase that is running. `snapshot` is the last one of its graph."""

    phase: Phase
    gm: GraphModule
    graph: str
    snapshot: Snapshot
    began: float
    nodes: int
    ran: int = 0
    passes: list[PassRun] = field(default_factory=list)


class _Passes:
    """Follows phases and passes. Only the outermost pass is recorded: inner ones are part of it."""

    def __init__(self, capture: RunCapture) -> None:
        self._capture = capture
        self._open: list[_Open] = []
        self._done: list[PhaseRun] = []
        self._depth = 0
        self._before: tuple[Snapshot, float] | None = None

    def phase_began(self, phase: Phase, gm: GraphModule) -> None:
        graph = name_within(self._open[0].gm, gm) if self._open else ""
        snapshot = Snapshot(gm.graph)
        self._open.append(_Open(phase, gm, graph, snapshot, time.perf_counter(), len(snapshot)))

    def phase_ended(self, phase: Phase, gm: GraphModule) -> None:
        open_phase = self._open.pop()
        seconds = time.perf_counter() - open_phase.began
        after = Snapshot(gm.graph)
        self._outside(open_phase, after)
        self._done.append(
            PhaseRun(
                phase=phase,
                part=self._part() if phase == "post_grad" else "",
                graph=open_phase.graph,
                ran=open_phase.ran,
                seconds=seconds,
                nodes=(open_phase.nodes, len(after)),
                passes=tuple(open_phase.passes),
            )
        )
        if not self._open:
            done, self._done = tuple(self._done), []
            frame = tracing.current_frame()
            name = self._capture.frame(frame).frame if frame else ""
            self._capture.decided(name, *done)

    def _part(self) -> Part:
        frame = tracing.current_frame()
        return self._capture.frame(frame).current_part if frame else ""

    def pass_began(self, applied: Pass) -> None:
        self._depth += 1
        if self._depth > 1:
            return
        if not self._open:
            self.phase_began("other", applied.gm)
        now, phase = Snapshot(applied.gm.graph), self._open[-1]
        if applied.gm is phase.gm:
            self._outside(phase, now)
        self._before = now, time.perf_counter()

    def pass_ended(self, applied: Pass) -> None:
        self._depth -= 1
        if self._depth or self._before is None or not self._open:
            return
        ended = time.perf_counter()
        (before, began), self._before, phase = self._before, None, self._open[-1]
        after = Snapshot(applied.gm.graph)
        phase.ran += 1
        if applied.gm is phase.gm:
            phase.snapshot = after
        file, line = stages.place_of(applied.function)
        ran = PassRun(
            name=applied.name,
            number=phase.ran,
            by=stages.name_of(applied.function),
            file=file,
            line=line,
            own=bool(file) and not stages.is_torchs(file),
            seconds=ended - began,
        )
        if (changed := _changed(ran, before, after)) is not None:
            phase.passes.append(changed)
        if phase.phase == "other":
            self.phase_ended("other", applied.gm)

    def _outside(self, phase: _Open, now: Snapshot) -> None:
        """Record changes since the last snapshot that no named pass made."""
        ran = PassRun(name=BETWEEN, number=phase.ran + 1)
        if (changed := _changed(ran, phase.snapshot, now)) is not None:
            phase.passes.append(changed)
        phase.snapshot = now


def _changed(ran: PassRun, before: Snapshot, after: Snapshot) -> PassRun | None:
    """The pass with its changes; None where it changed nothing."""
    if before.is_same(after):
        return None
    old, new = before.names(), after.names()
    pairs = aligned(old, new)
    written = [name for name in after.written(before) if _line(before[name]) != _line(after[name])]
    came = tuple(name for name in new if name not in before)
    went = tuple(name for name in old if name not in after)
    moved = tuple(right for left, right in pairs if not left and right in before)
    if not (came or went or moved or written):
        return None
    rows, dropped = _rows(pairs, set(written), before, after)
    stands_for = _stands_for(written, came, before, after, ran.name)
    return replace(
        ran,
        nodes=(len(before), len(after)),
        came=came,
        went=went,
        moved=moved,
        changed=tuple(written),
        of=tuple((name, tuple(dict.fromkeys(stands_for[name]))) for name in came if name in stands_for),
        rows=rows,
        dropped=dropped,
    )


def _rows(pairs: Sequence[Pair], changed: set[str], old: Snapshot, new: Snapshot) -> tuple[tuple[DiffRow, ...], int]:
    """The rows that differ and those around them, and the number of rows beyond the limit."""
    differ = [at for at, (left, right) in enumerate(pairs) if left != right or left in changed]
    shown = sorted({near for at in differ for near in range(max(at - _AROUND, 0), min(at + _AROUND + 1, len(pairs)))})
    rows: list[DiffRow] = []
    last = -1
    for at in shown[:MAX_ROWS]:
        left, right = pairs[at]
        after = _line(new[right]) if right else ""
        before = after if left == right and left not in changed else _line(old[left]) if left else ""
        rows.append(DiffRow(left or right, before, after, at - last - 1))
        last = at
    return tuple(rows), max(len(shown) - MAX_ROWS, 0)


def _line(facts: Facts) -> str:
    """A node as the screen shows it: "add: f32[8,8] = aten.add.Tensor(x, y)"."""
    value = value_of(facts.node)
    type_of = f": {fx.short_type(value)}" if value is not None else ""
    if facts.node.op == "placeholder":
        return f"{facts.name}{type_of} = placeholder"
    if facts.node.op == "output":
        return _cut(f"return {facts.args[0]!r}")
    arguments = ", ".join([*map(repr, facts.args), *(f"{name} = {value!r}" for name, value in facts.kwargs.items())])
    return _cut(f"{facts.name}{type_of} = {fx.target_name(facts.target)}({arguments})")


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"


def _stands_for(
    written: Iterable[str], came: Iterable[str], old: Snapshot, new: Snapshot, name: str
) -> dict[str, list[str]]:
    """The nodes that each new node replaces: torch noted it, or nodes that stayed read it in their place."""
    found: dict[str, list[str]] = {}
    for each in came:
        replaced = [gone for gone in fx.replaced_by(new[each].node, name) if gone in old and gone not in new]
        if replaced:
            found[each] = replaced
    for reader in written:
        before, after = old[reader].inputs(), new[reader].inputs()
        if len(before) == len(after):
            for gone, here in zip(before, after, strict=True):
                if gone is not None and here is not None and gone.name not in new and here.name not in old:
                    found.setdefault(here.name, []).append(gone.name)
    return found
