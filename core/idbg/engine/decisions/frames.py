"""Record the result of each frame that Dynamo compiles, its calling frame, and the code that Dynamo skips."""

from collections.abc import Iterator
from contextlib import contextmanager
from inspect import CO_GENERATOR
from pathlib import Path
from types import CodeType

from msgspec.structs import replace

import idbg
from idbg.analysis.decisions.break_report import read_explained, stack_of_error
from idbg.analysis.decisions.frames import resumed
from idbg.engine.capture.run import RunCapture
from idbg.engine.compat import dynamo, tracing
from idbg.schema.decisions.dynamo import FrameEnd, FrameResult, Skip, SkipsDropped
from idbg.schema.errors import exception_text
from idbg.schema.graphs import Frame
from idbg.traces.records import Measured
from idbg.traces.run import first_words, frame_result

_OURS = str(Path(idbg.__file__).parent)
MAX_SKIPS = 1000  # skipped functions that are recorded; more are only counted
# only Python calls it, after a graph break: without that break it is traced
_GENERATOR = "a generator, called in eager after a graph break"
_IN_TRACING = "Dynamo decided to skip the frame while tracing: "


class _Frames:
    def __init__(self, capture: RunCapture) -> None:
        self.capture = capture
        self._compiled: dict[int, str] = {}  # id of a compiled code -> its frame
        self._codes: list[CodeType] = []  # those codes: while they live no other code has their ids
        self._open: set[str] = set()  # frames that have code, and whose compile is not over
        self._parent = ""
        self._described: Frame | None = None
        self._labels: dict[str, str] = {}  # of frames
        self._skipped: FrameResult | None = None  # the last frame without code, before its reason is known
        self._last_problem = ""  # of the last frame that was given up
        self._suppressed: CodeType | None = None  # the code whose error was just recorded
        self._skips: set[tuple[str, int, str, str]] = set()
        self._dropped = 0

    def made(self, code: CodeType, compiled: CodeType) -> None:
        frame = self.capture.frame(tracing.current_frame()).frame
        self._codes.append(compiled)
        self._compiled[id(compiled)] = frame
        self._open.add(frame)

    def find_parent(self) -> None:
        self._parent = ""
        self._parent = dynamo.caller(self._compiled)

    def parent(self) -> str:
        return self._parent

    def describe(self, frame: Frame) -> None:
        """Find what a frame is called, and the torch.compile that compiles it."""
        self._described = frame
        found = dynamo.compiling()
        if found is None:
            return
        call = found.call
        if found.is_wrapper and call is not None:
            place = (call.file, call.line) if call.file else (frame.file, frame.line)
            function = frame.function.replace(dynamo.WRAPPER, call.name, 1)
            self._described = replace(frame, function=function, file=place[0], line=place[1], call=call)
            return
        label = f"{found.owner}.{frame.function}" if found.owner else ""
        if resumed(frame.function) is not None:  # its caller is what broke
            label = self._labels.get(frame.parent, "")
        self._labels[frame.id] = label
        self._described = replace(frame, label=label, call=call)

    def described(self) -> Frame:
        assert self._described is not None
        return self._described

    def measured(self, frame: str, measured: Measured) -> None:
        """A frame's compile is over."""
        end = self._end(frame, measured)
        problem = measured.problem
        compile_id = frame.partition("#")[0]
        limit, limit_all = dynamo.limits()
        result = replace(
            frame_result(
                frame,
                end,
                measured,
                tuple(self.capture.failed_guards.pop(compile_id, ())),
                stack_of_error(self.capture.errors.pop(compile_id, "")),
            ),
            limit=limit,
            limit_all=limit_all,
            automatic=dynamo.makes_dynamic(),
        )
        self._skipped = result if end == "skipped" else None
        self._last_problem = problem.reason if problem is not None else ""
        self.capture.decided(result.frame, result)

    def _end(self, frame: str, measured: Measured) -> FrameEnd:
        has_code = frame in self._open
        self._open.discard(frame)
        failed = any(self.capture.named(one) == frame for one in self.capture.outcomes.problems)
        if measured.problem is None and not failed:
            return "compiled" if has_code else "skipped"
        return "failed" if failed and not dynamo.suppresses_errors() else "eager"

    def skipped(self, code: CodeType, reason: str) -> None:
        """Dynamo skips a code: the last frame that it traced, or one that it did not begin to trace."""
        last, self._skipped = self._skipped, None
        suppressed, self._suppressed = self._suppressed, None
        if code is suppressed:
            return
        if last is not None:
            why = reason.removeprefix(_IN_TRACING).partition("\n")[0]
            self.capture.decided(last.frame, replace(last, why=why))
            return
        self._emit_skip(code, reason)

    def _emit_skip(self, code: CodeType, reason: str) -> None:
        key = (code.co_filename, code.co_firstlineno, code.co_qualname, reason)
        if key in self._skips or code.co_filename.startswith(_OURS):
            return
        if len(self._skips) >= MAX_SKIPS:
            self._dropped += 1
            return
        self._skips.add(key)
        self.capture.decided("", Skip(code.co_qualname, code.co_filename, code.co_firstlineno, reason))

    def suppressed(self, error: BaseException, code: CodeType) -> None:
        """Torch runs a code in eager for this error. If tracing never began, nothing else records it."""
        text, self._suppressed = exception_text(error), code
        if self._last_problem and text.startswith(self._last_problem[:200]):
            return
        if code.co_flags & CO_GENERATOR and self.capture.has_broken:
            self._emit_skip(code, _GENERATOR)
            return
        explained = read_explained(text)
        reason = explained.reason or first_words(text)
        place = {"file": code.co_filename, "line": code.co_firstlineno}
        self.capture.graph_broke(replace(explained, reason=reason, way="frame", **place))

    def end(self) -> None:
        if self._dropped:
            self.capture.decided("", SkipsDropped(self._dropped))


@contextmanager
def record(capture: RunCapture) -> Iterator[None]:
    """While it lasts, the end of each frame and each skip become events, and frames know their parents."""
    frames, feature = _Frames(capture), capture.feature("compiled frames")
    find_parent = feature.safe(frames.find_parent)

    def parent() -> str:
        find_parent()
        return frames.parent()

    describe_frame = feature.safe(frames.describe)

    def describe(frame: Frame) -> Frame:
        describe_frame(frame)
        return frames.described() if not feature.is_paused() else frame

    before = capture.find_parent, capture.record_result, capture.describe
    with (
        dynamo.observe_code(feature.safe(frames.made)),
        dynamo.observe_skips(capture.feature, frames.skipped),
        dynamo.observe_suppressed(capture.feature("suppressed errors"), frames.suppressed),
    ):
        capture.find_parent, capture.record_result = parent, feature.safe(frames.measured)
        capture.describe = describe
        try:
            yield
        finally:
            capture.find_parent, capture.record_result, capture.describe = before
            feature.safe(frames.end)()
