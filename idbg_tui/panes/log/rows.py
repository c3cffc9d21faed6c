"""The last 20,000 lines of a session's log, with the output of its programs."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from idbg.format.glyphs import SEVERITY_SIGNS
from idbg.format.plain_text import uncoloured
from idbg.schema import events
from idbg.schema.events import SessionEvent
from idbg.schema.repros import Sought
from idbg.schema.runs import Run
from idbg.schema.violations import Severity
from idbg_tui.panes.log.event_lines import LogText, event_lines
from idbg_tui.state.repro_targets import of_event

LIMIT = 20_000
_TRIM = 2_000  # lines are dropped this many at a time: dropping from a list's front moves all the others
# "W1121 12:00:27.320000 8310 torch/utils/cpp_extension.py:183] [0/0] No CUDA runtime is found"
_TORCH_LOG = re.compile(
    r"(?P<record>(?P<level>[VDIWEC])\d{4} \d\d:\d\d:\d\d\.\d+ \d+ (?P<place>\S+:\d+)\] ?(?P<frame>\[[\d/_!]+\] ?)*)"
    r"(?P<message>.*)"
)
_SEVERITIES: dict[str, Severity] = {"W": "fallback", "E": "reject", "C": "reject"}


@dataclass(frozen=True)
class LogLine:
    """A line, the number of its event, and the stream, if a program wrote it, and what it wrote, where that is shown in
    fewer words. `sought` is what a repro of the event shows, of the run `run`.
    """

    content: LogText
    event: int
    stream: str = ""
    sought: Sought | None = None
    run: int = 0
    written: str = ""

    @property
    def copied(self) -> str:
        """The line as it was written."""
        return self.written or self.content.text


class LogLines:
    """A fold of events into lines of text. Output is cut at newlines, and an unfinished last line is there already."""

    def __init__(self) -> None:
        self.lines: list[LogLine] = []
        self.dropped = 0  # lines that are gone from the front
        self.runs = 0  # that began
        self._failed = -1  # where the last run's failure begins, counted from the first line; -1 if it has not failed
        self._events = 0
        self._doing = ""  # the last logged step of the search
        # stream -> (raw text of its unfinished line so far, that line's number counted from the first there ever was)
        self._unfinished: dict[str, tuple[str, int]] = {}

    def take(self, batch: Iterable[SessionEvent], runs: Mapping[int, Run]) -> None:
        """Append the lines of these events; `runs` are their runs, with the events applied."""
        for event in batch:
            self._events += 1
            if isinstance(event, events.OutputWritten):
                self._take_output(event)
                continue
            if isinstance(event, events.RunStarted | events.RunEnded | events.WorkerDied | events.Noted):
                self._unfinished.clear()
            self._note(event)
            if self._is_repeated(event):
                continue
            number = getattr(event, "run", 0)
            run = runs.get(number)
            again = of_event(event, run), number
            self.lines += [LogLine(content, self._events, "", *again) for content in event_lines(event, run)]
        if len(self.lines) > LIMIT + _TRIM:
            excess = len(self.lines) - LIMIT
            del self.lines[:excess]
            self.dropped += excess

    @property
    def failed(self) -> int | None:
        """The first line of the last run's failure, or None."""
        return self._failed - self.dropped if self._failed >= self.dropped else None

    def _is_repeated(self, event: SessionEvent) -> bool:
        """Whether the last line has this step of a search already; the footer shows how far it is."""
        doing = event.progress.doing if isinstance(event, events.MinifyProgressed) else ""
        repeated, self._doing = bool(doing) and doing == self._doing, doing or self._doing
        if isinstance(event, events.MinifyStarted):
            self._doing = ""
        return repeated

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
        return [line.copied for line in self.lines[first : last + 1]]

    def _take_output(self, event: events.OutputWritten) -> None:
        before, place = self._unfinished.pop(event.stream, ("", -1))
        first, *others = event.text.split("\n")
        index = place - self.dropped
        line = self._output(before + first, event.stream, index if place >= 0 else len(self.lines))
        if place >= 0 and index >= 0:
            self.lines[index] = line
        elif before + first or others:
            index = len(self.lines)
            self.lines.append(line)
        if not others:
            # what a program writes without ever ending its line is kept up to a screenful
            self._unfinished[event.stream] = ((before + first)[-LIMIT:], index + self.dropped)
            return
        *whole, rest = others
        for raw in whole:
            self.lines.append(self._output(raw, event.stream, len(self.lines)))
        if rest:
            self._unfinished[event.stream] = (rest, len(self.lines) + self.dropped)
            self.lines.append(self._output(rest, event.stream, len(self.lines)))

    def _output(self, raw: str, stream: str, index: int) -> LogLine:
        """Line `index`; each line of a record of torch's log has the record's prefix."""
        text = uncoloured(raw)
        if (match := _TORCH_LOG.fullmatch(text)) is None:
            return LogLine(LogText(text), self._events, stream)
        begins = index < 1 or not self.lines[index - 1].written.startswith(match["record"])
        return LogLine(_without_prefix(match, begins=begins), self._events, stream, written=text)


def _without_prefix(match: re.Match[str], *, begins: bool) -> LogText:
    """A line of torch's log: its message, where the record begins with its sign and its place in torch."""
    severity = _SEVERITIES.get(match["level"])
    if not begins:
        return LogText(f"  {match['message']}", severity or "dim")
    sign = f"{SEVERITY_SIGNS[severity]} " if severity else ""
    frame = f"{match['frame'].strip()} " if match["frame"] else ""
    return LogText(f"{sign}{match['message']}  ({frame}{match['place'].rpartition('/')[2]})", severity or "dim")
