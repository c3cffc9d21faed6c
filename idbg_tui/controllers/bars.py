"""What do the first and the last line of the screen say now, and for how long?"""

from typing import Literal

from textual.app import App
from textual.timer import Timer
from textual.widgets import Input

from idbg.schema import events
from idbg.schema.events import SessionEvent
from idbg_tui.layout import Body
from idbg_tui.state.state import State
from idbg_tui.status_bar import flashes
from idbg_tui.status_bar.footer import TYPING, footer_keys, footer_progress
from idbg_tui.status_bar.header import header
from idbg_tui.widgets.bars import Bar

Level = Literal["info", "warning", "error"]
_STYLES: dict[str, str] = {"error": "$text-error", "warning": "$text-warning"}
_TICK = 0.2  # seconds, while something goes on


class Bars:
    """The header and the footer. A flash is a sentence that takes the place of the footer's keys until the next key."""

    def __init__(
        self, app: App[None], ends: tuple[Bar, Bar], state: State, body: Body, keys: dict[str, str], problem: str = ""
    ) -> None:
        """`ends` are the header and the footer. `keys` are those in force, by the names of keymap.KEYS; a `problem` is
        shown first.
        """
        self.header, self.footer = ends
        self.flashed: tuple[str, str] | None = (problem, "error") if problem else None
        self._of_run = False  # the flash is about a run: the next one's start or end makes it old
        self._app, self._state, self._body, self._keys = app, state, body, keys
        self._ticking: Timer | None = None

    def start(self) -> None:
        """Have the clocks go on while something does; the screen is there."""
        self._ticking = self._app.set_interval(_TICK, self.show, pause=True)

    def show(self) -> None:
        """Say what is so now."""
        if not self._app.screen_stack:  # a last tick of the clock, while the app ends
            return
        width = self._app.size.width - 2
        self.header.show(*header(self._state, width))
        progress = footer_progress(self._state, width)
        if self.flashed is not None:
            text, level = self.flashed
            self.footer.show([(text, f"bold {_STYLES.get(level, '$foreground')}")], progress)
        else:
            pane, asked = self._body.panes[self._body.current], isinstance(self._app.focused, Input)
            room = width - sum(len(text) for text, _ in progress) - 2
            hints = TYPING if asked else pane.HINTS
            typing = asked or pane.typed_in
            self.footer.show(footer_keys(hints, self._keys, self._state, room, typing=typing), progress)
        if self._ticking is not None:
            going_on = self._state.running or self._state.trying or self._state.measuring
            (self._ticking.resume if going_on else self._ticking.pause)()

    def flash(self, text: str, level: Level = "info", *, of_run: bool = False) -> None:
        """Say something until the next key; what is about a run, until one starts or ends too."""
        self.flashed, self._of_run = (text, level), of_run
        self.show()

    def key_pressed(self) -> None:
        """The flash was read."""
        if self.flashed is not None:
            self.flashed = None
            self.show()

    def happened(self, event: SessionEvent, *, cancelled: bool) -> None:
        """Say what happened. A run that another one took the place of ends without a word, unless it was `cancelled`
        by the user.
        """
        ended = isinstance(event, events.RunEnded)
        if (ended or isinstance(event, events.RunStarted)) and self._of_run:
            self.flashed = None
        if isinstance(event, events.RunEnded) and event.failure is not None and event.failure.kind == "cancelled":
            said = flashes.of_event(event) if cancelled else None
        else:
            said = flashes.of_event(event)
        if said:
            self.flashed, self._of_run = said, ended
        elif ended:
            self.say_elsewhere()

    def say_elsewhere(self) -> None:
        """Say what came of the last comparison, or where violations are if the shown graph has none."""
        said = flashes.of_comparison(self._state) or flashes.elsewhere(self._state)
        if said is not None:
            self.flashed, self._of_run = said, True
