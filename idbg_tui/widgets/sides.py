"""Show two texts beside one another, with the numbers of their lines."""

from idbg.format.glyphs import MARKS
from idbg.views.tree import SideLine, Sides
from idbg_tui.widgets.lines import StyledRow, clip, fit
from idbg_tui.widgets.section_rows import Look, Row, fixed, picture


def entries(sides: Sides, look: Look) -> list[Row]:
    """The lines that differ with those around them; a text that stands alone whole."""
    width = look.width
    half = max((width - 3) // 2, 10)
    head: StyledRow = [
        *((fit(f" {sides.name_before}", half), "strong"), ("   ", "")),
        (clip(sides.name_after, half), "strong"),
    ]
    if not sides.before or not sides.after:
        rows: list[StyledRow] = [[(clip(f" {line}", width), "")] for line in (sides.before or sides.after).splitlines()]
    else:
        rows = [_row(line, half) for line in sides.lines]
    return [*picture([head]), *(Row(("line", at), fixed(row)) for at, row in enumerate(rows))]


def _row(line: SideLine | None, half: int) -> StyledRow:
    if line is None:
        return [(f" {MARKS['ellipsis']}", "dim")]
    return [
        *_half(line.left, line.left_text, half, "" if line.same else "reject"),
        (f" {' ' if line.same else MARKS['bar']} ", "accent"),
        *_half(line.right, line.right_text, half, "" if line.same else "clean"),
    ]


def _half(number: int, text: str, half: int, style: str) -> StyledRow:
    lead = f"{number:>4} " if number else "     "
    shown = clip(text.replace("\t", "    "), half - len(lead))
    return [(lead, "dim"), (shown.ljust(half - len(lead)), style)]
