"""The pane Switches: torch's settings, their values for the next run, and what two runs differ in."""

import textwrap
from dataclasses import replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from idbg.config import switches
from idbg.format.amounts import elapsed
from idbg.format.glyphs import MARKS
from idbg.format.verdicts import verdict_words
from idbg.schema.programs import OptionValue, Switch
from idbg.schema.runs import Run
from idbg.views import compared
from idbg.views.switches import flag
from idbg_tui.messages import DefaultsRequest, Flash, SwitchRequest
from idbg_tui.panes.prompting import PromptingPane
from idbg_tui.panes.section_pane import SectionPane
from idbg_tui.panes.switches.rows import Item, SwitchLines, SwitchRow, items, words
from idbg_tui.state import queries
from idbg_tui.state.state import State
from idbg_tui.widgets import sections
from idbg_tui.widgets.item_list import ItemList
from idbg_tui.widgets.lines import Lines
from idbg_tui.widgets.picker import Picker
from idbg_tui.widgets.prompt import Prompt
from idbg_tui.widgets.section_list import SectionLines

_MOST = 5  # rows that describe the switch under the cursor
_FEW = 12  # rows of the pane from which they are shown


class ComparedLines(SectionLines):
    """The rows of a comparison; what is looked for is found among all of them."""

    ALL = "the comparison"

    def find(self, text: str, start: int) -> int:
        return ItemList.find(self, text, start)


class SwitchesPane(PromptingPane, SectionPane):
    """The switches by group; what is changed is compiled a moment later."""

    ID = "switches"
    LABEL = "Switches"
    NOTHING_HERE = "enter on kernels that changed shows both sources, on a line opens it"
    SHORT = "Switch"
    TIGHT = "Swit"
    HINTS = (
        *(("space", "flip, choose"), ("[ ]", "switches, two runs"), ("^x", "its default"), ("Z", "all defaults")),
        *(("J", "pick two runs"), (";", "sort"), ("H", "only the changed"), ("/", "find"), ("y", "copy")),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "flip", show=False),
        Binding("left_square_bracket,right_square_bracket", "view", show=False),
        Binding("J", "pick_runs", show=False),
        Binding("ctrl+x,delete", "remove", show=False),
        Binding("Z", "undo_all", show=False),
        Binding("H", "hide", show=False),
    ]
    DEFAULT_CSS = """
    SwitchesPane { layout: vertical; }
    SwitchesPane > ItemList { height: 1fr; }
    SwitchesPane > #views { height: 1; padding: 0 1; }
    SwitchesPane > #meaning { height: auto; max-height: 5; padding: 0 1; color: $foreground 70%; background: $surface; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(ComparedLines(self.lay), id=id)
        self.switches = SwitchLines()
        self.comparing = False  # which of the two is shown
        self._views = Static(id="views")
        self._chosen_runs: tuple[int, int] | None = None  # by hand; None: the last two
        self._meaning = Static(id="meaning", markup=False)
        self._seen: tuple[object, ...] = ()
        self._only_changed = False

    def compose(self) -> ComposeResult:
        yield self._views
        yield self.switches
        yield self.lines
        yield self._meaning
        yield Prompt()

    def on_mount(self) -> None:
        self.lines.display = False

    def shown_widget(self) -> Widget:
        return self.lines if self.comparing else self.switches

    # ---------------------------------------------------------------- showing

    def show(self, state: State) -> None:
        """List the switches as they stand in the target of the next run."""
        seen = state.history.switches, state.target, state.live, state.versions.run
        if not self.is_mounted or seen == self._seen:
            return
        before, self._state, self._seen = self._seen, state, seen
        if before[:3] != seen[:3]:
            self._lay()
        self.lay()

    def _lay(self) -> None:
        state = self._state
        if state is None:
            return
        every = self._switches(state)
        changed = sum(switches.is_changed(each, state.target) for each in every)
        self.mark = f"{changed}" if changed else ""
        self.switches.show_items(items(every, state.target, only_changed=self._only_changed), self._why_empty(state))
        self._explain()

    @property
    def _pair(self) -> tuple[Run, Run] | None:
        """The two runs that are compared."""
        runs = queries.ended_runs(self._state) if self._state is not None else []
        chosen = {run.number: run for run in runs if run.number in (self._chosen_runs or ())}
        if self._chosen_runs is not None and len(chosen) == 2:
            return chosen[self._chosen_runs[0]], chosen[self._chosen_runs[1]]
        return (runs[-2], runs[-1]) if len(runs) > 1 else None

    def lay(self) -> None:
        """Compare the runs, if that is shown; and name the two views."""
        pair = self._pair
        runs = f"run {pair[0].number} and run {pair[1].number}" if pair is not None else "two runs"
        names = ("switches", runs)
        shown = [f"[{name}]" if (place == 1) is self.comparing else f" {name} " for place, name in enumerate(names)]
        styles = ["bold $primary" if (place == 1) is self.comparing else "$foreground 60%" for place in (0, 1)]
        self._views.update(Content.assemble(*((f"{name} ", style) for name, style in zip(shown, styles, strict=True))))
        if self._state is None or not self.comparing:
            return
        look = replace(self.look, width=self.lines.room - 1, files=queries.source_files(self._state))
        rows = sections.rows(compared.view(*pair), look) if pair is not None else ()
        self.lines.show_rows(rows, compared.NO_PAIR)

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
        """Say of the switch under the cursor what torch says, how it is given, and what it can be."""
        row = self._chosen
        wanted = row is not None and self.size.height >= _FEW and not self.comparing
        lines = self._description(row) if row is not None and wanted else []
        self._meaning.display = bool(lines)
        self._meaning.update("\n".join(lines))

    def _description(self, row: SwitchRow) -> list[str]:
        switch, width = row.switch, max(self.size.width - 2, 20)
        facts = [flag(switch), f"torch's default: {words(switch, switch.default)}"]
        if switch.choices and switch.type != "bool":
            facts.append(f"it can be {switches.spelled_all(switch.choices)}")
        if switch.group == switches.UNLISTED:
            facts = [f"given to this session as it began; ^x takes {switch.name} away"]
        meaning = " ".join(switch.meaning.split())
        description = (
            textwrap.wrap(meaning, width, max_lines=_MOST - 2, placeholder=f" {MARKS['ellipsis']}") if meaning else []
        )
        return [
            *textwrap.wrap("   ".join(facts), width, max_lines=2, placeholder=f" {MARKS['ellipsis']}"),
            *description,
        ]

    def on_lines_moved(self, event: Lines.Moved) -> None:
        if not self.comparing:
            event.stop()
            event.prevent_default()
            self._explain()

    def on_resize(self) -> None:
        self._explain()

    # ---------------------------------------------------------------- two runs

    def action_view(self) -> None:
        """Show the switches, or what two runs differ in."""
        self.show_view(comparing=not self.comparing)

    def show_view(self, *, comparing: bool) -> None:
        """Show what two runs differ in, or the switches."""
        self.comparing = comparing
        self.switches.display, self.lines.display = not comparing, comparing
        self._explain()
        self.lay()
        self.shown_widget().focus()

    def action_pick_runs(self) -> None:
        """Choose the run before, then the one after."""
        runs = queries.ended_runs(self._state) if self._state is not None else []
        if len(runs) < 2:
            self.post_message(Flash(compared.NO_PAIR))
            return
        listed = [(f"run {run.number}", _run_words(run)) for run in runs]

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

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only the comparison has rows that fold, sort, and refer to something."""
        return self.comparing or action not in ("close", "unfold", "fold_all", "sort", "edit", "try", "repro")

    # ---------------------------------------------------------------- keys

    @property
    def _chosen(self) -> SwitchRow | None:
        item: Item | None = self.switches.chosen if not self.comparing else None
        return item if isinstance(item, SwitchRow) else None

    def on_lines_opened(self, event: Lines.Opened) -> None:
        if not self.comparing:
            event.stop()
            event.prevent_default()
            self._change_switch(flip=False)

    def action_flip(self) -> None:
        """Turn a switch round that is on or off; of another ask for its value."""
        if self.comparing:
            self.post_message(Flash("enter opens this row; space is for switches"))
        else:
            self._change_switch(flip=True)

    def _change_switch(self, *, flip: bool) -> None:
        row = self._chosen
        if row is None:
            self.post_message(Flash(self.switches.empty or "this row is no switch"))
        elif row.switch.group == switches.UNLISTED:
            self.post_message(Flash(f"{row.switch.name} is none of the listed switches: ^x takes it away"))
        elif row.switch.type == "bool" and flip:
            self.post_message(SwitchRequest(row.switch, flip=True))
        elif row.switch.choices or row.switch.type == "bool":
            self._pick(row)
        else:
            self._type(row)

    def _pick(self, row: SwitchRow) -> None:
        switch = row.switch
        values: dict[str, OptionValue] = {words(switch, choice): choice for choice in switch.choices or (True, False)}
        listed = [(name, "torch's default" if value == switch.default else "") for name, value in values.items()]

        def take(name: str | None) -> None:
            if name is not None:
                self.post_message(SwitchRequest(switch, values[name]))

        self.app.push_screen(Picker(switch.name, listed, words(switch, row.value)), take)

    def _type(self, row: SwitchRow) -> None:
        switch = row.switch

        def take(text: str) -> None:
            self.post_message(SwitchRequest(switch, switches.parse_value(switch, text)))

        value = ",".join(map(str, row.value)) if isinstance(row.value, list) else switches.spelled(row.value)
        self.prompt(f"{switch.name}, {switch.type}; torch's default is {words(switch, switch.default)}", value, take)

    def action_remove(self) -> None:
        """Let torch have this switch as it has it by itself."""
        row = self._chosen
        if row is None or not row.changed:
            self.post_message(Flash("this switch has torch's default"))
        else:
            self.post_message(SwitchRequest(row.switch, row.switch.default))

    def action_undo_all(self) -> None:
        self.post_message(DefaultsRequest())

    def action_hide(self) -> None:
        """List only what was changed, or all."""
        self._only_changed = not self._only_changed
        self._lay()


def _run_words(run: Run) -> str:
    """What tells a run from the others: what it was made with, and what came of it."""
    target = run.target
    own = [f"{name}={switches.spelled(value)}" for name, value in {**target.options, **target.settings}.items()]
    own += [f"{name} {value}" for name in ("mode", "stance") if (value := getattr(target, name))]
    own += ["cold"] if target.cold else []
    return f"{run.backend}, {', '.join(own) or 'torch defaults'}: {verdict_words(run)}, {elapsed(run.seconds)}"
