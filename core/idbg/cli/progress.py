"""How far is a session's run or search? Each event that tells of it becomes a line of `bar`."""

import logging
import time
from collections.abc import Callable
from typing import TextIO

from idbg.cli.bar import Bar, Doing
from idbg.schema import events
from idbg.schema.events import SessionEvent
from idbg.schema.repros import MinifyProgress
from idbg.views.repros import progress_words, sought_words

log = logging.getLogger(__name__)
Usual = Callable[[int], float | None]


class Progress:
    """A session's listener that shows on `bar` what goes on. `usual` gives the seconds that the run of this number
    mostly takes, once its worker is up; None where that is not known. `stdout` is where what the program writes to its
    own goes, None: to stderr, with the rest.
    """

    def __init__(
        self,
        bar: Bar,
        usual: Usual = lambda run: None,
        clock: Callable[[], float] = time.monotonic,
        stdout: TextIO | None = None,
    ) -> None:
        self._bar, self._usual, self._clock, self._stdout = bar, usual, clock, stdout
        self._unfinished = False  # the last line of it
        self._since: float | None = None
        self._seconds: float | None = None
        self._side = ""
        self._begun = 0
        self._rows = _Rows()
        self._told: tuple[object, ...] = ()  # of a search: where a file has a line for what is new, not for each try

    def __call__(self, event: SessionEvent) -> None:
        match event:
            case events.RunStarted():
                self._since, self._seconds, self._side, self._begun = self._clock(), None, "", 0
                if self._bar.on_terminal:
                    self._show("starting")
            case events.WorkerStarted(torch=version):
                log.info("a worker has torch %s after %.1f s", version, event.seconds)
                self._show(f"torch {version}")
            case events.PhaseChanged(seconds=None):
                self._phase(event)
            case events.PhaseChanged(seconds=float(seconds)):
                log.info("%s took %.2f s", f"{event.phase} {event.frame}".rstrip(), seconds)
            case events.SideStarted(side=side):
                self._side = side
                self._show(f"side {side}")
            case events.SideEnded():
                self._side = ""
            case events.OutputWritten(stream="stdout", text=text) if self._stdout is not None:
                self._bar.beside(text, self._stdout)
                self._unfinished = not text.endswith("\n")
            case events.OutputWritten(text=text):
                self._bar.passed(text)
            case events.Noted(level="warning" | "error", text=text):
                self._bar.end_line()
                self._bar.passed(f"idbg: {text}\n")
            case events.RunEnded() | events.ReproEnded() | events.OwnerEnded() | events.MinifyEnded():
                self._over()
            case _:
                self._beside(event)

    def clear(self) -> None:
        """Take the line off the terminal."""
        self._bar.clear()

    def _beside(self, event: SessionEvent) -> None:
        """What is done with a run once it is over."""
        match event:
            case events.OwnerStarted():
                self._begin("whose error it is")
            case events.OwnerJudged():
                self._show("a script of it is tried")
            case events.ReproStarted():
                self._begin("a repro is written, and tried")
            case events.MinifyStarted(sought=sought):
                self._begin(f"looking for the least that shows {sought_words(sought)}")
            case events.MinifyProgressed(progress=progress):
                self._search(progress)
            case events.BenchStarted(cases=cases):
                self._rows = _Rows(self._clock(), cases)
            case events.BenchTaskStarted(program=program, backend=backend, task=task):
                self._bar.show(self._rows.doing(f"{program} {backend}: {task}"))
            case events.BenchStepStarted(words=words) if self._bar.on_terminal:
                self._bar.show(self._rows.doing(words))
            case events.RowMeasured():
                self._rows.row_done(self._clock())
            case events.BenchEnded():
                self._over()
            case _:
                pass

    def _phase(self, event: events.PhaseChanged) -> None:
        if self._begun != event.run:  # what is usual has not the start of the worker in it
            self._begun, self._since, self._seconds = event.run, self._clock(), self._usual(event.run)
        side = f"side {self._side}: " if self._side else ""
        self._show(f"{side}{event.phase} {event.frame}".rstrip(), f"{side}{event.phase}")

    def _begin(self, words: str) -> None:
        self._since, self._seconds = self._clock(), None
        self._show(words)

    def _show(self, words: str, kind: str = "") -> None:
        self._bar.show(Doing(words, kind, since=self._since, usual=self._seconds))

    def _search(self, progress: MinifyProgress) -> None:
        told = (progress.doing, progress.size, progress.best, progress.others)
        if self._bar.on_terminal or told != self._told:
            self._told = told
            self._bar.show(Doing(progress_words(progress)))  # which say how long it took, and what is to come

    def _over(self) -> None:
        if self._stdout is not None and self._unfinished:  # the report comes after it
            self._bar.beside("\n", self._stdout)
            self._unfinished = False
        self._bar.end_line()
        self.clear()


class _Rows:
    """Which of several things is done, one after another, and how long those before it took."""

    def __init__(self, began: float = 0.0, of: int = 0) -> None:
        self._first = self._began = began
        self._of, self._done = of, 0

    def doing(self, words: str) -> Doing:
        """The one that is done now."""
        each = (self._began - self._first) / self._done if self._done else None
        done = min(self._done, max(self._of - 1, 0))
        return Doing(words, since=self._first, done=done, of=self._of, each=each, began=self._began)

    def row_done(self, now: float) -> None:
        """One is done, and the next begins."""
        self._done += 1
        self._began = now


class Steps:
    """The same where no session tells: so many things, one after another, each shown as it begins."""

    def __init__(self, bar: Bar, of: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._bar, self._clock = bar, clock
        self._rows = _Rows(clock(), of)

    def show(self, words: str) -> None:
        """This is done now, of the one that is in hand."""
        self._bar.show(self._rows.doing(words))

    def next(self) -> None:
        """The one in hand is done."""
        self._rows.row_done(self._clock())
