"""A flame graph of compile time: a block for each span, as wide as it took long, with its parts below it.

The blocks of one depth are one row. The cursor's block is the focus: left and right go along the row, enter zooms.
"""

from collections.abc import Sequence
from typing import cast

from idbg.analysis.decisions import times
from idbg.analysis.decisions.times import Box, Timing
from idbg.format.amounts import seconds, share
from idbg.format.glyphs import MARKS
from idbg.schema.runs import Run
from idbg.views.time import span_words
from idbg.views.tree import Chart
from idbg_tui.widgets.lines import StyledRow, cut
from idbg_tui.widgets.section_rows import Block, Look, Row, fixed

_LEAST = 4  # cells of a block that is named


def rows(chart: Chart, look: Look) -> list[Row]:
    """What the focus is, then a row for each depth of the picture; none unless the user asks for it."""
    found: list[Row] = []
    if chart.name != "flame" or not look.order % 2:
        return found
    _, timings = cast("tuple[Run, Sequence[Timing]]", chart.data)
    boxes = times.layout(timings, max(look.width - 1, 1), look.zoom) or times.layout(timings, max(look.width - 1, 1))
    if not boxes:
        return found
    focus = next((box for box in boxes if box.timing.span.id == look.focus), boxes[0])
    whole = max(box.timing.seconds for box in boxes if box.row == 0)
    found.append(Row(("focus",), fixed(_facts(focus.timing, whole, look)), head=True))
    for depth in range(1 + max(box.row for box in boxes)):
        mine = sorted((box for box in boxes if box.row == depth), key=lambda box: box.start)
        blocks = tuple(Block(box.timing.span.id, box.start, box.length) for box in mine)
        drawn = fixed(_row(mine, focus))
        found.append(Row(("flame", depth), drawn, "zoom", blocks=blocks, copied=span_words(focus.timing.span)))
    return found


def _facts(timing: Timing, whole: float, look: Look) -> StyledRow:
    """The focus whole: its name is cut in its block."""
    part = f", {share(timing.seconds / whole)} of this picture" if whole else ""
    own = f", {seconds(timing.own)} its own" if timing.own < timing.seconds else ""
    lasts = ", goes on" if timing.lasts and look.now is not None else ""
    zoomed = "   (zoomed: enter on the top row shows all)" if look.zoom else ""
    beside = ", beside the compiling thread" if timing.beside else ""
    words = f"{seconds(timing.seconds)}{part}{own}{beside}{lasts}"
    return [(f" {span_words(timing.span)}", "strong"), (f"   {words}", ""), (zoomed, "dim")]


def _row(boxes: Sequence[Box], focus: Box) -> StyledRow:
    pieces: list[tuple[str, str]] = []
    column = 0
    for number, box in enumerate(boxes):
        pieces.append((" " * (box.start - column), ""))
        look = "block focus" if box is focus else ("block", "other block")[number % 2]
        pieces.append((_named(box), look))
        column = box.start + box.length
    return pieces


def _named(box: Box) -> str:
    """The block's name, cut in its middle; its edge is a sign, so that blocks are distinct without colours."""
    edge, room = MARKS["guide"], box.length - 1
    span = box.timing.span
    name = next((name for name in (span_words(span), span.what) if 0 < len(name) <= room), span.what or span.name)
    return edge + (cut(name, room) if room >= _LEAST else "").ljust(room)


def stepped(blocks: Sequence[Block], focus: int, step: int) -> int:
    """The block to the left or the right of the focus."""
    at = next((at for at, block in enumerate(blocks) if block.id == focus), 0)
    return blocks[max(0, min(at + step, len(blocks) - 1))].id


def nearest(blocks: Sequence[Block], middle: float) -> int:
    """The block of a row nearest to this cell."""
    return min(blocks, key=lambda block: max(block.start - middle, middle - block.start - block.length, 0.0)).id


def middle_of(rows: Sequence[Row], focus: int) -> float:
    """The cell in the middle of the focus; 0 where it is not in the picture."""
    blocks = (block for row in rows for block in row.blocks if block.id == focus)
    return next((block.start + block.length / 2 for block in blocks), 0.0)
