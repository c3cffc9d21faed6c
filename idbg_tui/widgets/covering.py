"""A list or a text over the screen: the help and the palette open over it too."""

from typing import ClassVar, TypeVar

from textual.binding import Binding, BindingType
from textual.events import Key
from textual.screen import ModalScreen

from idbg_tui.widgets.notices import Flash

Answer = TypeVar("Answer")


class Covering(ModalScreen[Answer]):
    """Covers the panes. The help opens over it, with its keys first; the palette opens in its place, since what is
    chosen there happens in the panes.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,f1", "app.do('help')", "help: every key", show=False, id="help"),
        Binding("ctrl+p", "palette", "the palette, in the place of the list", show=False),
    ]

    def on_key(self, event: Key) -> None:
        """A key of the panes does nothing here, and that is shown."""
        if event.is_printable and event.key not in self.active_bindings:
            self.post_message(Flash(f"{event.character} is no key of this list: esc closes it, ? has its keys"))

    def action_palette(self) -> None:
        """Close, and open the palette over the panes."""
        self.dismiss(None)
        self.app.call_after_refresh(self.app.run_action, "do('palette')")
