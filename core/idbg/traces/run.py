"""Collect what the records of torch's trace tell of one run, as events."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec.structs import replace

from idbg.accelerators.model import Accelerator
from idbg.analysis.decisions.break_report import limit_hit
from idbg.analysis.decisions.frames import spoken
from idbg.analysis.raised_text import raised_by_backend
from idbg.checking.check import rules_for_stage
from idbg.constraints import Checker
from idbg.schema import events
from idbg.schema.decisions import Decision
from idbg.schema.decisions.dynamo import BreakAgain, FailedGuard, FrameEnd, FrameResult, GraphBreak, Stack
from idbg.schema.graphs import Frame, Graph
from idbg.schema.violations import Violation
from idbg.traces.frame import Emit, TracedFrame
from idbg.traces.outcomes import Outcomes
from idbg.traces.records import Measured, Problem, Timed
from idbg.traces.stages import Stages

PHASES = frozenset(
    {
        *("program", "run", "dynamo", "aot autograd", "joint passes", "post-grad passes", "lowering", "scheduling"),
        *("codegen", "c++ compile", "kernel build", "backward"),
    }
)
"""The timed parts that a header and a progress line show."""

FrameT_co = TypeVar("FrameT_co", bound=TracedFrame, covariant=True)


class TracedRun(ABC, Generic[FrameT_co]):
    """The data of one run, as events. Frames are named by torch's compile ids."""

    def __init__(self, run: int, emit: Emit, accelerator: Accelerator | None) -> None:
        self.run = run
        self.emit = emit
        self.accelerator = accelerator
        self.frames: dict[str, FrameT_co] = {}
        self.violations: list[Violation] = []
        self.outcomes = Outcomes()
        self.timekeeper: Callable[[str, Timed], None] | None = None
        self.stages = Stages(run, emit, self.frames, self.named, self.note)  # of other compilers
        self.failed_guards: dict[str, list[FailedGuard]] = {}  # by torch's compile id
        self.errors: dict[str, str] = {}  # by torch's compile id, as torch prints them
        self._ids: dict[str, str] = {}
        self._started: dict[str, Frame] = {}
        self._ended: set[str] = set()  # frames whose compile is over
        self._breaks: dict[tuple[str, int, str], int] = {}
        self._began: dict[tuple[str, str], list[float]] = {}
        self._notes: set[str] = set()
        self.has_recompiled = False

    @abstractmethod
    def new_frame(self, name: str) -> FrameT_co:
        """A frame of this run, by its name in the session."""

    @abstractmethod
    def measured(self, name: str, measured: Measured) -> None:
        """The compile of a frame is over, by its name in the session."""

    def parent(self) -> str:
        """The frame whose compiled code calls the one that begins; "" where that is not known."""
        return ""

    def described(self, frame: Frame) -> Frame:
        """The frame that begins, with what is known of it beside the trace."""
        return frame

    def note(self, text: str) -> None:
        """Add a warning to the run, once."""
        if text not in self._notes:
            self._notes.add(text)
            self.emit(events.Noted(level="warning", text=text))

    def named(self, frame: str) -> str:
        """The frame's name in the session, by torch's compile id."""
        return self._ids.get(frame, frame)

    def frame(self, frame: str) -> FrameT_co:
        """The frame with torch's compile id `frame`; of several (Dynamo was reset) the last."""
        name = self._ids.setdefault(frame, frame)
        if name not in self.frames:
            self.frames[name] = self.new_frame(name)
        return self.frames[name]

    def started(self, frame: str) -> Frame | None:
        """The frame as torch reported it at its start, by the session's name."""
        return self._started.get(frame)

    def check(self, graph: Graph) -> list[Violation]:
        """Check the graph against the run's accelerator; violations are stored and become an event."""
        if self.accelerator is None:
            return []
        rules = rules_for_stage(graph.id.stage, self.accelerator.rules)
        violations = list(Checker(graph).check(rules).violations())
        if violations:
            self.violations += violations
            self.emit(events.ViolationsFound(run=self.run, violations=tuple(violations)))
        return violations

    def is_known(self, code: str) -> bool:
        """Whether this run has compiled this code before, by the first part of torch's compile ids."""
        return any(known.rpartition("/")[0] == code for known in self._ids)

    def counts_recompiles(self, code: str) -> bool:
        """Whether a compile of this code for a failed guard is a recompile of the program's."""
        return True

    def _is_others(self, frame: Frame) -> bool:
        """Whether it is the first compile of its module, and what was compiled before is torch's wrapper of another."""
        code = frame.id.rpartition("/")[0]
        before = [each for name, each in self._started.items() if name.rpartition("/")[0] == code]
        return bool(before) and all(_thing(each) != _thing(frame) for each in before)

    # Input from the trace

    def frame_started(self, frame: Frame) -> None:
        """A compile begins. After torch.compiler.reset() ids start again from 0/0: the new frame is named 0/0#2."""
        name = self._ids.get(frame.id, frame.id)
        if name in self.frames and (name in self._ended or self.frames[name].finished):
            number = 2 + sum(known.startswith(f"{frame.id}#") for known in self.frames)
            name = f"{frame.id}#{number}"
            self._ids[frame.id] = name
        counts = self.counts_recompiles(frame.id.rpartition("/")[0])
        self.frame(frame.id)
        self.stages.forget(name)
        failed = tuple(self.failed_guards.pop(frame.id, ()))
        described = self.described(replace(frame, id=name, parent=self.parent()))
        if (reason := self.outcomes.started(frame)) and counts and not self._is_others(described):
            self.has_recompiled = True
            self.emit(events.Recompiled(run=self.run, frame=name, reason=reason, failed=failed))
        self._started[name] = described
        self.emit(events.FrameStarted(run=self.run, frame=described))

    def frame_ended(self, frame: str, problem: Problem | None) -> None:
        """The frame's metrics arrived. With a problem it was given up, which may be a graph break."""
        if (graph_break := self.outcomes.ended(frame, problem)) is not None:
            self._emit_break(graph_break)

    def frame_erred(self, frame: str, text: str) -> None:
        """Dynamo's error, as it prints it."""
        self.errors[frame] = text

    def frame_measured(self, frame: str, measured: Measured) -> None:
        """A compile is over: a later one with the same id is of another frame."""
        self._ended.add(self.named(frame))
        self.measured(self.named(frame), measured)

    def graph_broke(self, graph_break: GraphBreak) -> None:
        """Dynamo ended a graph, or gave a frame up; `graph_break.frame` is torch's compile id."""
        self.outcomes.broke(graph_break.frame)
        self._emit_break(graph_break)

    def decided(self, frame: str, *decisions: Decision) -> None:
        """Emit decisions of a frame, "" for those that stay when torch traces it anew."""
        if decisions:
            self.emit(events.DecisionsRecorded(run=self.run, frame=frame, decisions=decisions))

    @property
    def has_broken(self) -> bool:
        """Whether a graph broke in this run."""
        return bool(self._breaks)

    def _emit_break(self, found: GraphBreak) -> None:
        """Emit a break in full once; for further frames with the same break only the frame."""
        key = (found.file, found.line, found.reason)
        name = self.named(found.frame)
        if key in self._breaks:
            self.decided("", BreakAgain(self._breaks[key], name, found.way))
            return
        self._breaks[key] = len(self._breaks)
        self.emit(events.GraphBroke(run=self.run, graph_break=replace(found, frame=name)))

    def timed(self, frame: str, part: Timed) -> None:
        """Phases of one name nest (a C++ compile in another): only the outermost is emitted."""
        if self.timekeeper is not None:
            self.timekeeper(frame, part)
        if part.name not in PHASES:
            return
        open_since = self._began.setdefault((frame, part.name), [])
        if part.began:
            open_since.append(part.at)
            if len(open_since) == 1:
                self.emit(events.PhaseChanged(run=self.run, phase=part.name, frame=frame))
        elif open_since:
            since = open_since.pop()
            if not open_since:
                self.emit(events.PhaseChanged(run=self.run, phase=part.name, frame=frame, seconds=part.at - since))

    @property
    def open_phase(self) -> str:
        """The phase that began last and has not ended; "" where none is open."""
        phases = [(since[-1], name) for (_, name), since in self._began.items() if since]
        return max(phases)[1] if phases else ""

    def finish(self) -> None:
        """Read the remaining data of frames: a failed compile has not finished itself."""
        for frame in self.frames.values():
            frame.finish()
        self.stages.send()


def _thing(frame: Frame) -> tuple[str, str, int]:
    return spoken(frame), frame.file, frame.line


def frame_result(
    frame: str, end: FrameEnd, measured: Measured, failed: tuple[FailedGuard, ...], stack: Stack
) -> FrameResult:
    """The result of one compile of a frame, from torch's metrics. Its limits are unknown."""
    problem = measured.problem
    more = 1 if end == "compiled" else 0
    return FrameResult(
        frame=frame,
        end=end,
        why=limit_hit(problem.reason) or first_words(problem.reason) if problem is not None else "",
        seconds=measured.seconds,
        attempts=measured.attempts,
        restarts=tuple(first_words(reason) for reason in measured.restarts),
        ops=measured.ops if end == "compiled" else None,
        guards=measured.guards if end == "compiled" else None,
        lost=measured.lost or None,
        entries=None if measured.entries is None else measured.entries + more,
        alike=None if measured.alike is None else measured.alike + more,
        failed=failed,
        stack=stack,
    )


def first_words(text: str) -> str:
    """The first line of an explanation, shortened."""
    if (raised := raised_by_backend(text)) is not None:
        text = f"{raised[1]}: {raised[2]}"
    return text.strip().partition("\n")[0][:300]
