"""What is in a session: which runs, repros and measurements, who made it, and what is missing of it?"""

from collections.abc import Iterator

import msgspec

from idbg.format.amounts import counted, elapsed, size
from idbg.format.glyphs import VERDICT_SIGNS
from idbg.format.plain_text import one_line
from idbg.format.tables import Column, fitted
from idbg.format.verdicts import verdict_words
from idbg.reports.repros import sign, sought_words, status_words
from idbg.schema.kept import KeptRepro
from idbg.schema.programs import Verdict
from idbg.schema.runs import History, Run
from idbg.schema.summaries import SessionSummary


class RunOverview(msgspec.Struct, frozen=True, kw_only=True):
    """A run in a line; `against` is what it was compared with, "" where it was not; `exit_status` a script's own."""

    run: int
    verdict: Verdict
    said: str
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
    violations: int
    breaks: int
    recompiles: int
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
    runs: list[RunOverview]
    repros: list[ReproOverview]
    measured: int
    missing: list[str]


def overview(summary: SessionSummary, history: History) -> Overview:
    """What the session of this summary has come to."""
    worker = history.worker
    return Overview(
        session=summary,
        torch=worker.torch if worker else "",
        python=worker.python if worker else "",
        devices=list(worker.devices) if worker else [],
        runs=[_run(history.runs[number]) for number in sorted(history.runs)],
        repros=[_repro(each, live=summary.live) for each in history.repros],
        measured=len(history.rows),
        missing=history.missing,
    )


def _run(run: Run) -> RunOverview:
    return RunOverview(
        run=run.number,
        verdict=run.verdict,
        said=verdict_words(run),
        looks=run.looks,
        program=run.program.label,
        backend=run.target.backend,
        accelerator=run.target.accelerator,
        device=run.target.device,
        strict=run.target.strict,
        against=run.comparison.reference if run.comparison else "",
        started=run.started,
        seconds=None if run.ended is None else run.seconds,
        graphs=len(run.graphs),
        kernels=len(run.kernels),
        violations=len(run.violations),
        breaks=run.times_broken,
        recompiles=len(run.recompiles),
        exit_status=run.exit_status,
    )


def _repro(repro: KeptRepro, *, live: bool) -> ReproOverview:
    return ReproOverview(
        run=repro.run,
        origin=repro.origin,
        shows=sought_words(repro.sought),
        path=repro.path,
        reproduced=repro.reproduced,
        status=status_words(repro, live=live),
    )


_RUNS = (
    Column(""),
    Column("run", right=True),
    Column("came of it", least=10),
    Column("for", least=10),
    Column("against", least=6, rank=1),
    Column("graphs", right=True, rank=3),
    Column("kernels", right=True, rank=3),
    Column("took", right=True, rank=2),
)
_REPROS = (
    Column(""),
    Column("repro of run", right=True),
    Column("it", least=10),
    Column("shows", least=12),
    Column("script", least=12),
)


def lines(told: Overview, started: str, width: int | None) -> Iterator[str]:
    """The overview as text within `width` cells; `started` is when, in words."""
    session = told.session
    yield f"{VERDICT_SIGNS[session.looks]} {one_line(session.said)}   {one_line(session.name)}"
    yield f"  program   {one_line(session.program)}"
    yield f"  started   {started}, {elapsed(session.seconds)} long, {_state(session)}"
    yield f"  made by   {one_line(', '.join(_makers(told)))}"
    yield f"  folder    {one_line(session.folder)}, {size(session.bytes)}"
    for text in told.missing:
        yield f"  missing   {one_line(text)}"
    if told.runs:
        yield ""
        yield from fitted(_RUNS, [_run_row(run) for run in told.runs], width)
    if told.repros:
        yield ""
        yield from fitted(_REPROS, [_repro_row(repro) for repro in told.repros], width)
    if told.measured:
        yield f"\n{counted(told.measured, 'benchmark row')}"


def _state(session: SessionSummary) -> str:
    if session.live:
        return "live"
    if session.ended:
        return "ended"
    return "not all of it is known how it ended" if session.damaged else "it never came to its end"


def _makers(told: Overview) -> Iterator[str]:
    yield f"idbg {told.session.version or 'of an unknown version'}"
    if told.torch:
        yield f"torch {told.torch}"
        yield f"Python {told.python}"
        yield from told.devices
    else:
        yield "no torch was started"


def _run_row(run: RunOverview) -> tuple[str, ...]:
    target = "/".join(filter(None, (run.backend, run.accelerator))) + (" strict" if run.strict else "")
    return (
        VERDICT_SIGNS[run.looks],
        str(run.run),
        one_line(run.said, 100),
        one_line(f"{target} {run.device}".strip(), 100),
        one_line(run.against, 100) or "-",
        f"{run.graphs:,}",
        f"{run.kernels:,}",
        "-" if run.seconds is None else elapsed(run.seconds),
    )


def _repro_row(repro: ReproOverview) -> tuple[str, ...]:
    return (
        sign(repro.reproduced),
        str(repro.run),
        repro.status,
        one_line(repro.shows, 200),
        one_line(repro.path, 300) or "-",
    )
