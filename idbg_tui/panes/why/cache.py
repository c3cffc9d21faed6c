"""What was found in which cache, which calls became CUDA graphs, and which candidate won when several were measured?"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from idbg.format import file_names
from idbg.format.amounts import NOTHING, counted, duration
from idbg.format.glyphs import LEVELS, MARKS, SEVERITY_SIGNS, VERDICT_SIGNS
from idbg.reports.decisions import autotune, cache, cuda_graphs
from idbg.schema.decisions.caches import Choice
from idbg.schema.graphs import GraphId, NodeId, Part
from idbg.schema.runs import Run
from idbg_tui.widgets.section_rows import INDENT, Enter, Look, Row, Rows, fixed, said, sign, widest

FILTERS = False
NONE = f"{cache.NOTHING} (b chooses another backend)"
_BAR = 24  # cells of the slowest candidate's bar
_OUTCOMES: dict[str, tuple[str, str]] = {
    "hit": (VERDICT_SIGNS["clean"], "clean"),
    "miss": (SEVERITY_SIGNS["fallback"], "fallback"),
    "bypass": (SEVERITY_SIGNS["fallback"], "fallback"),
    "off": (SEVERITY_SIGNS["slow"], "dim"),
    "captured": (VERDICT_SIGNS["clean"], "clean"),
    "ready": (VERDICT_SIGNS["waiting"], "dim"),
    "rerecorded": (SEVERITY_SIGNS["fallback"], "fallback"),
    "split": (SEVERITY_SIGNS["fallback"], "fallback"),
    "skipped": (VERDICT_SIGNS["failed"], "reject"),
}


@dataclass(frozen=True)
class _Shown:
    """What every row needs."""

    run: Run
    look: Look
    found: Rows

    def section(self, fold: Hashable, title: str, words: str, *, empty: bool) -> bool:
        """Add a heading; whether it is open. An `empty` one says why."""
        if empty:
            self.told(f"{title}: {words}", fold, 0, "dim", ())
            return False
        is_open = self.look.is_open(fold, at_first=True)
        pieces = [(f"{sign(is_open=is_open)} ", ""), (title, "strong"), (f"  {words}", "dim")]
        self.found.add(Row(fold, fixed(pieces), "fold", fold, is_open))
        return is_open

    def told(self, text: str, key: Hashable, depth: int, style: str, inside: tuple[Hashable, ...]) -> None:
        """Add a sentence, if there is one."""
        for row in said(text, self.look, key=key, depth=depth, style=style, inside=inside) if text else ():
            self.found.add(row)


def count(run: Run) -> int:
    """Answers of caches that are no hit."""
    return sum(answer.outcome in ("miss", "bypass") for each in run.decided.caches.values() for answer in each)


def rows(run: Run, look: Look) -> Sequence[Row]:
    """Caches, compile by compile; then CUDA graphs, each at its line; then what was measured, with its candidates."""
    decided = run.decided
    if not (decided.caches or decided.cuda_graphs or decided.autotuned):
        return []
    shown = _Shown(run, look, Rows())
    _add_caches(shown)
    _add_cuda_graphs(shown)
    _add_autotuned(shown)
    return shown.found


# ---------------------------------------------------------------- caches


def _add_caches(shown: _Shown) -> None:
    every = cache.rows(shown.run)
    hits = sum(row.outcome == "hit" for row in every)
    words = f"{hits:,} of {counted(len(every), 'answer')} a hit" if every else cache.NOTHING
    fold = ("caches",)
    if not shown.section(fold, "caches", words, empty=not every):
        return
    for frame, part in dict.fromkeys((row.frame, row.part) for row in every):
        own = ("cache of", frame, part)
        is_open = shown.look.is_open(own, at_first=True)
        known = shown.run.frames.get(frame)
        pieces = [(f"{' ' * INDENT}{sign(is_open=is_open)} ", ""), (cache.place_of(shown.run, frame, part), "accent")]
        place = (known.file, known.line) if known is not None else ("", 0)
        shown.found.add(Row(own, fixed(pieces), "fold", own, is_open, (fold,), frame, *place))
        if is_open:
            mine = [row for row in every if (row.frame, row.part) == (frame, part)]
            _add_answers(shown, mine, (fold, own))


def _add_answers(shown: _Shown, mine: Sequence[cache.Row], inside: tuple[Hashable, ...]) -> None:
    """Each answer about the graph; those about kernels by cache and outcome, as there are hundreds."""
    alike: dict[tuple[str, str, str], list[cache.Row]] = {}
    for number, row in enumerate(mine):
        if row.what and row.outcome in ("hit", "miss"):
            alike.setdefault((row.cache, row.outcome, row.why), []).append(row)
            continue
        words = f"{cache.NAMES[row.cache]}" + (f", {row.what}" if row.what else "")
        _add_answer(shown, row, words, ("answer", row.frame, row.part, number), inside)
    for (name, outcome, why), rows in alike.items():
        fold = ("kernels of", rows[0].frame, rows[0].part, name, outcome, why)
        is_open = shown.look.is_open(fold)
        mark, style = _OUTCOMES[outcome]
        pieces = [
            (f"{' ' * 2 * INDENT}{sign(is_open=is_open)} ", ""),
            (f"{mark} {outcome:<6} ", style),
            (cache.NAMES[rows[0].cache], "strong"),
            (f"  {counted(len(rows), 'kernel')}" + (f": {why}" if why else ""), "dim"),
        ]
        shown.found.add(Row(fold, fixed(pieces), "fold", fold, is_open, inside, rows[0].frame))
        for row in rows if is_open else ():
            target = next((k for k in shown.run.kernels if (k.frame, k.name) == (row.frame, row.what)), None)
            kernel = (target.frame, target.part, target.name) if target is not None else None
            drawn = fixed([(f"{' ' * 4 * INDENT}{row.what}", "")])
            key = (*fold, row.what)
            shown.found.add(
                Row(key, drawn, "kernel" if kernel else "", None, False, (*inside, fold), row.frame, kernel=kernel)
            )


def _add_answer(shown: _Shown, row: cache.Row, words: str, key: Hashable, inside: tuple[Hashable, ...]) -> None:
    mark, style = _OUTCOMES[row.outcome]
    pieces = [(f"{' ' * 3 * INDENT}", ""), (f"{mark} {row.outcome:<6} ", style), (words, "strong")]
    shown.found.add(
        Row(key, fixed(pieces), "", None, False, inside, row.frame, copied=f"{words} {row.outcome}: {row.why}")
    )
    shown.told(row.why, (key, "why"), 5, "", inside)
    shown.told(row.to_do and f"{MARKS['arrow']} {row.to_do}", (key, "do"), 5, "accent", inside)


# ---------------------------------------------------------------- CUDA graphs


def _add_cuda_graphs(shown: _Shown) -> None:
    every = cuda_graphs.rows(shown.run)
    fold = ("cuda graphs",)
    words = counted(len(every), "decision") if every else cuda_graphs.NOTHING
    if not shown.section(fold, "CUDA graphs", words, empty=not every):
        return
    for number, row in enumerate(every):
        key = ("cuda graph", number)
        mark, style = _OUTCOMES[row.graph.outcome]
        place = f"  {file_names.place(row.file, row.line, shown.look.files)}" if row.file else ""
        pieces = [
            (f"{' ' * 2 * INDENT}{mark} ", style),
            (f"{row.frame} {row.part}  ", "accent"),
            (row.words, "strong"),
            (place, "dim"),
        ]
        nodes = _nodes(shown.run, row.frame, row.part, row.graph.nodes)
        enter: Enter = "edit" if row.file else "node" if nodes else ""
        shown.found.add(Row(key, fixed(pieces), enter, None, False, (fold,), row.frame, row.file, row.line, nodes))
        shown.told(row.why, (key, "why"), 4, "", (fold,))
        shown.told(row.to_do and f"{MARKS['arrow']} {row.to_do}", (key, "do"), 4, "accent", (fold,))


# ---------------------------------------------------------------- autotuning


def _add_autotuned(shown: _Shown) -> None:
    every = autotune.rows(shown.run)
    fold = ("autotuned",)
    words = counted(len(every), "choice") if every else autotune.NOTHING
    if not shown.section(fold, "autotuning", words, empty=not every):
        return
    for number, row in enumerate(every):
        own = ("tuned", number)
        is_open = shown.look.is_open(own, at_first=len(every) == 1)
        pieces = [(f"{' ' * INDENT}{sign(is_open=is_open)} ", ""), (row.words, "strong"), (f"  {row.margin}", "dim")]
        nodes = _nodes(shown.run, row.frame, row.part, row.tuned.nodes)
        shown.found.add(Row(own, fixed(pieces), "fold", own, is_open, (fold,), row.frame, nodes=nodes))
        if is_open:
            _add_choices(shown, row, (fold, own))


def _add_choices(shown: _Shown, row: autotune.Row, inside: tuple[Hashable, ...]) -> None:
    """The candidates, the fastest first, each with a bar as long as it takes."""
    choices = row.tuned.choices
    slowest = max((choice.seconds for choice in choices if choice.seconds is not None), default=0.0)
    name = widest((choice.name for choice in choices), 40)
    for number, choice in enumerate(choices):
        won = choice.name == row.tuned.chosen
        bar = LEVELS[-1] * max(round(_BAR * (choice.seconds or 0.0) / slowest), 1) if choice.seconds and slowest else ""
        pieces = [
            (f"{' ' * 2 * INDENT}{VERDICT_SIGNS['clean'] if won else ' '} ", "clean"),
            (f"{choice.name:<{name}}  ", "strong" if won else ""),
            (f"{_took(choice):>9}  ", ""),
            (f"{bar:<{_BAR}}  ", "clean" if won else "accent"),
            (choice.error or choice.about, "reject" if choice.error else "dim"),
        ]
        key = ("choice", inside[-1], number)
        shown.found.add(Row(key, fixed(pieces), inside=inside, frame=row.frame, copied=choice.name))
    if row.tuned.dropped:
        pieces = [(f"{' ' * 3 * INDENT}and {row.tuned.dropped:,} more, that were not kept", "dim")]
        shown.found.add(Row(("choice", inside[-1], NOTHING), fixed(pieces), inside=inside))


def _took(choice: Choice) -> str:
    return "failed" if choice.error else NOTHING if choice.seconds is None else duration(1000 * choice.seconds)


def _nodes(run: Run, frame: str, part: Part, names: Sequence[str]) -> tuple[NodeId, ...]:
    graph = GraphId(frame, "post_grad", part)
    known = run.graphs[graph].by_name if graph in run.graphs else {}
    return tuple(NodeId(graph, name) for name in names if name in known)
