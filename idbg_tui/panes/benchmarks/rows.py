"""Show what is measured now, then what was measured: the sections of a state, and how far a measurement is."""

from collections.abc import Iterator

from idbg.format.amounts import counted
from idbg.format.failures import with_hint
from idbg.format.glyphs import MARKS, VERDICT_SIGNS
from idbg.schema.programs import Verdict
from idbg.views import bench, kernel_edits, kernel_times
from idbg.views.tree import Row, Section, Tone, words
from idbg.views.tree import Verdict as Judged
from idbg_tui.panes.log.event_lines import step_words
from idbg_tui.state.state import State
from idbg_tui.widgets import sections
from idbg_tui.widgets.section_rows import Look, Rows

_SIGNS: dict[Judged, Verdict] = {"ok": "clean", "warning": "violations", "error": "failed"}


def rows(state: State, look: Look) -> Rows:
    """What is measured now, the rows of each program, the times of kernels, and edited versions of them."""
    found = Rows()
    for section in _sections(state):
        found.extend(sections.rows(section, look))
    return found


def _sections(state: State) -> Iterator[Section]:
    now = [Row(("now", number), words(each)) for number, each in enumerate(_now(state))]
    yield Section("Now", "", body=tuple(now))
    measured, past = bench.latest(state.history.rows), state.measurements.past
    if measured:
        compared = any(bench.key(row) in past.changes for row in measured)
        changes = [change for change in past.changes.values() if change is not None] if compared else None
        yield bench.view(measured, changes, past.problem)
    if state.history.kernels is not None:
        yield kernel_times.of_event(state.history.kernels)
    edited = [run for run in reversed(state.history.runs.values()) if run.edits or run.editing]
    for run in edited:
        editing = run.editing if state.live else None
        yield kernel_edits.view(run, editing=editing, named=len(edited) > 1 or run is not state.shown)


def mark(state: State) -> str:
    """Fine only where every row was measured, is right, and is not doubtful, and nothing is left to measure."""
    verdict = bench.verdict(bench.latest(state.history.rows))
    if verdict == "unknown" or (state.measuring and verdict != "error"):
        return ""
    if verdict == "ok" and state.measurements.failure is not None:
        verdict = "warning"
    return VERDICT_SIGNS[_SIGNS[verdict]]


def measured_now(state: State, *, brief: bool = False) -> str:
    """ "inductor: warm · step 4 of 6: warming up   2 rows left"; "" where nothing is. `brief`: the numbers."""
    task, step, left = state.history.task, state.history.step, state.history.rows_left
    if not state.measuring:
        return ""
    what = f"{task.backend}: {'each kernel' if task.task == 'kernels' else task.task}" if task else "starting"
    if step is not None and brief:
        return f"{what} {MARKS['separator']} step {step.step} of {step.of}"
    if step is not None:
        what += f" {MARKS['separator']} {step_words(step)}"
    return what if task is not None and task.task == "kernels" else f"{what}   {counted(left, 'row')} left"


def measured_for(state: State, now: float) -> tuple[str, str]:
    """ "12 s" and "40 s": how long the step has taken by now, and all that is measured."""
    history = state.history
    began = history.step or history.task
    step = began.at if began else history.measuring_since
    return f"{max(now - step, 0):.0f} s", f"{max(now - history.measuring_since, 0):.0f} s"


def _now(state: State) -> Iterator[tuple[str, Tone]]:
    failure = state.measurements.failure
    if state.measuring:
        yield (f"measuring {measured_now(state)}   (c stops it)", "accent")
    elif state.measurements.waiting:
        left = counted(state.measurements.waiting, "row")
        yield (f"{left} to measure when the compile is done   (c cancels both)", "accent")
    elif failure is not None and failure.kind == "cancelled":
        yield ("stopped before all was measured: B measures again", "fallback")
    elif failure is not None:
        yield (with_hint(failure), "reject")
    elif not state.live and state.history.rows_left:
        yield (f"the session ended with {counted(state.history.rows_left, 'row')} left to measure", "fallback")
