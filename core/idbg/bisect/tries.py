"""What came of each try of a search, and does it fail as what is looked for?"""

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
PATIENCE = 5  # times what the failing try took, that another may take


Progress = Callable[[str, Tried | None], None]
"""Hears what is tried, as it begins (None), and what came of it."""


RunTry = Callable[[Try, Path, float, Callable[[], bool]], Answer | None]
"""Makes one try, with this cache, in so many seconds: its answer, or None where it was stopped."""


def same(one: Signature, other: Signature) -> bool:
    """Whether two failures are the same one: an exception by its type and what of its message does not vary."""
    raised = {"compile", "runtime"}
    if one.kind != other.kind and not {one.kind, other.kind} <= raised:
        return False
    return (one.type, one.message) == (other.type, other.message)


@dataclass
class BisectTries:
    """The tries of one search, in order; their compilers share a cache that goes with the search (`with`)."""

    told: Progress = lambda what, tried: None
    stopped: Callable[[], bool] = lambda: False
    seconds: float = TRY_SECONDS
    ask: RunTry = field(default_factory=Processes)
    tried: list[Tried] = field(default_factory=list)
    sought: Signature | None = None
    torch: str = ""
    answer: Answer = field(default_factory=Answer)  # the failing one, that the search began with
    cache: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="idbg-bisect-")))

    def __enter__(self) -> "BisectTries":
        return self

    def __exit__(self, *_: object) -> None:
        if isinstance(self.ask, Processes):
            self.ask.close()
        shutil.rmtree(self.cache, ignore_errors=True)

    def first(self, asked: Try, what: str) -> Answer:
        """The try that says what is looked for, if it fails. Raises BadInput where it cannot be tried, Stopped."""
        began = time.monotonic()
        answer = self._answer(asked, what)
        if answer.cannot:
            raise BadInput(f"{what} cannot be tried: {answer.cannot}", hint="run it alone first: idbg run")
        if answer.signature is not None:
            self.look_for(answer, time.monotonic() - began)
        self._keep(what, "passes" if answer.signature is None else "fails", answer, time.monotonic() - began)
        return answer

    def look_for(self, answer: Answer, seconds: float) -> None:
        """This failure is the one; a try that takes several times what it took has hung."""
        self.sought, self.answer = answer.signature, answer
        if answer.signature is not None and answer.signature.kind != "hung":
            self.seconds = min(self.seconds, max(LEAST_SECONDS, PATIENCE * seconds))

    def __call__(self, asked: Try, what: str) -> tuple[Outcome, Answer]:
        """Make a try and judge it. Raises Stopped."""
        began = time.monotonic()
        answer = self._answer(asked, what)
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
        """Keep that this could not be tried at all."""
        answer = Answer(cannot=why)
        self._keep(what, "other", answer, 0.0)
        return "other", answer

    def answer_to(self, asked: Try) -> Answer:
        """What a process says that is no try of the failure. Raises Stopped."""
        answer = None if self.stopped() else self.ask(asked, self.cache, self.seconds, self.stopped)
        if answer is None:
            raise Stopped("stopped")
        self.torch = answer.torch or self.torch
        return answer

    def _answer(self, asked: Try, what: str) -> Answer:
        self.told(what, None)
        return self.answer_to(asked)

    def _keep(self, what: str, outcome: Outcome, answer: Answer, seconds: float) -> None:
        otherwise = (answer.cannot or answer.words) if outcome == "other" else ""
        self.tried.append(Tried(what, outcome, round(seconds, 3), otherwise))
        self.told(what, self.tried[-1])


def compared(asked: Try, tries: BisectTries) -> Try:
    """The try as it fails: as it is, or, where it runs through, compared with eager. What it came to is `tries.answer`.

    Raises BadInput where it cannot be tried, Stopped.
    """
    if tries.first(asked, "the program as it is").signature is not None or asked.command or asked.comparison:
        return asked
    against = replace(asked, comparison=Comparison(seconds=tries.seconds))
    tries.first(against, "its numbers, compared with eager")
    return against
