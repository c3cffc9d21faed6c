"""Drives the rules pane, and reads what it shows and asks."""

from pathlib import Path

from textual.message import Message
from textual.pilot import Pilot
from textual.widgets import Input, Static

from idbg.accelerators.parse import parse
from idbg.schema.errors import AcceleratorError
from idbg.schema.events import RulesEdited, RulesRefused, SessionEvent
from idbg_tui.messages import Flash, RulesChanged
from idbg_tui.panes.rules.editor import TomlEditor
from idbg_tui.panes.rules.pane import RulesPane
from idbg_tui.state.state import State
from idbg_tui.widgets.lines import Lines
from idbg_tui.widgets.prompt import Prompt
from tests.harness.pane_host import RULES, Host, make_state, write_model

SIZE = (60, 20)


def as_session(state: State, message: Message) -> None:
    """Take or refuse the text, as the session does."""
    if not isinstance(message, RulesChanged):
        return
    event: SessionEvent
    try:
        parse(message.text)
        event = RulesEdited(text=message.text, origin=message.origin)
    except AcceleratorError as error:
        event = RulesRefused(text=message.text, origin=message.origin, message=error.message, line=error.line)
    state.apply([event])


class Bench:
    """The pane over a small session, with what a test asks of it."""

    def __init__(self, tmp_path: Path, origin: str = "small") -> None:
        self.state = make_state(write_model(tmp_path))
        self.state.apply([RulesEdited(text=RULES, origin=origin)])
        self.pane = RulesPane()
        self.app = Host(self.pane, self.state, as_session)

    @property
    def editor(self) -> TomlEditor:
        return self.pane.query_one(TomlEditor)

    @property
    def title(self) -> str:
        return str(self.pane.border_title)

    @property
    def posted(self) -> list[RulesChanged]:
        return [message for message in self.app.posted if isinstance(message, RulesChanged)]

    def disk(self, text: str, origin: str) -> None:
        self.state.apply([RulesEdited(text=text, origin=origin)])
        self.pane.show(self.state)

    async def text(self, pilot: Pilot[None]) -> None:
        """Leave the form for the text."""
        await pilot.pause()
        await pilot.press("right_square_bracket")
        await pilot.pause()

    async def press(self, pilot: Pilot[None], *keys: str) -> None:
        await pilot.press(*keys)
        await self.settle(pilot)

    async def settle(self, pilot: Pilot[None]) -> None:
        """Wait until what was typed is posted and checked."""
        await pilot.pause()
        while self.pane._posting is not None:
            await pilot.pause(0.02)
        await pilot.pause()


def shown(lines: Lines) -> list[str]:
    """The rows as they read on the screen."""
    width = lines.line_width
    return ["".join(text for text, _ in lines.row(index, width)).rstrip() for index in range(lines.row_count)]


def told(bench: Bench) -> list[str]:
    return [message.text for message in bench.app.posted if isinstance(message, Flash)]


def question(bench: Bench) -> str:
    return str(bench.pane.query_one(Prompt).query_one(Static).render())


async def answer(pilot: Pilot[None], bench: Bench, text: str) -> None:
    bench.pane.query_one(Prompt).query_one(Input).value = text
    await bench.press(pilot, "enter")
