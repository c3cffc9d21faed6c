"""Write a session as JSON. docs/json-schema.md documents it, `schema` has it as a JSON Schema."""

from collections.abc import Sequence

import msgspec

import idbg
from idbg.reports import decisions, diff
from idbg.reports import json as of_run
from idbg.reports.documents import SessionData
from idbg.reports.repros_json import ReproReport, repro_report
from idbg.schema import strict_json
from idbg.schema.bench import Row
from idbg.schema.events import KernelsTimed, WorkerStarted
from idbg.schema.processes import Process, ProcessReport
from idbg.schema.programs import Verdict
from idbg.schema.runs import History, Run
from idbg.schema.strict_json import like, picked
from idbg.schema.written import Written, keys_of, written
from idbg.views import kernel_edits, ranks
from idbg.views.diagnostics import Diagnostic, changes, diagnostics, last_runs, of_history
from idbg.views.kernel_edits import VersionReport

ABOUT, SUFFIXES = "everything, for another program", (".json",)
SCHEMA = "idbg.session/1"
DECISIONS = tuple(name for name in decisions.TYPES if name != "constraints")  # those are the run's violations


@keys_of(WorkerStarted, "torch python devices machine")
class WorkerReport(Written, frozen=True):
    """With what it ran: `devices` are torch's names; `machine` is null of a session that an older version wrote."""


class SessionRun(of_run.RunReport, frozen=True, kw_only=True):
    """A run as idbg.run/1 has it, and what else is known of it. `last`: none came after it for the same target;
    `started` in seconds since the epoch; `torch_settings` are those of torch's that differ from its defaults, a line of
    Python each, null where that was not recorded; `diff` as idbg.diff/1 has it; `edits` are the edited versions of
    kernels, oldest first, as idbg.kernel/1 has them; `decisions` as idbg.analyze/1 has
    them, by type.
    """

    started: float
    last: bool
    torch_settings: Sequence[str] | None
    diagnostics: list[Diagnostic]
    diff: msgspec.Raw
    edits: list[VersionReport]
    decisions: dict[str, msgspec.Raw]


class BesideReport(msgspec.Struct, frozen=True, kw_only=True):
    """What is new, and what went away, beside another session."""

    session: str
    new: list[Diagnostic]
    gone: list[Diagnostic]


class SessionReport(msgspec.Struct, frozen=True, kw_only=True):
    """All of a session. `diagnostics` are those of its last runs and its benchmark, each once, the worst first;
    `verdict` is the session's, as idbg.show/1 has it, null where nothing ran. `idbg` is the version that wrote this
    report, `missing` says, a sentence each, what the session lacks: what was damaged, or was not kept. `process` is
    whose log this is, null of the main process, which has the others in `processes`; `ranks` compares those that are
    ranks, null where there are none.
    """

    schema: str
    session: str
    idbg: str
    process: Process | None
    processes: list[ProcessReport]
    ranks: msgspec.Raw
    verdict: Verdict | None
    worker: WorkerReport | None
    diagnostics: list[Diagnostic]
    runs: list[SessionRun]
    repros: list[ReproReport]
    rows: list[Row]
    kernels: KernelsTimed | None
    beside: BesideReport | None
    missing: list[str]


def render(session: SessionData) -> bytes:
    """The report as strict JSON, on one line: indented, that of a large model takes twice the room."""
    return strict_json.encode(session_report(session)) + b"\n"


def session_report(session: SessionData) -> SessionReport:
    """The session as far as it has come."""
    history = session.history
    numbers = {run.number for run in last_runs(history)}
    found = of_history(history)
    return like(
        SessionReport,
        history,
        schema=SCHEMA,
        session=session.name,
        idbg=idbg.__version__,
        processes=list(history.processes.values()),
        ranks=_json(None if history.ranks is None else ranks.as_json(history.ranks)),
        verdict=history.verdict if history.runs or history.wrong_rows or history.processes else None,
        worker=_worker(history),
        diagnostics=found,
        runs=[_run(run, last=run.number in numbers) for run in history.runs.values()],
        repros=[repro_report(each) for each in history.repros],
        rows=list(history.rows),
        beside=_beside(found, session.other),
    )


def _beside(found: list[Diagnostic], other: SessionData | None) -> BesideReport | None:
    if other is None:
        return None
    new, gone = changes(found, of_history(other.history))
    return BesideReport(session=other.name, new=new, gone=gone)


def _worker(history: History) -> WorkerReport | None:
    return None if history.worker is None else written(WorkerReport, history.worker)


def _run(run: Run, *, last: bool) -> SessionRun:
    return like(
        SessionRun,
        of_run.run_report(run),
        **picked(run, "started torch_settings"),
        last=last,
        diagnostics=diagnostics(run),
        diff=_json(None if run.diff is None else diff.as_json(run.diff)),
        edits=kernel_edits.reports(run),
        decisions={name: _json(decisions.as_json(name, run)) for name in DECISIONS},
    )


def _json(value: object) -> msgspec.Raw:
    return msgspec.Raw(strict_json.encode(value))
