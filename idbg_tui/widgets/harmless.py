"""What of a text must not reach the terminal?

Names, code and messages come from programs and from sessions of others, and a terminal obeys what begins with ESC: it
would set its title, write to the clipboard, or answer as if the user had typed.
"""

import re

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")  # C0 and C1, which take no cell


class Harmless(LineFilter):
    """Leaves control characters out of every line, whatever widget made it; what they would have begun is shown."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        if all(segment.text.isprintable() for segment in segments):
            return segments
        return [
            segment if segment.control else Segment(_CONTROLS.sub("", segment.text), segment.style)
            for segment in segments
        ]
