"""Draw a session or an example in one row."""

import time
from typing import ClassVar

from idbg.format import file_names
from idbg.format.glyphs import MARKS, VERDICT_SIGNS
from idbg.format.verdicts import summary_words
from idbg_tui.welcome.offers import Head, Offer, Saved, Shipped, moment
from idbg_tui.widgets.item_list import ItemList
from idbg_tui.widgets.lines import VERDICT_LOOKS, Lines, StyledRow, clip, fit

_STATUS, _WHEN, _TARGET = 24, 14, 30  # cells of the columns
_ROOMY = 110  # from so many cells on, also for what it was compiled


class OfferLines(ItemList[Offer], can_focus=False):
    """The offers, with a cursor that goes over the heads. The keys come from the line above."""

    LOOKS: ClassVar[dict[str, str]] = Lines.LOOKS | {
        "cursor": Lines.LOOKS["cursor:focus"],
        "cursor:ansi": Lines.LOOKS["cursor:ansi:focus"],
    }

    def is_head(self, item: Offer) -> bool:
        return isinstance(item, Head)

    def key(self, item: Offer) -> object:
        """A session by its folder: what it comes to may change while it is looked at."""
        return item.summary.folder if isinstance(item, Saved) else item

    def go_to_first(self) -> None:
        """Put the cursor on the first row that can be opened."""
        self.cursor = next((row for row in range(len(self.items)) if self.stops(row)), 0)

    def draw(self, item: Offer, width: int) -> StyledRow:
        match item:
            case Head():
                room = width - len(item.title) - 3
                return [(f" {item.title}", "accent"), (f"  {clip(item.words, room)}" if item.words else "", "dim")]
            case Saved():
                return self._saved(item, width)
            case Shipped():
                return self._shipped(item, width)

    def _saved(self, saved: Saved, width: int) -> StyledRow:
        summary = saved.summary
        name = _near(summary.program) or summary.name
        first = _names(width)
        row = [("   ", ""), (fit(name, first), "strong"), ("  ", "")]
        room = width - first - 6
        if summary.damaged:
            return [*row, (clip(f"{VERDICT_SIGNS['failed']} damaged: {summary.damaged}", room), "reject")]
        sign, words = (
            VERDICT_SIGNS[summary.looks],
            "open in another process" if summary.live else summary_words(summary),
        )
        words = words if len(words) <= _STATUS - 2 else words.partition(" (")[0]
        when = moment(summary.started, time.time())
        row += [
            (f"{sign} ", VERDICT_LOOKS[summary.looks]),
            (fit(words, _STATUS - 2), ""),
            (fit(f"  {when}", _WHEN), "dim"),
        ]
        room -= _STATUS + _WHEN
        if width >= _ROOMY:
            dot = f" {MARKS['separator']} "
            target = dot.join(part for part in (summary.backend, summary.device, summary.accelerator) if part)
            row.append((f"  {fit(target, _TARGET)}", ""))
            row.append((f"  {clip(summary.name, room - _TARGET - 4)}", "dim"))
        return row

    def _shipped(self, shipped: Shipped, width: int) -> StyledRow:
        first = _names(width)
        name = "Take the tour" if shipped.is_tour else shipped.example.path.name
        about = "five minutes: where everything is, and the keys" if shipped.is_tour else shipped.example.about
        words = shipped.lacking or about
        style = "dim" if shipped.lacking else "strong"
        return [("   ", ""), (fit(name, first), style), (f"  {clip(words, width - first - 6)}", "dim")]


def _near(program: str) -> str:
    """A program from here; of one that lies elsewhere, the file with its folder."""
    near = file_names.from_here(program)
    return "/".join(near.split("/")[-2:]) if near.startswith("/") else near


def _names(width: int) -> int:
    return max(20, min(46, width * 2 // 5))
