"""What does a report say of a kind of decision, line by line, where the pane has no rows of its own for it?"""

from collections.abc import Sequence

from idbg.reports import decisions
from idbg.schema.runs import Run
from idbg_tui.panes.why.rows import Look, Row, said


class Told:
    """The lines that `idbg analyze --type NAME` prints."""

    FILTERS = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.NONE = f"nothing was told of it: idbg analyze --type {name} knows no more"

    def rows(self, run: Run, look: Look) -> Sequence[Row]:
        """The report's lines, each on as many rows as it takes."""
        if self.name not in decisions.TYPES:
            return []
        lines = decisions.telling(self.name).text(run)
        return [row for place, line in enumerate(lines) for row in said(line, look, key=place)]

    def count(self, run: Run) -> int:
        """Lines of a report are not counted."""
        return 0
