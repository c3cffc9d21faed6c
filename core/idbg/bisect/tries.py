"""Make and judge the tries of a bisection, each in a process of its own; a crash or a hang is an answer too."""

import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from msgspec.structs import replace

from idbg.config import places
from idbg.config.environment import sets_up_torch
from idbg.reduce.tries import Stopped
from idbg.schema.bisection import PROGRESS_FILE, TRY_SECONDS, Answer, Outcome, Tried, Try
from idbg.schema.diff import Comparison
from idbg.schema.errors import BadInput
from idbg.schema.repros import Signature
from idbg.worker.child import Child
from idbg.worker.one_answer import answered, caches_in

COMMAND = (sys.executable, "-P", "-m", "idbg.worker.bisect_try")
_DECODER = msgspec.json.Decoder(Answer)
_Wanted = tuple[bool, Path, dict[str, str]]  # warm or cold, its cache, its environment


class Processes:
    """Makes tries, each in a process of its own. The one for the next try is begun beforehand, and imports torch while
    this one compiles.
    """

    def __init__(self) -> None:
        self._spare: tuple[Child, _Wanted] | None = None  # with what it was begun for

    def __call__(self, attempt: Try, cache: Path, seconds: float, stopped: Callable[[], bool]) -> Answer | None:
        """The answer of the try, which may be a crash or a hang; None if it was `stopped`.

        `cache` is all that the process's compilers find. Raises OSError if it cannot be started.
        """
        applied = cache / "inductor" / PROGRESS_FILE
        applied.unlink(missing_ok=True)
        places.forget_graphs(applied.parent)
        child = self._taken((_is_warm(attempt), cache, attempt.environ))
        child.write(msgspec.json.encode(attempt))
        done = answered(child, seconds, stopped, _DECODER.decode)
        if stopped():
            return None
        if done.answer is not None:
            return done.answer
        answer = replace(_applied(applied), compiled=True)
        if not done.in_time:
            return replace(answer, signature=Signature("hung"), words=f"it had not ended after {seconds:.0f} s")
        if done.cause.startswith("killed by "):
            site = done.crash
            where = f" in {Path(site.file).name}:{site.line}" if site is not None and site.line else ""
            signature = Signature("died", type=done.cause.removeprefix("killed by "))
            return replace(answer, signature=signature, words=f"it was {done.cause}{where}")
        return Answer(cannot=done.words)

    def close(self) -> None:
        """End what was begun for a try that does not come."""
        if self._spare is not None:
            child, _ = self._spare
            self._spare = None
            child.signal(signal.SIGKILL)  # it has begun nothing that is to be tidied up
            child.end()
            child.close()

    def _taken(self, wanted: _Wanted) -> Child:
        """A process that waits for its try; another one is begun."""
        if self._spare is not None and self._spare[1] != wanted:
            self.close()
        child = self._spare[0] if self._spare is not None else _begun(*wanted)
        self._spare = (_begun(*wanted), wanted) if wanted[0] else None
        return child


def _begun(is_warm: bool, cache: Path, environ: dict[str, str]) -> Child:
    command = (*COMMAND, str(cache / "inductor"), "warm" if is_warm else "cold")
    return Child(command, {**environ, **caches_in(cache)}, doomed=cache)


def _is_warm(attempt: Try) -> bool:
    """Whether torch can be imported before the try is known: not where the program first sets what torch reads."""
    program = attempt.program
    if attempt.command or program.module or not program.path:
        return bool(attempt.command) and bool(attempt.parts or attempt.level.backend)
    return not sets_up_torch(Path(program.cwd, program.path))


def _applied(file: Path) -> Answer:
    """The applications of a process that gave no answer, as far as they are known."""
    try:
        return _DECODER.decode(file.read_bytes())
    except (OSError, msgspec.DecodeError):  # it had not come so far, or was killed as it wrote
        return Answer()


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
