"""The recorded comparison (tests/recordings/planted.jsonl): one output is wrong, and the third kernel is to blame."""

from idbg.schema import events
from idbg.schema.diff import DiffReport
from idbg.schema.graphs import Graph, GraphId
from idbg.schema.programs import Program, Target
from idbg.schema.runs import Run, fold
from idbg.views import diff
from idbg_tui.panes.kernel_diff.rows import Choice, Subject, choose, root, subject
from idbg_tui.state import queries
from idbg_tui.widgets import sections
from idbg_tui.widgets.section_list import SectionLines
from idbg_tui.widgets.section_rows import Look, Row
from tests.harness.recorded import state_of


def report() -> DiffReport:
    compared = queries.compared_run(state_of("planted"))
    assert compared is not None and compared.diff is not None
    return compared.diff


CHOICE = Choice()


def rows(found: DiffReport, choice: Choice = CHOICE, *, width: int = 118, key: str = "") -> list[Row]:
    """The rows that the KernelDiff pane lists of a comparison; `key` is the one that finds out more."""
    section = choose(diff.section(found, {}, key), found, choice, lambda _: True)
    return list(sections.rows(section, Look(width)))


def texts(found: DiffReport, choice: Choice = CHOICE, *, width: int = 118, key: str = "") -> list[str]:
    """What those rows say."""
    return ["".join(text for text, _ in row.draw(width)).rstrip() for row in rows(found, choice, width=width, key=key)]


def subjects(found: DiffReport, choice: Choice = CHOICE) -> list[Subject]:
    """The stages, outputs, gradients and launches that are listed, in order."""
    keys = [row.key for row in rows(found, choice) if row.key == root(row.key) != "bad"]
    return [about for key in keys if (about := subject(key, found)) is not None]


def row_of(lines: SectionLines, found: DiffReport, about: Subject) -> int:
    """Where the pane lists a stage, an output, a gradient or a launch."""
    return next(at for at, row in enumerate(lines.items) if row.key != "bad" and subject(row.key, found) == about)


def run_with(report: DiffReport) -> Run:
    """A run that no rule is broken in, with this comparison."""
    run = fold(
        (
            events.RunStarted(run=1, program=Program("m.py"), target=Target()),
            events.GraphCaptured(run=1, graph=Graph(GraphId("0/0", "inference"), ())),
            events.Compared(run=1, report=report),
            events.RunEnded(run=1, verdict="clean", seconds=1.0),
        )
    ).last
    assert run is not None
    return run
