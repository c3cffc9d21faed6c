"""List over the screen what belongs to a comparison: the error's growth, a pass's diff, why a side failed."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from idbg.schema.attribution import StageError
from idbg.schema.diff import DiffReport
from idbg.schema.graphs import NodeId
from idbg.schema.programs import Failure
from idbg.views import diff, faults, steps
from idbg.views.blame import made_by, maker_name, stage_name
from idbg.views.launches import kernels_sentence
from idbg.views.tree import Section, Table
from idbg_tui.panes.kernel_diff import pictures
from idbg_tui.widgets import sections
from idbg_tui.widgets.section_rows import Look, Row, fixed, sentences

_DEFINED = re.compile(r"^[+ ]\s*%?(\w+)\s*(?::.*)?=")  # a node's name, as graphs are printed: "%mul : [...] = ..."


def _table(table: Table, look: Look) -> Sequence[Row]:
    return sections.rows(Section("", "", body=(table,)), look)


def growth(report: DiffReport, look: Look, screen: int) -> list[Row]:
    """The chart of the launches' errors and of a training's steps, each with its figures. The first row leads to the
    first bad launch, else to the largest error: the cursor is there. `screen` is in rows.
    """
    if report.steps is not None and not report.kernels:
        return _training(report, look, screen)
    observed = [one for one in report.kernels if one.error is not None]
    if not observed:
        why = f"{kernels_sentence(report)}: the list says why" if report.kernels else "D compares every kernel"
        return [*sentences(why, look, "dim"), *_training(report, look, screen)]
    bad = report.culprit
    shown = bad or max(observed, key=lambda one: one.error or 0.0)
    node = shown.node or next(iter(shown.nodes), "")
    first, *more = sentences(kernels_sentence(report), look, "reject" if bad else "")
    nodes = (NodeId(shown.graph, node),) if shown.graph and node else ()
    return [
        replace(first, nodes=nodes, here=True),
        *more,
        *pictures.launches(report, look, screen),
        *_table(diff.launch_table(report), look),
        *_training(report, look, screen),
    ]


def _training(report: DiffReport, look: Look, screen: int) -> list[Row]:
    trained = report.steps
    if trained is None:
        return []
    style = "reject" if steps.LOOKS[trained.verdict] == "wrong" else ""
    sentence = list(sentences(steps.sentence(trained, report.test), look, style))
    if not steps.shown(trained):
        return sentence
    chart = pictures.training(trained, report.test, look, screen)
    return [*sentence, *chart, *_table(diff.step_table(trained), look)]


# ---------------------------------------------------------------- what a pass changed


def pass_diffs(report: DiffReport, look: Look, known: Callable[[NodeId], bool]) -> list[Row]:
    """The graph before and after each suspect pass; a line that makes a node that is `known` leads to it."""
    lines: list[Row] = []
    for stage in report.stages:
        if stage.made_by is None or not stage.made_by.diff:
            continue
        lines += sentences("", look) if lines else []
        lines += sentences(f"{stage_name(stage, report)}: {made_by(stage.made_by)}", look, "strong")
        lines += [_diff_line(line, stage, known) for line in stage.made_by.diff.rstrip("\n").split("\n")]
    return lines or list(sentences(_no_diff(report), look, "dim"))


def _diff_line(line: str, stage: StageError, known: Callable[[NodeId], bool]) -> Row:
    style = {"+": "clean", "-": "reject", "@": "accent"}.get(line[:1], "dim")
    made = _DEFINED.match(line)
    node = NodeId(stage.graph, made[1]) if made and stage.graph else None
    if node is None or not known(node):
        return Row(None, fixed([(f" {line}", style)]))
    return Row(None, fixed([(f" {line}", style)]), nodes=(node,), here=node.name == stage.node)


def whole_diff(report: DiffReport) -> str:
    """The diffs of the suspect passes as one text; "" where there is none."""
    return "\n".join(stage.made_by.diff for stage in report.stages if stage.made_by and stage.made_by.diff)


def _no_diff(report: DiffReport) -> str:
    suspect = report.first_wrong_stage
    if not report.stages:
        return "no stage was compared: D says which is wrong"
    if suspect is None:
        return "no stage is wrong: no pass is to blame"
    if suspect.made_by is None:
        return "what made it wrong is not known"
    sure = "" if suspect.made_by.proven else "probably "
    return f"it was {sure}made by {maker_name(suspect.made_by)}, which is no pass"


# ---------------------------------------------------------------- why a side failed


def failure_rows(failure: Failure, look: Look) -> Sequence[Row]:
    """All that is known of a failure, the first error first."""
    return sections.rows(Section("", "", body=tuple(faults.failure_rows(failure))), look)
