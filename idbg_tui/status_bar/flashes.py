"""Sentences that the footer shows once, after an event."""

from idbg.format import attributions, file_names
from idbg.format.amounts import counted
from idbg.format.failures import headline, with_hint
from idbg.format.processes import end_words
from idbg.schema import events
from idbg.schema.attribution import KernelAttribution
from idbg.schema.events import SessionEvent
from idbg.schema.kernel_edits import KernelEdit
from idbg.schema.processes import ProcessEnd
from idbg.schema.programs import Failure
from idbg.schema.strict_json import like
from idbg.views.attribution import script_sentence
from idbg.views.blame import blame_sentence, where_to_ask
from idbg.views.frame_graphs import graph_words
from idbg.views.kernel_edits import brief
from idbg.views.remarks import sentence
from idbg.views.repros import brief_words
from idbg_tui.state import queries
from idbg_tui.state.state import State
from idbg_tui.widgets.lines import cut

Flashed = tuple[str, str]
"""A sentence, and its level: info, warning or error."""
_ACCUSING = ("compiler", "before", "graph")  # verdicts of whose an error is
_PATH = 56  # cells of a path in a sentence of the footer; the log has it whole


def of_event(event: SessionEvent) -> Flashed | None:
    """The sentence for an event; None where it needs none."""
    match event:
        case events.WorkerDied():
            return f"the worker died: {event.cause}; 7 Log has its last output, r starts another", "error"
        case events.ProcessEnded() if (ended := like(ProcessEnd, event)).is_wrong:
            return f"the process {event.name}: {end_words(ended)}; # shows it", "error"
        case events.RunEnded(failure=failure) if failure is not None and failure.kind == "cancelled":
            return "cancelled: r runs again", "info"
        case events.RunEnded(failure=failure) if failure is not None:
            return _failed(failure), "error"
        case events.ReproEnded():
            return _repro(event)
        case events.MinifyEnded():
            return _minified(event)
        case events.OwnerJudged(owner=owner):
            return (
                f"{attributions.sentence(owner)}; a script of it is tried",
                "error" if owner.kind in _ACCUSING else "info",
            )
        case events.OwnerEnded(failure=Failure() as failure):
            return with_hint(failure), "error"
        case events.OwnerEnded(owner=KernelAttribution() as owner):
            return script_sentence(owner) or attributions.sentence(owner), "info"
        case events.KernelLowered(failure=Failure() as failure):
            return with_hint(failure), "error"
        case events.KernelEdited(edit=edit):
            return _edited(edit)
        case events.BenchEnded():
            return _measured(event.failure)
        case events.Noted():
            return event.text, event.level
        case _:
            return None


def _minified(event: events.MinifyEnded) -> Flashed:
    found, failure = event.minified, event.failure
    stopped = failure is not None and failure.kind == "cancelled"
    if found is None:
        if failure is None or stopped:
            return "stopped before a script was found: X begins again", "info"
        return with_hint(failure), "error"
    words = brief_words(found, stopped=stopped)
    if not found.path:
        return words, "info"
    goes_on = not found.minimal and found.signature.kind != "none"
    more = "9 has it, X there goes on" if goes_on else "9 Repros has it"
    return f"{words}: {more}", "info" if found.reproduced else "warning"


def _edited(edit: KernelEdit) -> Flashed:
    if edit.failure is not None and edit.failure.kind == "cancelled":
        return f"version {edit.version} of {edit.name} was stopped: E edits again", "info"
    level = {"agrees": "info", "not compared": "warning"}.get(edit.verdict, "error")
    return f"version {edit.version}: {brief(edit)}; 6 Benchmarks has all versions", level


def _measured(failure: Failure | None) -> Flashed:
    if failure is None:
        return "measuring is done: 6 has the rows, C charts them", "info"
    if failure.kind == "cancelled":
        return "stopped measuring: finished rows stay, B measures again", "info"
    return with_hint(failure), "error"


def _failed(failure: Failure) -> str:
    line = headline(failure)
    if failure.kind == "constraints":
        repro = f"repro {cut(file_names.from_here(failure.repro), _PATH)}" if failure.repro else "x writes a repro"
        return f"{line.what}: {line.cause.partition(' of the rules of')[0]}; {repro}"
    return f"{line}; 7 Log has the rest"


def of_comparison(state: State) -> Flashed | None:
    """What came of the latest run's comparison, and since where it is wrong; None where there was none."""
    report = state.run.diff if state.run is not None else None
    if report is not None and report.not_comparable:
        return f"{report.test} and {report.reference} are not comparable: {sentence(report.not_comparable)}", "warning"
    if report is None or report.verdict not in ("passed", "failed"):
        return None
    blame = blame_sentence(report, lambda file, line: file_names.place(file, line) if file else "")
    if report.passed:
        agrees = f"{report.test} agrees with {report.reference}" + (
            f", {report.not_judged} not judged" if report.not_judged else ""
        )
        return (f"{agrees}: {blame}", "warning") if blame else (agrees, "info")
    if report.first_wrong_stage is not None or report.culprit is not None:
        return f"{blame}: enter goes there", "error"
    why = blame or where_to_ask(report, "D") or "its outputs are of another form"
    return f"{report.test} does not agree with {report.reference}: {why}", "error"


def in_other_graph(state: State) -> Flashed | None:
    """In which graph of the shown level the violations are if the shown graph has none; else None."""
    other = queries.broken_elsewhere(state)
    if other is None or other not in queries.level(state) or state.graph_id is None:
        return None
    frame = "" if other.id.frame == state.graph_id.frame else f" of frame {other.id.frame}"
    count = len(state.checks.findings(other))
    return f"no violation here, {count:,} in {graph_words(other.id)}{frame}: v goes there", "info"


def arrived(state: State) -> str:
    """Which graph a key led to, and how many violations there are in it."""
    graph = state.graph
    if graph is None:
        return ""
    frame = f" of frame {graph.id.frame}" if len(queries.frames(state)) > 1 else ""
    return f"{graph_words(graph.id)}{frame}: {counted(len(state.checks.findings(graph)), 'violation')}"


def _repro(event: events.ReproEnded) -> Flashed:
    if event.failure is not None:
        why = event.failure.first_line
        return why if why.startswith("no repro") else f"no repro: {why}", "error"
    path = cut(file_names.from_here(event.path), _PATH)
    if event.reproduced is None:
        return f"repro written, not tried: {path}", "warning"
    if event.reproduced:
        return f"reproduced (exit {event.status}): {path}", "info"
    return f"does NOT reproduce (exit {event.status}): {path}", "warning"
