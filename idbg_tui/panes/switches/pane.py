"""Which switches does torch have, how do they stand, and what is it to compile with next?"""

import textwrap
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Static

from idbg.config import switches
from idbg.reports.switches import flag
from idbg.schema.decisions.switches import Switch
from idbg.schema.programs import OptionValue
from idbg_tui.messages import DefaultsAsked, Flash, SwitchAsked
from idbg_tui.panes.prompting import AskingPane
from idbg_tui.panes.switches.rows import Item, SwitchLines, SwitchRow, items, words
from idbg_tui.state.state import State
from idbg_tui.widgets.lines import Lines
from idbg_tui.widgets.picker import Picker
from idbg_tui.widgets.prompt import Prompt
from idbg_tui.widgets.search import Searching

_MOST = 5  # rows of what is said of the switch under the cursor
_FEW = 12  # rows of the pane from which it is said at all


class SwitchesPane(AskingPane, Searching):
    """The switches by group; what is changed is compiled a moment later."""

    ID = "switches"
    LABEL = "Switches"
    SHORT = "Switch"
    TIGHT = "Swit"
    HINTS = (
        *(("space", "flip, choose"), ("enter", "the same"), ("u", "its default"), ("U", "all defaults")),
        *(("H", "only the changed"), ("/", "find"), ("y", "copy")),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "flip", show=False),
        Binding("u", "undo", show=False),
        Binding("U", "undo_all", show=False),
        Binding("H", "hide", show=False),
    ]
    DEFAULT_CSS = """
    SwitchesPane { layout: vertical; }
    SwitchesPane > SwitchLines { height: 1fr; }
    SwitchesPane > #meaning { height: auto; max-height: 5; padding: 0 1; color: $foreground 70%; background: $surface; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.lines = SwitchLines()
        self._meaning = Static(id="meaning", markup=False)
        self._state: State | None = None
        self._seen: tuple[object, ...] = ()
        self._only_changed = False

    def compose(self) -> ComposeResult:
        yield self.lines
        yield self._meaning
        yield Prompt()

    def shown_widget(self) -> Widget:
        return self.lines

    # ---------------------------------------------------------------- showing

    def show(self, state: State) -> None:
        """List the switches as they stand in the target of the next run."""
        seen = state.history.switches, state.target, state.live
        if not self.is_mounted or seen == self._seen:
            return
        self._state, self._seen = state, seen
        self._lay()

    def _lay(self) -> None:
        state = self._state
        if state is None:
            return
        every = self._switches(state)
        changed = sum(switches.is_changed(each, state.target) for each in every)
        self.mark = f"{changed}" if changed else ""
        self.lines.show_items(items(every, state.target, only_changed=self._only_changed), self._why_empty(state))
        self._explain()

    def _switches(self, state: State) -> list[Switch]:
        every = state.history.switches
        return [*switches.unlisted(state.target, every), *every]

    def _why_empty(self, state: State) -> str:
        if state.history.switches:
            return "every switch is as torch has it: H shows them all"
        if state.live:
            return "torch is being imported, and says then which switches it has"
        return "this session was saved before torch had said which switches it has"

    def _explain(self) -> None:
        """Say of the switch under the cursor what torch says, how it is given, and what it can be."""
        row = self._chosen
        lines = self._said(row) if row is not None and self.size.height >= _FEW else []
        self._meaning.display = bool(lines)
        self._meaning.update("\n".join(lines))

    def _said(self, row: SwitchRow) -> list[str]:
        switch, width = row.switch, max(self.size.width - 2, 20)
        facts = [flag(switch), f"torch's default: {words(switch, switch.default)}"]
        if switch.choices and switch.type != "bool":
            facts.append(f"it can be {switches.spelled_all(switch.choices)}")
        if switch.group == switches.UNLISTED:
            facts = [f"given to this session as it began; u takes {switch.name} away"]
        meaning = " ".join(switch.meaning.split())
        told = textwrap.wrap(meaning, width, max_lines=_MOST - 2, placeholder=" …") if meaning else []
        return [*textwrap.wrap("   ".join(facts), width, max_lines=2, placeholder=" …"), *told]

    def on_lines_moved(self, event: Lines.Moved) -> None:
        event.stop()
        self._explain()

    def on_resize(self) -> None:
        self._explain()

    # ---------------------------------------------------------------- keys

    @property
    def _chosen(self) -> SwitchRow | None:
        item: Item | None = self.lines.chosen
        return item if isinstance(item, SwitchRow) else None

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        self.action_flip()

    def action_flip(self) -> None:
        """Turn a switch round that is on or off; of another ask for its value."""
        row = self._chosen
        if row is None:
            self.post_message(Flash(self.lines.empty or "this row is no switch"))
        elif row.switch.group == switches.UNLISTED:
            self.post_message(Flash(f"{row.switch.name} is none of the listed switches: u takes it away"))
        elif row.switch.type == "bool":
            self.post_message(SwitchAsked(row.switch, flip=True))
        elif row.switch.choices:
            self._pick(row)
        else:
            self._type(row)

    def _pick(self, row: SwitchRow) -> None:
        switch = row.switch
        values: dict[str, OptionValue] = {words(switch, choice): choice for choice in switch.choices}
        listed = [(name, "torch's default" if value == switch.default else "") for name, value in values.items()]

        def take(name: str | None) -> None:
            if name is not None:
                self.post_message(SwitchAsked(switch, values[name]))

        self.app.push_screen(Picker(switch.name, listed, words(switch, row.value)), take)

    def _type(self, row: SwitchRow) -> None:
        switch = row.switch

        def take(text: str) -> None:
            self.post_message(SwitchAsked(switch, switches.typed(switch, text)))

        value = ",".join(map(str, row.value)) if isinstance(row.value, list) else switches.spelled(row.value)
        self.ask(f"{switch.name}, {switch.type}; torch's default is {words(switch, switch.default)}", value, take)

    def action_undo(self) -> None:
        """Let torch have this switch as it has it by itself."""
        row = self._chosen
        if row is None or not row.changed:
            self.post_message(Flash("this switch is as torch has it"))
        else:
            self.post_message(SwitchAsked(row.switch, row.switch.default))

    def action_undo_all(self) -> None:
        self.post_message(DefaultsAsked())

    def action_hide(self) -> None:
        """List only what was changed, or all."""
        self._only_changed = not self._only_changed
        self._lay()
