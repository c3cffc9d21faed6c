"""Show what is in a session: its runs, its repros and measurements, what wrote it, and what is missing of it."""

from collections.abc import Iterator, Sequence

import msgspec

from idbg.format.amounts import counted, elapsed, moment, size
from idbg.format.glyphs import VERDICT_SIGNS
from idbg.format.plain_text import one_line
from idbg.format.processes import capture_words
from idbg.format.verdicts import verdict_words
from idbg.schema.diff import Numbers
from idbg.schema.processes import Process
from idbg.schema.programs import Verdict
from idbg.schema.runs import History, Run
from idbg.schema.session_repros import SessionRepro
from idbg.schema.strict_json import like
from idbg.schema.summaries import SessionSummary
from idbg.views import records
from idbg.views.processes import ProcessOverview
from idbg.views.processes import view as process_list
from idbg.views.repros import sign, sought_words, status_words
from idbg.views.tree import Cell, Column, Row, Section, Table, words


class RunOverview(msgspec.Struct, frozen=True, kw_only=True):
    """A run in a line; `against` is what it was compared with, "" where it was not; `exit_status` a script's own."""

    run: int
    verdict: Verdict
    said: str
    numbers: Numbers
    looks: Verdict
    program: str
    backend: str
    accelerator: str
    device: str
    strict: bool
    against: str
    started: float
    seconds: float | None
    graphs: int
    kernels: int
    violations: int | None
    breaks: int | None
    recompiles: int | None
    exit_status: int


class ReproOverview(msgspec.Struct, frozen=True, kw_only=True):
    """A repro of a run; `path` is "" where there is no script. `reproduced` null: it was not tried."""

    run: int
    origin: str
    shows: str
    path: str
    reproduced: bool | None
    status: str


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """`measured` counts benchmark rows, `missing` says what the session lacks; `torch` and `python` are those that
    compiled, "" where no worker came up.
    """

    schema: str = "idbg.show/1"
    session: SessionSummary
    torch: str
    python: str
    devices: list[str]
    process: Process | None
    processes: list[ProcessOverview]
    runs: list[RunOverview]
    repros: list[ReproOverview]
    measured: int
    missing: list[str]


def overview(summary: SessionSummary, history: History, processes: Sequence[ProcessOverview] = ()) -> Overview:
    """What the session of this summary has come to, with its other processes."""
    worker = history.worker
    return Overview(
        session=summary,
        torch=worker.torch if worker else "",
        python=worker.python if worker else "",
        devices=list(worker.devices) if worker else [],
        process=history.process,
        processes=list(processes),
        runs=[_run(history.runs[number]) for number in sorted(history.runs)],
        repros=[_repro(each, live=summary.live) for each in history.repros],
        measured=len(history.rows),
        missing=[*filter(None, [capture_words(worker)]), *history.missing],
    )


def _run(run: Run) -> RunOverview:
    return like(
        RunOverview,
        run,
        run=run.number,
        said=verdict_words(run),
        program=run.program.label,
        accelerator=run.target.accelerator,
        device=run.target.device,
        strict=run.target.strict,
        against=run.comparison.reference if run.comparison else "",
        seconds=None if run.ended is None else run.seconds,
        graphs=len(run.graphs),
        kernels=len(run.kernels),
        violations=run.violation_count,
        breaks=records.amount(run, "breaks", run.times_broken),
        recompiles=records.amount(run, "recompiles", len(run.recompiles)),
    )


def _repro(repro: SessionRepro, *, live: bool) -> ReproOverview:
    return like(ReproOverview, repro, shows=sought_words(repro.sought), status=status_words(repro, live=live))


_RUNS = (
    Column("result", rank=5, least=10),
    Column("for", rank=4, least=10),
    Column("against", rank=3),
    Column("graphs", "count", 1),
    Column("kernels", "count", 1),
    Column("time", "seconds", 2),
)
_REPROS = (
    Column("run", "count", 2),
    Column("status", rank=4),
    Column("script", rank=3, least=12),
)


def view(found: Overview) -> Section:
    """Facts of the session as rows, then tables of its runs and its repros."""
    session = found.session
    facts = {
        **({"process": f"{found.process.name}, pid {found.process.pid}"} if found.process else {}),
        "program": session.program,
        "started": f"{moment(session.started)}, {elapsed(session.seconds)} long, {_state(session)}",
        "writer": ", ".join(_makers(found)),
        "folder": f"{session.folder}, {size(session.bytes)}",
    }
    rows = [Row(name, words(f"  {name:9} {one_line(text)}")) for name, text in facts.items()]
    rows += [Row(("missing", text), words(f"  {'missing':9} {one_line(text)}")) for text in found.missing]
    if found.measured:
        rows.append(Row("measured", words(f"  {'measured':9} {counted(found.measured, 'benchmark row')}")))
    return Section(
        "Session",
        f"{VERDICT_SIGNS[session.looks]} {one_line(session.result)}   {one_line(session.name)}",
        len(found.runs),
        body=(
            *rows,
            *process_list(found.processes).body,
            Table(_RUNS, [_run_row(run) for run in found.runs], "run", "runs"),
            Table(_REPROS, [_repro_row(repro) for repro in found.repros], "repro", "repros"),
        ),
    )


def _state(session: SessionSummary) -> str:
    if session.live:
        return "live"
    if session.ended:
        return "ended"
    return "not all of it is known how it ended" if session.damaged else "it never came to its end"


def _makers(found: Overview) -> Iterator[str]:
    yield f"idbg {found.session.version or 'of an unknown version'}"
    if found.torch:
        yield f"torch {found.torch}"
        if found.python:  # not of a trace, which does not say it
            yield f"Python {found.python}"
        yield from found.devices
    else:
        yield "no torch was started"


def _run_row(run: RunOverview) -> Row:
    target = "/".join(filter(None, (run.backend, run.accelerator))) + (" strict" if run.strict else "")
    return Row(
        ("run", run.run),
        words(f"{VERDICT_SIGNS[run.looks] or ' '} {run.run}"),
        (
            Cell(one_line(run.said, 100)),
            Cell(one_line(f"{target} {run.device}".strip(), 100)),
            Cell(one_line(run.against, 100) or None),
            Cell(run.graphs),
            Cell(run.kernels),
            Cell(run.seconds),
        ),
    )


def _repro_row(repro: ReproOverview) -> Row:
    return Row(
        ("repro", repro.run, repro.path, repro.shows),
        words(f"{sign(repro.reproduced) or ' '} {one_line(repro.shows, 200)}"),
        (Cell(repro.run), Cell(repro.status), Cell(one_line(repro.path, 300) or None)),
    )
