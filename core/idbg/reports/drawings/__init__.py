"""Draw numbers as pictures for any page: inline SVG, computed here, with the numbers as text.

No script and no font is needed to read one. Colours are classes of `style.css`, which whoever shows a picture includes:
they contrast with white and with black alike, so that no theme need be known, and nothing of it reaches beyond a
picture (each rule begins with `.idbg-chart`). Text is escaped, and freed of what no page may hold.
"""

from functools import cache
from pathlib import Path

from idbg.reports.drawings.bars import Bar, bars, histogram
from idbg.reports.drawings.flame import FlameBox, flame
from idbg.reports.drawings.heat import heat
from idbg.reports.drawings.lines import Axis, Line, Point, lines

__all__ = ["Axis", "Bar", "FlameBox", "Line", "Point", "bars", "flame", "heat", "histogram", "lines", "style"]


@cache
def style() -> str:
    """The CSS of all pictures."""
    return Path(__file__).with_name("style.css").read_text(encoding="utf-8")
