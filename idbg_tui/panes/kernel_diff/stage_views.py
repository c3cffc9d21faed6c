"""What is known of one stage, and what did the pass do that made it wrong? Lists over the screen."""

import re
from collections.abc import Callable, Iterator

from idbg.format.amounts import figure
from idbg.schema.blame import StageError
from idbg.schema.diff import DiffReport
from idbg.schema.graphs import NodeId
from idbg.views.blame import Standing, made_by, maker_name, stage_name
from idbg_tui.panes.kernel_diff.detail import labelled
from idbg_tui.panes.kernel_diff.outcomes import BAD, OK
from idbg_tui.panes.kernel_diff.stages import STYLES, StageRow, place
from idbg_tui.widgets.lines import StyledRow, clip
from idbg_tui.widgets.listing import Entry, sentences

_DEFINED = re.compile(r"^[+ ]\s*%?(\w+)\s*(?::.*)?=")  # a node's name, as graphs are printed: "%mul : [...] = ..."


def details(row: StageRow, width: int) -> Iterator[Entry]:
    """All that is known of one stage, and why that is not more."""
    stage, cells = row.stage, row.cells
    yield from sentences(f"{cells.stage}: {_standing(row)}", width, STYLES[cells.standing] if row.wrong else "strong")
    for label, text in (
        ("against float64", figure(stage.error) if stage.judged else ""),
        ("against stage before", figure(stage.added) if stage.judged else ""),
        ("worst output", stage.output),
        ("first bad node", f"{stage.node}, of {stage.graph}" if stage.graph else stage.node),
        ("stands for", f"{stage.above}, of {stage.above_graph}" if stage.above_graph else stage.above),
        ("your line", _whole(stage.file, stage.line)),
        ("origin", made_by(stage.made_by, _whole) if stage.made_by else ""),
    ):
        yield from labelled(label, text, width) if text else ()


def _whole(file: str, line: int) -> str:
    return f"{file}:{line}" if file else ""


def _standing(row: StageRow) -> str:
    said: dict[Standing, str] = {
        "right": "it computes what the stage before it does",
        "first_wrong": "the first that is off against the stage before it",
        "wrong": "it adds to what is wrong already",
    }
    return said.get(row.cells.standing) or row.cells.means


def pass_diffs(report: DiffReport, width: int, known: Callable[[NodeId], bool]) -> list[Entry]:
    """The graph before and after each pass that is to blame; a line that makes a node that is `known` leads to it."""
    lines: list[Entry] = []
    for stage in report.stages:
        if stage.made_by is None or not stage.made_by.diff:
            continue
        lines += sentences("", width) if lines else []
        lines += sentences(f"{stage_name(stage, report)}: {made_by(stage.made_by, place)}", width, "strong")
        lines += [_diff_line(line, stage, known) for line in stage.made_by.diff.rstrip("\n").split("\n")]
    return lines or list(sentences(_no_diff(report), width, "dim"))


def _diff_line(line: str, stage: StageError, known: Callable[[NodeId], bool]) -> Entry:
    style = {"+": OK, "-": BAD, "@": "accent"}.get(line[:1], "dim")
    made = _DEFINED.match(line)
    node = NodeId(stage.graph, made[1]) if made and stage.graph else None
    target = node if node is not None and known(node) else None
    here = target is not None and target.name == stage.node

    def draw(width: int) -> StyledRow:
        return [(clip(f" {line}", width), style)]

    return Entry(draw, target, here=here)


def whole_diff(report: DiffReport) -> str:
    """The diffs of the passes that are to blame as one text; "" where there is none."""
    return "\n".join(stage.made_by.diff for stage in report.stages if stage.made_by and stage.made_by.diff)


def _no_diff(report: DiffReport) -> str:
    guilty = report.first_wrong_stage
    if not report.stages:
        return "no stage was compared: D says which is wrong"
    if guilty is None:
        return "no stage is wrong: no pass is to blame"
    if guilty.made_by is None:
        return "what made it wrong is not known"
    return (
        f"it was {'' if guilty.made_by.proven else 'probably '}made by {maker_name(guilty.made_by)}, which is no pass"
    )
