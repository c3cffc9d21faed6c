"""Tell errors, graph breaks and hits of the recompile limit apart, for the frames that torch gives up."""

from collections.abc import Iterable
from typing import Literal

from msgspec.structs import replace

from idbg.analysis.decisions.break_report import limit_hit, read_explained
from idbg.analysis.raised_text import raised_by_backend, raised_in_traced_code
from idbg.schema.decisions.dynamo import BreakWay, GraphBreak
from idbg.schema.errors import exception_text
from idbg.schema.graphs import Frame
from idbg.schema.programs import Failure
from idbg.traces.records import Problem

_SOFT = ("Unsupported", "UserError")  # torch runs the frame eagerly for these, except with fullgraph
_OF_TORCH = ("inductor", "aot_eager", "aot_eager_decomp_partition", "cudagraphs", "eager", "compile_fx")
EAGER_HINT = (
    "the program caught this, or torch ran the frame eagerly instead (suppress_errors): fix it, or leave it eager"
)
_SAME = 200  # leading characters that torch's record shares with the exception: text is appended later


class Outcomes:
    """The results of the frames of one run. `frame` is torch's compile id."""

    def __init__(self) -> None:
        self.fullgraph: bool | None = False  # untraceable code is an error; None where that is not known
        self.records_breaks = False  # torch 2.11 and later record each break that is no error
        self.problems: dict[str, Problem] = {}  # errors only
        self.errors: dict[str, BaseException] = {}  # those that a backend raised
        self._frames: dict[str, Frame] = {}
        self._again: dict[str, str] = {}  # why a frame is about to be compiled again
        self._broken: set[str] = set()

    def recompiling(self, frame: str, reason: str) -> None:
        self._again[frame] = reason

    def started(self, frame: Frame) -> str:
        """Why it is compiled again; "" for the first time. A frame beyond the limit of recompiles never starts."""
        self._frames[frame.id] = frame
        self._broken.discard(frame.id)
        return self._again.pop(frame.id, "")

    def broke(self, frame: str) -> None:
        self._broken.add(frame)

    def ended(self, frame: str, problem: Problem | None) -> GraphBreak | None:
        """The graph break of a frame that torch leaves eager without an error, if none was recorded yet."""
        again = self._again.pop(frame, "")
        if problem is None:
            return None
        is_error = (self.fullgraph or self.records_breaks) and not again and frame not in self._broken
        if problem.type not in _SOFT or is_error:
            self.problems[frame] = problem
            return None
        if again:
            return self._limit(frame, problem, again)
        if frame in self._broken:
            return None
        known = self._frames.get(frame, Frame(frame, "?"))
        file, line = (problem.file, problem.line) if problem.file else (known.file, known.line)
        explained = read_explained(problem.reason)
        reason = explained.reason or problem.reason.partition("\n")[0]
        way: BreakWay = "frame" if self.fullgraph is not None else "frame or error"
        return replace(explained, reason=reason, file=file, line=line, frame=frame, way=way)

    def _limit(self, frame: str, problem: Problem, reason: str) -> GraphBreak:
        code = frame.rpartition("/")[0]
        known = next((known for name, known in self._frames.items() if name.rpartition("/")[0] == code), Frame("", "?"))
        limit = limit_hit(problem.reason) or "Dynamo's limit"
        text = f"{known.function} is compiled no more and stays eager for other inputs: recompile limit hit ({limit})"
        explained = read_explained(problem.reason)
        words = f"{text}; last reason: {reason}"
        return replace(explained, reason=words, file=known.file, line=known.line, frame=frame, way="limit")

    def swallowed(self, ended_by: Iterable[BaseException]) -> list[tuple[str, Failure | BaseException]]:
        """The frames that failed while the run went on: without those whose error is in `ended_by`."""
        chain = list(ended_by)
        swallowed: list[tuple[str, Failure | BaseException]] = []
        for frame, problem in self.problems.items():
            error = self.errors.get(frame)
            if error in chain if error else any(_is_same(problem, link) for link in chain):
                continue
            swallowed.append((frame, error or _failure(problem)))
        return swallowed


def _is_same(problem: Problem, error: BaseException) -> bool:
    return type(error).__qualname__ == problem.type and problem.reason[:_SAME] in exception_text(error)


def _failure(problem: Problem) -> Failure:
    kind: Literal["torch", "backend", "user"] = "torch"
    type, message = problem.type, problem.reason
    if (raised := raised_in_traced_code(problem.reason)) is not None:
        kind, type, message = "user", *raised
    elif (by_backend := raised_by_backend(problem.reason)) is not None:
        kind = "torch" if by_backend[0] in _OF_TORCH else "backend"
        type, message = by_backend[1:]
    return Failure(kind=kind, type=type, message=message, hint=EAGER_HINT, file=problem.file, line=problem.line)
