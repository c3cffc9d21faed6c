"""How does a stage of blame read as a row: how far is it off, since which node and line, made by what?"""

from collections.abc import Sequence
from dataclasses import dataclass

from idbg.format import file_names
from idbg.format.glyphs import MARKS, VERDICT_SIGNS
from idbg.schema.blame import StageError
from idbg.schema.diff import DiffReport, KernelError
from idbg.views.blame import StageCells, Standing, faithful_to, stage_cells, stage_name
from idbg_tui.panes.kernel_diff.columns import FIGURE
from idbg_tui.panes.kernel_diff.outcomes import BAD, OK, UNSEEN
from idbg_tui.widgets.lines import StyledRow, clip, cut, fit

_GAP = "  "
_MAKER = 16  # cells, below which it is not begun: the sentence over the table has it
_NODE = 12  # cells of a node's name, however much the rest wants
STYLES: dict[Standing, str] = {
    "right": OK,
    "first_wrong": BAD,
    "wrong": BAD,
    "faithful": "accent",
    "harmless": UNSEEN,
    "implied": UNSEEN,
    "unjudged": UNSEEN,
}


@dataclass(frozen=True)
class StageRow:
    """A stage, and the words of its cells; one of a comparison that passed is told `quiet`ly."""

    stage: StageError
    cells: StageCells
    quiet: bool = False

    @property
    def name(self) -> str:
        """What tells it from the others."""
        return f"{self.stage.frame} {self.stage.stage} {self.stage.part}"

    @property
    def guilty(self) -> bool:
        """Whether this is the first of its frame that is wrong."""
        return self.cells.standing == "first_wrong"

    @property
    def wrong(self) -> bool:
        """Whether it is off against the stage before, in a run that fails."""
        return self.cells.standing in ("first_wrong", "wrong")

    @property
    def words(self) -> str:
        """What a filter looks for."""
        maker = self.stage.made_by
        known = (self.stage.above, self.stage.output, self.stage.reason, maker.kind if maker else "")
        cells = self.cells
        return " ".join((cells.stage, cells.node, cells.place, cells.made_by, cells.means, *known))


def stage_rows(report: DiffReport) -> list[StageRow]:
    """The stages, in the order in which they are made."""
    cells = stage_cells(report, place)
    return [StageRow(stage, told, report.passed) for stage, told in zip(report.stages, cells, strict=True)]


def place(file: str, line: int) -> str:
    """ "model.py:12", "" of no file."""
    return file_names.place(file, line) if file else ""


def badness(row: StageRow) -> float:
    """By how much it is off against the stage before it; -1.0 where that is not known."""
    return -1.0 if row.stage.added is None or not row.stage.judged else row.stage.added


def faithful(kernel: KernelError, report: DiffReport, width: int) -> str:
    """ "faithful → post-grad" of a launch that computes a wrong graph as it should, else ""."""
    stage = faithful_to(kernel, report)
    if stage is None:
        return ""
    return f"{'faithful ' if width >= 100 else ''}{MARKS['arrow']} {stage_name(stage, report)}"


# ---------------------------------------------------------------- rows


@dataclass(frozen=True)
class StageColumns:
    """How many cells each column has; those that `maker` gets may be none."""

    width: int
    stage: int
    node: int
    place: int
    maker: int

    @classmethod
    def of(cls, told: Sequence[object], width: int) -> "StageColumns":
        """Figures are never cut, nor are places; what made it gives way first."""
        cells = [row.cells for row in told if isinstance(row, StageRow)]
        stage, node, place, made = (
            max([0, *map(len, column)])
            for column in (
                ["stage", *(one.stage for one in cells)],
                ["first bad node", *(one.node for one in cells)],
                [one.place for one in cells],
                [one.maker for one in cells],
            )
        )
        room = width - 4 - stage - 2 * (FIGURE + 1) - len(_GAP)
        shown = min(node, max(_NODE, room - (place + len(_GAP) if place else 0)))
        left = room - shown - (place + len(_GAP) if place else 0) - len(_GAP)
        return cls(width, stage, shown, place, min(made, left) if left >= _MAKER else 0)


def heads(columns: StageColumns) -> StyledRow:
    """The line over the columns."""
    words = (fit("first bad node", columns.node), fit("line", columns.place), fit("made by", columns.maker))
    text = f"   {fit('stage', columns.stage)} {'float64':>{FIGURE + 1}}{'before':>{FIGURE + 1}}{_GAP}{_GAP.join(words)}"
    return [(clip(text.rstrip(), columns.width), "dim")]


def stage_row(row: StageRow, columns: StageColumns) -> StyledRow:
    """One stage: how far it is from float64 and from the stage before, its first bad node, and what made that."""
    cells = row.cells
    style = "dim" if row.quiet else STYLES[cells.standing]
    plain = "dim" if row.quiet or not row.stage.judged else ""
    bold = "strong" if row.guilty else plain
    start: StyledRow = [
        (f" {sign(cells.standing)} ", style),
        (fit(cells.stage, columns.stage) + " ", bold),
        (f"{cells.error:>{FIGURE + 1}}{cells.added:>{FIGURE + 1}}{_GAP}", style if row.wrong else plain),
    ]
    room = columns.width - sum(len(text) for text, _ in start)
    if not cells.node:
        return [*start, (clip(cells.means, room), "dim")]
    node = fit(cut(cells.node, columns.node), columns.node)
    made = clip(cells.maker, columns.maker)
    return [
        *start,
        (node, bold),
        (_GAP + fit(cells.place, columns.place), plain),
        (f"{_GAP}{made}" if made else "", ""),
    ]


def sign(standing: Standing) -> str:
    """The sign before a stage."""
    if standing in ("first_wrong", "wrong"):
        return VERDICT_SIGNS["wrong"]
    if standing == "right":
        return VERDICT_SIGNS["clean"]
    return {"faithful": MARKS["arrow"][0], "unjudged": VERDICT_SIGNS["waiting"]}.get(standing, MARKS["separator"])
