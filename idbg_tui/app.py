"""The app: events become state, panes show the state, and what the user does goes to a controller.

The first frame needs only the imports at the top of this module. Session, state, panes and controllers are
imported and made behind it, in `_begin`: `tests/unit/test_boundaries.py` lists what may be loaded before.
"""

import asyncio
import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, ClassVar

from textual import events as ui
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import BindingType
from textual.filter import LineFilter

from idbg.config import places
from idbg.format import glyphs
from idbg.format.glyphs import MARKS
from idbg.schema.errors import BadInput, SettingsError
from idbg_tui import keymap, theming
from idbg_tui.controllers.routes import MessageRoutes
from idbg_tui.layout import Body
from idbg_tui.pane_sizes import RememberedSizes
from idbg_tui.panes import loading
from idbg_tui.terminal.drawing import DrawnApp
from idbg_tui.widgets import plain_signs
from idbg_tui.widgets.bars import Bar
from idbg_tui.widgets.control_characters import ControlCharacterFilter

if TYPE_CHECKING:
    from textual.dom import DOMNode

    from idbg.config.settings import Settings
    from idbg.schema.events import SessionEvent
    from idbg.session.session import Session
    from idbg_tui import messages
    from idbg_tui.controllers.bars import Bars
    from idbg_tui.controllers.process_switch import OpenedProcess
    from idbg_tui.controllers.table import Controllers
    from idbg_tui.palette.commands import Everything
    from idbg_tui.palette.uses import CommandUses
    from idbg_tui.panes.base import Pane, PaneId
    from idbg_tui.state.inbox import Inbox
    from idbg_tui.state.state import State
    from idbg_tui.terminal.typed_ahead import TypedAhead
    from idbg_tui.terminal.watchdog import ScreenWatchdog
    from idbg_tui.tour.strip import TourStrip


_REFUSED = 2
"""The exit status where there is no session to show."""
_RIGHT = 3  # a button of the mouse
_LEAVING = ("q", "ctrl+q", "ctrl+c")
"""Keys that end the program also while its session is being opened."""


async def in_thread(make: "Callable[[], Session]") -> "Session":
    """The result of `make`, called on a daemon thread. Raises what it raises."""
    loop = asyncio.get_running_loop()
    made: asyncio.Future[Session] = loop.create_future()

    def settle(done: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed: the user has left meanwhile
            loop.call_soon_threadsafe(lambda: None if made.done() else done())

    def run() -> None:
        try:
            session = make()
        except BaseException as error:  # it is raised again where it is awaited
            settle(partial(made.set_exception, error))
        else:
            settle(partial(made.set_result, session))

    Thread(target=run, name="idbg-open", daemon=True).start()
    return await made


class IdbgApp(MessageRoutes, DrawnApp[None]):
    """The screen over one session. The session is started here, and closed by whoever made it."""

    TITLE = "idbg"
    CSS = """
    Screen { overflow: hidden; }
    """
    ENABLE_COMMAND_PALETTE = False  # Textual's: ours has a line a command
    BINDINGS: ClassVar[list[BindingType]] = [*keymap.bindings()]

    session: "Session"
    state: "State"
    bars: "Bars"
    controllers: "Controllers"
    keys_typed: "TypedAhead"
    actions: dict[str, Callable[[], object]]

    def __init__(
        self, opener: "Callable[[], Session]", settings: "Settings", *, label: str = "", tour: bool = False
    ) -> None:
        """`opener` makes the session, once the first frame is painted; what it raises as BadInput ends the screen.

        `label` names the program or the saved session in that frame. Who runs the app calls `close_session` then.
        """
        super().__init__()
        plain_signs.use(glyphs.set_for(os.environ))
        self.animation_level = "none"
        self.watchdog: ScreenWatchdog | None = None  # of a real terminal
        self.ready = False
        """Session, state and panes are there; before, keys wait in `_typed`."""
        self._opener, self._settings = opener, settings
        self.choices: Path | None = places.data()
        """The folder in which panes remember what the user chose; None: they forget it."""
        self._opened: Session | None = None
        self._process: OpenedProcess | None = None  # another than the main one is on the screen
        self._typed: list[ui.Key] = []
        self._control_characters = ControlCharacterFilter()
        self._inbox: Inbox | None = None
        self.header, self.footer = Bar(id="header"), Bar(id="footer")
        self._title = [("idbg", "bold $primary"), (f"  {label}", "bold")]
        self.header.show(self._title, [])
        self.body = Body(loading.placeholders(), RememberedSizes(places.data() / "pane_sizes.json"))
        self.body.set_class(glyphs.is_ascii(), "-ascii")
        self._problem = theming.install(self, (theming.shipped(), places.config() / "themes"), settings.theme)
        try:
            self.keys = keymap.in_force(settings.keys)
            self.set_keymap(dict(settings.keys))
        except SettingsError as error:
            self.keys = keymap.in_force({})
            self._problem = f"{error.message}; {error.hint}"
        self._uses: CommandUses | None = None
        self._everything: Everything | None = None
        self.tour: TourStrip | None = None
        self._wants_tour = tour

    def compose(self) -> ComposeResult:
        yield self.header
        yield self.body
        yield self.footer

    # ---------------------------------------------------------------- events become state

    def on_mount(self) -> None:
        if self.watchdog is not None:
            self.watchdog.start(asyncio.get_running_loop(), self.refresh)
        self.body.go("graph")
        self.call_after_refresh(self._begin)

    async def _begin(self) -> None:
        """Open the session and make the panes, now that the first frame is painted."""
        self.header.show(self._title, [(f"opening{MARKS['ellipsis']}", "$foreground 75%")])
        try:
            self.session = self._opened = await in_thread(self._opener)
        except BadInput as error:
            self.exit(return_code=_REFUSED, message=f"idbg-tui: {error}")
            return
        await self._make()
        if self.session.live:
            self.session.start()
        await self.body.fill(loading.first_panes(self.choices))
        if not self.body.is_attached:  # the user has left
            return
        self.body.panes["graph"].show(self.state)
        self.call_after_refresh(self._show_beside)

    def _show_beside(self) -> None:
        """Show the other panes, now that the graph's rows are painted: of a large one, what they look up takes long."""
        self.show()
        self.call_after_refresh(self._make_hidden)

    async def _make_hidden(self) -> None:
        """Make the panes that are not seen at first, and let the keys go to all of them."""
        await self.body.fill(loading.other_panes())
        if not self.body.is_attached:  # the user has left
            return
        self.bars.flash_findings()
        self.ready = True
        self.show()
        if not gc.isenabled():  # as `main` began: modules stay, and later collections need not look at them
            gc.freeze()
            gc.enable()
        typed, self._typed = self._typed, []
        for event in typed:
            self.post_message(event)
        if self.session.live:  # what was typed meanwhile may ask for another run than this one
            self.call_later(self.keys_typed.then, self._first_run)

    async def _first_run(self) -> None:
        if not self.session.history.runs and not self.controllers.compiling.run_automatically():
            self.state.begun()
            self.show()

    async def _make(self) -> None:
        """Make the state of the session, and what follows from keys."""
        from idbg_tui.state.inbox import Inbox
        from idbg_tui.state.state import State
        from idbg_tui.terminal.typed_ahead import TypedAhead

        session = self.session
        self.keys_typed = TypedAhead(self, self._forward_key)
        folder = str(session.folder)
        self.state = State(
            live=session.live, arriving=session.arriving, target=session.target, folder=folder, beginning=session.live
        )
        self._inbox = Inbox(session, asyncio.get_running_loop(), self._take)
        self.state.apply(self._inbox.past)
        for report in list(session.history.processes.values()):  # with the outcomes that the main log does not have
            self.state.history.take_process(report)
        if self._wants_tour:
            from idbg_tui.tour.progress import Tour
            from idbg_tui.tour.strip import TourStrip

            self.tour = TourStrip(Tour(), self.keys)
            await self.mount(self.tour, before=self.footer)
        self._connect(session, self.state, self._problem)
        self.screen_change_signal.subscribe(self, lambda _: self.bars.show())  # other keys work in what is over it

    def _connect(self, session: "Session", state: "State", problem: str = "") -> None:
        """Show this state of this session, and let the keys act on it."""
        from idbg_tui.controllers.bars import Bars
        from idbg_tui.controllers.context import Context
        from idbg_tui.controllers.table import Controllers

        self.session, self.state = session, state
        self.bars = Bars(self, (self.header, self.footer), state, self.body, self.keys, problem)
        context = Context(self, session, self.state, self.body, self.bars, lambda: self.show())
        self.controllers = Controllers(context, self.keys, self._settings.editor, self.tour)
        self.actions = {
            **self.controllers.actions(),
            **self.body.actions(),
            "help": self.show_help,
            "palette": self.show_palette,
            "menu": self.show_menu,
            "main_process": lambda: self.show_process(""),
        }
        self.bars.start()

    @property
    def session_folder(self) -> str:
        """The folder of the session that was opened, or ""."""
        return str(self._opened.folder) if self._opened is not None else ""

    def close_session(self) -> None:
        """Close the session, if there is one by now."""
        self._close_process()
        if self._opened is not None:
            self._opened.close()

    def on_unmount(self) -> None:
        if self._inbox is not None:
            self._inbox.close()

    def _take(self, batch: "list[SessionEvent]") -> None:
        """Take in what happened since the last time, and show it once."""
        from idbg.schema import events

        if self.state.main is not None:  # another process is on the screen
            self.state.main.apply(batch)
            self.show()
            return
        before, cancelled = self.state.accelerator, self.state.cancelling
        self.state.apply(batch)
        for event in batch:
            self.bars.take_event(event, cancelled=cancelled)
        if self.state.live and any(isinstance(event, events.RunStarted) for event in batch):
            self.controllers.compiling.learn_typical()
        edited = any(isinstance(event, events.RulesEdited) for event in batch)
        if self.state.live and edited and self.state.accelerator != before:
            self.controllers.compiling.run_soon()
        self.show()

    def show_process(self, name: str) -> None:
        """Show a process of the session on the whole screen; "" is the main one."""
        shown = self.state.process.name if self.state.process is not None else ""
        if name == shown:
            self.bars.flash(f"{name} is on the screen" if name else "this is the main process")
        else:
            self.run_worker(self._show_process(name), exclusive=True)

    async def _show_process(self, name: str) -> None:
        from idbg_tui.controllers.process_switch import OpenedProcess, opened

        assert self._opened is not None
        main = self.state.whole
        chosen: OpenedProcess | None = None
        if name:
            try:
                chosen = await opened(Path(main.folder), name, main, in_thread, self._take_of_process)
            except BadInput as error:
                self.bars.flash(error.in_one_line, "error")
                return
        self.ready = False
        self._close_process()
        self._process = chosen
        self.bars.stop()
        self._connect(chosen.session if chosen else self._opened, chosen.state if chosen else main)
        await self.body.fill([*loading.first_panes(self.choices), *loading.other_panes()])
        if not self.body.is_attached:  # the user has left
            return
        self.body.go("graph")
        self.ready = True
        self.show()
        typed, self._typed = self._typed, []
        for event in typed:
            self.post_message(event)

    def _take_of_process(self, batch: "list[SessionEvent]") -> None:
        """Take in what a process has written since the last time."""
        self.state.apply(batch)
        self.show()

    def _close_process(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None

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
        if self.ready:
            self.call_after_refresh(self.bars.show)

    def pop_screen(self) -> AwaitComplete:
        """Leave the screen on top; the footer has the keys of what is under it."""
        left = super().pop_screen()
        if self.ready:
            self.bars.show()
        return left

    def on_hints_changed(self) -> None:
        self.bars.show()

    def on_body_went(self) -> None:
        if self.ready:
            self.controllers.navigation.catch_up()
            self.bars.show()

    def on_toml_editor_mode_changed(self) -> None:
        self.bars.show()

    def on_descendant_focus(self, event: ui.DescendantFocus) -> None:
        self.body.focus_moved(event.widget)
        if not self.ready:
            return
        self.controllers.touring.look()
        self.bars.show()

    # ---------------------------------------------------------------- what the user does

    async def on_event(self, event: ui.Event) -> None:
        if isinstance(event, ui.Key):
            if not self.ready:
                self._typed.append(event)
                if event.key in _LEAVING:
                    self.exit()
                return
            self.bars.key_pressed()
            if not event.is_forwarded:
                await self.keys_typed.pressed(event)
                return
        await super().on_event(event)

    async def _forward_key(self, key: ui.Key) -> None:
        """Let a key mean what it does where the focus is, unless it is the letter of a mark."""
        if not self.controllers.marks.take(key):
            await super().on_event(key)

    def action_do(self, name: str) -> None:
        """Do what a key does, by its name in keymap.KEYS."""
        self.actions[name]()
        self.controllers.touring.key_pressed(name)

    def action_view(self, pane: "PaneId", view: str) -> None:
        """Go to a view of a pane: a click on its name, or the palette."""
        self.body.go(pane)
        self.body.panes[pane].choose_view(view)

    def action_stage(self, index: int) -> None:
        """Show a stage of the frame: a click on its name, or the palette."""
        self.controllers.navigation.go_to_stage(index)

    def action_compiler_stage(self, index: int) -> None:
        """Show a stage of another compiler: a click on its name, or the palette."""
        self.controllers.navigation.go_to_compiler_stage(index)

    def show_palette(self) -> None:
        """Show every command, and do the one that is chosen."""
        from idbg_tui.palette.commands import Everything
        from idbg_tui.palette.screen import Command, Commands, Palette
        from idbg_tui.palette.uses import CommandUses

        def do(chosen: Command | None) -> None:
            if chosen is not None:
                chosen.do()

        if self._uses is None:
            self._uses = CommandUses(places.data() / "palette.json")
        if self._everything is None:
            self._everything = Everything(self)
        every = self._everything
        commands = Commands(list(every.always()), every.things, every.found, every.prepare)
        self.push_screen(Palette(commands, self._uses), do)

    def show_menu(self) -> None:
        """Show what can be done with what the cursor is on, and do what is chosen."""
        from idbg_tui import menu

        def do(chosen: menu.MenuItem | None) -> None:
            if chosen is not None and chosen.off:
                self.bars.flash(chosen.off)
            elif chosen is not None:
                chosen.do()

        pane = self.body.panes[self.body.current]
        place = menu.Place(pane, self.keys, live=self.state.live, why_off=self.controllers.why_off)
        listed = menu.items(place, self.action_do, lambda offer: self.do_in(pane, offer.node, offer.action))
        node = self.state.selected.name if self.state.selected is not None else ""
        self.push_screen(menu.Menu(menu.title(pane, node), list(listed)), do)

    def on_click(self, event: ui.Click) -> None:
        """The right button: the list under the mouse has put its cursor there."""
        if event.button == _RIGHT and self.ready and len(self.screen_stack) == 1:
            self.action_do("menu")

    def do_in(self, pane: "Pane", node: "DOMNode", action: str) -> None:
        """Go to a pane, and do what a key does there."""
        self.body.go(pane.ID)
        self.call_later(self.run_action, action, node)

    async def action_quit(self) -> None:
        self.controllers.leaving.quit()

    def show_help(self) -> None:
        """Show every key over the screen; over a list, that one's first."""
        from idbg_tui.help import Help, entries, of_list

        covering, panes = self.screen, self.body.panes
        if isinstance(covering, Help):
            return
        listed = of_list(covering, covering.focused or covering) if len(self.screen_stack) > 1 else []
        self.push_screen(Help(listed + entries(self.keys, list(panes.values()), panes[self.body.current])))

    def on_action_request(self, message: "messages.ActionRequest") -> None:
        self.action_do(message.name)

    def on_source_request(self) -> None:
        self.body.go("source")

    def on_process_chosen(self, message: "messages.ProcessChosen") -> None:
        self.show_process(message.name)

    def on_rules_changed(self, message: "messages.RulesChanged") -> None:
        self.session.edit_rules(message.text, message.origin)

    def on_flash(self, message: "messages.Flash") -> None:
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
        return [*super().get_line_filters(), self._control_characters]
