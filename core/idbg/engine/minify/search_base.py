"""The base of the searches in graphs and in a program's source: budget, interrupts, progress, and counts."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Generic, Literal, Protocol, TypeVar

from idbg.engine.minify.running import ScriptJudge, rate, tries_needed
from idbg.reduce.tries import Stopped, Tries
from idbg.schema.errors import OutputError, exception_text
from idbg.schema.repros import Budget, Minified, MinifyProgress, OtherFailure, Signature

Emit = Callable[[MinifyProgress], None]
_STATUS = re.compile(r"exit status (-?\d+)")


class HasKey(Protocol):
    """A candidate. Two candidates with equal keys have the same result."""

    @property
    def key(self) -> str: ...


C = TypeVar("C", bound=HasKey)


class ScriptSearch(ABC, Generic[C]):
    """Finds the smallest candidate that fails as the whole does.

    `known` is the file of the answers of earlier searches for the same failure.
    """

    unit: ClassVar[Literal["nodes", "lines"]] = "nodes"

    def __init__(self, judge: ScriptJudge[C], known: Path | None, budget: Budget, emit: Emit) -> None:
        self.judge, self.budget, self.emit = judge, budget, emit
        self.tries: Tries[C] = Tries(
            judge, lambda one: one.key, budget, path=known, on_answer=lambda judged: self.report()
        )
        self.doing, self.expected = "the whole", 0  # what is tried now, and about how many tries that takes
        self.size = self.whole = 0
        self.failed = self.tried = 1  # failures of the whole, and tries of it
        self.minimal = False

    def run(self) -> Minified:
        """Search; the result so far if the budget, KeyboardInterrupt or a full disk stops it."""
        stopped = ""
        try:
            self.search()
        except Stopped as reason:
            stopped = str(reason)
        except KeyboardInterrupt:
            stopped = "you stopped it"
        except OutputError as error:
            if self.judge.best is None:
                raise
            stopped = exception_text(error)
        return self.ended(stopped)

    @abstractmethod
    def search(self) -> None:
        """Search, and pass each smaller failing candidate to `better`. Raises Stopped."""

    @abstractmethod
    def ended(self, stopped: str) -> Minified:
        """The result; `stopped` says why the search did not finish, "" if it did."""

    @abstractmethod
    def better(self, candidate: C) -> None:
        """Keep a smaller candidate that fails."""

    @property
    def others(self) -> tuple[OtherFailure, ...]:
        """Failures other than the one that is searched for."""
        return self.tries.others

    def fails(self, candidate: C) -> bool:
        """Whether the candidate shows the failure. Raises Stopped."""
        return self.tries(candidate).outcome == "same"

    def improves(self, candidate: C) -> bool:
        """Whether the candidate shows the failure; if so, it is kept. Raises Stopped."""
        if not self.fails(candidate):
            return False
        self.better(candidate)
        return True

    def fails_at_times(self, whole: C, tries: int) -> bool:
        """Whether the whole, which did not fail, fails in any of some more tries; it is kept if so."""
        self.say("the whole again, as it did not fail", tries)
        failed, tried = rate(lambda: self.judge(whole).outcome == "same", tries)
        self.failed, self.tried = failed, tried + 1
        if not failed:
            return False
        self.judge.runner.times = tries_needed(failed, tried + 1)
        self.better(whole)
        return True

    def exit_status(self, candidate: C) -> int | None:
        """The exit status of a user's command for this candidate; None if it succeeds."""
        found = _STATUS.search(self.judge(candidate).signature)
        return int(found[1]) if found else None

    def say(self, doing: str, expected: int = 0) -> None:
        """Report what is tried now, and about how many tries that takes."""
        self.doing, self.expected = doing, expected
        self.report()

    def report(self) -> None:
        """Emit the progress."""
        self.emit(
            MinifyProgress(
                self.doing,
                self.size or self.whole,
                self.whole,
                self.unit,
                calls=self.tries.calls,
                known=self.tries.known,
                budget=self.budget.calls,
                seconds=self.tries.seconds,
                eta=self.tries.eta(self.expected) if self.expected else None,
                others=sum(other.count for other in self.others),
                best=str(self.judge.script or ""),
            )
        )

    def minified(self, signature: Signature, guarantee: str) -> Minified:
        """The result's counts."""
        return Minified(
            signature,
            size=self.size,
            whole=self.whole,
            unit=self.unit,
            minimal=self.minimal,
            guarantee=guarantee,
            calls=self.tries.calls,
            known=self.tries.known,
            failed=self.failed if self.judge.best is not None else 0,
            tried=self.tried,
        )
