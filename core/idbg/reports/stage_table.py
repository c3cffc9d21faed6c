"""How does the stage table read in a terminal: which stage is off, by how much, since which node, made by what?"""

import textwrap
from collections.abc import Iterator

from idbg.schema.diff import DiffReport
from idbg.views.blame import StageCells, stage_cells
from idbg.views.diff import STAGE_SIGNS

COLUMNS = 80
_FIGURE = 11  # cells of a figure's column, with the blanks before it
_HEADS = ("stage", "to float64", "to before", "first bad node")


def lines(report: DiffReport) -> Iterator[str]:
    """The table, in 80 columns as far as names and paths allow it: figures are never cut. Nothing without stages."""
    rows = stage_cells(report)
    if not rows:
        return
    name = max(len(_HEADS[0]), *(len(row.stage) for row in rows))
    stage, error, added, node = _HEADS
    yield ""
    yield f"    {stage:<{name}}{error:>{_FIGURE}}{added:>{_FIGURE}}  {node}".rstrip()
    for row in rows:
        head = f"  {STAGE_SIGNS[row.standing]} {row.stage:<{name}}{row.error:>{_FIGURE}}{row.added:>{_FIGURE}}  "
        yield from _wrapped(head, _told(row))
        if row.made_by:
            yield from _wrapped("      ", row.made_by)


def _told(row: StageCells) -> str:
    if not row.node:
        return row.means
    return f"{row.node}  {row.place}" if row.place else row.node


def _wrapped(head: str, text: str) -> Iterator[str]:
    """The text after its head, on as many lines as it takes; a long word is left whole."""
    room = max(COLUMNS - len(head), 20)
    first, *more = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
    yield f"{head}{first}".rstrip()
    yield from (f"{' ' * len(head)}{line}" for line in more)
