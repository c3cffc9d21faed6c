"""Show the versions, devices, targets and rules of the session."""

from markupsafe import Markup

from idbg import __version__
from idbg.render.html.templating import fill
from idbg.reports.documents import SessionData
from idbg.schema.runs import Run
from idbg.views import environment

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
        machine=list(environment.machine(session.history.worker.machine)) if session.history.worker else [],
        torch_build=_build(session),
        targets=[(run, [*environment.times(run), *environment.settings(run)]) for run in runs],
        rules=[(text, of) for text, of in rules.items() if text],
    )


def _build(session: SessionData) -> str:
    worker = session.history.worker
    return worker.machine.torch_build if worker and worker.machine else ""
