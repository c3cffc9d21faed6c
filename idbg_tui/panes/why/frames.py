"""Which frames did torch compile, called from where, and what became of each? What did it leave alone?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from idbg.analysis.decisions.frames import FrameRow
from idbg.analysis.decisions.frames import rows as tree
from idbg.analysis.decisions.stacks import whose
from idbg.format import file_names
from idbg.format.amounts import NOTHING, counted, elapsed
from idbg.format.failures import headline, place_of
from idbg.format.glyphs import MARKS, SEVERITY_SIGNS, VERDICT_SIGNS
from idbg.reports.decisions.frames import END_WORDS, plain
from idbg.schema.decisions.dynamo import Skip
from idbg.schema.events import FrameFailed
from idbg.schema.runs import Run
from idbg.views.frame_graphs import FrameGraphs
from idbg.views.recompiles import again_words
from idbg_tui.panes.why import stacks
from idbg_tui.panes.why.table import Column, Table
from idbg_tui.widgets.section_rows import INDENT, Enter, Look, Row, Rows, said, sign, widest

FILTERS = False
NONE = "torch.compile was asked for nothing in this program: 7 Log has what it printed, 1 Graph is empty too"
_LOOKS: dict[str, tuple[str, str]] = {
    "compiled": (VERDICT_SIGNS["clean"], "clean"),
    "eager": (SEVERITY_SIGNS["fallback"], "fallback"),
    "skipped": (SEVERITY_SIGNS["slow"], "dim"),
    "failed": (VERDICT_SIGNS["failed"], "reject"),
    "": (VERDICT_SIGNS["waiting"], "dim"),
}


@dataclass(frozen=True)
class _Known:
    """What every row needs, looked up once."""

    run: Run
    look: Look
    table: Table
    graphs: FrameGraphs
    again: dict[str, str]
    """Frame -> why it was compiled again."""
    failed: dict[str, FrameFailed]


def count(run: Run) -> int:
    """Compiles of frames."""
    return len(run.frames)


def rows(run: Run, look: Look) -> Sequence[Row]:
    """A frame a row, those that its compiled code called under it, those that are alike in one. Then failures that no
    frame has, and what was left alone.
    """
    listed = tree(run)
    known = _known(run, look, listed)
    found = Rows()
    found.add(known.table.heads())
    _add_tree(found, listed, known)
    _add_failures(found, known)
    _add_skips(found, known)
    return found if len(found) > 1 else []


def _known(run: Run, look: Look, listed: Sequence[FrameRow]) -> _Known:
    places = [file_names.place(row.file, row.line, look.files) for row in listed if row.file]
    columns = (
        Column("ops", 6, 0, right=True),
        Column("kernels", 7, 1, right=True),
        Column("breaks", 6, 3, right=True),
        Column("guards", 6, 0, right=True),
        Column("time", 8, 4, right=True),
        Column("line", widest(places, 28), 2),
    )
    again = {one.frame: again_words(one) for one in run.recompiles}
    failed = {one.frame: one for one in run.frame_failures}
    return _Known(run, look, Table(columns, "function, and what it called"), FrameGraphs(run), again, failed)


def _add_tree(found: Rows, listed: Sequence[FrameRow], known: _Known) -> None:
    """Each frame before those below it; what is below a folded one is left out."""
    inside: list[tuple[int, object]] = []  # depth and fold of those above
    hidden = None  # the depth below which nothing is shown
    for place, row in enumerate(listed):
        if hidden is not None and row.depth > hidden:
            continue
        hidden = None
        while inside and inside[-1][0] >= row.depth:
            inside.pop()
        above = tuple(fold for _, fold in inside)
        fold = ("frame", row.ids[0])
        has_below = place + 1 < len(listed) and listed[place + 1].depth > row.depth
        is_open = known.look.is_open(fold, at_first=has_below or row.end == "failed")
        found.add_later(fold, partial(_frame_row, row, known, above, is_open))
        if not is_open:
            hidden = row.depth
            continue
        inside.append((row.depth, fold))
        for frame in row.ids if row.count > 1 else ():
            key = ("alike", frame)
            found.add_later(key, partial(_alike_row, frame, row, known, (*above, fold)))
        for name, text, style in _whys(row, known):
            under, depth = (*above, fold), row.depth + 2
            for each in said(text, known.look, key=(name, fold), depth=depth, style=style, inside=under):
                found.add(each)
        _add_stack(found, row, known, (*above, fold))


def _add_stack(found: Rows, row: FrameRow, known: _Known, inside: tuple[object, ...]) -> None:
    """The user's lines that a frame which failed was tracing."""
    result = known.run.decided.results.get(row.ids[0])
    if result is None or result.end != "failed":
        return
    for each in stacks.rows(result.stack, known.look, ("stack", row.ids[0]), row.depth + 2, inside):
        found.add(each)


def _frame_row(row: FrameRow, known: _Known, inside: tuple[object, ...], is_open: bool) -> Row:
    mark, style = _LOOKS.get(row.end, _LOOKS[""])
    times = f"  {MARKS['times']}{row.count}, alike" if row.count > 1 else ""
    words = [
        (f"{' ' * INDENT * row.depth}{sign(is_open=is_open)} ", ""),
        (f"{mark} ", style),
        (row.name, "strong"),
        (f"  {row.ids[0]}{times}", "accent"),
        ("".join(f", {fact}" for fact in _facts(row)), "dim"),
    ]
    nodes = known.graphs.nodes(row.ids[0])
    key = ("frame", row.ids[0])
    drawn = known.table.row(words, _cells(row, known))
    enter: Enter = "node" if nodes else "fold"
    return Row(key, drawn, enter, key, is_open, inside, row.ids[0], row.file, row.line, nodes)


def _facts(row: FrameRow) -> Iterator[str]:
    if row.end != "compiled":
        yield END_WORDS.get(row.end, "not ended")
    if row.attempts > row.count:
        yield f"traced {counted(row.attempts, 'time')}"
    if row.asked:
        yield f"{row.hits} of {row.asked} found in caches"


def _cells(row: FrameRow, known: _Known) -> list[tuple[str, str]]:
    where = file_names.place(row.file, row.line, known.look.files) if row.file else ""
    told = [known.run.decided.guards[frame] for frame in row.ids if frame in known.run.decided.guards]
    guards = sum(len(each.guards) + each.dropped for each in told) if told else row.guards
    return [
        (NOTHING if row.ops is None else f"{row.ops:,}", ""),
        (f"{row.kernels:,}" if row.kernels else NOTHING, "" if row.kernels else "dim"),
        (f"{row.breaks:,}" if row.breaks else NOTHING, "fallback" if row.breaks else "dim"),
        (NOTHING if guards is None else f"{guards:,}", ""),
        (NOTHING if row.seconds is None else elapsed(row.seconds), ""),
        (where, "dim"),
    ]


def _alike_row(frame: str, row: FrameRow, known: _Known, inside: tuple[object, ...]) -> Row:
    """One of several that are alike."""
    result = known.run.decided.results.get(frame)
    words = [(f"{' ' * INDENT * (row.depth + 2)}{frame}", "accent")]
    if frame in known.again:
        words.append((f"  {known.again[frame]}", "dim"))
    seconds = result.seconds if result is not None else None
    cells = [("", "")] * 4 + [(NOTHING if seconds is None else elapsed(seconds), ""), ("", "")]
    nodes = known.graphs.nodes(frame)
    enter: Enter = "node" if nodes else ""
    drawn = known.table.row(words, cells)
    return Row(("alike", frame), drawn, enter, None, False, inside, frame, row.file, row.line, nodes)


def _whys(row: FrameRow, known: _Known) -> Iterator[tuple[str, str, str]]:
    """Why it was compiled again, traced again, or not compiled: a key, the sentence and its look."""
    if row.count == 1 and row.ids[0] in known.again:
        yield "again", f"compiled again: {known.again[row.ids[0]]}", "dim"
    for place, restart in enumerate(row.restarts):
        yield f"restart {place}", f"traced again: {restart}", "dim"
    if row.why:
        yield "why", row.why, ""
    for frame in row.ids:
        if (failed := known.failed.get(frame)) is not None:
            yield f"failed {frame}", str(headline(failed.failure)), "reject"


def _add_failures(found: Rows, known: _Known) -> None:
    """What failed before it had a frame; else the run's own failure where nothing else tells of it."""
    loose = [one.failure for one in known.run.frame_failures if one.frame not in known.run.frames]
    own = known.run.failure
    if own is not None and own.kind != "cancelled" and not known.run.frame_failures:
        loose.append(own)
    for place, failure in enumerate(loose):
        file, line = place_of(failure)
        words = [(f"{VERDICT_SIGNS['failed']} ", "reject"), (str(headline(failure)), "")]
        drawn = known.table.row(words, [("", "")] * len(known.table.columns))
        found.add(Row(("failure", place), drawn, "edit", file=file, line=line, copied=failure.message))
        for row in said(failure.hint, known.look, key=("hint", place), depth=1, style="dim") if failure.hint else ():
            found.add(row)


def _add_skips(found: Rows, known: _Known) -> None:
    """The functions that Dynamo was asked for and left alone, the user's first."""
    skips, dropped = known.run.decided.skips, known.run.decided.skips_dropped
    if not skips:
        return
    fold = ("skips",)
    is_open = known.look.is_open(fold)
    own = [skip for skip in skips if whose(skip.file) == "user"]
    others = [skip for skip in skips if whose(skip.file) != "user"]
    whom = f", {len(own):,} of them yours" if own else ", all of torch and libraries"
    told = f"; {len(skips):,} are listed" if dropped else ""
    words = [(f"{sign(is_open=is_open)} ", ""), (f"{SEVERITY_SIGNS['slow']} ", "dim")]
    words += [(f"{counted(len(skips) + dropped, 'function')} left alone", "strong"), (whom + told, "dim")]
    none = [("", "")] * len(known.table.columns)
    found.add(Row(fold, known.table.row(words, none), "fold", fold, is_open))
    for place, skip in enumerate((*own, *others)) if is_open else ():
        found.add_later(("skip", place), partial(_skip_row, skip, place, known))


def _skip_row(skip: Skip, place: int, known: _Known) -> Row:
    where = file_names.place(skip.file, skip.line, known.look.files)
    words = [(" " * INDENT + skip.function, ""), (f"  {plain(skip)}", "dim")]
    cells = [*[("", "")] * (len(known.table.columns) - 1), (where, "dim")]
    drawn = known.table.row(words, cells)
    return Row(("skip", place), drawn, "edit", inside=(("skips",),), file=skip.file, line=skip.line)
