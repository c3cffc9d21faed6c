"""The sections of the page that draw views of each run of a session."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from markupsafe import Markup

from idbg import views
from idbg.analysis.decisions.times import Timing
from idbg.format.shown import clean, short
from idbg.render import html
from idbg.reports.documents import SessionData
from idbg.reports.drawings import of_bench, of_time
from idbg.schema.decisions import reports
from idbg.schema.decisions.dynamo import FrameGuards, FrameResult, Skip
from idbg.schema.runs import Run
from idbg.views import bench_charts


def of_views(session: SessionData, names: dict[str, str], has: Callable[[Run], object]) -> Markup | None:
    """The views of these names, of each run that `has` something; None where none has. A name's word is that under
    which the page's search finds the view's rows.
    """
    runs = list(session.history.runs.values())
    shown = [run for run in runs if has(run)]
    parts = []
    for run in shown:
        if len(runs) > 1:
            parts.append(Markup("<h3>Run {}: {}</h3>").format(run.number, short(clean(run.program.label))))
        for name, noun in names.items():
            section = views.section(name, run)
            parts += [Markup("<h4>{}</h4>").format(section.title)] if len(names) > 1 else []
            parts.append(html.section(section, run, noun, DRAWINGS))
    return Markup("\n").join(parts) if shown else None


def _flame(data: object) -> Markup | None:
    return of_time.compile_flame(*cast("tuple[Run, Sequence[Timing]]", data))


def _phases(data: object) -> Markup | None:
    assert isinstance(data, Run)
    return of_bench.chart(bench_charts.phases(data.phases, f"run {data.number} ({data.backend})"))


def _bench(data: object) -> Markup | None:
    return of_bench.chart(*cast("tuple[bench_charts.Chart, Sequence[Sequence[float]]]", data))


DRAWINGS: html.Drawings = {"flame": _flame, "phases": _phases, "bench": _bench}


@dataclass(frozen=True)
class ViewSection:
    """A section that draws views of each run that `has` something to show. `words`: view -> the word by which the
    page's search finds its rows.
    """

    TITLE: str
    ANCHOR: str
    about: str
    words: dict[str, str]
    has: Callable[[Run], object]

    def section(self, session: SessionData) -> Markup | None:
        """None where no run has something to show."""
        return of_views(session, self.words, self.has)


BREAKS = ViewSection(
    "Graph breaks and recompiles",
    "breaks",
    "Show where graphs break and what was compiled again.",
    {"breaks": "break", "recompiles": "recompile"},
    lambda run: run.frames or run.breaks or run.decided.last(FrameResult),
)
GUARDS = ViewSection(
    "Guards",
    "guards",
    "Show what torch checks before it uses compiled code.",
    {"guards": "guards"},
    lambda run: run.decided.last(FrameGuards),
)
STAGES = ViewSection(
    "Other compilers",
    "stages",
    "Show what other compilers made of the graphs, stage by stage.",
    {"stages": "stage"},
    lambda run: run.stages,
)
DECISIONS = ViewSection(
    "Frames, fusion, caches",
    "decisions",
    "Show what else the compiler decided: which frames, what was fused, what the caches had, what the passes did.",
    {report.name: report.row for report in reports() if report.row},
    lambda run: run.decided.last(FrameResult) or run.decided.every(Skip),
)
