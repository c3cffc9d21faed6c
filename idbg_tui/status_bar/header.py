"""The header: program, target, violations, and the result of the run."""

import os
from collections.abc import Iterator

from rich.cells import cell_len

from idbg import views
from idbg.format import file_names
from idbg.format.amounts import counted, elapsed, size
from idbg.format.failures import headline
from idbg.format.glyphs import MARKS, SEVERITY_SIGNS, VERDICT_SIGNS
from idbg.format.processes import CAPTURES, in_order
from idbg.format.verdicts import session_words, verdict_words
from idbg.schema.programs import SUCCESSFUL
from idbg.schema.runs import History, Run
from idbg.views.blame import blamed_stage
from idbg.views.frame_graphs import graph_words
from idbg.views.tree import VERDICT_TONES
from idbg_tui.state import queries, stages
from idbg_tui.state.state import State
from idbg_tui.widgets.bars import BarPart, cells
from idbg_tui.widgets.lines import Lines, clip

_GRAPHS = 3  # of a level, as many have their partitions counted one by one
_NOTICED = 0.05  # seconds; less is written as 0.0
Ends = tuple[list[BarPart], list[BarPart]]


def header(state: State, width: int) -> Ends:
    """Program, target and counts on the left, the latest run's result on the right; what matters least gives way."""
    for ends in _headers(state):
        if sum(cells(end) for end in ends) + 2 <= width:
            return ends
    left, right = ends
    return left, _clipped(right, max(width - cells(left) - 2, width // 2))


def _headers(state: State) -> Iterator[Ends]:
    """The header in ever fewer words; the verdict is in all of them. The program's name gives way
    last: after the peak of memory, what other stages break, our own name and that of the stage.
    """
    label = file_names.from_here(state.program.label) if state.program else ""
    short = base = os.path.basename(label)
    if state.process is not None:
        label, short = f"{_process(state)}  {label}", _process(state, brief=True)
        base = f"{short}  {base}"
    name: BarPart = ("idbg", "bold $primary")
    path, file, gap = (f"  {label}   ", "bold"), (f"  {base}   ", "bold"), ("  ", "")
    target, rules = (f"{_target(state)}   ", ""), (f"{_rules(state)}   ", "")
    if state.run is None and state.history.processes:  # each has its own
        target = rules = ("", "")
    severities, signs, here = _counts(state), _counts(state, words=False), _counts(state, words=False, others=False)
    figures = [*_figures(state)] if severities else []
    limit = _limit(state)
    few = [(_shorter(words), style) for words, style in _figures(state, peak=False)] if severities else []
    least = [(words.partition(" (")[0], style) for words, style in few]
    last = len(_STANDING) - 1
    steps: list[tuple[list[BarPart], int]] = [([path, target], 0), ([file, target], 0)]
    if state.run is not None and (state.run.failure or state.run.cause) is not None:
        steps += [([file, rules], 0), ([file], 0)]  # why it failed matters more than what it was compiled for
    steps += [*(([file, target], brevity) for brevity in range(1, last + 1)), ([file, rules], last)]
    for shown, brevity in steps:
        yield [name, *shown, *limit, *severities, *figures], _standing(state, brevity)
    for shown in ([file, rules], [file]):
        for counts in ([*signs, *figures], [*here, *few], [*here, *least]):
            yield [name, *shown, *limit, *counts], _standing(state, last)
    for counts in ([*here, *least[:1]], here):
        yield [name, file, *counts], _standing(state, last)
    fewest = [*here, *few], [*here, *least], here
    if label:
        for counts in fewest:
            yield [(f"{short}  ", "bold"), *counts], _standing(state, last)
        for counts in (here[1:], []):  # without the name of the stage
            yield [(f"{short}  ", "bold"), *counts], _standing(state, last)
    for counts in fewest:
        yield [name, gap, *counts], _standing(state, last)


def _limit(state: State) -> list[BarPart]:
    """What limits all that is captured; [] where nothing does."""
    worker = state.history.worker
    words = CAPTURES[worker.captures] if worker is not None else ""
    return [(f"{words}   ", "$text-warning")] if words else []


def _process(state: State, *, brief: bool = False) -> str:
    """Which process of how many is on the screen: "process 2 of 9: rank0", "2/9 rank0"."""
    names = ["", *(each.name for each in in_order(state.whole.history.processes.values()))]
    name = state.process.name if state.process is not None else ""
    if name not in names:
        return name
    place = names.index(name) + 1
    return f"{place}/{len(names)} {name}" if brief else f"process {place} of {len(names)}: {name}"


def _shorter(words: str) -> str:
    return words.replace("partition", "part")


def _counts(state: State, *, words: bool = True, others: bool = True) -> list[BarPart]:
    """How many violations of each severity, at which stage; by the signs alone where there is no room for words.
    `others`: where that stage breaks no rule, what other stages break.
    """
    level = stages.names_of(queries.level(state))
    if not level or not state.accelerator:
        return []
    if queries.is_without_rules(state):
        return [(level, "$foreground 75%")]
    of_run = " (not counted)" if queries.is_not_counted(state) else ""
    left: list[BarPart] = [(f"{level}{of_run} ", "$foreground 75%")]
    dot = MARKS["separator"]
    for place, (severity, count) in enumerate(queries.counts(state).items()):
        sign, style = SEVERITY_SIGNS[severity], Lines.LOOKS[severity]
        if not words:
            left.append((f"{'  ' if place else ''}{sign} {count:,}", style))
            continue
        start = f" {dot} " if place else ""
        left.append((f"{start}{sign + ' ' if sign != dot or not place else ''}{count:,} {severity}", style))
    if not queries.counts(state):
        left += _none_here(state, others=others)
    return left


def _none_here(state: State, *, others: bool) -> Iterator[BarPart]:
    """No rule is broken at the shown stage; green only where nothing else is wrong either."""
    if queries.is_clean(state):
        yield f"{VERDICT_SIGNS['clean']} no rule broken", "$text-success"
        return
    yield "no rule broken", "$foreground 75%"
    for level, counts in queries.counts_of_other_levels(state) if others else ():
        yield f" {MARKS['separator']} {level}", "$foreground 75%"
        yield from ((f" {SEVERITY_SIGNS[one]} {count:,} {one}", Lines.LOOKS[one]) for one, count in counts.items())


def _figures(state: State, *, peak: bool = True) -> Iterator[BarPart]:
    """Where Dynamo stopped a graph or compiled again, the most memory that a graph of the level needs at once, and how
    many partitions fallbacks leave, if known."""
    style, dot = "$foreground 75%", f" {MARKS['separator']} "
    run = state.shown
    breaks = [("break", run.times_broken), ("recompile", len(run.recompiles))] if run is not None else []
    if words := ", ".join(counted(count, name) for name, count in breaks if count):
        yield f"{dot}{words}", "$text-warning"
    yield from ((f"{dot}{words}", "$text-warning") for _, words in (views.in_short(run) if run is not None else ()))
    graph, profile = (queries.peak(state) if peak else None) or (None, None)
    if graph is not None and profile is not None and profile.peak_bytes:
        where = f" ({graph_words(graph.id)})" if len(queries.level(state)) > 1 else ""
        yield f"{dot}peak {'at least ' if profile.unsized else ''}{size(profile.peak_bytes)}{where}", style
    if "fallback" in queries.counts(state):
        yield f"{dot}{_partitions(state)}", style


def _partitions(state: State) -> str:
    """Of each graph, in their order; one that nothing falls out of is one partition."""
    level = queries.rule_costs(state)
    if level is None:
        return f"{MARKS['ellipsis']} partitions"
    counts = [rule_costs.partitions.count if rule_costs.partitions else 1 for _, rule_costs in level]
    if not any(counts):
        return "all on the host"
    if 1 < len(counts) <= _GRAPHS:
        return f"{' + '.join(f'{count:,}' for count in counts)} partitions"
    return counted(sum(counts), "partition") + (f" of {len(counts)} graphs" if len(counts) > 1 else "")


def _target(state: State) -> str:
    target = state.target
    device = target.device or _device_seen(state)
    dot = f" {MARKS['separator']} "
    if state.run is None and not state.live:
        return ""  # the target that it had is not known
    backend = state.run.backend if state.run is not None and state.run.target == target else target.backend
    return dot.join(part for part in (backend, device, _rules(state)) if part)


def _rules(state: State) -> str:
    if queries.is_without_rules(state) or (state.accelerator is None and not state.target.has_rules):
        return "no accelerator"
    name = state.accelerator.name if state.accelerator else state.target.accelerator
    return f"{name} ({'strict' if state.target.strict else 'warn'})"


def _device_seen(state: State) -> str:
    """Where the shown graph's first tensor lives: what the program chose itself."""
    nodes = state.graph.nodes if state.graph else ()
    return next((node.tensor.device for node in nodes if node.tensor and node.tensor.device), "")


_STANDING = ("whole", "without times", "without kernels", "verdict only")
"""How much is shown of the latest run; the index is the `brevity` of `_standing`."""


def _standing(state: State, brevity: int) -> list[BarPart]:
    run = state.run
    if run is None and state.history.processes:
        looks = state.history.looks
        words = session_words(state.history)
        return [(f"{VERDICT_SIGNS[looks]} {words}".lstrip(), Lines.LOOKS[VERDICT_TONES[looks]])]
    if not state.live:
        if state.arriving and (run is None or run.ended is None):
            return [(f"{MARKS['ellipsis']} {state.arriving}", "$text-primary")]
        saved: list[BarPart] = [("saved  " if brevity else "saved session  ", "$foreground 60%")]
        return saved + (_of_rules(state, run, brevity) if run else [])
    if run is None:
        return [("starting the worker", "$foreground 60%")]
    if run.ended is None:
        return [(f"run {run.number}  {elapsed(queries.elapsed(state))}", "$text-primary")]
    return _of_rules(state, run, brevity)


def _of_rules(state: State, run: Run, brevity: int) -> list[BarPart]:
    """How the run ended; where numbers of an earlier run or of a benchmark are wrong still, that; where the rules were
    edited since, whose verdict it is.
    """
    if state.history.deciding_run is not run or state.history.wrong_rows:
        return _still_wrong(state.history, run, brevity)
    pieces = _ended(run, brevity)
    if run.verdict not in SUCCESSFUL or not run.checked or not queries.has_other_rules(state, run):
        return pieces
    if brevity == len(_STANDING) - 1:
        pieces = [(VERDICT_SIGNS[run.verdict], "")]
    lead = "by the rules before the edit: " if brevity == 0 else "old rules: "
    return [(lead, "$foreground 75%"), *((text, "$foreground 75%") for text, _ in pieces)]


def _still_wrong(history: History, run: Run, brevity: int) -> list[BarPart]:
    """Nobody has compared again what was wrong: the latest run's own verdict comes after it."""
    sign, style = VERDICT_SIGNS[history.looks], Lines.LOOKS[VERDICT_TONES[history.looks]]
    words = session_words(history)
    if brevity == len(_STANDING) - 1:
        return [(f"{sign} {words.partition(':')[0]}: {history.verdict}", style)]
    compared = "" if run.compared else ", not compared"
    since = f" {MARKS['separator']} run {run.number}: {verdict_words(run)}{compared}"
    return [(f"{sign} {words}", style), (since, "")]


def _ended(run: Run, brevity: int) -> list[BarPart]:
    looks = run.looks
    sign, style = VERDICT_SIGNS[looks], Lines.LOOKS[VERDICT_TONES[looks]]
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
        word = "wrong" if run.verdict == "wrong" else verdict_words(run).partition(" (")[0].partition(",")[0]
        incomplete = f" {VERDICT_SIGNS['empty']}" if run.diff is not None and run.diff.not_judged else ""
        return [(f"{sign} {word}{incomplete}", style)]
    where = ""
    if run.verdict == "wrong" and run.diff is not None and (stage := blamed_stage(run.diff)):
        where = f" since {stage}"
    pieces = [(f"{sign} {verdict_words(run)}{where}", style)]
    dot = f" {MARKS['separator']} "
    if brevity == _STANDING.index("without kernels"):
        return pieces
    if run.codes:
        pieces.append((f"{dot}{counted(len(run.kernels), 'kernel')}", ""))
    elif run.graphs:
        pieces.append((f"{dot}{counted(len(stages.frames(run)), 'frame')}, no kernels", ""))
    return pieces if brevity else [*pieces, (f"{dot}{run.backend} took {elapsed(run.seconds)}", "")]


def _clipped(pieces: list[BarPart], width: int) -> list[BarPart]:
    kept: list[BarPart] = []
    for text, style in pieces:
        kept.append((clip(text, width), style))
        width -= cell_len(text)
        if width <= 0:
            break
    return kept
