"""Keep control characters of foreign text from the terminal.

Names, code and messages come from programs and from sessions of others, and a terminal obeys what begins with ESC: it
would set its title, write to the clipboard, or answer as if the user had typed. A mark of direction makes a line read
as another than it is.
"""

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from idbg.format.plain_text import for_cells


class ControlCharacterFilter(LineFilter):
    """Leaves such characters out of every line, whatever widget made it; what they would have begun is shown."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        if all(segment.text.isprintable() for segment in segments):
            return segments
        return [segment if segment.control else Segment(for_cells(segment.text), segment.style) for segment in segments]
