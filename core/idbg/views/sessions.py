"""List sessions: the program of each, what its last run was for, and how that ended."""

from collections.abc import Sequence

from idbg.format.glyphs import MARKS, VERDICT_SIGNS
from idbg.format.plain_text import one_line
from idbg.format.verdicts import summary_words
from idbg.schema.summaries import SessionSummary
from idbg.views.tree import VERDICT_TONES, Cell, Column, Row, Section, Table, words

_COLUMNS = (
    Column("program", rank=5, least=12),
    Column("for", rank=3),
    Column("started", "moment", 4),
    Column("runs", "count", 2),
    Column("size", "bytes", 1),
    Column("result", rank=6, least=12),
)


def view(found: Sequence[SessionSummary]) -> Section:
    """A row a session, in the order in which they are given."""
    table = Table(_COLUMNS, [_row(each) for each in found], "session")
    return Section("Sessions", "", len(found), body=(table,) if found else ())


def _row(each: SessionSummary) -> Row:
    sign = MARKS["dot"] if each.live else VERDICT_SIGNS[each.looks]
    damaged = Row((each.folder, "damaged"), words((one_line(each.damaged, 400), "reject")))
    return Row(
        each.folder,
        words((f"{sign or ' '} ", "" if each.live else VERDICT_TONES[each.looks]), one_line(each.name, 255)),
        (
            Cell(one_line(each.program, 200)),
            Cell(one_line("/".join(filter(None, (each.backend, each.accelerator))), 80)),
            Cell(each.started or None),
            Cell(each.runs),
            Cell(each.bytes),
            Cell(one_line(summary_words(each), 100)),
        ),
        rows=[damaged] if each.damaged else (),
        open="screen",
    )
