"""How is the smallest failing script found: the whole, fewer nodes, less of each, and a fresh process at last?"""

import dataclasses
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from idbg.engine.minify.candidate import Candidate
from idbg.engine.minify.candidates import CandidateBuilder
from idbg.engine.minify.oracle import Oracle
from idbg.engine.minify.problem import Problem, SuspectGraph
from idbg.engine.minify.result import ResultFolder
from idbg.engine.minify.running import RATE_TRIES, rate, tries_needed
from idbg.engine.minify.shrink import shrunk
from idbg.engine.repro.draft import FailsCommand, Runs
from idbg.reduce.nodes import Flow, reduce_nodes
from idbg.reduce.tries import Stopped, Tries
from idbg.schema.errors import OutputError, exception_text
from idbg.schema.repros import Budget, Minified, MinifyProgress, OtherFailure, Signature

_STATUS = re.compile(r"exit status (-?\d+)")
RATE_SECONDS, FEW_TRIES = 60.0, 3  # what is to be known of a rate where RATE_TRIES take longer


@dataclass
class Search:
    """A search for the smallest candidate of a problem that fails as the whole does.

    `result` keeps the smallest that has failed where the user finds it. `known` is the file of what earlier searches
    for the same have tried.
    """

    problem: Problem
    oracle: Oracle
    result: ResultFolder
    known: Path
    budget: Budget
    tell: Callable[[MinifyProgress], None]
    _doing: str = field(default="the whole", init=False)
    _left: int = field(default=0, init=False)
    _whole: int = field(default=0, init=False)
    _size: int = field(default=0, init=False)
    _failed: int = field(default=1, init=False)
    _tried: int = field(default=1, init=False)
    _minimal: bool = field(default=False, init=False)  # no single node can be left out

    def __post_init__(self) -> None:
        self.tries: Tries[Candidate] = Tries(
            self.oracle, lambda one: one.key, self.budget, path=self.known, told=lambda judged: self._report()
        )

    def run(self) -> Minified:
        """What it comes to, also where it was stopped: by its budget, or by KeyboardInterrupt."""
        if self.problem.fixed is not None and isinstance(self.problem.fixed.draft.check, Runs):
            return self._written(self.problem.fixed)
        stopped = ""
        try:
            self._search()
        except Stopped as reason:
            stopped = str(reason)
        except KeyboardInterrupt:
            stopped = "you stopped it"
        except OutputError as error:
            if self.result.best is None:
                raise
            stopped = exception_text(error)
        return self._ended(stopped)

    def _written(self, candidate: Candidate) -> Minified:
        """A script in which nothing is looked for: it is run once, and no smaller one is searched for."""
        self._better(candidate, len(candidate.draft.statements))
        return self._ended("")

    def _search(self) -> None:
        if self.problem.fixed is not None:  # one node, which is known
            self._whole = 1
            self.tries.begin(self.problem.fixed)
            if self._fails(self.problem.fixed):
                self._better(self.problem.fixed, 1)
                self._minimal = True
        elif (begun := self._first()) is not None:
            self._minimal = self._fewer_nodes(*begun)
        if self.result.best is not None:
            shrunk(self.result.best, self._fails, self._better, lambda words: self._say(words, 0))

    def _first(self) -> tuple[CandidateBuilder, frozenset[str]] | None:
        """The graph that fails, and those of its nodes to begin with; None where none does."""
        subjects = self.problem.subjects
        self._whole = max(len(one.cutting.flow.reads) for one in subjects)
        for subject in subjects:
            for suspects in subject.suspects:
                if self._begins(subject, suspects, "what the accused kernel computes"):
                    return subject.cutting, subject.cutting.flow.closed(suspects)
        for subject in subjects:
            self._ask_status(subject.cutting)
            if self._begins(subject, frozenset(subject.cutting.flow.reads), "the whole"):
                return subject.cutting, frozenset(subject.cutting.flow.reads)
        return next(filter(None, map(self._at_times, subjects)), None)

    def _ask_status(self, cutting: CandidateBuilder) -> None:
        """With which status a command of the user's fails on the whole: that is what is looked for in less of it."""
        check = cutting.template.check
        if not isinstance(check, FailsCommand):
            return
        judged = self.oracle.once(cutting.candidate(frozenset(cutting.flow.reads)))
        if (told := _STATUS.search(judged.signature)) is not None:
            cutting.template = dataclasses.replace(cutting.template, check=FailsCommand(check.command, int(told[1])))

    def _at_times(self, subject: SuspectGraph) -> tuple[CandidateBuilder, frozenset[str]] | None:
        """The graph again: what passed once may fail at times."""
        names = frozenset(subject.cutting.flow.reads)
        whole = subject.cutting.candidate(names)
        judged = self.tries(whole)
        if judged.outcome != "passes":
            return None
        times = RATE_TRIES if judged.seconds * RATE_TRIES < RATE_SECONDS else FEW_TRIES
        self._say("the whole again, as it did not fail", times)
        failed, tried = rate(lambda: self.oracle.once(whole).outcome == "same", times)
        self._tried = tried + 1
        if not failed:
            return None
        self._failed, self.oracle.running.times = failed, tries_needed(failed, tried + 1)
        self._better(whole, len(names))
        return subject.cutting, names

    def _begins(self, subject: SuspectGraph, names: frozenset[str], doing: str) -> bool:
        self._say(doing, 1)
        kept = subject.cutting.flow.closed(names)
        candidate = subject.cutting.candidate(kept)
        self.tries.begin(candidate)
        if self._fails(candidate):
            self._better(candidate, len(kept))
            return True
        return False

    def _fewer_nodes(self, cutting: CandidateBuilder, kept: frozenset[str]) -> bool:
        """Leave out nodes until each is needed; whether that is so."""
        whole = cutting.flow
        reads = {
            name: tuple(read for read in whole.reads[name] if read in kept) for name in whole.reads if name in kept
        }
        reduced = reduce_nodes(
            Flow(reads, whole.bound & kept),
            lambda nodes: self._fails_with(cutting, nodes),
            better=lambda nodes: self._better(cutting.candidate(nodes), len(nodes)),
            doing=self._say,
            passes=lambda nodes: self._passes_with(cutting, nodes),
        )
        if reduced.passing:
            lacks = tuple(name for name in reads if name in reduced.kept - reduced.passing)
            self.result.nearest(cutting.candidate(reduced.passing), lacks)
        return reduced.minimal

    # ------------------------------------------------------------- on the way

    def _fails_with(self, cutting: CandidateBuilder, nodes: frozenset[str]) -> bool:
        """Whether these nodes fail; those that no script can hold do not."""
        try:
            candidate = cutting.candidate(nodes)
        except ValueError:
            return False
        return self._fails(candidate)

    def _passes_with(self, cutting: CandidateBuilder, nodes: frozenset[str]) -> bool:
        try:
            return self.tries(cutting.candidate(nodes)).outcome == "passes"
        except ValueError:
            return False

    def _fails(self, candidate: Candidate) -> bool:
        return self.tries(candidate).outcome == "same"

    def _better(self, candidate: Candidate, size: int = 0) -> None:
        lines = sum(not line.lstrip().startswith("#") for line in candidate.draft.statements)
        self._size = size or min(self._size, lines)
        self.result.better(candidate)

    def _say(self, doing: str, left: int) -> None:
        """What is done now, and about how many tries that takes."""
        self._doing, self._left = doing, left
        self._report()

    def _report(self) -> None:
        self.tell(
            MinifyProgress(
                self._doing,
                self._size or self._whole,
                self._whole,
                calls=self.tries.calls,
                known=self.tries.known,
                budget=self.budget.calls,
                seconds=self.tries.seconds,
                eta=self.tries.eta(self._left) if self._left else None,
                others=sum(other.count for other in self.tries.others),
                best=str(self.result.script or ""),
            )
        )

    def _ended(self, stopped: str) -> Minified:
        """The result, once its script has run in a fresh process."""
        found = self.result.best is not None
        passes = self.problem.signature.kind == "none" or not (found or stopped or self.tries.others)
        told = Minified(
            Signature("none") if passes else self.problem.signature,
            size=self._size,
            whole=self._whole,
            minimal=self._minimal,
            guarantee=_guarantee(self._minimal, stopped) if found or stopped else _otherwise(self.tries.others),
            calls=self.tries.calls,
            known=self.tries.known,
            failed=self._failed if found else 0,
            tried=self._tried,
        )
        self._say("a fresh process", 0)
        told = self.result.finished(told, self.tries.others, self.oracle.running)
        return replace(told, seconds=self.tries.seconds)


def _guarantee(minimal: bool, stopped: str) -> str:
    if minimal:
        rest = f"; it may still have plainer values or shapes: {stopped}" if stopped else ""
        return f"1-minimal: no single node can be left out{rest}"
    return f"not known to be minimal: {stopped}" if stopped else ""


def _otherwise(others: Sequence[OtherFailure]) -> str:
    return f"no graph shows it by itself: it fails otherwise there ({others[0].signature})" if others else ""
