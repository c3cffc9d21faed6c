"""How do the session and the panes meet? Events become state, and what the user does becomes calls of the session."""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar

from textual import events as ui
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.command import Provider
from textual.filter import LineFilter
from textual.timer import Timer
from textual.widgets import Input

from idbg.config import places
from idbg.config.settings import Settings
from idbg.format import glyphs
from idbg.schema import events
from idbg.schema.errors import SettingsError
from idbg.schema.events import SessionEvent
from idbg.session.session import Session
from idbg_tui import keymap, status_bar, theming
from idbg_tui.actions.base import Actions, Level
from idbg_tui.layout import Body
from idbg_tui.palette import IdbgCommands
from idbg_tui.panes import later
from idbg_tui.panes.graph.pane import GraphPane
from idbg_tui.panes.node.pane import NodePane
from idbg_tui.panes.source.pane import SourcePane
from idbg_tui.panes.violations.pane import ViolationsPane
from idbg_tui.state.inbox import Inbox
from idbg_tui.state.state import State
from idbg_tui.terminal.watchdog import ScreenWatchdog
from idbg_tui.widgets.bars import Bar
from idbg_tui.widgets.harmless import Harmless
from idbg_tui.widgets.palette import Palette
from idbg_tui.widgets.plain import use_plain

FOLLOW = 0.05  # seconds after the last step of the cursor, when the other panes follow it


class IdbgApp(Actions):
    """The screen over one session. The session is started here, and closed by whoever made it."""

    TITLE = "idbg"
    CSS = """
    CommandPalette LoadingIndicator, CommandPalette SearchIcon { display: none; }
    Screen { overflow: hidden; }
    .-ascii {
        Picker > Vertical, Help > Vertical, Listing > Vertical { border: ascii $border; }
        CommandPalette * { border: none !important; }
    }
    """
    ENABLE_COMMAND_PALETTE = True
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {IdbgCommands}
    BINDINGS: ClassVar[list[BindingType]] = [*keymap.bindings()]

    def __init__(self, session: Session, settings: Settings) -> None:
        super().__init__()
        self.session, self.settings = session, settings
        plain = glyphs.wants_ascii(os.environ)
        if plain:
            glyphs.use_ascii()
            use_plain()
        self.animation_level = "none"
        self.state = State(live=session.live, target=session.target)
        self.body = Body([GraphPane(), SourcePane(), NodePane(), ViolationsPane(), *later.frames()])
        self.set_class(plain, "-ascii")
        self.body.set_class(plain, "-ascii")
        self._header, self._footer = Bar(id="header"), Bar(id="footer")
        self.watchdog: ScreenWatchdog | None = None  # of a real terminal
        self._harmless = Harmless()
        self._flash: tuple[str, str] | None = None
        self._flash_of_run = False  # it is about a run: the next one's start or end makes it old
        self._inbox: Inbox | None = None
        self._following: Timer | None = None
        self._add_themes()
        try:
            self.keys = keymap.in_force(settings.keys)
            self.set_keymap(dict(settings.keys))
        except SettingsError as error:
            self.keys = keymap.in_force({})
            self._flash = (f"{error.message}; {error.hint}", "error")

    def _add_themes(self) -> None:
        for theme in theming.themes((theming.shipped(), places.config() / "themes")):
            if isinstance(theme, SettingsError):
                self._flash = (theme.message, "error")
            else:
                self.register_theme(theme)
        wanted = self.settings.theme or theming.DEFAULT
        if wanted not in self.available_themes:
            known = ", ".join(sorted(self.available_themes))
            self._flash = (f'there is no theme "{wanted}"; there are: {known}', "error")
            wanted = theming.DEFAULT
        self.theme = wanted

    def compose(self) -> ComposeResult:
        yield self._header
        yield self.body
        yield self._footer

    # ---------------------------------------------------------------- events become state

    def on_mount(self) -> None:
        if self.watchdog is not None:
            self.watchdog.start(asyncio.get_running_loop(), self.refresh)
        self._ticking = self.set_interval(0.2, self._tick, pause=True)
        self.body.go("graph")
        self.show()
        self.call_after_refresh(self._begin)

    async def _begin(self) -> None:
        """Start the session and make the other panes, now that the screen is painted."""
        self._inbox = Inbox(self.session, asyncio.get_running_loop(), self._take)
        self.state.apply(self._inbox.past)
        self._say_elsewhere()
        if self.session.live:
            self.session.start()
            self.attempt(lambda: self.session.run(asked=False))  # a key may have come before
        self.show()
        await self.body.fill(later.made())
        self.show()

    def on_unmount(self) -> None:
        if self._inbox is not None:
            self._inbox.close()

    def _take(self, batch: list[SessionEvent]) -> None:
        """Take in what happened since the last time, and show it once."""
        before, cancelled = self.state.accelerator, self.state.cancelling
        self.state.apply(batch)
        for event in batch:
            self._say(event, cancelled=cancelled)
        edited = any(isinstance(event, events.RulesEdited) for event in batch)
        if self.state.live and edited and self.state.accelerator != before:
            self.recompile_soon()
        self.show()

    def _say(self, event: SessionEvent, *, cancelled: bool) -> None:
        """Say in the footer what happened. A run that another one took the place of ends without a word."""
        ended = isinstance(event, events.RunEnded)
        if (ended or isinstance(event, events.RunStarted)) and self._flash_of_run:
            self._flash = None
        if isinstance(event, events.RunEnded) and event.failure is not None and event.failure.kind == "cancelled":
            said = status_bar.flash(event) if cancelled else None
        else:
            said = status_bar.flash(event)
        if said:
            self._flash, self._flash_of_run = said, ended
        elif ended:
            self._say_elsewhere()

    def _say_elsewhere(self) -> None:
        said = status_bar.compared(self.state)
        if said[0] or (said := (status_bar.elsewhere(self.state), "info"))[0]:
            self._flash, self._flash_of_run = said, True

    # ---------------------------------------------------------------- state becomes screen

    def show(self) -> None:
        if not self.is_running:
            return  # the last messages come when the panes are gone already
        self.state.set_target(self.session.target)
        self.count_costs()
        self.read_past()
        self.body.show(self.state)
        self.show_listing()
        self._show_bars()
        if self.state.running or self.state.repro_running or self.state.measuring:
            self._ticking.resume()
        else:
            self._ticking.pause()

    def _show_bars(self) -> None:
        width = self.size.width - 2
        self._header.show(*status_bar.header(self.state, width))
        progress = status_bar.footer_progress(self.state, width)
        if self._flash is not None:
            text, level = self._flash
            style = {"error": "$text-error", "warning": "$text-warning"}.get(level, "$foreground")
            self._footer.show([(text, f"bold {style}")], progress)
        else:
            pane, asked = self.body.panes[self.body.current], isinstance(self.focused, Input)
            room = width - sum(len(text) for text, _ in progress) - 2
            hints = status_bar.TYPING if asked else pane.HINTS
            typing = asked or pane.typed_in
            self._footer.show(status_bar.footer_keys(hints, self.keys, self.state, room, typing=typing), progress)

    def _tick(self) -> None:
        self._show_bars()

    def show_selection(self) -> None:
        """Show a step of the cursor where it was made at once, and in the other panes when it rests."""
        self.body.panes[self.body.current].show(self.state)
        if self._following is not None:
            self._following.stop()
        self._following = self.set_timer(FOLLOW, self.show)

    def flash(self, text: str, level: Level = "info", *, of_run: bool = False) -> None:
        self._flash, self._flash_of_run = (text, level), of_run
        self._show_bars()

    def on_resize(self) -> None:
        self.call_after_refresh(self._show_bars)

    @contextmanager
    def suspend(self) -> Iterator[None]:
        """Leave the terminal to another program; nobody waits for the loop meanwhile."""
        if self.watchdog is None:
            with super().suspend():
                yield
            return
        self.watchdog.away(True)
        try:
            with super().suspend():
                yield
        finally:
            self.watchdog.away(False)

    def get_line_filters(self) -> list[LineFilter]:
        """What every line passes on its way to the terminal."""
        return [*super().get_line_filters(), self._harmless]

    def action_command_palette(self) -> None:
        """Show the palette, unless it is open."""
        if not isinstance(self.screen, Palette):
            self.push_screen(Palette(id="--command-palette"))

    async def on_event(self, event: ui.Event) -> None:
        if isinstance(event, ui.Key) and self._flash is not None:
            self._flash = None
            self._show_bars()
        await super().on_event(event)

    def on_toml_editor_mode_changed(self) -> None:
        self._show_bars()

    def on_descendant_focus(self, event: ui.DescendantFocus) -> None:
        self.body.focus_moved(event.widget)
        self._show_bars()
