"""A repro's script over the screen, and beside it the nearest one that does not fail."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from idbg_tui.messages import EditorRequest
from idbg_tui.widgets.line_pairs import EqualLines, LinePairs, PairedText
from idbg_tui.widgets.side_by_side import SideBySide


class ReadingScripts(SideBySide):
    """A script, read only, and the nearest that does not fail, if there is one."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("e", "edit", "open the script in $EDITOR", show=False)]
    WHAT = "script"
    KEYS = ("e edit", "y copy line", "Y script", "/ find", "esc closes")

    def __init__(self, script: PairedText, passing: PairedText | None = None) -> None:
        texts = [script] if passing is None else [script, passing]
        super().__init__(texts, EqualLines(script.text, passing.text) if passing is not None else None)

    def _first_difference(self, pairs: LinePairs) -> int:
        """The first line that differs below heading and imports: their headings always differ."""
        differ = [*pairs.marks[0]] or [pairs.beside(1, line) for line in pairs.marks[1]]
        lines = self._pages[0].text.text.split("\n")
        head = max((line for line, text in enumerate(lines, 1) if text.startswith(("import ", "from "))), default=0)
        return min([line for line in differ if line > head] or differ, default=0)

    def action_edit(self) -> None:
        self.post_message(EditorRequest(self.page.text.path, self.page.code.line))
