"""How do the session and the panes meet? Events become state; what the user does goes to the controller it is for."""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar

from textual import events as ui
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.command import Provider
from textual.filter import LineFilter

from idbg.config import places
from idbg.config.settings import Settings
from idbg.format import glyphs
from idbg.schema import events
from idbg.schema.errors import SettingsError
from idbg.schema.events import SessionEvent
from idbg.session.session import Session
from idbg_tui import keymap, messages, theming
from idbg_tui.controllers.asked import Asked
from idbg_tui.controllers.bars import Bars
from idbg_tui.controllers.context import Context
from idbg_tui.controllers.table import Controllers
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
from idbg_tui.tour.progress import Tour
from idbg_tui.tour.strip import TourStrip
from idbg_tui.widgets.harmless import Harmless
from idbg_tui.widgets.palette import Palette
from idbg_tui.widgets.plain import use_plain


class IdbgApp(Asked, App[None]):
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
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {IdbgCommands}
    BINDINGS: ClassVar[list[BindingType]] = [*keymap.bindings()]

    def __init__(self, session: Session, settings: Settings, *, tour: bool = False) -> None:
        super().__init__()
        self.session = session
        plain = glyphs.wants_ascii(os.environ)
        if plain:
            glyphs.use_ascii()
            use_plain()
        self.animation_level = "none"
        self.watchdog: ScreenWatchdog | None = None  # of a real terminal
        self._harmless = Harmless()
        self._inbox: Inbox | None = None
        self.state = State(live=session.live, target=session.target, folder=str(session.folder))
        self.body = Body([GraphPane(), SourcePane(), NodePane(), ViolationsPane(), *later.frames()])
        self.set_class(plain, "-ascii")
        self.body.set_class(plain, "-ascii")
        problem = theming.install(self, (theming.shipped(), places.config() / "themes"), settings.theme)
        try:
            self.keys = keymap.in_force(settings.keys)
            self.set_keymap(dict(settings.keys))
        except SettingsError as error:
            self.keys = keymap.in_force({})
            problem = f"{error.message}; {error.hint}"
        self.bars = Bars(self, self.state, self.body, self.keys, problem)
        self.tour = TourStrip(Tour(), self.keys) if tour else None
        context = Context(self, session, self.state, self.body, self.bars, lambda: self.show())
        self.controllers = Controllers(context, self.keys, settings.editor, self.tour)
        self.actions = {
            **self.controllers.actions(),
            **self.body.actions(),
            "help": self.show_help,
            "palette": self.action_command_palette,
        }

    def compose(self) -> ComposeResult:
        yield self.bars.header
        yield self.body
        if self.tour is not None:
            yield self.tour
        yield self.bars.footer

    # ---------------------------------------------------------------- events become state

    def on_mount(self) -> None:
        if self.watchdog is not None:
            self.watchdog.start(asyncio.get_running_loop(), self.refresh)
        self.bars.start()
        self.body.go("graph")
        self.show()
        self.call_after_refresh(self._begin)

    async def _begin(self) -> None:
        """Start the session and make the other panes, now that the screen is painted."""
        self._inbox = Inbox(self.session, asyncio.get_running_loop(), self._take)
        self.state.apply(self._inbox.past)
        self.bars.say_elsewhere()
        if self.session.live:
            self.session.start()
            self.controllers.compiling.run_unasked()  # a key may have come before
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
            self.bars.happened(event, cancelled=cancelled)
        if self.state.live and any(isinstance(event, events.RunStarted) for event in batch):
            self.controllers.compiling.learn_typical()
        edited = any(isinstance(event, events.RulesEdited) for event in batch)
        if self.state.live and edited and self.state.accelerator != before:
            self.controllers.compiling.run_soon()
        self.show()

    # ---------------------------------------------------------------- state becomes screen

    def show(self) -> None:
        """Show the state in every pane, in the list over the screen and in the bars."""
        if not self.is_running:
            return  # the last messages come when the panes are gone already
        self.state.set_target(self.session.target)
        self.controllers.costing.count()
        self.controllers.measuring.read_past()
        self.body.show(self.state)
        self.controllers.listings.show()
        self.controllers.trying.show()
        self.controllers.switching.show()
        self.controllers.touring.look()
        self.bars.show()

    def on_resize(self) -> None:
        self.call_after_refresh(self.bars.show)

    def on_hints_changed(self) -> None:
        self.bars.show()

    def on_toml_editor_mode_changed(self) -> None:
        self.bars.show()

    def on_descendant_focus(self, event: ui.DescendantFocus) -> None:
        self.body.focus_moved(event.widget)
        self.controllers.touring.look()
        self.bars.show()

    # ---------------------------------------------------------------- what the user does

    async def on_event(self, event: ui.Event) -> None:
        if isinstance(event, ui.Key):
            self.bars.key_pressed()
        await super().on_event(event)

    def action_do(self, name: str) -> None:
        """Do what a key does, by its name in keymap.KEYS."""
        self.actions[name]()
        self.controllers.touring.asked(name)

    def action_command_palette(self) -> None:
        """Show the palette, unless it is open."""
        if not isinstance(self.screen, Palette):
            self.push_screen(Palette(id="--command-palette"))

    async def action_quit(self) -> None:
        self.controllers.leaving.quit()

    def show_help(self) -> None:
        """Show every key over the screen."""
        from idbg_tui.help import Help, entries

        self.push_screen(Help(entries(self.keys, list(self.body.panes.values()))))

    def on_action_asked(self, message: messages.ActionAsked) -> None:
        self.action_do(message.name)

    def on_source_asked(self) -> None:
        self.body.go("source")

    def on_rules_changed(self, message: messages.RulesChanged) -> None:
        self.session.edit_rules(message.text, message.origin)

    def on_flash(self, message: messages.Flash) -> None:
        self.bars.flash(message.text, message.level)

    # ---------------------------------------------------------------- the terminal

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
