"""Wrap the lines of the log into rows; what a program printed stays one row a line, unless it is wrapped too."""

from bisect import bisect_left
from typing import NamedTuple

from idbg_tui.panes.log.rows import LogLine, LogLines

_HANGING = 2  # cells by which the continued rows of a line are indented
_NARROW = 20  # cells, below which nothing is wrapped


class LinePart(NamedTuple):
    """The part of a line that one row shows, up to its end if `end` is -1.

    `line` is counted from the first that there ever was.
    """

    line: int
    start: int = 0
    end: int = -1


class LogRows:
    """Rows laid out as lines come, and all of them anew when the width changes."""

    def __init__(self, log: LogLines) -> None:
        self._log = log
        self.wraps_output = False
        self._pieces: list[LinePart] = []
        self._width = 0
        self._laid = 0  # lines that have their rows, counted from the first that there ever was

    def __len__(self) -> int:
        return len(self._pieces)

    def turn(self) -> None:
        """Wrap what programs print too, or leave each line of it one row."""
        self.wraps_output = not self.wraps_output
        self._width = -1

    def lay(self, width: int) -> int:
        """Lay out what is new; the number of rows that went from the front with the log's oldest lines."""
        log = self._log
        if width != self._width:
            self._pieces.clear()
            self._width, self._laid = width, log.dropped
        gone = self._first_of(log.dropped)
        del self._pieces[:gone]
        self._laid = max(self._laid, log.dropped)
        for line in log.lines[self._laid - log.dropped :]:
            self._pieces += self._laid_out(line, self._laid)
            self._laid += 1
        return gone

    def piece(self, row: int) -> tuple[LogLine, str, bool]:
        """A row's line, the text of it that the row shows, and whether that is the line's beginning."""
        place = self._pieces[row]
        line = self._log.lines[place.line - self._log.dropped]
        text = line.content.text
        if not place.start:
            return line, text if place.end < 0 else text[: place.end], True
        return line, " " * (_indent(text) + _HANGING) + text[place.start : place.end], False

    def line_of(self, row: int) -> int:
        """The index of a row's line in the log."""
        return self._pieces[row].line - self._log.dropped

    def row_of(self, line: int) -> int:
        """The first row of the line with this index in the log."""
        return self._first_of(line + self._log.dropped)

    def _first_of(self, line: int) -> int:
        return bisect_left(self._pieces, LinePart(line))

    def _laid_out(self, line: LogLine, number: int) -> list[LinePart]:
        text, width = line.content.text, self._width
        if (line.stream and not self.wraps_output) or len(text) <= width or width < _NARROW:
            return [LinePart(number)]
        pieces, start, room = [], 0, width
        while len(text) - start > room:
            blank = text.rfind(" ", start + _indent(text) + 1 if not start else start + 1, start + room + 1)
            end = blank if blank > start + room // 2 else start + room
            pieces.append(LinePart(number, start, end))
            start = end + 1 if text[end] == " " else end
            room = max(width - _indent(text) - _HANGING, _NARROW)
        return [*pieces, LinePart(number, start, len(text))]


def _indent(text: str) -> int:
    return min(len(text) - len(text.lstrip(" ")), 8)
