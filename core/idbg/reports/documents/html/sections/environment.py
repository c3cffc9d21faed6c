"""Show the versions, devices, targets and rules of the session."""

from collections.abc import Iterator
from datetime import UTC, datetime
from math import isfinite

from markupsafe import Markup

from idbg import __version__
from idbg.format.amounts import elapsed
from idbg.format.verdicts import rules_words
from idbg.render.html.templating import fill
from idbg.reports.documents import SessionData
from idbg.schema.programs import Machine
from idbg.schema.runs import Run

TITLE = "Environment"
ANCHOR = "environment"


def section(session: SessionData) -> Markup:
    """The worker's versions and devices; of each run its target, and the rules that it was made under."""
    runs = list(session.history.runs.values())
    rules: dict[str, list[Run]] = {}
    for run in runs:
        rules.setdefault(run.target.rules, []).append(run)
    return fill(
        "environment.html",
        version=__version__,
        worker=session.history.worker,
        folder=session.folder,
        machine=list(machine(session.history.worker.machine)) if session.history.worker else [],
        torch_build=_build(session),
        targets=[(run, [*times(run), *settings(run)]) for run in runs],
        rules=[(text, of) for text, of in rules.items() if text],
    )


def _build(session: SessionData) -> str:
    worker = session.history.worker
    return worker.machine.torch_build if worker and worker.machine else ""


def machine(known: Machine | None) -> Iterator[tuple[str, str]]:
    """What is known of the machine and the checkout, in words."""
    if known is None:
        return
    yield "system", known.system
    yield "processors", f"{known.processors} × {known.cpu}" if known.processors and known.cpu else known.cpu
    yield from known.compilers.items()
    yield from known.environment.items()
    if known.revision:
        yield "git revision", known.revision + (", with changes that are not committed" if known.modified else "")


def times(run: Run) -> Iterator[tuple[str, str]]:
    """When the run began, and how long it took."""
    if 0 < run.started < _YEAR_9999:  # of a damaged log it may be anything
        yield "began", datetime.fromtimestamp(run.started, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    if run.ended is not None and isfinite(run.seconds):
        yield "took", elapsed(run.seconds)


_YEAR_9999 = 253_370_764_800.0


def settings(run: Run) -> Iterator[tuple[str, str]]:
    """What the run was compiled with, in words; what its target leaves as the program has it is not there."""
    target = run.target
    yield "backend", run.backend
    yield "device", target.device or "where the program puts itself"
    yield "accelerator", rules_words(target)
    if target.dynamic is not None:
        yield "dynamic", str(target.dynamic).lower()
    for name, value in (("mode", target.mode), ("stance", target.stance)):
        if value:
            yield name, value
    if target.dynamic_sources:
        yield "dynamic sources", ", ".join(target.dynamic_sources)
    for name, option in (*target.options.items(), *target.settings.items()):
        yield name, str(option)
    if target.cold:
        yield "caches", "none (cold)"
