"""What are the last 20,000 lines of a session's log, the output of its programs among them?"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from idbg.format.plain_text import uncoloured
from idbg.schema import events
from idbg.schema.events import SessionEvent
from idbg.schema.repros import Sought
from idbg.schema.runs import Run
from idbg_tui.panes.log.narration import Told, tell
from idbg_tui.state.repro_targets import of_event

LIMIT = 20_000
_TRIM = 2_000  # lines are dropped this many at a time: dropping from a list's front moves all the others


@dataclass(frozen=True)
class LogLine:
    """A line, the number of the event that it belongs to, and the stream, if a program wrote it. `sought` is what the
    event tells of that can be shown again, and `run` of which run.
    """

    told: Told
    event: int
    stream: str = ""
    sought: Sought | None = None
    run: int = 0


class LogLines:
    """A fold of events into lines of text. Output is cut at newlines, and an unfinished last line is there already."""

    def __init__(self) -> None:
        self.lines: list[LogLine] = []
        self.dropped = 0  # lines that are gone from the front
        self.runs = 0  # that began
        self._failed = -1  # where the last run's failure is told, counted from the first line; -1 if it has not failed
        self._events = 0
        self._doing = ""  # what the search did that was told last
        # stream -> (raw text of its unfinished line so far, that line's number counted from the first there ever was)
        self._unfinished: dict[str, tuple[str, int]] = {}

    def take(self, batch: Iterable[SessionEvent], runs: Mapping[int, Run]) -> None:
        """Append what these events say; `runs` are those that they are of, the events taken in."""
        for event in batch:
            self._events += 1
            if isinstance(event, events.OutputWritten):
                self._take_output(event)
                continue
            if isinstance(event, events.RunStarted | events.RunEnded | events.WorkerDied | events.Noted):
                self._unfinished.clear()
            self._note(event)
            if self._is_told(event):
                continue
            number = getattr(event, "run", 0)
            run = runs.get(number)
            again = of_event(event, run), number
            self.lines += [LogLine(told, self._events, "", *again) for told in tell(event, run)]
        if len(self.lines) > LIMIT + _TRIM:
            excess = len(self.lines) - LIMIT
            del self.lines[:excess]
            self.dropped += excess

    @property
    def failed(self) -> int | None:
        """The line that begins the telling of the last run's failure, or None."""
        return self._failed - self.dropped if self._failed >= self.dropped else None

    def _is_told(self, event: SessionEvent) -> bool:
        """Whether the last line says what a search does: how far it is in that the footer counts."""
        doing = event.progress.doing if isinstance(event, events.MinifyProgressed) else ""
        told, self._doing = bool(doing) and doing == self._doing, doing or self._doing
        if isinstance(event, events.MinifyStarted):
            self._doing = ""
        return told

    def _note(self, event: SessionEvent) -> None:
        if isinstance(event, events.RunStarted):
            self.runs += 1
            self._failed = -1
        failed = isinstance(event, events.WorkerDied | events.FrameFailed)
        failed = failed or (isinstance(event, events.RunEnded) and event.failure is not None)
        if failed and self._failed < 0:
            self._failed = len(self.lines) + self.dropped

    def block(self, index: int) -> list[str]:
        """The text of all lines that belong to the same event as line `index`: a failure with its traceback."""
        event = self.lines[index].event
        first = last = index
        while first > 0 and self.lines[first - 1].event == event:
            first -= 1
        while last + 1 < len(self.lines) and self.lines[last + 1].event == event:
            last += 1
        return [line.told.text for line in self.lines[first : last + 1]]

    def _take_output(self, event: events.OutputWritten) -> None:
        before, place = self._unfinished.pop(event.stream, ("", -1))
        first, *others = event.text.split("\n")
        index = place - self.dropped
        told = self._output(before + first, event.stream)
        if place >= 0 and index >= 0:
            self.lines[index] = told
        elif before + first or others:
            index = len(self.lines)
            self.lines.append(told)
        if not others:
            # what a program writes without ever ending its line is kept up to a screenful
            self._unfinished[event.stream] = ((before + first)[-LIMIT:], index + self.dropped)
            return
        *whole, rest = others
        self.lines += [self._output(line, event.stream) for line in whole]
        if rest:
            self._unfinished[event.stream] = (rest, len(self.lines) + self.dropped)
            self.lines.append(self._output(rest, event.stream))

    def _output(self, raw: str, stream: str) -> LogLine:
        return LogLine(Told(uncoloured(raw)), self._events, stream)
