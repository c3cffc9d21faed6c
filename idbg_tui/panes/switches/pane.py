"""The pane Switches: torch's settings, their values for the next run, and what two runs differ in."""

import textwrap
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from idbg.config import switches
from idbg.format.glyphs import MARKS
from idbg.schema.programs import OptionValue, Switch
from idbg.schema.runs import Run
from idbg.views import compared
from idbg.views import switches as view
from idbg_tui.messages import DefaultsRequest, Flash, SwitchRequest, SwitchUndo
from idbg_tui.panes.prompting import PromptingPane
from idbg_tui.panes.section_pane import SectionPane
from idbg_tui.state import queries
from idbg_tui.state.state import State
from idbg_tui.widgets import sections
from idbg_tui.widgets.clicks import clickable
from idbg_tui.widgets.picker import Picker
from idbg_tui.widgets.prompt import Prompt
from idbg_tui.widgets.section_rows import Row, place_of

_SWITCHES, _COMPARED = "switches", "compared"  # the two views; a look at the first is that of ""
_MOST = 5  # rows that describe the switch under the cursor
_FEW = 12  # rows of the pane from which they are shown


class SwitchesPane(PromptingPane, SectionPane):
    """The switches by group; what is changed is compiled a moment later."""

    ID = "switches"
    WHOLE = "all of this list"
    NOTHING_HERE = "enter on kernels that changed shows both sources, on a line opens it"
    HINTS = (
        *(("space", "flip, choose"), ("[ ]", "switches, two runs"), ("^x", "its default"), ("Z", "undo")),
        *(
            ("A", "all defaults"),
            ("J", "pick two runs"),
            ("s", "sort"),
            ("H", "only the changed"),
            ("/", "find"),
            ("y", "copy"),
        ),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "flip", "switch on or off, or choose a value", show=False),
        Binding(
            "left_square_bracket,right_square_bracket", "view", "the switches, or what two runs differ in", show=False
        ),
        Binding("J", "pick_runs", "pick two runs to compare", show=False),
        Binding("ctrl+x,delete", "remove", "put the switch back to torch's default (Z takes it back)", show=False),
        Binding("A", "all", "put every switch back to torch's default (Z takes it back)", show=False),
        Binding("Z", "undo", "undo the last change", show=False),
        Binding("H", "hide", "only the changed, or all", show=False),
    ]
    DEFAULT_CSS = """
    SwitchesPane { layout: vertical; }
    SwitchesPane > ItemList { height: 1fr; }
    SwitchesPane > #views { height: 1; padding: 0 1; }
    SwitchesPane > #meaning { height: auto; max-height: 5; padding: 0 1; color: $foreground 70%; background: $surface; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._views = Static(id="views")
        self._views.auto_links = False
        self._chosen_runs: tuple[int, int] | None = None  # by hand; None: the last two
        self._meaning = Static(id="meaning", markup=False)

    def compose(self) -> ComposeResult:
        yield self._views
        yield self.lines
        yield self._meaning
        yield Prompt()

    @property
    def comparing(self) -> bool:
        """Whether the comparison is shown, not the switches."""
        return self.view == _COMPARED

    def shown_widget(self) -> Widget:
        return self.lines

    # ---------------------------------------------------------------- showing

    def show(self, state: State) -> None:
        """List the switches as they stand in the target of the next run."""
        if self.is_news(state, state.history.switches, state.target, state.live, state.versions.run):
            self.lay()

    @property
    def _pair(self) -> tuple[Run, Run] | None:
        """The two runs that are compared."""
        runs = queries.ended_runs(self._state) if self._state is not None else []
        chosen = {run.number: run for run in runs if run.number in (self._chosen_runs or ())}
        if self._chosen_runs is not None and len(chosen) == 2:
            return chosen[self._chosen_runs[0]], chosen[self._chosen_runs[1]]
        return (runs[-2], runs[-1]) if len(runs) > 1 else None

    def lay(self) -> None:
        """List the switches, or what the runs differ in; and name the two views."""
        state, pair = self._state, self._pair
        names = ("switches", f"run {pair[0].number} and run {pair[1].number}" if pair is not None else "two runs")
        shown = [f"[{name}] " if (place == 1) is self.comparing else f" {name}  " for place, name in enumerate(names)]
        styles = ["bold $primary" if (place == 1) is self.comparing else "$foreground 60%" for place in (0, 1)]
        pieces = map(clickable, shown, styles, (f"app.view('switches', '{view}')" for view in self.views))
        self._views.update(Content.assemble(*pieces))
        if state is None:
            return
        look = self.fitted_look(state)
        every = self._switches(state)
        section = view.of_target(every, state.target, only_changed=self._looks.get("", look).hiding)
        self.mark = f"{section.count}" if section.count else ""
        if self.comparing:
            self.lines.show_rows(sections.rows(compared.view(*pair), look) if pair else (), compared.NO_PAIR)
        else:
            begins = not self.lines.items
            self.lines.show_rows(sections.rows(section, look), self._why_empty(state))
            if begins and every:  # on a switch, not on the name of its group
                key = "switch", every[0].place, every[0].name
                self.lines.place_cursor(place_of(self.lines.items, key) or 0)
        self._explain()

    def _switches(self, state: State) -> list[Switch]:
        every = state.history.switches
        return [*switches.unlisted(state.target, every), *every]

    def _why_empty(self, state: State) -> str:
        if state.history.switches:
            return "every switch has torch's default: H shows them all"
        if state.live:
            return "torch is being imported, and says then which switches it has"
        last = state.history.last
        again = f": idbg-tui {last.program.label} runs it again and does" if last is not None else ""
        return (
            f"this session does not say which switches torch has, as no screen made it{again}; idbg switches lists them"
        )

    def _explain(self) -> None:
        """Show of the switch under the cursor how it is set, what it can be, and what torch says of it."""
        switch = self._chosen if self.size.height >= _FEW else None
        texts = (view.facts(switch), " ".join(switch.meaning.split())) if switch is not None else ()
        width, dots = max(self.size.width - 2, 20), f" {MARKS['ellipsis']}"
        most = (2, _MOST - 2)
        wrapped = (
            textwrap.wrap(text, width, max_lines=of, placeholder=dots) for text, of in zip(texts, most, strict=False)
        )
        lines = [line for each in wrapped for line in each]
        self._meaning.display = bool(lines)
        self._meaning.update("\n".join(lines))

    def moved_to(self, row: Row) -> None:
        self._explain()
        super().moved_to(row)

    def on_resize(self) -> None:
        self._explain()

    def reveal(self, key: Hashable) -> bool:
        """The switch with this key, or what two runs differ in, by their numbers."""
        match key:
            case (int(first), int(second)):
                self._chosen_runs = first, second
                self.show_view(comparing=True)
                return True
        self.show_view(comparing=False)
        return super().reveal(key)

    # ---------------------------------------------------------------- two runs

    def action_view(self) -> None:
        """Show the switches, or what two runs differ in."""
        self.show_view(comparing=not self.comparing)

    @property
    def views(self) -> Sequence[str]:
        return (_SWITCHES, _COMPARED)

    def choose_view(self, view: str) -> None:
        self.show_view(comparing=view == _COMPARED)

    def show_view(self, *, comparing: bool) -> None:
        """Show what two runs differ in, or the switches."""
        self.turn_to(_COMPARED if comparing else "")
        self.lines.focus()

    def action_pick_runs(self) -> None:
        """Choose the run before, then the one after."""
        runs = queries.ended_runs(self._state) if self._state is not None else []
        if len(runs) < 2:
            self.post_message(Flash(compared.NO_PAIR))
            return
        listed = [(f"run {run.number}", compared.run_words(run)) for run in runs]

        def take_first(first: str | None) -> None:
            if first is None:
                return
            others = [each for each in listed if each[0] != first]
            self.app.push_screen(Picker(f"{first}, against...", others, others[-1][0]), lambda name: take(first, name))

        def take(first: str, second: str | None) -> None:
            if second is not None:
                self._chosen_runs = int(first.split()[1]), int(second.split()[1])
                self.show_view(comparing=True)

        self.app.push_screen(Picker("Compare which run?", listed, listed[-2][0]), take_first)

    def action_close(self) -> None:
        """Fold what the row is in, at once: a section of the comparison is one level deep."""
        row = self.lines.chosen
        if row is not None and row.fold is None and row.inside:
            self._turn(row.inside[-1])
        else:
            super().action_close()

    # ---------------------------------------------------------------- keys

    @property
    def _chosen(self) -> Switch | None:
        """The switch under the cursor."""
        match self.lines.chosen:
            case Row(key=("switch", place, name)) if self._state is not None:
                every = self._switches(self._state)
                return next((each for each in every if (each.place, each.name) == (place, name)), None)
        return None

    def open_row(self, row: Row) -> None:
        if self._chosen is None:
            super().open_row(row)
        else:
            self._change_switch(flip=False)

    def action_flip(self) -> None:
        """Turn a switch round that is on or off; of another ask for its value."""
        if self.comparing:
            self.post_message(Flash("enter opens this row; space is for switches"))
        else:
            self._change_switch(flip=True)

    def _change_switch(self, *, flip: bool) -> None:
        switch = self._chosen
        if switch is None:
            self.post_message(Flash(self.lines.empty or "this row is no switch"))
        elif switch.group == switches.UNLISTED:
            self.post_message(Flash(f"{switch.name} is none of the listed switches: ^x takes it away"))
        elif switch.type == "bool" and flip:
            self.post_message(SwitchRequest(switch, flip=True))
        elif switch.choices or switch.type == "bool":
            self._pick(switch)
        else:
            self._type(switch)

    def _value(self, switch: Switch) -> OptionValue:
        return switches.value_of(switch, self._state.target) if self._state is not None else switch.default

    def _pick(self, switch: Switch) -> None:
        every = switch.choices or (True, False)
        values: dict[str, OptionValue] = {view.value_words(switch, choice): choice for choice in every}
        listed = [(name, "torch's default" if value == switch.default else "") for name, value in values.items()]

        def take(name: str | None) -> None:
            if name is not None:
                self.post_message(SwitchRequest(switch, values[name]))

        self.app.push_screen(Picker(switch.name, listed, view.value_words(switch, self._value(switch))), take)

    def _type(self, switch: Switch) -> None:
        def take(text: str) -> None:
            self.post_message(SwitchRequest(switch, switches.parse_value(switch, text)))

        now = self._value(switch)
        value = ",".join(map(str, now)) if isinstance(now, list) else switches.spelled(now)
        default = view.value_words(switch, switch.default)
        self.prompt(f"{switch.name}, {switch.type}; torch's default is {default}", value, take)

    def why_off(self, action: str) -> str:
        switch, state = self._chosen, self._state
        if action in ("flip", "remove") and switch is None:
            return self.lines.empty or "this row is no switch"
        if action == "remove" and switch is not None and not (state and switches.is_changed(switch, state.target)):
            return "this switch has torch's default"
        return "" if switch is not None and action == "open" else super().why_off(action)

    def action_remove(self) -> None:
        """Let torch have this switch as it has it by itself."""
        why, switch = self.why_off("remove"), self._chosen
        if switch is None or why:
            self.post_message(Flash(why))
        else:
            self.post_message(SwitchRequest(switch, switch.default))

    def action_all(self) -> None:
        self.post_message(DefaultsRequest())

    def action_undo(self) -> None:
        self.post_message(SwitchUndo())

    def action_hide(self) -> None:
        """List only what was changed, or all."""
        self.relist(replace(self.look, hiding=not self.look.hiding))
