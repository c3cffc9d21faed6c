"""Textual's command palette with fixes for its keys."""

from functools import partial
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.command import CommandPalette
from textual.widgets import Input, OptionList

_AGAIN = 0.02  # seconds


class Palette(CommandPalette):
    """Enter waits for what was typed to be found: Textual runs what was found before. A page up or down does nothing
    in a list that has no line on the screen: Textual raises KeyError.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pagedown", "page('down')", "a page down", show=False),
        Binding("pageup", "page('up')", "a page up", show=False),
    ]

    def action_page(self, direction: str) -> None:
        options = self.query_one(OptionList)
        if options.scrollable_content_region and any(not option.disabled for option in options.options):
            (options.action_page_down if direction == "down" else options.action_page_up)()  # type: ignore[no-untyped-call]

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if any(worker.node is self and not worker.is_finished for worker in self.workers):
            event.stop()
            event.prevent_default()
            self.set_timer(_AGAIN, partial(self._submit, event.input, event.value))

    def _submit(self, line: Input, typed: str) -> None:
        if line.value == typed:
            line.post_message(Input.Submitted(line, typed))
