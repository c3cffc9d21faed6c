"""List the processes of a session: what each compiled, and how it ended."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from msgspec import structs

from idbg.format.amounts import counted
from idbg.format.glyphs import MARKS, VERDICT_SIGNS
from idbg.format.plain_text import one_line
from idbg.format.processes import NO_END, end_words, in_order, rank_words
from idbg.format.verdicts import process_outcome, verdict_words
from idbg.schema.processes import ProcessReport
from idbg.schema.programs import Verdict
from idbg.schema.runs import Run, worst
from idbg.schema.strict_json import like, picked
from idbg.schema.summaries import SessionSummary
from idbg.views.tree import VERDICT_TONES, Cell, Column, Row, Section, Table, Tone, Words, words
from idbg.views.tree import Verdict as TreeVerdict

MAIN = "main"
"""What the main process is called among the others."""
EMPTY = "one process: what a program compiles in children or ranks is listed here, a row each"


class ProcessOverview(ProcessReport, frozen=True, kw_only=True):
    """A process in a line, with what its last run compiled; `state` is how it ended, in words. Counts are null where
    its log cannot be read.
    """

    state: str
    looks: Verdict
    backend: str = ""
    graphs: int | None = None
    kernels: int | None = None
    breaks: int | None = None
    seconds: float | None = None


def overview(process: ProcessReport, summary: SessionSummary | None) -> ProcessOverview:
    """The process, with the summary of its log; None where that cannot be read."""
    is_lost = process.ended is None and summary is not None and not summary.live
    own = (summary.verdict, summary.result) if summary else (process.verdict, process.said or "not known")
    verdict, said = process_outcome(process.ended, *own)
    return like(
        ProcessOverview,
        process,
        state=NO_END if is_lost else end_words(process.ended),
        verdict=verdict,
        said=said,
        looks=summary.looks if summary and verdict == summary.verdict else verdict,
        **(picked(summary, "backend graphs kernels breaks seconds") if summary else {}),
    )


_COLUMNS = (
    Column("rank", rank=2),
    Column("result", rank=5, least=10),
    Column("backend", rank=2),
    Column("graphs", "count", 3),
    Column("kernels", "count", 1),
    Column("breaks", "count", 1),
    Column("time", "seconds", 1),
    Column("state", rank=4, least=7),
)
_LISTED = (
    Column("rank", rank=3),
    Column("pid", rank=2),
    Column("host", rank=1),
    Column("result", rank=5, least=10),
    Column("state", rank=4, least=7),
)


def listed(processes: Collection[ProcessReport]) -> Section:
    """A row each, from what the main process's log knows of them: what a report has, whose logs lie elsewhere."""
    rows = [
        Row(
            key_of(each.name),
            _name(each.verdict, each.name, is_shown=False),
            (
                Cell(rank_words(each) or None),
                Cell(str(each.pid) if each.pid else None),
                Cell(one_line(each.host, 60) or None),
                Cell(one_line(each.said, 100) or None),
                _state_cell(each),
            ),
            _failure_rows(each),
            "all",
        )
        for each in in_order(processes)
    ]
    table = Table(_LISTED, rows, "process", names=True)
    return Section("Processes", "", len(rows), _verdict_of(processes), (table,) if rows else ())


def view(
    found: Sequence[ProcessOverview],
    main: SessionSummary | None = None,
    run: Run | None = None,
    shown: str | None = None,
) -> Section:
    """A row each, after one for the main process where the session's summary is passed. `run` is the main process's
    last, None where it has none; `shown` is the name of the one that is on the screen, "" for the main process.
    """
    rows = [_row(each, is_shown=each.name == shown) for each in in_order(found)]
    if main is not None and found:
        is_over = main.ended or (run is not None and run.ended is not None)
        state = "ended" if is_over else "running" if main.live else NO_END
        if run is not None:  # the session's verdict is that of all its processes
            own = replace(run, processes={})
            main = structs.replace(main, looks=own.looks, result=verdict_words(own))
        rows.insert(0, _main_row(main, state, is_shown=shown == ""))
    failed = sum(each.verdict == "failed" for each in found)
    summary = counted(len(rows), "other process" if main is None and run is not None else "process")
    return Section(
        "Processes",
        summary + (f", {failed} failed" if failed else "") if found else EMPTY,
        len(rows),
        _verdict_of(found),
        (Table(_COLUMNS, rows, "process", names=True),) if found else (),
    )


def _verdict_of(processes: Iterable[ProcessReport]) -> TreeVerdict:
    verdict = worst(each.verdict for each in processes)
    return "error" if verdict in ("failed", "wrong") else "warning" if verdict == "violations" else "ok"


def key_of(name: str) -> tuple[str, str]:
    """The key of the row of a process; "" is the main one."""
    return ("process", name)


def _row(each: ProcessOverview, *, is_shown: bool) -> Row:
    return Row(
        key_of(each.name),
        _name(each.looks, each.name, is_shown=is_shown),
        (
            Cell(rank_words(each) or None),
            Cell(one_line(each.said, 100)),
            Cell(one_line(each.backend, 40) or None),
            Cell(each.graphs),
            Cell(each.kernels),
            Cell(each.breaks),
            Cell(each.seconds),
            _state_cell(each),
        ),
        _failure_rows(each),
        "all",
    )


def _failure_rows(each: ProcessReport) -> tuple[Row, ...]:
    failure = one_line(each.ended.failure, 300) if each.ended is not None else ""
    return (Row(("process failure", each.name), words((failure, "reject"))),) if failure else ()


def _state_cell(each: ProcessReport) -> Cell:
    tone: Tone = "reject" if each.is_wrong else "" if each.ended is None else "dim"
    return Cell(each.state if isinstance(each, ProcessOverview) else end_words(each.ended), tone)


def _main_row(main: SessionSummary, state: str, *, is_shown: bool) -> Row:
    return Row(
        key_of(""),
        _name(main.looks, MAIN, is_shown=is_shown),
        (
            Cell(None),
            Cell(one_line(main.result, 100)),
            Cell(one_line(main.backend, 40) or None),
            Cell(main.graphs),
            Cell(main.kernels),
            Cell(main.breaks),
            Cell(main.seconds),
            Cell(state, "" if main.live else "dim"),
        ),
    )


def _name(looks: Verdict, name: str, *, is_shown: bool) -> Words:
    tone: Tone = "strong" if is_shown else ""
    shown = f"  {MARKS['separator']} shown" if is_shown else ""
    return words((f"{VERDICT_SIGNS[looks] or ' '} ", VERDICT_TONES[looks]), (name, tone), (shown, "dim"))
