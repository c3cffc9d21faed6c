"""Make and judge the tries of a bisection."""

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from idbg.bisect.process import Processes
from idbg.reduce.tries import Stopped
from idbg.schema.bisection import TRY_SECONDS, Answer, Outcome, Tried, Try
from idbg.schema.diff import Comparison
from idbg.schema.errors import BadInput
from idbg.schema.repros import Signature

LEAST_SECONDS = 60.0
PATIENCE = 5  # times the duration of the failing try: the limit of another


Progress = Callable[[str, Tried | None], None]
"""Gets what is tried: when the try begins (None), and with its result."""


RunTry = Callable[[Try, Path, float, Callable[[], bool]], Answer | None]
"""Makes one try, with this cache and limit in seconds; the answer is None if it was stopped."""


def same(one: Signature, other: Signature) -> bool:
    """Whether two failures are the same: exceptions by their type and the constant part of the message."""
    raised = {"compile", "runtime"}
    if one.kind != other.kind and not {one.kind, other.kind} <= raised:
        return False
    return (one.type, one.message) == (other.type, other.message)


def failed(outcome: Outcome) -> bool | None:
    """Whether a try failed as is searched for; None if it is undecided."""
    return None if outcome == "other" else outcome == "fails"


@dataclass
class BisectTries:
    """The tries of one search, in order. Their compilers share a cache, which is removed with the search (`with`)."""

    on_progress: Progress = lambda what, tried: None
    stopped: Callable[[], bool] = lambda: False
    seconds: float = TRY_SECONDS
    ask: RunTry = field(default_factory=Processes)
    tried: list[Tried] = field(default_factory=list)
    sought: Signature | None = None
    torch: str = ""
    answer: Answer = field(default_factory=Answer)  # of the failing try that the search began with
    cache: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="idbg-bisect-")))

    def __enter__(self) -> "BisectTries":
        return self

    def __exit__(self, *_: object) -> None:
        if isinstance(self.ask, Processes):
            self.ask.close()
        shutil.rmtree(self.cache, ignore_errors=True)

    def first(self, attempt: Try, what: str) -> Answer:
        """The first try: if it fails, its failure is searched for. Raises BadInput if it cannot be tried, Stopped."""
        _, answer = self(attempt, what)
        if answer.cannot:
            raise BadInput(f"{what} cannot be tried: {answer.cannot}", hint="run it alone first: idbg run")
        if answer.signature is not None:
            self.look_for(answer, self.tried[-1].seconds)
        return answer

    def look_for(self, answer: Answer, seconds: float) -> None:
        """Search for this failure; a try that takes PATIENCE times as long has hung."""
        self.sought, self.answer = answer.signature, answer
        if answer.signature is not None and answer.signature.kind != "hung":
            self.seconds = min(self.seconds, max(LEAST_SECONDS, PATIENCE * seconds))

    def __call__(self, attempt: Try, what: str) -> tuple[Outcome, Answer]:
        """Make a try and judge it. Raises Stopped."""
        began = time.monotonic()
        self.on_progress(what, None)
        answer = self.answer_to(attempt)
        outcome: Outcome
        if answer.cannot:
            outcome = "other"
        elif answer.signature is None:
            outcome = "passes"
        else:
            outcome = "fails" if self.sought is None or same(answer.signature, self.sought) else "other"
        self._keep(what, outcome, answer, time.monotonic() - began)
        return outcome, answer

    def untried(self, what: str, why: str) -> tuple[Outcome, Answer]:
        """Record that this could not be tried at all."""
        answer = Answer(cannot=why)
        self._keep(what, "other", answer, 0.0)
        return "other", answer

    def answer_to(self, attempt: Try) -> Answer:
        """The answer of a process. Raises Stopped."""
        answer = None if self.stopped() else self.ask(attempt, self.cache, self.seconds, self.stopped)
        if answer is None:
            raise Stopped("stopped")
        self.torch = answer.torch or self.torch
        return answer

    def _keep(self, what: str, outcome: Outcome, answer: Answer, seconds: float) -> None:
        otherwise = (answer.cannot or answer.words) if outcome == "other" else ""
        self.tried.append(Tried(what, outcome, round(seconds, 3), otherwise))
        self.on_progress(what, self.tried[-1])


def compared(attempt: Try, tries: BisectTries) -> Try:
    """The try that fails: as it is, or, if it passes, compared with eager. Its result is `tries.answer`.

    Raises BadInput if it cannot be tried, Stopped.
    """
    if tries.first(attempt, "the program as it is").signature is not None or attempt.command or attempt.comparison:
        return attempt
    against = replace(attempt, comparison=Comparison(seconds=tries.seconds))
    tries.first(against, "its numbers, compared with eager")
    return against
