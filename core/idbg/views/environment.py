"""List the machine and the checkout that a session ran on, and what each run was compiled with."""

from collections.abc import Iterator
from datetime import UTC, datetime
from math import isfinite

from idbg.format.amounts import elapsed
from idbg.format.verdicts import rules_words
from idbg.schema.programs import Machine
from idbg.schema.runs import Run

_YEAR_9999 = 253_370_764_800.0


def machine(known: Machine | None) -> Iterator[tuple[str, str]]:
    """What is known of the machine and the checkout, each by its name."""
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


def settings(run: Run) -> Iterator[tuple[str, str]]:
    """What the run was compiled with; what its target leaves to the program is not listed."""
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
