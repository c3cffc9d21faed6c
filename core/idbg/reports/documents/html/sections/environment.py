"""With which versions, on which device, for which target and under which rules was it?"""

from collections.abc import Iterator

from markupsafe import Markup

from idbg import __version__
from idbg.format.verdicts import rules_words
from idbg.reports.documents import Told
from idbg.reports.documents.html.templating import fill
from idbg.schema.programs import Target
from idbg.schema.runs import Run

TITLE = "Environment"
ANCHOR = "environment"


def section(told: Told) -> Markup:
    """The worker's versions and devices; of each run its target, and the rules that it was made under."""
    runs = list(told.history.runs.values())
    rules: dict[str, list[Run]] = {}
    for run in runs:
        rules.setdefault(run.target.rules, []).append(run)
    return fill(
        "environment.html",
        version=__version__,
        worker=told.history.worker,
        folder=told.folder,
        targets=[(run, list(settings(run.target))) for run in runs],
        rules=[(text, of) for text, of in rules.items() if text],
    )


def settings(target: Target) -> Iterator[tuple[str, str]]:
    """What the target names, in words; what it leaves as the program has it is not there."""
    yield "backend", target.backend
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
