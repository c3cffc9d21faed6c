"""Run a bisection from its question to its result."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from idbg.bisect.commits import CommitSearch
from idbg.bisect.compiler import CompilerSearch
from idbg.bisect.options import FuzzSearch, OptionSearch
from idbg.bisect.tries import BisectTries, Processes, Progress, RunTry
from idbg.reduce.tries import Stopped
from idbg.schema import events
from idbg.schema.bisection import Bisected, Question, Tried, Try
from idbg.schema.events import SessionEvent
from idbg.schema.programs import Failure
from idbg.schema.remarks import Remark
from idbg.worker.background import OwnProcesses


class _Search(Protocol):
    note: Remark | str

    def run(self) -> None: ...

    def known(self) -> Bisected: ...


def bisected(
    question: Question,
    on_progress: Progress = lambda what, tried: None,
    stopped: Callable[[], bool] = lambda: False,
    ask: RunTry | None = None,
) -> Bisected:
    """The result, or that so far if the search was `stopped`. `on_progress` gets each try when it begins and ends.

    Raises BadInput if nothing can be tried, IdbgError if git or a process fails.
    """
    began = time.monotonic()
    stop = ""
    with BisectTries(on_progress, stopped, question.seconds, ask or Processes()) as tries:
        search = _search(question, tries)
        try:
            search.run()
        except Stopped as stopping:
            stop = str(stopping)
        found = replace(
            search.known(),
            signature=tries.sought,
            words=tries.answer.words,
            tried=tuple(tries.tried),
            seconds=round(time.monotonic() - began, 3),
            stopped=stop,
            torch=tries.torch,
        )
    return replace(found, note=search.note)


def _search(question: Question, tries: BisectTries) -> _Search:
    # a command is tried as it is typed, where there is no program: then it is given no path
    path = question.program.path
    named = (str(Path(question.program.cwd, path)),) if path and question.command and question.kind != "commits" else ()
    attempt = Try(
        question.program,
        question.target,
        command=(*question.command, *named),
        cwd=question.program.cwd,
    )
    match question.kind:
        case "compiler":
            return CompilerSearch(attempt, tries)
        case "options":
            return OptionSearch(
                attempt, tries, (question.sets[0], question.sets[1]), (question.names[0], question.names[1])
            )
        case "fuzz":
            return FuzzSearch(attempt, tries, question.draws, question.seed)
        case "commits":
            return CommitSearch(attempt, tries, question.good, question.bad, question.first_parent)


class BisectJob(OwnProcesses):
    """Answers the question; `emit` gets an event for each try."""

    NAME = "search"

    def __init__(self, question: Question, run: int, emit: Callable[[SessionEvent], None]) -> None:
        super().__init__(emit)
        self._question, self._run = question, run
        self._found: Bisected | None = None

    def _began(self) -> SessionEvent:
        return events.BisectStarted(run=self._run, question=self._question)

    def _work(self) -> None:
        self._found = bisected(self._question, self._on_progress, self._stop.is_set)

    def _ended(self, failure: Failure | None) -> SessionEvent:
        return events.BisectEnded(run=self._run, bisected=self._found, failure=failure)

    def _on_progress(self, what: str, tried: Tried | None) -> None:
        self._emit(events.BisectProgressed(run=self._run, what=what, tried=tried))
