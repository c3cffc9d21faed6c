"""What became of each frame that Dynamo was asked for, which frame called it, and what did Dynamo leave alone?"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from inspect import CO_GENERATOR
from pathlib import Path
from types import CodeType

from msgspec.structs import replace

import idbg
from idbg.analysis.decisions.break_report import limit_hit, read_explained, stack_of_error
from idbg.engine.capture.run import RunCapture
from idbg.engine.capture.trace import Measured
from idbg.engine.compat import dynamo_frames, tracing
from idbg.engine.decisions.hearing import harmless
from idbg.schema import events
from idbg.schema.decisions.dynamo import FrameEnd, FrameResult, Skip
from idbg.schema.errors import exception_text

_OURS = str(Path(idbg.__file__).parent)
MOST_SKIPS = 1000  # functions left alone that are told; of more only how many
# only Python calls it, where a graph broke: with that break it goes too
_GENERATOR = "a generator, called in eager after a graph break"
_IN_TRACING = "Dynamo decided to skip the frame while tracing: "


class _Frames:
    def __init__(self, capture: RunCapture) -> None:
        self.capture = capture
        self._compiled: dict[int, str] = {}  # id of a compiled code -> its frame
        self._held: list[CodeType] = []  # those codes, or an id could be another's
        self._now: set[str] = set()  # frames that got code, and whose end was not told yet
        self._parent = ""
        self._left: FrameResult | None = None  # the last frame that was left alone, before it is known why
        self._given_up = ""  # what was said of the last frame that was given up
        self._told_of: CodeType | None = None  # what was just given up for an error, and told so
        self._skips: set[tuple[str, int, str, str]] = set()
        self._dropped = 0

    def made(self, code: CodeType, compiled: CodeType) -> None:
        frame = self.capture.frame(tracing.current_frame()).frame
        self._held.append(compiled)
        self._compiled[id(compiled)] = frame
        self._now.add(frame)

    def find_parent(self) -> None:
        self._parent = ""
        self._parent = dynamo_frames.caller(self._compiled)

    def parent(self) -> str:
        return self._parent

    def measured(self, frame: str, measured: Measured) -> None:
        """A frame's compile came to its end."""
        end = self._end(frame, measured)
        problem = measured.problem
        more = 1 if end == "compiled" else 0
        compile_id = frame.partition("#")[0]
        limit, limit_all = dynamo_frames.limits()
        result = FrameResult(
            frame=frame,
            end=end,
            why=limit_hit(problem.reason) or _first_words(problem.reason) if problem is not None else "",
            seconds=measured.seconds,
            attempts=measured.attempts,
            restarts=tuple(_first_words(reason) for reason in measured.restarts),
            ops=measured.ops if end == "compiled" else None,
            guards=measured.guards if end == "compiled" else None,
            lost=measured.lost or None,
            entries=None if measured.entries is None else measured.entries + more,
            alike=None if measured.alike is None else measured.alike + more,
            limit=limit,
            limit_all=limit_all,
            automatic=dynamo_frames.makes_dynamic(),
            failed=tuple(self.capture.failed_guards.pop(compile_id, ())),
            stack=stack_of_error(self.capture.errors.pop(compile_id, "")),
        )
        self._left = result if end == "skipped" else None
        self._given_up = problem.reason if problem is not None else ""
        self.capture.emit(events.FrameDone(run=self.capture.run, result=result))

    def _end(self, frame: str, measured: Measured) -> FrameEnd:
        made = frame in self._now
        self._now.discard(frame)
        if measured.problem is None:
            return "compiled" if made else "skipped"
        failed = any(self.capture.named(one) == frame for one in self.capture.outcomes.problems)
        return "failed" if failed and not dynamo_frames.suppresses_errors() else "eager"

    def skipped(self, code: CodeType, reason: str) -> None:
        """Dynamo left a code alone: the last frame that was compiled, or one that it did not begin with."""
        left, self._left = self._left, None
        told_of, self._told_of = self._told_of, None
        if code is told_of:
            return
        if left is not None:
            why = reason.removeprefix(_IN_TRACING).partition("\n")[0]
            self.capture.emit(events.FrameDone(run=self.capture.run, result=replace(left, why=why)))
            return
        self._tell_skip(code, reason)

    def _tell_skip(self, code: CodeType, reason: str) -> None:
        key = (code.co_filename, code.co_firstlineno, code.co_qualname, reason)
        if key in self._skips or code.co_filename.startswith(_OURS):
            return
        if len(self._skips) >= MOST_SKIPS:
            self._dropped += 1
            return
        self._skips.add(key)
        skip = Skip(code.co_qualname, code.co_filename, code.co_firstlineno, reason)
        self.capture.emit(events.FrameSkipped(run=self.capture.run, skip=skip))

    def suppressed(self, error: BaseException, code: CodeType) -> None:
        """Torch runs a code in eager for this error. If it never began to trace it, nobody has told of it yet."""
        words, self._told_of = exception_text(error), code
        if self._given_up and words.startswith(self._given_up[:200]):
            return
        if code.co_flags & CO_GENERATOR and self.capture.has_broken:
            self._tell_skip(code, _GENERATOR)
            return
        told = read_explained(words)
        reason = told.reason or _first_words(words)
        place = {"file": code.co_filename, "line": code.co_firstlineno}
        self.capture.graph_broke(replace(told, reason=reason, way="frame", **place))

    def end(self) -> None:
        if self._dropped:
            self.capture.emit(events.SkipsDropped(run=self.capture.run, count=self._dropped))


@contextmanager
def heard(capture: RunCapture) -> Iterator[None]:
    """While it lasts, the end of each frame and each skip is told, and frames know their parents."""
    frames = _Frames(capture)
    safe = harmless(capture, "the compiled frames")
    find_parent = safe(frames.find_parent)

    def parent() -> str:
        find_parent()
        return frames.parent()

    before = capture.parent, capture.measured
    with ExitStack() as stack:
        stack.enter_context(dynamo_frames.made_heard(safe(frames.made)))
        stack.enter_context(dynamo_frames.skips_heard(safe(frames.skipped)))
        stack.enter_context(dynamo_frames.suppressed_heard(safe(frames.suppressed)))
        capture.parent, capture.measured = parent, safe(frames.measured)
        try:
            yield
        finally:
            capture.parent, capture.measured = before
            safe(frames.end)()


def _first_words(text: str) -> str:
    return text.strip().partition("\n")[0][:300]
