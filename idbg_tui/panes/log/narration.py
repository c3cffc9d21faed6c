"""How is an event told in the log, in words?"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from idbg.format import file_names
from idbg.format.amounts import NOT_MEASURED, counted, duration, elapsed
from idbg.format.failures import headline, place_of
from idbg.format.glyphs import MARKS, SEVERITY_SIGNS, VERDICT_SIGNS
from idbg.format.plain_text import uncoloured
from idbg.format.verdicts import rules_words, verdict_words
from idbg.schema import events
from idbg.schema.events import SessionEvent
from idbg.schema.programs import Failure, Verdict
from idbg.schema.repros import Sought
from idbg.schema.runs import Run
from idbg.schema.violations import Severity
from idbg.views.attribution import owner_lines
from idbg.views.bisection import OUTCOMES
from idbg.views.bisection import summary as guilty_summary
from idbg.views.faults import crash_lines
from idbg.views.repros import progress_words, result_lines, sought_words, verdict

_SLOW_ENOUGH = 0.1  # seconds; a compile has hundreds of phases, and most take a few milliseconds
_KINDS = {
    "user": "your program",
    "torch": "torch",
    "backend": "the backend",
    "constraints": "constraints",
    "worker": "the worker",
}
_LEVELS: dict[str, Severity] = {"warning": "fallback", "error": "reject"}
# CSI, OSC (up to its end), other two-character escapes; then what is left of control characters
_QUOTED = re.compile(r'\s*File "([^"<]+)", line (\d+)')


@dataclass(frozen=True)
class Told:
    """One line of the log: its text, the name of its style, and the user's line that it is about."""

    text: str
    style: str = ""
    file: str = ""
    line: int = 0


def tell(event: SessionEvent, run: Run | None = None) -> Iterator[Told]:
    """The lines for one event of `run`; nothing for output, which is not told but shown, and for what panes show."""
    match event:
        case events.SessionOpened():
            yield Told(f"session {event.folder}", "dim")
        case events.WorkerStarted():
            versions = ", ".join((f"torch {event.torch}", f"Python {event.python}", *event.devices))
            yield Told(f"worker ready in {elapsed(event.seconds)}: {versions}", "dim")
        case events.WorkerDied():
            yield Told(f"{SEVERITY_SIGNS['reject']} the worker died: {event.cause}", "reject")
            yield Told("  r starts another and runs again", "")
            yield from _block(event.last_output, "dim")
        case events.RunStarted():
            target = event.target
            parts = (event.program.label, target.backend, target.device, rules_words(target))
            words = f" {MARKS['separator']} ".join(part for part in parts if part)
            yield Told(f"{MARKS['rule']} run {event.run} {MARKS['rule']} {words}", "strong")
        case events.BackendsCalled(backends=backends):
            yield Told(f"compiled by {' + '.join(backends)}, as the program's own torch.compile says", "dim")
        case events.PhaseChanged() | events.FrameStarted() | events.GraphCaptured() | events.CodeCaptured():
            yield from _progress(event)
        case events.BenchStepStarted():
            yield Told(f"  {step(event)}", "dim")
        case events.BenchStarted() | events.BenchTaskStarted() | events.RowMeasured() | events.KernelsTimed():
            yield _measured(event)
        case events.GraphBroke(graph_break=broke):
            words = f"{SEVERITY_SIGNS['fallback']} graph break{_at(broke.file, broke.line)}"
            yield Told(words, "fallback", broke.file, broke.line)
            yield from _block(broke.reason)
        case events.Recompiled() if run is None or run.counts(event):
            yield Told(f"{SEVERITY_SIGNS['fallback']} recompiled {event.frame}", "fallback")
            yield from _block(event.reason)
        case events.FrameFailed():
            yield Told(
                f"{SEVERITY_SIGNS['reject']} frame {event.frame or '?'} did not compile; the program went on", "reject"
            )
            yield from failure(event.failure)
        case events.RunEnded():
            yield from _run_ended(event, run)
        case events.RulesRefused():
            line = f"line {event.line}: " if event.line else ""
            yield Told(f"{SEVERITY_SIGNS['reject']} rules refused: {line}{event.message}", "reject")
        case events.RulesEdited():
            yield Told(f"rules taken from {event.origin}", "dim")
        case events.ReproStarted() | events.ReproEnded():
            yield from _repro(event)
        case events.MinifyStarted() | events.MinifyProgressed() | events.MinifyEnded():
            yield from _search(event)
        case events.BisectStarted() | events.BisectProgressed() | events.BisectEnded():
            yield from _bisect(event)
        case events.OwnerStarted():
            name = run.diff.kernels[event.launch].name if run and run.diff else f"launch {event.launch}"
            yield Told(f"whose error {name} has: it is called alone", "strong")
        case events.OwnerEnded():
            yield from _owner_ended(event)
        case events.Noted():
            yield from _noted(event)
        case _:
            return


def _progress(event: SessionEvent) -> Iterator[Told]:
    match event:
        case events.PhaseChanged(seconds=float(seconds)) if seconds >= _SLOW_ENOUGH:
            yield Told(f"{seconds:8.1f} s  {event.phase}" + (f"  {event.frame}" if event.frame else ""), "dim")
        case events.FrameStarted(frame=frame):
            yield Told(f"frame {frame.id}  {frame.function}{_at(frame.file, frame.line)}", "", frame.file, frame.line)
        case events.GraphCaptured(graph=graph):
            yield Told(f"graph {graph.id}: {counted(len(graph.nodes), 'node')}", "dim")
        case events.CodeCaptured(code=code):
            part = f" ({code.part})" if code.part else ""
            yield Told(f"code {code.frame}{part}: {counted(len(code.kernels), 'kernel')}", "dim")


_LOOKS: dict[Verdict, str] = {
    "clean": "clean",
    "violations": "fallback",
    "empty": "fallback",
    "wrong": "reject",
    "failed": "reject",
    "waiting": "",
}


def _run_ended(event: events.RunEnded, run: Run | None) -> Iterator[Told]:
    word = run.looks if run else event.verdict
    words = verdict_words(run) if run else word
    yield Told(f"{VERDICT_SIGNS[word]} run {event.run}: {words} after {elapsed(event.seconds)}", _LOOKS[word])
    if event.failure is not None:
        yield from failure(event.failure)


def failure(failed: Failure) -> Iterator[Told]:
    """What went wrong, whose it is, where, what to do about it, then all of the message and the user's own traceback.

    torch names first what it was doing when it met an error: there the error comes first.
    """
    message = clean_lines(failed.message) or [failed.type or failed.kind]
    line = headline(failed)
    first, *others = message
    hidden = bool(line.cause) and line.cause.partition(": ")[2] not in first and line.cause not in failed.message
    named = failed.kind in ("user", "torch", "backend") and failed.type and not first.startswith(failed.type)
    cause = line.cause if hidden else f"{failed.type}: {first}" if named else first
    whose = f"{_KINDS[failed.kind]}: " if failed.kind in _KINDS else ""
    yield Told(f"  {whose}{cause}", "reject", *place_of(failed))
    if not hidden:
        yield from (Told(f"  {other}", "reject") for other in others)
    file, number = place_of(failed)
    if file:
        yield Told(f"  at {file}:{number}", "", file, number)
    yield from (Told(f"  {words}", "", file, number) for words in (crash_lines(failed.crash) if failed.crash else ()))
    if failed.hint:
        yield from (Told(f"  {MARKS['arrow']} {words}", "accent") for words in clean_lines(failed.hint))
    if failed.repro and failed.repro not in failed.message:
        yield Told(f"  repro: {failed.repro}", "accent")
    if hidden:
        yield from (Told(f"    {words}") for words in message)
    yield from _block(failed.traceback, "dim")


def _repro(event: events.ReproStarted | events.ReproEnded) -> Iterator[Told]:
    if isinstance(event, events.ReproStarted):
        sought = Sought("violation", event.node, event.rule) if event.node else Sought()
        yield Told(f"writing a repro of {sought_words(sought)}", "strong")
        return
    if event.failure is not None:
        words = f"the repro {event.path} was not tried" if event.path else "no repro was written"
        yield Told(f"{SEVERITY_SIGNS['reject']} {words}", "reject")
        yield from failure(event.failure)
        return
    verdicts = {
        True: ("clean", VERDICT_SIGNS["clean"], "reproduces"),
        False: ("reject", VERDICT_SIGNS["failed"], "does not reproduce"),
        None: ("", MARKS["separator"], "was not run"),
    }
    style, sign, words = verdicts[event.reproduced]
    status = "" if event.status is None else f" (exit status {event.status}, {elapsed(event.seconds)})"
    yield Told(f"{sign} {event.path} {words}{status}", style)
    yield from _block(event.output, "dim")


def _search(event: events.MinifyStarted | events.MinifyProgressed | events.MinifyEnded) -> Iterator[Told]:
    if isinstance(event, events.MinifyStarted):
        what = "writing a repro of" if event.sought.kind == "node" else "looking for a small script of"
        yield Told(f"{what} {sought_words(event.sought)}", "strong")
        return
    if isinstance(event, events.MinifyProgressed):
        yield Told(f"  {progress_words(event.progress)}", "dim")
        return
    found = event.minified
    if found is not None:
        first, *others = result_lines(found)
        yield Told(first, _LOOKS[verdict(found.reproduced)])
        yield from (Told(f"  {line}") for line in others)
        yield from _block(found.printed, "dim")
    if event.failure is not None and event.failure.kind == "cancelled":
        yield Told(
            "  it was stopped: X on it in 9 Repros goes on" if found is not None else "the search was stopped", ""
        )
    elif event.failure is not None:
        yield Told(f"{SEVERITY_SIGNS['reject']} the search did not come to its end", "reject")
        yield from failure(event.failure)


def _bisect(event: events.BisectStarted | events.BisectProgressed | events.BisectEnded) -> Iterator[Told]:
    if isinstance(event, events.BisectStarted):
        yield Told("looking for who is guilty", "strong")
        return
    if isinstance(event, events.BisectProgressed):
        if event.tried is not None:
            yield Told(f"  {event.what}: {OUTCOMES[event.tried.outcome]}", "dim")
        return
    if event.bisected is not None:
        first, *others = guilty_summary(event.bisected).splitlines()
        yield Told(first, "strong")
        yield from (Told(f"  {line}") for line in others)
    elif event.failure is not None:
        yield Told(f"{SEVERITY_SIGNS['reject']} the search did not come to its end", "reject")
        yield from failure(event.failure)


def _owner_ended(event: events.OwnerEnded) -> Iterator[Told]:
    if event.failure is not None:
        yield Told(f"{SEVERITY_SIGNS['reject']} whose error it is is not known", "reject")
        yield from failure(event.failure)
    if event.owner is not None:
        yield from (Told(line) for line in owner_lines(event.owner))
        yield from _block(event.owner.printed, "dim")


def _noted(event: events.Noted) -> Iterator[Told]:
    severity = _LEVELS.get(event.level)
    first, *others = clean_lines(event.text) or [""]
    yield Told(f"{SEVERITY_SIGNS[severity]} {first}" if severity else first, severity or "")
    yield from (Told(f"  {line}", severity or "") for line in others)


def clean_lines(text: str) -> list[str]:
    """The lines of a text, without what a terminal would obey; none of a text that is blank."""
    return [uncoloured(line) for line in text.rstrip("\n").split("\n")] if text.strip() else []


def step(event: events.BenchStepStarted) -> str:
    """ "step 4 of 6: warming up"."""
    return f"step {event.step} of {event.of}: {uncoloured(event.words)}"


def _measured(event: events.BenchStarted | events.BenchTaskStarted | events.RowMeasured | events.KernelsTimed) -> Told:
    match event:
        case events.BenchStarted(cases=count):
            return Told(f"{MARKS['rule']} measuring {counted(count, 'row')}", "strong")
        case events.BenchTaskStarted():
            return Told(f"measuring {event.backend}: {event.task}", "dim")
        case events.RowMeasured(row=row):
            if row.status == "failed":
                return Told(f"{SEVERITY_SIGNS['reject']} {row.backend} failed: {uncoloured(row.reason)}", "reject")
            took = duration(row.latency_ms.median) if row.latency_ms else NOT_MEASURED
            return Told(f"{VERDICT_SIGNS['clean']} {row.backend}: {took}")
        case events.KernelsTimed(times=None, failure=failure):
            return Told(
                f"{SEVERITY_SIGNS['reject']} no kernel was timed: {failure.message if failure else ''}", "reject"
            )
        case events.KernelsTimed(times=times):
            assert times is not None
            return Told(f"{VERDICT_SIGNS['clean']} {counted(len(times.kernels), 'kernel')} of {event.backend} timed")


def _block(text: str, style: str = "") -> Iterator[Told]:
    for line in clean_lines(text):
        quoted = _QUOTED.match(line)
        yield Told(f"    {line}", style, quoted[1] if quoted else "", int(quoted[2]) if quoted else 0)


def _at(file: str, line: int) -> str:
    return f"  {file_names.place(file, line)}" if file else ""
