"""Check a session's program again and again, and print each check."""

import queue
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from idbg.checking.check import can_recheck, recheck
from idbg.cli import output
from idbg.format.amounts import counted, elapsed
from idbg.format.file_names import from_here
from idbg.format.glyphs import MARKS, VERDICT_SIGNS
from idbg.format.plain_text import one_line
from idbg.format.verdicts import verdict_words
from idbg.render import text
from idbg.schema import events, strict_json
from idbg.schema.runs import Run
from idbg.session.program_files import ChangedFiles, files_of
from idbg.session.session import Session
from idbg.views import findings
from idbg.views.diagnostics import Diagnostic, changes, diagnostics

SCHEMA = "idbg.watch/1"
POLL_SECONDS = 0.2
KEPT_RUNS = 3  # in memory: a watch may run for days; the log has all runs
MAX_LINES = 40  # of new and of gone findings, where stdout is not a terminal


class Checked(NamedTuple):
    """One check. `because`: the changed files; empty for the first check. `compiled`: the program ran, else captured
    graphs were checked against edited rules. `new`, `gone`: compared with the previous check. `seconds`: wall time.
    """

    number: int
    because: tuple[str, ...]
    compiled: bool
    run: Run
    found: tuple[Diagnostic, ...]
    new: tuple[Diagnostic, ...]
    gone: tuple[Diagnostic, ...]
    seconds: float
    files: int


class Watch:
    """Checks a session's program after each edit. Calls `on_check` with each check, `note` with other messages."""

    def __init__(self, session: Session, on_check: Callable[[Checked], None], note: Callable[[str], None]) -> None:
        self._session, self._on_check, self._note = session, on_check, note
        self._files = ChangedFiles()
        self._rules: queue.SimpleQueue[events.RulesEdited | events.RulesRefused] = queue.SimpleQueue()
        self._last: Checked | None = None
        self._missing: set[str] = set()

    def go(self, checks: int = 0) -> Checked:
        """Check now and after each edit. Returns the last of so many checks; with 0 it runs until an exception."""
        stop = self._session.subscribe(self._receive)
        self._session.start()
        try:
            last = self._compiled(())
            while last.number != checks:
                last = self._next()
            return last
        finally:
            stop()

    def _receive(self, event: events.SessionEvent) -> None:
        if isinstance(event, events.RulesEdited | events.RulesRefused):
            self._rules.put(event)

    def _next(self) -> Checked:
        """Wait for an edit, and check."""
        while True:
            changed = self._files.look()
            self._note_missing()
            if changed:
                return self._compiled(tuple(changed))
            if (edited := self._edited(POLL_SECONDS)) is not None:
                return self._again(edited)

    def _edited(self, seconds: float) -> events.RulesEdited | None:
        """The last edit of the rules within so many seconds, or None. A refused edit is noted."""
        edited = None
        try:
            event = self._rules.get(timeout=seconds) if seconds else self._rules.get_nowait()
            while True:
                if isinstance(event, events.RulesEdited):
                    edited = event
                else:
                    at = f":{event.line}" if event.line else ""
                    self._note(f"{from_here(event.origin)}{at}: {event.message}: the previous rules stay in force")
                event = self._rules.get_nowait()
        except queue.Empty:
            return edited

    def _note_missing(self) -> None:
        """Note each missing file, once."""
        missing = set(self._files.missing())
        for file in sorted(missing - self._missing):
            self._note(f"{from_here(file)} is not there: waiting for it")
        self._missing = missing

    def _compiled(self, because: tuple[str, ...]) -> Checked:
        """Run the program, and check it. An edit meanwhile restarts the run."""
        while True:
            before = self._session.history.last
            began, clock = time.time(), time.monotonic()
            self._files.follow(files_of(self._session.program, before))
            number = self._session.run()
            while not self._session.wait(POLL_SECONDS):
                if changed := self._files.look():
                    because = tuple(dict.fromkeys((*because, *changed)))
                    number = self._session.run()
                    began, clock = time.time(), time.monotonic()
            run = self._session.history.runs[number]
            self._files.follow(files_of(self._session.program, run), since=began)
            if self._edited(0) is not None and not can_recheck(run):
                because = tuple(dict.fromkeys((*because, self._session.target.accelerator)))
                continue
            return self._checked(because, run, time.monotonic() - clock, compiled=True)

    def _again(self, edited: events.RulesEdited) -> Checked:
        """Check the captured graphs against edited rules; run the program where there are none."""
        because = (edited.origin,)
        clock = time.monotonic()
        run = self._last.run if self._last is not None else None
        if run is None or not can_recheck(run):
            return self._compiled(because)
        return self._checked(because, recheck(run, edited.text), time.monotonic() - clock, compiled=False)

    def _checked(self, because: tuple[str, ...], run: Run, seconds: float, *, compiled: bool) -> Checked:
        if compiled and run.target.rules != self._session.target.rules and can_recheck(run):
            run = recheck(run, self._session.target.rules)  # edited during the run
        found = tuple(diagnostics(run))
        new, gone = changes(found, self._last.found if self._last is not None else ())
        self._last = Checked(
            self._last.number + 1 if self._last is not None else 1,
            *(because, compiled, run, found, tuple(new), tuple(gone), seconds),
            files=len(self._files.files),
        )
        for number in self._session.history.runs:
            if number <= run.number - KEPT_RUNS:
                self._session.forget(number)
        self._on_check(self._last)
        return self._last


class Printer:
    """Prints checks to stdout: a full screen on a terminal, elsewhere lines, or lines of JSON."""

    def __init__(self, *, as_json: bool, on_terminal: bool, clock: Callable[[], float] = time.time) -> None:
        self._as_json, self._on_terminal, self._clock = as_json, on_terminal, clock

    def check(self, checked: Checked) -> None:
        """Print a check."""
        if self._as_json:
            self._line(report_of(checked, self._clock()))
        elif self._on_terminal:
            size = shutil.get_terminal_size()
            with output.printing():
                sys.stdout.write("\x1b[H\x1b[2J")  # the terminal's history keeps the previous screen
            output.say("\n".join(screen(checked, size.columns, size.lines)))
        else:
            output.say("\n".join(lines(checked)))

    def note(self, text: str) -> None:
        """Print another message: as a line of JSON, else to stderr."""
        if self._as_json:
            self._line({"schema": SCHEMA, "at": self._clock(), "note": one_line(text)})
        else:
            output.line(f"idbg: {one_line(text)}")

    def _line(self, report: dict[str, object]) -> None:
        output.say_bytes(strict_json.encode(report))


def report_of(checked: Checked, at: float) -> dict[str, object]:
    """The JSON of a check: docs/json-schema.md."""
    return {
        "schema": SCHEMA,
        "check": checked.number,
        "at": at,
        "because": checked.because,
        "compiled": checked.compiled,
        "run": checked.run.number,
        "verdict": checked.run.verdict,
        "words": verdict_words(checked.run),
        "seconds": checked.seconds,
        "found": len(checked.found),
        "errors": sum(each.level == "error" for each in checked.found),
        "new": checked.new,
        "gone": checked.gone,
    }


def lines(checked: Checked) -> Iterator[str]:
    """The check as lines: its verdict, new and gone findings."""
    yield headline(checked)
    yield from _few(checked.new, "+", MAX_LINES)
    yield from _few(checked.gone, "-", MAX_LINES)


def screen(checked: Checked, columns: int, rows: int) -> Iterator[str]:
    """The check for a terminal of this size: new, gone and unchanged findings."""
    new = {each.key for each in checked.new}
    kept = [each for each in checked.found if each.key not in new]
    room = max(rows - 6, 6)  # without the headline, two empty lines, the last line, the cursor's line, and a spare one
    shown = [headline(checked), ""]
    for sign, found in (("+", checked.new), ("-", checked.gone), (" ", kept)):
        part = list(_few(found, sign, max(room if sign == " " else room // 2, 1)))
        shown += part
        room -= len(part)
    shown += ["", f"{counted(checked.files, 'file')} watched, and the rules; + new, - gone; Ctrl+C ends it"]
    return (line if len(line) <= columns else line[: columns - 1] + "…" for line in shown)


def headline(checked: Checked) -> str:
    """ "✘ check 3: 2 violations, 0.8 s (model.py was edited)"."""
    files = ", ".join(one_line(from_here(file), 60) for file in checked.because[:3])
    more = f" and {len(checked.because) - 3} more" if len(checked.because) > 3 else ""
    why = f"; {files}{more} edited" if files else ""
    how = "" if checked.compiled else ", not compiled again"
    run = checked.run
    what = f"{VERDICT_SIGNS[run.looks]} check {checked.number}: {one_line(verdict_words(run), 100)}"
    return f"{what}, {elapsed(checked.seconds)}{how}{why}"


def _few(found: Sequence[Diagnostic], sign: str, most: int) -> Iterator[str]:
    """The worst first, on at most so many lines; the last one counts the others."""
    for number, each in enumerate(found):
        first, *below = text.lines(findings.listed([each]))
        rest = len(found) - number
        if 1 + len(below) > most - (rest > 1):
            yield f"  {sign} {MARKS['ellipsis']} {counted(rest, 'other')}"
            return
        most -= 1 + len(below)
        yield f"  {sign} {one_line(first, 300)}"
        yield from (f"      {one_line(line, 200)}" for line in below)
