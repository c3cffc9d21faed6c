"""Show the progress of a session's run or search: turn its events into lines of `bar`."""

import logging
import time
from collections.abc import Callable
from typing import TextIO

from idbg.cli.bar import Activity, Bar
from idbg.format.processes import capture_words, end_words
from idbg.schema import events
from idbg.schema.events import SessionEvent
from idbg.schema.processes import ProcessEnd
from idbg.schema.repros import MinifyProgress
from idbg.schema.strict_json import like
from idbg.views.repros import progress_words, sought_words

log = logging.getLogger(__name__)
Usual = Callable[[int], float | None]


class Progress:
    """A session's listener that shows its progress on `bar`.

    `usual`: a run's number -> the seconds that it usually takes once its worker is up, or None. `stdout`: where the
    program's stdout goes; None: to stderr.
    """

    def __init__(
        self,
        bar: Bar,
        usual: Usual = lambda run: None,
        clock: Callable[[], float] = time.monotonic,
        stdout: TextIO | None = None,
    ) -> None:
        self._bar, self._usual, self._clock, self._stdout = bar, usual, clock, stdout
        self._unfinished = False  # whether the program's last line has no end
        self._since: float | None = None
        self._seconds: float | None = None
        self._side = self._limit = ""
        self._begun = 0
        self._rows = _Counter()
        self._shown: tuple[object, ...] = ()  # the last shown state of a search

    def __call__(self, event: SessionEvent) -> None:
        match event:
            case events.RunStarted():
                self._since, self._seconds, self._side, self._begun = self._clock(), None, "", 0
                if self._bar.on_terminal:
                    self._show("starting")
            case events.WorkerStarted(torch=version):
                log.info("a worker has torch %s after %.1f s", version, event.seconds)
                self._limited(capture_words(event))
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
            case events.ProcessEnded() if (ended := like(ProcessEnd, event)).is_wrong:
                self._bar.end_line()
                self._bar.passed(f"idbg: the process {event.name}: {end_words(ended)}\n")
            case (
                events.RunEnded()
                | events.ReproEnded()
                | events.OwnerEnded()
                | events.MinifyEnded()
                | events.KernelEdited()
            ):
                self._over()
            case _:
                self._beside(event)

    def _limited(self, words: str) -> None:
        """Say once what a worker cannot capture."""
        if words and words != self._limit:
            self._limit = words
            self._bar.passed(f"idbg: {words}\n")

    def clear(self) -> None:
        """Remove the line from the terminal."""
        self._bar.clear()

    def _beside(self, event: SessionEvent) -> None:
        """What follows after a run."""
        match event:
            case events.OwnerStarted():
                self._begin("finding the cause of the error")
            case events.OwnerJudged():
                self._show("trying a script of it")
            case events.KernelEditing(step=""):
                self._begin("starting")
            case events.KernelEditing(step=step):
                self._show(step)
            case events.ReproStarted():
                self._begin("writing and trying a repro")
            case events.MinifyStarted(sought=sought):
                self._begin(f"minifying {sought_words(sought)}")
            case events.MinifyProgressed(progress=progress):
                self._search(progress)
            case events.BenchStarted(cases=cases):
                self._rows = _Counter(self._clock(), cases)
            case events.BenchTaskStarted(program=program, backend=backend, task=task):
                self._bar.show(self._rows.activity(f"{program} {backend}: {task}"))
            case events.BenchStepStarted(words=words) if self._bar.on_terminal:
                self._bar.show(self._rows.activity(words))
            case events.RowMeasured():
                self._rows.row_done(self._clock())
            case events.BenchEnded():
                self._over()
            case _:
                pass

    def _phase(self, event: events.PhaseChanged) -> None:
        if self._begun != event.run:  # the usual time does not include the worker's start
            self._begun, self._since, self._seconds = event.run, self._clock(), self._usual(event.run)
        side = f"side {self._side}: " if self._side else ""
        self._show(f"{side}{event.phase} {event.frame}".rstrip(), f"{side}{event.phase}")

    def _begin(self, words: str) -> None:
        self._since, self._seconds = self._clock(), None
        self._show(words)

    def _show(self, words: str, kind: str = "") -> None:
        self._bar.show(Activity(words, kind, since=self._since, usual=self._seconds))

    def _search(self, progress: MinifyProgress) -> None:
        state = (progress.doing, progress.size, progress.best, progress.others)
        if self._bar.on_terminal or state != self._shown:
            self._shown = state
            self._bar.show(Activity(progress_words(progress)))  # they have the times

    def _over(self) -> None:
        if self._stdout is not None and self._unfinished:  # before the report
            self._bar.beside("\n", self._stdout)
            self._unfinished = False
        self._bar.end_line()
        self.clear()


class _Counter:
    """Counts steps, and measures how long they take."""

    def __init__(self, began: float = 0.0, of: int = 0) -> None:
        self._first = self._began = began
        self._of, self._done = of, 0

    def activity(self, words: str) -> Activity:
        """The current step."""
        each = (self._began - self._first) / self._done if self._done else None
        done = min(self._done, max(self._of - 1, 0))
        return Activity(words, since=self._first, done=done, of=self._of, each=each, began=self._began)

    def row_done(self, now: float) -> None:
        """A step is done, and the next one begins."""
        self._done += 1
        self._began = now


class Steps:
    """Shows the progress of so many steps, without a session."""

    def __init__(self, bar: Bar, of: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._bar, self._clock = bar, clock
        self._rows = _Counter(clock(), of)

    def show(self, words: str) -> None:
        """Show the current step."""
        self._bar.show(self._rows.activity(words))

    def next(self) -> None:
        """The current step is done."""
        self._rows.row_done(self._clock())
