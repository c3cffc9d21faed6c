"""How does a watch go on from check to check, and how is each told?"""

import queue
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from idbg.checking import again
from idbg.cli import output
from idbg.format.amounts import counted, elapsed
from idbg.format.file_names import from_here, near_place
from idbg.format.glyphs import VERDICT_SIGNS
from idbg.format.plain_text import one_line
from idbg.format.verdicts import verdict_words
from idbg.reports.diagnostics import SIGNS, Diagnostic, changes, diagnostics
from idbg.schema import events, strict_json
from idbg.schema.programs import Verdict
from idbg.schema.runs import Run
from idbg.session.program_files import ChangedFiles, files_of
from idbg.session.session import Session

SCHEMA = "idbg.watch/1"
POLL_SECONDS = 0.2
KEPT_RUNS = 3  # in memory as a whole: a watch may go on for days; the log has them all
LINES_ELSEWHERE = 20  # told of what is new, and of what went, where there is no screen to fill


class Checked(NamedTuple):
    """One check: `because` of these files, none for the first; `compiled`: the program ran for it, else other rules
    were asked of graphs that were there. `new` and `gone` are beside the check before. `seconds`: of wall time.
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
    """A session's program, checked again and again. `told` hears of each check, `noted` of all else, in a sentence."""

    def __init__(self, session: Session, told: Callable[[Checked], None], noted: Callable[[str], None]) -> None:
        self._session, self._told, self._noted = session, told, noted
        self._files = ChangedFiles()
        self._rules: queue.SimpleQueue[events.RulesEdited | events.RulesRefused] = queue.SimpleQueue()
        self._last: Checked | None = None
        self._missing: set[str] = set()

    def go(self, checks: int = 0) -> Checked:
        """Check now and after each edit; gives the last of so many checks, or goes on until something is raised."""
        stop = self._session.subscribe(self._heard)
        self._session.start()
        try:
            last = self._compiled(())
            while last.number != checks:
                last = self._next()
            return last
        finally:
            stop()

    def _heard(self, event: events.SessionEvent) -> None:
        if isinstance(event, events.RulesEdited | events.RulesRefused):
            self._rules.put(event)

    def _next(self) -> Checked:
        """The next check, once there is a reason for one."""
        while True:
            changed = self._files.look()
            self._say_missing()
            if changed:
                return self._compiled(tuple(changed))
            if (edited := self._edited(POLL_SECONDS)) is not None:
                return self._again(edited)

    def _edited(self, seconds: float) -> events.RulesEdited | None:
        """The last edit of the rules within so many seconds, None where there is none; one that is refused is said."""
        edited = None
        try:
            event = self._rules.get(timeout=seconds) if seconds else self._rules.get_nowait()
            while True:
                if isinstance(event, events.RulesEdited):
                    edited = event
                else:
                    at = f":{event.line}" if event.line else ""
                    self._noted(f"{from_here(event.origin)}{at}: {event.message}: the rules before stay in force")
                event = self._rules.get_nowait()
        except queue.Empty:
            return edited

    def _say_missing(self) -> None:
        """Say of each file that is gone that it is waited for, once."""
        missing = set(self._files.missing())
        for file in sorted(missing - self._missing):
            self._noted(f"{from_here(file)} is not there: it is waited for")
        self._missing = missing

    def _compiled(self, because: tuple[str, ...]) -> Checked:
        """A check for which the program runs. An edit meanwhile stops it, and the run begins anew."""
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
            if self._edited(0) is not None and not again.can_be(run):
                because = tuple(dict.fromkeys((*because, self._accelerator())))
                continue
            return self._checked(because, run, time.monotonic() - clock, compiled=True)

    def _again(self, edited: events.RulesEdited) -> Checked:
        """A check after an edit of the rules: of the graphs that are there, or, where that cannot be, a run."""
        because = (edited.origin,)
        clock = time.monotonic()
        run = self._last.run if self._last is not None else None
        if run is None or not again.can_be(run):
            return self._compiled(because)
        return self._checked(because, again.under(run, edited.text), time.monotonic() - clock, compiled=False)

    def _accelerator(self) -> str:
        return self._session.target.accelerator

    def _checked(self, because: tuple[str, ...], run: Run, seconds: float, *, compiled: bool) -> Checked:
        if compiled and run.target.rules != self._session.target.rules and again.can_be(run):
            run = again.under(run, self._session.target.rules)  # they were edited while it ran
        found = tuple(diagnostics(run))
        new, gone = changes(found, self._last.found if self._last is not None else ())
        self._last = Checked(
            number=self._last.number + 1 if self._last is not None else 1,
            because=because,
            compiled=compiled,
            run=run,
            found=found,
            new=tuple(new),
            gone=tuple(gone),
            seconds=seconds,
            files=len(self._files.files),
        )
        for number in self._session.history.runs:
            if number <= run.number - KEPT_RUNS:
                self._session.forget(number)
        self._told(self._last)
        return self._last


class WatchReport(msgspec.Struct, frozen=True, kw_only=True):
    """One check as a line of JSON: docs/json-schema.md."""

    schema: str
    check: int
    at: float
    because: tuple[str, ...]
    compiled: bool
    run: int
    verdict: Verdict
    words: str
    seconds: float
    found: int
    errors: int
    new: tuple[Diagnostic, ...]
    gone: tuple[Diagnostic, ...]


class NoteReport(msgspec.Struct, frozen=True, kw_only=True):
    """What else is said while a watch goes on."""

    schema: str
    at: float
    note: str


class Telling:
    """Tells of checks on stdout: on a terminal as a screenful, elsewhere as lines, or as lines of JSON."""

    def __init__(self, *, as_json: bool, on_terminal: bool, clock: Callable[[], float] = time.time) -> None:
        self._as_json, self._on_terminal, self._clock = as_json, on_terminal, clock

    def check(self, checked: Checked) -> None:
        """Tell of a check."""
        if self._as_json:
            self._line(report_of(checked, self._clock()))
        elif self._on_terminal:
            size = shutil.get_terminal_size()
            with output.printing():
                sys.stdout.write("\x1b[H\x1b[2J")  # the terminal keeps what was there in its history
            output.say("\n".join(screen(checked, size.columns, size.lines)))
        else:
            output.say("\n".join(lines(checked)))

    def note(self, text: str) -> None:
        """Tell of what is no check: with --json as a line too, else on stderr."""
        if self._as_json:
            self._line(NoteReport(schema=SCHEMA, at=self._clock(), note=one_line(text)))
        else:
            output.line(f"idbg: {one_line(text)}")

    def _line(self, report: msgspec.Struct) -> None:
        output.say_bytes(strict_json.encode(report))


def report_of(checked: Checked, at: float) -> WatchReport:
    """The check as `--json` has it."""
    return WatchReport(
        schema=SCHEMA,
        check=checked.number,
        at=at,
        because=checked.because,
        compiled=checked.compiled,
        run=checked.run.number,
        verdict=checked.run.verdict,
        words=verdict_words(checked.run),
        seconds=checked.seconds,
        found=len(checked.found),
        errors=sum(each.level == "error" for each in checked.found),
        new=checked.new,
        gone=checked.gone,
    )


def lines(checked: Checked) -> Iterator[str]:
    """The check for a pipe: its verdict, what is new, what went."""
    yield headline(checked)
    yield from _few(checked.new, "+", LINES_ELSEWHERE, fixes=True)
    yield from _few(checked.gone, "-", LINES_ELSEWHERE)


def screen(checked: Checked, columns: int, rows: int) -> Iterator[str]:
    """The check on a terminal of this size, which it leaves room on: what is new, what went, what is as it was."""
    new = {each.key for each in checked.new}
    kept = [each for each in checked.found if each.key not in new]
    room = max(rows - 6, 6)  # the headline, two empty lines, the last, the cursor's, and one to spare
    told = [headline(checked), ""]
    for sign, found in (("+", checked.new), ("-", checked.gone), (" ", kept)):
        part = list(_few(found, sign, max(room if sign == " " else room // 2, 1)))
        told += part
        room -= len(part)
    told += ["", f"{counted(checked.files, 'file')} watched, and the rules; + is new, - went away; Ctrl+C ends it"]
    return (line if len(line) <= columns else line[: columns - 1] + "…" for line in told)


def headline(checked: Checked) -> str:
    """ "✘ check 3: 2 violations, 0.8 s (model.py was edited)"."""
    files = ", ".join(one_line(from_here(file), 60) for file in checked.because[:3])
    more = f" and {len(checked.because) - 3} more" if len(checked.because) > 3 else ""
    why = f"; {files}{more} edited" if files else ""
    how = "" if checked.compiled else ", not compiled again"
    run = checked.run
    what = f"{VERDICT_SIGNS[run.looks]} check {checked.number}: {one_line(verdict_words(run), 100)}"
    return f"{what}, {elapsed(checked.seconds)}{how}{why}"


def _few(found: Sequence[Diagnostic], sign: str, most: int, *, fixes: bool = False) -> Iterator[str]:
    """So many of them, a line each, the worst first; how many more there are takes one. `fixes`: and what to do."""
    shown = found if len(found) <= most else found[: max(most - 1, 0)]
    for each in shown:
        place = near_place(each.file, each.line) if each.line else from_here(each.file) if each.file else ""
        what = f"{each.kind} {one_line(each.rule, 60)}" if each.rule != each.kind else each.kind
        where = f"{one_line(place, 80)}: " if place else ""
        yield f"  {sign} {SIGNS[each.level]} {where}{what}: {one_line(each.message, 200)}"
        if fixes and each.fix:
            yield f"        {one_line(each.fix, 200)}"
    if len(found) > len(shown):
        yield f"  {sign} … {counted(len(found) - len(shown), 'other')}"
