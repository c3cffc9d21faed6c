"""What do the header and the footer say about a state? Words and styles, no widget."""

import os
import time
from collections.abc import Iterator

from rich.cells import cell_len

from idbg.format.amounts import counted, elapsed, size
from idbg.format.failures import headline
from idbg.format.glyphs import MARKS, SEVERITY_SIGNS, VERDICT_SIGNS
from idbg.format.verdicts import verdict_words
from idbg.schema import events
from idbg.schema.events import SessionEvent
from idbg.schema.programs import Failure, Verdict
from idbg.schema.runs import Run
from idbg_tui import keymap
from idbg_tui.state import queries, stages
from idbg_tui.state.state import State
from idbg_tui.widgets.bars import BarPart
from idbg_tui.widgets.lines import clip, cut

SEVERITY_STYLES = {
    "reject": "$text-error",
    "fallback": "$text-warning",
    "pad": "$text-accent",
    "tile": "$text-secondary",
    "slow": "$foreground 75%",
    "unknown": "$foreground 75%",
}
VERDICT_STYLES: dict[Verdict, str] = {
    "clean": "$text-success",
    "violations": "$text-warning",
    "empty": "$text-warning",
    "wrong": "$text-error",
    "failed": "$text-error",
    "waiting": "$foreground 75%",
}
_LIVE_ONLY = ("run", "cancel", "repro", "strict", "measure")
_PATH = 56  # cells of a path in a sentence of the footer; the log has it whole
_GRAPHS = 3  # of a level, as many have their partitions counted one by one
_KEYS_ROOM = 40  # cells of the footer that the keys need
_NOTICED = 0.05  # seconds; less is written as 0.0
Ends = tuple[list[BarPart], list[BarPart]]


def header(state: State, width: int) -> Ends:
    """Program, target and counts on the left, how the latest run stands on the right; what matters least gives way."""
    for ends in _headers(state):
        if sum(_cells(end) for end in ends) + 2 <= width:
            return ends
    left, right = ends
    return left, _clipped(right, max(width - _cells(left) - 2, width // 2))


def _headers(state: State) -> Iterator[Ends]:
    """The header in ever fewer words; the counts and the verdict are in all of them."""
    label = _short(state.program.label) if state.program else ""
    name: BarPart = ("idbg", "bold $primary")
    path, file, gap = (f"  {label}   ", "bold"), (f"  {os.path.basename(label)}   ", "bold"), ("  ", "")
    target, rules = (f"{_target(state)}   ", ""), (f"{_rules(state)}   ", "")
    severities, signs = _counts(state), _counts(state, words=False)
    figures = [*_figures(state)] if severities else []
    parts = [(words.replace("partition", "part"), style) for words, style in figures]
    terse = [(words.partition(" (")[0], style) for words, style in parts]
    last = len(_STANDING) - 1
    steps: list[tuple[list[BarPart], int]] = [([path, target], 0), ([file, target], 0)]
    if state.run is not None and (state.run.failure or state.run.cause) is not None:
        steps += [([file, rules], 0), ([file], 0)]  # why it failed says more than what it was compiled for
    steps += [([file, target], 1), ([file, target], last), ([file, rules], last), ([gap, rules], last)]
    for shown, brevity in steps:
        yield [name, *shown, *severities, *figures], _standing(state, brevity)
    yield [name, file, rules, *signs, *figures], _standing(state, last)
    for shown in ([gap, rules], [gap]):
        for told in (figures, parts):
            yield [name, *shown, *signs, *told], _standing(state, last)
    for counts in ([*signs, *terse], [*signs, *figures[:1]], [*signs, *terse[:1]], severities, signs):
        yield [name, gap, *counts], _standing(state, last)


def _counts(state: State, *, words: bool = True) -> list[BarPart]:
    """How many violations of each severity, at which stage; by the signs alone where there is no room for words."""
    level = stages.names_of(queries.level(state))
    if not level or not state.accelerator:
        return []
    left: list[BarPart] = [(f"{level} ", "$foreground 75%")]
    dot = MARKS["separator"]
    for place, (severity, count) in enumerate(queries.counts(state).items()):
        sign, style = SEVERITY_SIGNS[severity], SEVERITY_STYLES[severity]
        if not words:
            left.append((f"{'  ' if place else ''}{sign} {count:,}", style))
            continue
        start = f" {dot} " if place else ""
        left.append((f"{start}{sign + ' ' if sign != dot or not place else ''}{count:,} {severity}", style))
    if not queries.counts(state):
        left += _none_here(state)
    return left


def _none_here(state: State) -> Iterator[BarPart]:
    """No rule is broken at the shown stage; green only where nothing else is wrong either."""
    if queries.is_clean(state):
        yield f"{VERDICT_SIGNS['clean']} no rule broken", "$text-success"
        return
    yield "no rule broken", "$foreground 75%"
    for level, counts in queries.counts_of_other_levels(state):
        yield f" {MARKS['separator']} {level}", "$foreground 75%"
        yield from ((f" {SEVERITY_SIGNS[one]} {count:,} {one}", SEVERITY_STYLES[one]) for one, count in counts.items())


def _figures(state: State) -> Iterator[BarPart]:
    """Where Dynamo stopped a graph or compiled again, the most memory that a graph of the level needs at once, and how
    many partitions fallbacks leave, if known."""
    style, dot = "$foreground 75%", f" {MARKS['separator']} "
    run = state.shown
    told = [("break", len(run.breaks)), ("recompile", len(run.recompiles))] if run is not None else []
    if words := ", ".join(counted(count, name) for name, count in told if count):
        yield f"{dot}{words}", "$text-warning"
    graph, profile = queries.peak(state) or (None, None)
    if graph is not None and profile is not None and profile.peak_bytes:
        where = f" ({stages.name_of(graph.id)})" if len(queries.level(state)) > 1 else ""
        yield f"{dot}peak {'at least ' if profile.unsized else ''}{size(profile.peak_bytes)}{where}", style
    if "fallback" in queries.counts(state):
        yield f"{dot}{_partitions(state)}", style


def _partitions(state: State) -> str:
    """Of each graph, in their order; one that nothing falls out of is one partition."""
    level = queries.priced(state)
    if level is None:
        return f"{MARKS['ellipsis']} partitions"
    counts = [priced.partitions.count if priced.partitions else 1 for _, priced in level]
    if not any(counts):
        return "all on the host"
    if 1 < len(counts) <= _GRAPHS:
        return f"{' + '.join(f'{count:,}' for count in counts)} partitions"
    return counted(sum(counts), "partition") + (f" of {len(counts)} graphs" if len(counts) > 1 else "")


def _target(state: State) -> str:
    target = state.target
    device = target.device or _device_seen(state)
    dot = f" {MARKS['separator']} "
    return dot.join(part for part in (target.backend, device, _rules(state)) if part)


def _rules(state: State) -> str:
    name = state.accelerator.name if state.accelerator else state.target.accelerator
    return f"{name} ({'strict' if state.target.strict else 'warn'})"


def _device_seen(state: State) -> str:
    """Where the shown graph's first tensor lives: what the program chose itself."""
    nodes = state.graph.nodes if state.graph else ()
    return next((node.tensor.device for node in nodes if node.tensor and node.tensor.device), "")


_STANDING = ("whole", "without times", "verdict only")
"""How much is said of the latest run; the index is the `brevity` of `_standing`."""


def _standing(state: State, brevity: int) -> list[BarPart]:
    run = state.run
    if not state.live:
        saved: list[BarPart] = [("saved  " if brevity else "saved session  ", "$foreground 60%")]
        return saved + (_of_rules(state, run, brevity) if run else [])
    if run is None:
        return [("starting the worker", "$foreground 60%")]
    if run.ended is None:
        return [(f"run {run.number}  {elapsed(queries.elapsed(state))}", "$text-primary")]
    return _of_rules(state, run, brevity)


def _of_rules(state: State, run: Run, brevity: int) -> list[BarPart]:
    """How the run ended; where the rules were edited since, whose verdict that is."""
    pieces = _ended(run, brevity)
    if run.verdict not in ("clean", "violations") or not run.checked or not queries.has_other_rules(state, run):
        return pieces
    if brevity == len(_STANDING) - 1:
        pieces = [(VERDICT_SIGNS[run.verdict], "")]
    said = "by the rules before the edit: " if brevity == 0 else "old rules: "
    return [(said, "$foreground 75%"), *((text, "$foreground 75%") for text, _ in pieces)]


def _ended(run: Run, brevity: int) -> list[BarPart]:
    looks = run.looks
    sign, style = VERDICT_SIGNS[looks], VERDICT_STYLES[looks]
    if run.ended is None:
        return [(f"{sign} not finished", style)]
    failure = run.failure or run.cause
    if failure is not None:
        line = headline(failure)
        pieces: list[BarPart] = [(f"{sign} {line.what if run.failure else verdict_words(run)}", style)]
        if brevity == 0 and run.seconds >= _NOTICED and failure.kind != "input":
            pieces.append((f" after {elapsed(run.seconds)}", ""))
        because = line.place if failure.kind == "constraints" else line.because
        if brevity < len(_STANDING) - 1 and because:
            pieces.append((f": {because}", ""))
        return pieces
    if brevity == len(_STANDING) - 1:
        counts = run.verdict == "violations"  # a word without its number says less than the sign does
        return [(f"{sign} {verdict_words(run) if counts else run.verdict if run.checked else 'compiled'}", style)]
    where = " in all stages" if run.verdict == "violations" else ""
    pieces = [(f"{sign} {verdict_words(run)}{where}", style)]
    dot = f" {MARKS['separator']} "
    if run.codes:
        pieces.append((f"{dot}{counted(len(run.kernels), 'kernel')}", ""))
    elif run.graphs:
        pieces.append((f"{dot}{counted(len(stages.frames(run)), 'frame')}, no kernels", ""))
    return pieces if brevity else [*pieces, (f"{dot}{run.target.backend} took {elapsed(run.seconds)}", "")]


def _cells(pieces: list[BarPart]) -> int:
    return sum(cell_len(text) for text, _ in pieces)


def _clipped(pieces: list[BarPart], width: int) -> list[BarPart]:
    kept: list[BarPart] = []
    for text, style in pieces:
        kept.append((clip(text, width), style))
        width -= cell_len(text)
        if width <= 0:
            break
    return kept


TYPING = (("enter", "takes it"), ("esc", "leaves it"))
"""The keys of a line that is typed in."""


def footer_keys(
    pane_hints: tuple[tuple[str, str], ...], keys: dict[str, str], state: State, width: int, *, typing: bool = False
) -> list[BarPart]:
    """The keys that work here, the pane's own first; as many as have room in `width` cells. While `typing`, letters are
    text: those alone are named that are none."""
    shown = list(pane_hints)
    if typing:
        return _keys([*shown, (keymap.spelled(keys["palette"]).split(" ")[0], "palette")], width)
    if len(queries.frames(state)) > 1:
        pair = " ".join(keymap.spelled(keys[name]).split(" ")[0] for name in ("frame_before", "frame_after"))
        shown.insert(1, (pair, "frame"))
    wanted = [("help", "help"), ("quit", "quit"), ("run", "run"), ("repro", "repro"), ("edit", "edit")]
    wanted += [("palette", "palette"), ("next_pane", "pane"), ("zoom", "zoom"), ("memory", "memory")]
    wanted += [("partitions", "partitions"), ("strict", "strict/warn"), ("measure", "measure"), ("charts", "charts")]
    if state.running or state.measuring:
        wanted.insert(0, ("cancel", "cancel"))
    taken = {key for key, _ in shown}
    for name, words in wanted:
        key = keymap.spelled(keys[name]).split(" ")[0]
        if key not in taken and (state.live or name not in _LIVE_ONLY):
            shown.append((key, words))
    return _keys(shown, width)


def _keys(shown: list[tuple[str, str]], width: int) -> list[BarPart]:
    pieces: list[BarPart] = []
    for key, words in shown:
        width -= len(key) + len(words) + 3
        if width < 0:
            break
        pieces += [(key, "bold $primary"), (f" {words}  ", "$foreground 75%")]
    return pieces


def footer_progress(state: State, width: int) -> list[BarPart]:
    """What the worker is doing, for how long, and how long it usually takes: in few words where keys need the room."""
    run = state.run
    if state.repro_running:
        return [("writing and trying a repro", "$text-primary")]
    if state.measuring:
        from idbg_tui.panes.benchmarks.rows import measured_for, measured_now

        step, whole = measured_for(state, time.time())
        told = f"measuring {measured_now(state)}", f"  {step}{f', {whole} in all' if whole != step else ''}"
        if sum(map(cell_len, told)) > width - _KEYS_ROOM:
            told = measured_now(state, brief=True), f"  {step}"
        return [(told[0], "$text-primary"), (told[1], "")]
    if not state.running or run is None:
        return []
    seconds = queries.typical_seconds(state)
    typical = f" {MARKS['separator']} last time {seconds:.0f} s" if seconds else ""
    return [(f"{run.phase or 'starting'}", "$text-primary"), (f"  {elapsed(queries.elapsed(state))}{typical}", "")]


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
            return _failed(failure), "error"
        case events.ReproEnded():
            return _repro(event)
        case events.KernelLowered(failure=Failure() as failure):
            return f"{failure.message}; {failure.hint}", "error"
        case events.BenchEnded():
            return _measured(event.failure)
        case events.Noted():
            return event.text, event.level
        case _:
            return None


def _measured(failure: Failure | None) -> tuple[str, str]:
    if failure is None:
        return "measuring is done: 6 has the rows, C charts them", "info"
    if failure.kind == "cancelled":
        return "stopped measuring: finished rows stay, B measures again", "info"
    return f"{failure.message}: {failure.hint}" if failure.hint else failure.message, "error"


def _failed(failure: Failure) -> str:
    line = headline(failure)
    if failure.kind == "constraints":
        repro = f"repro {cut(_short(failure.repro), _PATH)}" if failure.repro else "x writes a repro"
        return f"{line.what}: {line.cause.partition(' of the rules of')[0]} over all stages; {repro}"
    return f"{line}; 7 Log has the rest"


def compared(state: State) -> tuple[str, str]:
    """What came of the comparison that has just ended, and where the first bad kernel is; "" without one."""
    report = state.run.diff if state.run is not None else None
    if report is None or report.verdict == "error":
        return "", "info"
    bad = report.culprit
    if bad is not None:
        place = f", {os.path.basename(bad.file)}:{bad.line}" if bad.file else ""
        return f"the first bad {'node' if bad.bisected else 'kernel'} is {bad.name}{place}: enter goes there", "error"
    if report.verdict == "passed":
        return f"{report.test} agrees with {report.reference}", "info"
    why = "no kernel is worse than its inputs" if report.kernels else "D says in which kernel"
    return f"{report.test} does not agree with {report.reference}: {why}", "error"


def elsewhere(state: State) -> str:
    """Where violations are, if the shown graph has none; "" if there is nothing to say."""
    other = queries.broken_elsewhere(state)
    if other is None or other not in queries.level(state) or state.graph_id is None:
        return ""
    frame = "" if other.id.frame == state.graph_id.frame else f" of frame {other.id.frame}"
    count = len(state.checks.findings(other))
    return f"no violation here, {count:,} in {stages.name_of(other.id)}{frame}: v goes there"


def arrived(state: State) -> str:
    """Which graph a key led to."""
    graph = state.graph
    if graph is None:
        return ""
    frame = f" of frame {graph.id.frame}" if len(queries.frames(state)) > 1 else ""
    return f"{stages.name_of(graph.id)}{frame}: {counted(len(state.checks.findings(graph)), 'violation')}"


def _repro(event: events.ReproEnded) -> tuple[str, str]:
    if event.failure is not None:
        why = event.failure.message.strip().splitlines()[0]
        return why if why.startswith("no repro") else f"no repro: {why}", "error"
    path = cut(_short(event.path), _PATH)
    if event.reproduced is None:
        return f"repro written, not tried: {path}", "warning"
    if event.reproduced:
        return f"reproduced (exit {event.status}): {path}", "info"
    return f"does NOT reproduce (exit {event.status}): {path}", "warning"
