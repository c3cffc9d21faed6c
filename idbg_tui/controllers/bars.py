"""Update the header and the footer."""

from typing import Literal

from textual.app import App
from textual.timer import Timer
from textual.widgets import Input

from idbg.schema import events
from idbg.schema.events import SessionEvent
from idbg_tui.layout import Body
from idbg_tui.state.state import State
from idbg_tui.status_bar import flashes
from idbg_tui.status_bar.footer import LEAVING, TYPING, bar_keys, footer_keys, footer_progress, help_keys
from idbg_tui.status_bar.header import header
from idbg_tui.widgets.bars import Bar, cells
from idbg_tui.widgets.covering import Covering

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
        """Start the clock that repaints while something runs."""
        self._ticking = self._app.set_interval(_TICK, self.show, pause=True)

    def stop(self) -> None:
        """Show nothing more: another state is on the screen."""
        if self._ticking is not None:
            self._ticking.stop()
            self._ticking = None

    def show(self) -> None:
        """Show the present state."""
        if not self._app.screen_stack:  # a last tick of the clock, while the app ends
            return
        width = self._app.size.width - 2
        self.header.show(*header(self._state, width))
        pane, prompting = self._body.panes[self._body.current], isinstance(self._app.focused, Input)
        covered = isinstance(self._app.screen, Covering)
        typing = prompting or (pane.typed_in and not covered)
        ends = help_keys(self._keys, typing=typing)
        progress = footer_progress(self._state, width - cells(ends))
        right = [*progress, *ends]
        room = width - cells(right) - 2
        hints = TYPING if prompting else LEAVING if covered else pane.HINTS
        if self.flashed is not None:
            text, level = self.flashed
            flash = [(text, f"bold {_STYLES.get(level, '$foreground')}")]
            self.footer.show(flash, right if cells(flash) <= room else progress)  # until the next key
        elif covered:
            self.footer.show(bar_keys(hints, room), right)
        else:
            self.footer.show(footer_keys(hints, self._keys, self._state, room, typing=typing), right)
        if self._ticking is not None:
            going_on = self._state.running or self._state.trying or self._state.measuring
            (self._ticking.resume if going_on else self._ticking.pause)()

    def flash(self, text: str, level: Level = "info", *, of_run: bool = False) -> None:
        """Show a sentence until the next key; one about a run, until a run starts or ends too."""
        self.flashed, self._of_run = (text, level), of_run
        self.show()

    def key_pressed(self) -> None:
        """The flash was read."""
        if self.flashed is not None:
            self.flashed = None
            self.show()

    def take_event(self, event: SessionEvent, *, cancelled: bool) -> None:
        """Show what happened. A run that another one replaced ends silently, unless the user `cancelled` it."""
        ended = isinstance(event, events.RunEnded)
        if (ended or isinstance(event, events.RunStarted)) and self._of_run:
            self.flashed = None
        if isinstance(event, events.RunEnded) and event.failure is not None and event.failure.kind == "cancelled":
            flash = flashes.of_event(event) if cancelled else None
        else:
            flash = flashes.of_event(event)
        if flash:
            self.flashed, self._of_run = flash, ended
        elif ended:
            self.flash_findings()

    def flash_findings(self) -> None:
        """Show the result of the last comparison, or where violations are if the shown graph has none."""
        flash = flashes.of_comparison(self._state) or flashes.in_other_graph(self._state)
        if flash is not None:
            self.flashed, self._of_run = flash, True
