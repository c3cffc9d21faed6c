"""Are the numbers right, and where do they go wrong: stage by stage, kernel by kernel, element by element?"""

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from idbg.format.amounts import column_figure
from idbg.format.glyphs import VERDICT_SIGNS
from idbg.render.html.templating import fill
from idbg.reports import diff as told_diff
from idbg.reports import stage_table
from idbg.reports.again import ask
from idbg.reports.documents import Told
from idbg.reports.drawings import of_diff
from idbg.schema.diff import DiffReport, ErrorMap, KernelError, TensorDiff, launch_name
from idbg.schema.graphs import NodeId
from idbg.schema.programs import Verdict
from idbg.schema.runs import Run
from idbg.schema.steps import TrainingSteps
from idbg.views import elsewhere, error_maps
from idbg.views import steps as told_steps
from idbg.views.because import because
from idbg.views.blame import StageCells, blame_sentence, stage_cells, where_to_ask
from idbg.views.faults import birth_lines
from idbg.views.launches import is_bisected, kernels_said
from idbg.views.owner import SIGNS as OWNER_SIGNS
from idbg.views.owner import script_said
from idbg.views.tensors import LOOKS, against, block_words, decided, metrics, outcome, worst_words

TITLE = "Numbers (KernelDiff)"
ANCHOR = "numbers"
TENSORS = 300  # rows of outputs and gradients, what failed first
LOOKED_INTO = 40  # of them, with every figure and picture
LAUNCHES = 2000


@dataclass(frozen=True)
class TensorTold:
    """One output or gradient, as a row, and as what unfolds below the table."""

    diff: TensorDiff
    id: str
    error_map: ErrorMap | None

    @property
    def verdict(self) -> Verdict:
        """Whose sign and colour it has."""
        return LOOKS[outcome(self.diff)]

    @property
    def kind(self) -> str:
        """Its dtype and shape."""
        return str(self.diff.test or self.diff.reference or "")

    @property
    def cells(self) -> tuple[str, str, str, str, str]:
        """Largest error, RMSE, times eager's, by what it was decided, where it is worst."""
        figures = (column_figure(each) for each in (self.diff.max_abs, self.diff.rmse, against(self.diff)))
        largest, rmse, times = figures
        return largest, rmse, times, decided(self.diff), worst_words(self.diff)

    @property
    def why(self) -> str:
        """The criterion and its sum."""
        return because(self.diff)

    @property
    def metrics(self) -> list[tuple[str, str]]:
        """Every figure, and the worst blocks."""
        blocks = [(f"worst {block.kind}", block_words(block)) for block in self.diff.blocks if block.rmse]
        return [*metrics(self.diff), *blocks]

    @property
    def by_size(self) -> Markup | None:
        """The histogram."""
        return of_diff.by_size(self.diff)

    @property
    def heat(self) -> Markup | None:
        """The map of its errors, where one was made."""
        return of_diff.error_map(self.error_map) if self.error_map else None

    @property
    def heat_words(self) -> str:
        """What the map is of."""
        if self.error_map is None:
            return ""
        return error_maps.EQUAL if error_maps.is_equal(self.error_map) else error_maps.said(self.error_map)


@dataclass(frozen=True)
class LaunchTold:
    """One launch of a kernel as a row."""

    kernel: KernelError
    name: str
    culprit: bool

    @property
    def figures(self) -> tuple[str, ...]:
        """By itself, eager's by itself, with what came before, of what it read, eager's so."""
        one = self.kernel
        return tuple(
            column_figure(each)
            for each in (one.isolated, one.isolated_eager, one.error, one.input_error, one.eager_error)
        )

    @property
    def nodes(self) -> list[NodeId]:
        """The post-grad nodes that it computes, its worst first."""
        names = dict.fromkeys((*([self.kernel.node] if self.kernel.node else []), *self.kernel.nodes))
        return [NodeId(self.kernel.graph, name) for name in names] if self.kernel.graph else []

    @property
    def verdict(self) -> Verdict:
        """Whose colour it has."""
        return "wrong" if self.kernel.bad else "clean" if self.kernel.observed else "waiting"

    @property
    def said(self) -> str:
        """What else there is to say of it."""
        if not self.kernel.observed:
            return f"not observed: {self.kernel.reason}"
        return self.kernel.reason


@dataclass(frozen=True)
class DiffTold:
    """One comparison."""

    run: Run
    report: DiffReport
    verdict: Verdict
    headline: str
    sentences: list[str]
    stages: list[tuple[str, StageCells]]
    groups: list[tuple[str, list[TensorTold]]]
    launches: list[LaunchTold]
    kernels: str
    nodes: bool
    errors: Markup | None
    owners: list[tuple[str, str, str]]
    births: list[str]
    training: str
    curve: Markup | None
    curve_of: str
    whole: list[str]


def section(told: Told) -> Markup:
    """Each run that was held against a reference; which command does that, where none was."""
    runs = list(told.history.runs.values())
    return filled([comparison(run, run.diff) for run in runs if run.diff is not None], runs)


def filled(diffs: list[DiffTold], runs: list[Run]) -> Markup:
    """These comparisons; of the other runs, those that should have had one, or how to make one."""
    return fill(
        "diff.html",
        diffs=diffs,
        waiting=[run for run in runs if run.diff is None and run.comparison is not None],
        ask=ask("diff", runs[-1] if runs else None),
        runs=runs,
        tensors_shown=TENSORS,
        looked_into=LOOKED_INTO,
        launches_shown=LAUNCHES,
    )


def comparison(run: Run, report: DiffReport, to_ask: str = "") -> DiffTold:
    """All that there is to say of one comparison; `to_ask` is what finds out where it goes wrong, if it did not ask."""
    whole = told_diff.summary(report).splitlines()
    steps = report.steps
    rows = told_steps.shown(steps) if steps else ()
    return DiffTold(
        run=run,
        report=report,
        verdict=LOOKS[report.verdict],
        headline=whole[0],
        sentences=[*_sentences(report, to_ask or ask("diff", run, "--per-kernel"))],
        stages=[(stage_table.SIGNS[row.standing], row) for row in stage_cells(report)],
        groups=[(name, list(_tensors(run, name, tensors))) for name, tensors in _groups(report) if tensors],
        launches=[
            LaunchTold(one, launch_name(one, report.kernels), at == report.first_bad_kernel)
            for at, one in enumerate(report.kernels)
        ],
        kernels=kernels_said(report) if report.kernels else "",
        nodes=is_bisected(report),
        errors=of_diff.launches(report),
        owners=[(OWNER_SIGNS[owner.kind], owner.sentence, script_said(owner)) for owner in report.owners],
        births=list(birth_lines(report)),
        training=_training(steps, report.test) if steps else "",
        curve=of_diff.training(steps, report.test) if steps else None,
        curve_of=f"{rows[0].tensor}, relative RMSE to {steps.truth}, step by step" if steps and rows else "",
        whole=whole,
    )


def _training(steps: TrainingSteps, test: str) -> str:
    return f"{VERDICT_SIGNS[told_steps.LOOKS[steps.verdict]]} {told_steps.sentence(steps, test)}"


def _groups(report: DiffReport) -> tuple[tuple[str, tuple[TensorDiff, ...]], ...]:
    return ("output", report.outputs), ("gradient", report.gradients)


def _sentences(report: DiffReport, to_ask: str) -> Iterator[str]:
    """Where the numbers go wrong, or how to find out; where float64 was computed; what could not be done."""
    if blamed := blame_sentence(report) or where_to_ask(report, f"`{to_ask}`"):
        yield blamed
    yield from elsewhere.sentences(report.float64_elsewhere)
    lines = (
        *told_diff.failure_lines(report),
        *told_diff.nothing_lines(report),
        *told_diff.variance_lines(report.variance),
    )
    yield from (line.strip() for line in lines if line.strip())
    yield from (f"note: {note}" for note in report.notes)


def _tensors(run: Run, name: str, tensors: tuple[TensorDiff, ...]) -> Iterator[TensorTold]:
    """What failed first, then what was not judged. Several may be called the same."""
    for at, diff in enumerate(sorted(tensors, key=lambda diff: (not diff.failed, diff.passed))):
        yield TensorTold(diff, f"{name}:{run.number}:{at}", run.maps.get(diff.name))
