"""Choose what a repro shows: a violation, a failure of the run, or the inputs of a node."""

from idbg.schema import events
from idbg.schema.diff import DiffReport, KernelError, TensorDiff
from idbg.schema.events import SessionEvent
from idbg.schema.repros import Sought
from idbg.schema.runs import Run
from idbg.schema.violations import SEVERITIES
from idbg_tui.state import queries
from idbg_tui.state.sentences import why_no_graph
from idbg_tui.state.state import State

_NO_FAILURE = ("cancelled", "input")
"""Kinds of what ended a run that are no failure of the program's or of a compiler's."""


def of_selected(state: State) -> Sought | None:
    """Of the selected node its severest violation; else how the last run failed; else its wrong result; else what feeds
    the node.
    """
    return of_violation(state) or of_failure(state) or of_wrong(state) or of_node(state)


def of_violation(state: State) -> Sought | None:
    """The severest of what the selected node breaks."""
    broken = queries.violations_of(state, state.selected) if state.selected else []
    if not broken:
        return None
    severest = min(broken, key=lambda violation: SEVERITIES.index(violation.severity))
    return Sought("violation", node=severest.node, rule=severest.rule)


def of_failure(state: State) -> Sought | None:
    """How the last run failed, also where the program went on without what did not compile."""
    return Sought("failure") if state.run is not None and has_failed(state.run) else None


def of_wrong(state: State) -> Sought | None:
    """The wrong result of the last run, whose graphs after the wrong stage hold nothing wrong by themselves."""
    report = state.run.diff if state.run is not None and state.shown is state.run else None
    return Sought("wrong") if report is not None and report.verdict == "failed" else None


def of_node(state: State) -> Sought | None:
    """The inputs of the selected node, once its run has ended; only the last run is in the worker."""
    shown, run = state.shown, state.run
    if state.node is None or state.selected is None or shown is None or shown is not run or shown.ended is None:
        return None
    return Sought("node", node=state.selected)


def has_failed(run: Run) -> bool:
    """Whether there is a failure to show again: strict rules that stopped a compile are one, a cancel is none."""
    failure = run.failure or run.cause
    return failure is not None and failure.kind not in _NO_FAILURE


def of_row(item: object, report: DiffReport) -> Sought | str:
    """What a row of a comparison shows wrong; or why it shows nothing that could be made smaller."""
    if report.verdict == "error":
        return Sought("failure")
    if report.verdict != "failed":
        return "nothing is wrong in this comparison, so there is nothing to make smaller"
    if isinstance(item, KernelError) and item.is_launch:
        if not item.bad:
            return f"{item.name} is not accused: on one that is, or on an output, X finds the smallest script"
        return Sought("wrong", launch=next(at for at, one in enumerate(report.kernels) if one is item))
    if isinstance(item, TensorDiff) and not item.failed:
        return f"{item.name} agrees: on an output that fails X finds the smallest script"
    return Sought("wrong")


def of_event(event: SessionEvent, run: Run | None) -> Sought | None:
    """What a repro of an event shows: a break, a recompile, a failure."""
    match event:
        case events.GraphBroke(graph_break=broke):
            return Sought("break", place=_place(broke.file, broke.line))
        case events.Recompiled():
            frame = run.frames.get(event.frame) if run is not None else None
            return Sought("recompile", place=_place(frame.file, frame.line) if frame is not None else "")
        case events.FrameFailed() | events.RunEnded():
            return Sought("failure") if run is not None and has_failed(run) else None
        case _:
            return None


def _place(file: str, line: int) -> str:
    return f"{file}:{line}" if file else ""


def key_words(state: State) -> str:
    """What x does where the cursor is on a node, in few words."""
    found = of_selected(state)
    if found is None or found.kind == "violation":
        return "repro"
    return {"failure": "repro of the failure", "wrong": "repro of what is wrong"}.get(found.kind, "repro from here")


def why_no_smaller(state: State, sought: Sought) -> str:
    """Why what is sought cannot be made smaller; "" if it can: it has to fail."""
    if sought.kind != "node" or sought.node is None:
        return ""
    return f"nothing fails at {sought.node.name}, so there is nothing to make smaller: x writes what feeds it"


def why_none(state: State) -> str:
    """Why there is nothing to show again here: nothing fails, or it is not known yet."""
    if state.graph is None:
        return f"nothing to reproduce: {why_no_graph(state)}"
    if state.running:
        return "nothing to reproduce yet: this node breaks no rule, and the compile has not ended (v finds one)"
    if state.shown is not state.run:
        return "these graphs are of an older run, which is not in the worker any more: r compiles again"
    return "nothing to reproduce: no node is selected"
