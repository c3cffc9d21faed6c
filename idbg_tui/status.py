"""What do the header and the footer say about a state? Words and styles, no widget."""

import os

from idbg import events
from idbg.events import SessionEvent
from idbg.run import Run
from idbg_tui import keymap
from idbg_tui.signs import MARKS, SEVERITY_SIGNS, VERDICT_SIGNS
from idbg_tui.state import State
from idbg_tui.widgets.bars import Piece

SEVERITY_STYLES = {
    "reject": "$text-error",
    "fallback": "$text-warning",
    "pad": "$text-accent",
    "tile": "$text-secondary",
    "slow": "$foreground 75%",
}
VERDICT_STYLES = {"clean": "$text-success", "violations": "$text-warning", "failed": "$text-error"}
_ROOMY = 100  # columns
_KIND_WORDS = {
    "user": "the program raised {type}",
    "torch": "torch could not compile it",
    "constraints": "stopped by the rules",
    "worker": "the worker died",
    "cancelled": "cancelled",
    "input": "bad input",
    "idbg": "failed",
}


def header(state: State, width: int) -> tuple[list[Piece], list[Piece]]:
    """Program, target (if there is room) and counts on the left; how the latest run stands on the right."""
    program = _short(state.program.label) if state.program else ""
    left: list[Piece] = [("idbg", "bold $primary"), (f"  {program}   ", "bold")]
    if width >= _ROOMY:
        left.append((f"{_target(state)}   ", ""))
    return [*left, *_counts(state)], _standing(state, short=width < _ROOMY)


def _counts(state: State) -> list[Piece]:
    left: list[Piece] = []
    for place, (severity, count) in enumerate(state.counts.items()):
        words = f"{SEVERITY_SIGNS[severity]} {count:,} {severity}"
        left.append((f" {MARKS['separator']} {words}" if place else words, SEVERITY_STYLES[severity]))
    if state.level and state.accelerator and not state.counts:
        left.append((f"{VERDICT_SIGNS['clean']} no rule broken", "$text-success"))
    return left


def _target(state: State) -> str:
    target = state.target
    mode = "strict" if target.strict else "warn"
    device = target.device or _device_seen(state)
    name = state.accelerator.name if state.accelerator else target.accelerator
    dot = f" {MARKS['separator']} "
    return dot.join(part for part in (target.backend, device, f"{name} ({mode})") if part)


def _device_seen(state: State) -> str:
    """Where the shown graph's first tensor lives: what the program chose itself."""
    nodes = state.graph.nodes if state.graph else ()
    return next((node.tensor.device for node in nodes if node.tensor and node.tensor.device), "")


def _standing(state: State, *, short: bool) -> list[Piece]:
    run = state.run
    if not state.live:
        saved: list[Piece] = [("saved  " if short else "saved session  ", "$foreground 60%")]
        return saved + (_ended(run) if run else [])
    if run is None:
        return [("starting the worker", "$foreground 60%")]
    if run.verdict is None:
        return [(f"run {run.number}  {state.elapsed:.1f} s", "$text-primary")]
    return _ended(run)


def _ended(run: Run) -> list[Piece]:
    if run.verdict is None:
        return [("not finished", "$text-warning")]
    pieces: list[Piece] = [(f"{VERDICT_SIGNS[run.verdict]} ", VERDICT_STYLES[run.verdict])]
    if run.failure is not None:
        words = _KIND_WORDS[run.failure.kind].format(type=run.failure.type or "an exception")
        return [*pieces, (words, VERDICT_STYLES[run.verdict]), (f" after {run.seconds:.1f} s", "")]
    if run.codes:
        count = len(run.kernels)
        pieces.append((f"{count} kernel{'' if count == 1 else 's'} {MARKS['separator']} ", ""))
    elif run.graphs:
        frames = len({graph.frame for graph in run.graphs})
        pieces.append((f"{frames} frame{'' if frames == 1 else 's'}, no kernels {MARKS['separator']} ", ""))
    return [*pieces, (f"{run.target.backend} took {run.seconds:.1f} s", "")]


def footer_keys(pane_hints: tuple[tuple[str, str], ...], keys: dict[str, str], state: State, width: int) -> list[Piece]:
    """The keys that work here, the pane's own first; as many as have room in `width` cells."""
    shown = list(pane_hints)
    wanted = [("help", "help"), ("quit", "quit"), ("run", "run"), ("repro", "repro"), ("edit", "edit")]
    wanted += [("palette", "palette"), ("next_pane", "pane"), ("zoom", "zoom"), ("strict", "strict/warn")]
    if state.running:
        wanted.insert(0, ("cancel", "cancel"))
    taken = {key for key, _ in shown}
    for name, words in wanted:
        key = keymap.spelled(keys[name]).split(" ")[0]
        if key not in taken and (state.live or name not in ("run", "cancel", "repro")):
            shown.append((key, words))
    pieces: list[Piece] = []
    for key, words in shown:
        width -= len(key) + len(words) + 3
        if width < 0:
            break
        pieces += [(key, "bold $primary"), (f" {words}  ", "$foreground 75%")]
    return pieces


def footer_progress(state: State) -> list[Piece]:
    """What the worker is doing, for how long, and how long it usually takes."""
    run = state.run
    if state.repro_running:
        return [("writing and trying a repro", "$text-primary")]
    if not state.running or run is None:
        return []
    typical = f" {MARKS['separator']} last time {state.typical:.0f} s" if state.typical else ""
    return [(f"{run.phase or 'starting'}", "$text-primary"), (f"  {state.elapsed:.1f} s{typical}", "")]


def _short(label: str) -> str:
    """A path from here if it lies below, else as it is."""
    if not os.path.isabs(label):
        return label
    relative = os.path.relpath(label)
    return label if relative.startswith(os.pardir) else relative


def flash(event: SessionEvent) -> tuple[str, str] | None:
    """What the footer says, once, when this happens: (text, level); None for what needs no saying."""
    match event:
        case events.WorkerDied():
            return f"the worker died: {event.cause}; 7 Log has its last output, r starts another", "error"
        case events.RunEnded(failure=failure) if failure is not None and failure.kind == "cancelled":
            return "cancelled: r runs again", "info"
        case events.RunEnded(failure=failure) if failure is not None:
            first = failure.message.strip().partition("\n")[0].rstrip(":")
            where = "4 lists them, x writes a repro" if failure.kind == "constraints" else "7 Log has the rest"
            return f"{first}: {where}", "error"
        case events.ReproEnded():
            return _repro(event)
        case events.Noted():
            return event.text, event.level
        case _:
            return None


def _repro(event: events.ReproEnded) -> tuple[str, str]:
    if event.failure is not None:
        return f"no repro: {event.failure.message.strip().splitlines()[0]}", "error"
    if event.reproduced is None:
        return f"repro written, not tried: {_short(event.path)}", "warning"
    if event.reproduced:
        return f"reproduced in a fresh process (exit {event.status}): {_short(event.path)}", "info"
    return f"written, but it does NOT reproduce (exit {event.status}): {_short(event.path)}", "warning"
