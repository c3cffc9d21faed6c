"""The lines of the log for each event. Verdicts, searches and attributions are worded by `idbg.views`."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from idbg.analysis.decisions.frames import spoken
from idbg.format import file_names
from idbg.format.amounts import NOT_MEASURED, counted, duration, elapsed
from idbg.format.failures import frame_words
from idbg.format.glyphs import MARKS, SEVERITY_SIGNS, VERDICT_SIGNS
from idbg.format.plain_text import uncoloured
from idbg.format.processes import end_words
from idbg.format.verdicts import rules_words, verdict_words
from idbg.render.text import lines
from idbg.schema import events
from idbg.schema.events import SessionEvent
from idbg.schema.processes import ProcessEnd
from idbg.schema.programs import Failure
from idbg.schema.repros import Sought
from idbg.schema.runs import Run
from idbg.schema.strict_json import like
from idbg.schema.violations import Severity
from idbg.views.attribution import owner_lines
from idbg.views.bisection import OUTCOMES, view
from idbg.views.faults import clean_lines, failure_rows
from idbg.views.kernel_edits import VERDICTS, brief, sentences
from idbg.views.repros import progress_words, reproduced_words, result_lines, sought_words, verdict
from idbg.views.tree import VERDICT_TONES, Span

_SLOW = 0.1  # seconds; a compile has hundreds of phases, and most take a few milliseconds
_LEVELS: dict[str, Severity] = {"warning": "fallback", "error": "reject"}
_QUOTED = re.compile(r'\s*File "([^"<]+)", line (\d+)')


@dataclass(frozen=True)
class LogText:
    """One line of the log: its text, the name of its style, and the user's line that it is about."""

    text: str
    style: str = ""
    file: str = ""
    line: int = 0


def event_lines(event: SessionEvent, run: Run | None = None) -> Iterator[LogText]:
    """The lines for one event of `run`; none for output, which is shown as it is, and for what other panes show."""
    match event:
        case events.WorkerDied():
            yield _marked("reject", f"the worker died: {event.cause}")
            yield LogText("  r starts another and runs again")
            yield from _block(event.last_output, "dim")
        case events.ProcessStarted(process=process):
            yield LogText(f"the process {process.name} compiles: # lists all")
        case events.ProcessEnded():
            ended = like(ProcessEnd, event)
            text = f"the process {event.name}: {end_words(ended)}"
            yield _marked("reject", text) if ended.is_wrong else LogText(text, "dim")
        case events.RunStarted(target=target):
            parts = (event.program.label, target.backend, target.device, rules_words(target))
            words = f" {MARKS['separator']} ".join(part for part in parts if part)
            yield LogText(f"{MARKS['rule']} run {event.run} {MARKS['rule']} {words}", "strong")
        case events.FrameStarted(frame=frame):
            text = f"frame {frame.id}  {spoken(frame)}{_at(frame.file, frame.line)}"
            yield LogText(text, "", frame.file, frame.line)
        case events.GraphBroke(graph_break=broke):
            yield _marked("fallback", f"graph break{_at(broke.file, broke.line)}", broke.file, broke.line)
            yield from _block(broke.reason)
        case events.Recompiled() if run is None or run.counts(event):
            yield _marked("fallback", f"recompiled {event.frame}")
            yield from _block(event.reason)
        case events.FrameFailed():
            yield _marked("reject", frame_words(event.frame, event.failure, went_on=event.went_on))
            yield from _failure(event.failure)
        case events.RunEnded():
            looks = run.looks if run else event.verdict
            words = f"{verdict_words(run) if run else looks} after {elapsed(event.seconds)}"
            yield LogText(f"{VERDICT_SIGNS[looks]} run {event.run}: {words}", VERDICT_TONES[looks])
            yield from _failure(event.failure)
        case events.RulesRefused():
            line = f"line {event.line}: " if event.line else ""
            yield _marked("reject", f"rules refused: {line}{event.message}")
        case events.Noted():
            first, *others = clean_lines(event.text) or [""]
            severity = _LEVELS.get(event.level)
            yield _marked(severity, first) if severity else LogText(first)
            yield from _indented(others, severity or "")
        case events.ReproEnded() | events.MinifyEnded() | events.BisectEnded() | events.OwnerEnded():
            yield from _ended(event)
        case events.KernelEdited(edit=edit):
            looks = VERDICTS[edit.verdict]
            what = f"{VERDICT_SIGNS[looks]} version {edit.version} of {edit.name}"
            yield from _listed((f"{what}: {brief(edit)}", *sentences(edit)), VERDICT_TONES[looks])
            yield from _failure(edit.failure)
        case events.RowMeasured(row=row) if row.status == "failed":
            yield _marked("reject", f"{row.backend} failed: {uncoloured(row.reason)}")
        case events.KernelsTimed(times=None, failure=failure):
            yield _marked("reject", f"no kernel was timed: {failure.message if failure else ''}")
        case _:
            if steps := _strong(event, run):
                yield LogText(steps, "strong")
            elif steps := _dim(event):
                yield LogText(steps, "dim")
            elif steps := _measured(event):
                yield LogText(f"{VERDICT_SIGNS['clean']} {steps}")


def _strong(event: SessionEvent, run: Run | None) -> str:
    """What begins."""
    match event:
        case events.ReproStarted(node=node, rule=rule):
            return f"writing a repro of {sought_words(Sought('violation', node, rule) if node else Sought())}"
        case events.MinifyStarted(sought=sought):
            what = "writing a repro of" if sought.kind == "node" else "looking for a small script of"
            return f"{what} {sought_words(sought)}"
        case events.KernelEditing(step="", name=name, version=version):
            return f"trying version {version} of {name} in place of the original"
        case events.BisectStarted():
            return "bisecting the failure"
        case events.OwnerStarted():
            name = run.diff.kernels[event.launch].name if run and run.diff else f"launch {event.launch}"
            return f"finding the origin of the error of {name}: it is called alone"
        case events.BenchStarted(cases=count):
            return f"{MARKS['rule']} measuring {counted(count, 'row')}"
    return ""


def _dim(event: SessionEvent) -> str:
    """What goes on."""
    match event:
        case events.SessionOpened():
            return f"session {event.folder}"
        case events.WorkerStarted():
            versions = ", ".join((f"torch {event.torch}", f"Python {event.python}", *event.devices))
            return f"worker ready in {elapsed(event.seconds)}: {versions}"
        case events.BackendsCalled(backends=backends):
            return f"compiled by {' + '.join(backends)}, from the program's own torch.compile"
        case events.PhaseChanged(seconds=float(seconds)) if seconds >= _SLOW:
            return f"{seconds:8.1f} s  {event.phase}  {event.frame}".rstrip()
        case events.GraphCaptured(graph=graph):
            return f"graph {graph.id}: {counted(len(graph.nodes), 'node')}"
        case events.CodeCaptured(code=code):
            part = f" ({code.part})" if code.part else ""
            return f"code {code.frame}{part}: {counted(len(code.kernels), 'kernel')}"
        case events.RulesEdited():
            return f"rules from {event.origin}"
        case events.MinifyProgressed(progress=progress):
            return f"  {progress_words(progress)}"
        case events.BisectProgressed(tried=tried) if tried is not None:
            return f"  {event.what}: {OUTCOMES[tried.outcome]}"
        case events.KernelEditing(step=step):
            return f"  {step}"
        case events.BenchStepStarted():
            return f"  {step_words(event)}"
        case events.BenchTaskStarted():
            return f"measuring {event.backend}: {event.task}"
    return ""


def _measured(event: SessionEvent) -> str:
    match event:
        case events.RowMeasured(row=row):
            return f"{row.backend}: {duration(row.latency_ms.median) if row.latency_ms else NOT_MEASURED}"
        case events.KernelsTimed(times=times) if times is not None:
            return f"{counted(len(times.kernels), 'kernel')} of {event.backend} timed"
    return ""


def _ended(
    event: events.ReproEnded | events.MinifyEnded | events.BisectEnded | events.OwnerEnded,
) -> Iterator[LogText]:
    """The result of a repro, a search or an attribution, and why it was not finished."""
    problem = "the search did not come to its end"
    match event:
        case events.ReproEnded():
            problem = f"the repro {event.path} was not tried" if event.path else "no repro was written"
            yield from _tried(event)
        case events.MinifyEnded(minified=minified):
            if minified is not None:
                yield from _listed(result_lines(minified), VERDICT_TONES[verdict(minified.reproduced)])
                yield from _block(minified.printed, "dim")
            if event.failure is not None and event.failure.kind == "cancelled":
                yield LogText("  it was stopped: X on it in 9 Repros goes on" if minified else "the search was stopped")
                return
        case events.BisectEnded(bisected=bisected) if bisected is not None:
            yield from _listed(lines(view(bisected)), "strong")
            return
        case events.OwnerEnded(owner=owner):
            problem = "the origin of the error is not known"
            yield from map(LogText, owner_lines(owner) if owner is not None else ())
            yield from _block(owner.printed if owner is not None else "", "dim")
    if event.failure is not None:
        yield _marked("reject", problem)
        yield from _failure(event.failure)


def _tried(event: events.ReproEnded) -> Iterator[LogText]:
    if event.failure is not None:
        return
    looks = verdict(event.reproduced)
    sign = MARKS["separator"] if event.reproduced is None else VERDICT_SIGNS[looks]
    status = "" if event.status is None else f" (exit status {event.status}, {elapsed(event.seconds)})"
    yield LogText(f"{sign} {event.path} {reproduced_words(event.reproduced)}{status}", VERDICT_TONES[looks])
    yield from _block(event.output, "dim")


def _failure(failed: Failure | None) -> Iterator[LogText]:
    """What went wrong, where, what to do about it, then all of the message and the user's own traceback."""
    for row in failure_rows(failed) if failed is not None else ():
        if row.code:
            yield from _block(row.code, "dim")
        else:
            tone = next((word.tone for word in row.words if isinstance(word, Span)), "")
            yield LogText(f"  {row.text}", tone, row.refs.file, row.refs.line)


def step_words(event: events.BenchStepStarted) -> str:
    """ "step 4 of 6: warming up"."""
    return f"step {event.step} of {event.of}: {uncoloured(event.words)}"


def _marked(severity: Severity, words: str, file: str = "", line: int = 0) -> LogText:
    return LogText(f"{SEVERITY_SIGNS[severity]} {words}", severity, file, line)


def _indented(lines: Iterable[str], style: str = "") -> Iterator[LogText]:
    return (LogText(f"  {line}", style) for line in lines)


def _listed(lines: Iterable[str], style: str) -> Iterator[LogText]:
    """The first line in a style, the others below it."""
    first, *others = lines
    yield LogText(first, style)
    yield from _indented(others)


def _block(text: str, style: str = "") -> Iterator[LogText]:
    for line in clean_lines(text):
        quoted = _QUOTED.match(line)
        yield LogText(f"    {line}", style, quoted[1] if quoted else "", int(quoted[2]) if quoted else 0)


def _at(file: str, line: int) -> str:
    return f"  {file_names.place(file, line)}" if file else ""
