"""What does each key do? The actions of the whole program; panes have their own.

What only one key shows is imported when that key is pressed: the first paint waits for nothing that it does not show.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from msgspec.structs import replace
from textual.timer import Timer

from idbg.accelerators import registry
from idbg.accelerators.registry import for_backend
from idbg.config.settings import Settings
from idbg.format.failures import place_of
from idbg.schema.errors import AcceleratorError, IdbgError
from idbg.schema.programs import Target
from idbg.schema.violations import SEVERITIES
from idbg.session.session import Session
from idbg_tui import messages, status_bar
from idbg_tui.actions.bench import BenchActions
from idbg_tui.layout import Body
from idbg_tui.panes.base import PaneId
from idbg_tui.state import navigation, queries
from idbg_tui.state.moves import Relation

Level = Literal["info", "warning", "error"]
RECOMPILE = 1.0  # seconds after the last edit of the rules


class Actions(BenchActions):
    """The part of the app that keys reach; `IdbgApp` is the rest."""

    session: Session
    settings: Settings
    body: Body
    _recompiling: Timer | None = None
    _left_unsaved: str | None = None  # rules that the user was told are not saved

    def show_selection(self) -> None:
        """Show a step of the cursor where it was made at once, and in the other panes when it rests."""
        raise NotImplementedError

    def flash(self, text: str, level: Level = "info", *, of_run: bool = False) -> None:
        """Say something in the footer, until the next key; what is about a run, until one starts or ends too."""
        raise NotImplementedError

    def attempt(self, do: Callable[[], object]) -> bool:
        """Do something that may be refused; if it is, say why."""
        try:
            do()
        except IdbgError as error:
            self.flash(f"{error.message}: {error.hint}" if error.hint else error.message, "error")
            return False
        return True

    # ---------------------------------------------------------------- compile

    def action_run(self) -> None:
        self.attempt(self.session.run)

    def recompile_soon(self) -> None:
        """Compile again when the rules have not been edited for a moment."""
        if self._recompiling is not None:
            self._recompiling.stop()
        self._recompiling = self.set_timer(RECOMPILE, self._recompile)

    def _recompile(self) -> None:
        """Compile for the rules as they are now, unless the last run was or is."""
        run = self.state.run
        if run is not None and run.target.rules == self.session.target.rules:
            return
        if self.attempt(lambda: self.session.run(asked=False)):
            if self.state.measuring:
                self.flash("these rules are compiled when the measurement has ended (r: now)")
            elif self.state.running and run is not None and run.comparison:
                self.flash("these rules are compiled when the comparison has ended (r: now)")

    def action_cancel(self) -> None:
        if self.state.measuring:
            self._cancel("stopping: finished rows stay")
        elif self.state.running or self.state.repro_running or self.state.bench.waiting:
            self._cancel("cancelling")
        else:
            self.flash("nothing is being compiled or measured")

    def _cancel(self, words: str) -> None:
        self.state.cancelling = self.state.running or self.state.measuring
        self.state.bench.waiting = 0
        self.show()
        if self.attempt(self.session.cancel):
            self.flash(words, of_run=True)

    def action_interrupt(self) -> None:
        """Ctrl+C: the first cancels a compile or a measurement, the second quits."""
        busy = self.state.running or self.state.measuring
        if busy and not self.state.cancelling:
            self._cancel("cancelling; ^c again quits")
        elif busy or self._may_quit():
            self.exit()

    async def action_quit(self) -> None:
        if self._may_quit():
            self.exit()

    def _may_quit(self) -> bool:
        """Whether nothing is lost, or the user was told of these very edits."""
        from idbg_tui.panes.rules.pane import RulesPane

        rules = self.body.panes["rules"]
        if not isinstance(rules, RulesPane):
            return True
        text = rules.editor.text
        if not rules.edited or text == self._left_unsaved:
            return True
        self._left_unsaved = text
        self.flash("unsaved rules: q again quits, 8 then ^s saves", "warning")
        return False

    def action_strict(self) -> None:
        self._retarget(replace(self.session.target, strict=not self.session.target.strict))

    def action_backend(self) -> None:
        from idbg_tui import choices
        from idbg_tui.widgets.picker import Picker

        current = self.session.target.backend
        listed = choices.backends(self.state.history.worker, current)
        broken = {backend.name: backend.error for backend in listed if backend.error}

        def take(name: str | None) -> None:
            if name in broken:
                self.flash(f"the backend {name} cannot be used: {broken[name]}", "error")
            elif name:
                self.attempt(lambda: self.session.run(for_backend(self.session.target, name)))
                self.show()

        words = [(backend.name, backend.error or backend.about) for backend in listed]
        self.push_screen(Picker("Backend", words, current, broken), take)

    def action_accelerator(self) -> None:
        from idbg_tui import choices
        from idbg_tui.widgets.picker import Picker

        current = self.session.target.accelerator
        used = [current, *(run.target.accelerator for run in self.state.history.runs.values())]
        folder = Path(self.state.program.cwd if self.state.program else "")
        self.push_screen(Picker("Accelerator", choices.accelerators(folder, used), current), self._take_accelerator)

    def _take_accelerator(self, name: str | None) -> None:
        if not name:
            return
        try:
            text, origin = registry.find(name)
        except AcceleratorError as error:
            self.flash(f"{error.message}: {error.hint}", "error")
            return
        if self.session.edit_rules(text, origin) is not None and self.session.live:
            self._retarget(replace(self.session.target, accelerator=name))

    def _retarget(self, target: Target) -> None:
        self.attempt(lambda: self.session.run(target))
        self.show()

    def action_repro(self) -> None:
        """A repro of the selected node's severest violation; of the failed compile where the node breaks no rule."""
        selected = self.state.selected
        broken = queries.violations_of(self.state, selected) if selected else []
        run = self.state.run
        if broken:
            severest = min(broken, key=lambda violation: SEVERITIES.index(violation.severity))
            self.post_message(messages.ReproAsked(severest.node, severest.rule))
        elif run is not None and run.failure is not None:
            self.post_message(messages.ReproAsked(None))
        else:
            self.flash(self._why_no_repro())

    def _why_no_repro(self) -> str:
        """What breaks no rule and did not fail, or what is not known yet."""
        from idbg_tui.state.sentences import why_no_graph

        if self.state.graph is None:
            return f"nothing to reproduce: {why_no_graph(self.state)}"
        if self.state.running:
            return "nothing to reproduce yet: this node breaks no rule, and the compile has not ended (v finds one)"
        if self.state.run is not None and self.state.run.frame_failures:
            return "this node breaks no rule; of a frame that did not compile 7 Log has the error (v finds a violation)"
        return "nothing to reproduce: this node breaks no rule and the compile did not fail (v finds one)"

    # ---------------------------------------------------------------- graph

    def action_stage(self, step: int) -> None:
        self._moved(navigation.step_stage(self.state, step), "there is no further stage of this frame")

    def action_frame(self, step: int) -> None:
        self._moved(navigation.step_frame(self.state, step), "there is no further frame")

    def action_walk(self, relation: Relation, turn: int) -> None:
        none = "this node has no inputs" if relation == "input" else "nothing in this graph uses this node"
        self._moved(self.state.walk(relation, turn), none)

    def action_broken(self, step: int) -> None:
        before = self.state.graph_id
        so_far = " that was captured so far" if self.state.running else ""
        self._moved(navigation.step_broken(self.state, step), f"no node of any graph{so_far} breaks a rule")
        if self.state.graph_id != before:
            self.flash(status_bar.arrived(self.state))

    def action_jump_back(self) -> None:
        self._moved(self.state.step_jump(back=True), "no place to go back to")

    def action_jump_forward(self) -> None:
        self._moved(self.state.step_jump(back=False), "no place to go forward to")

    def _moved(self, moved: bool, otherwise: str) -> None:
        if moved:
            self.show()
        elif self.state.graph is None:
            from idbg_tui.state.sentences import why_no_graph

            self.flash(why_no_graph(self.state))
        else:
            self.flash(otherwise)

    # ---------------------------------------------------------------- what panes say

    def on_node_chosen(self, message: messages.NodeChosen) -> None:
        chosen = self.state.choose(message.node, jump=message.jump)
        if not chosen:
            self.flash(f"the graphs that are shown have no node {message.node.name}")
        self.show_selection()
        if chosen and message.jump:
            self._show_node()

    def _show_node(self) -> None:
        """Where one pane has the screen: go where the node that was chosen can be seen."""
        if self.body.alone and self.body.current not in ("graph", "node"):
            self.body.go("graph")

    def on_kernel_chosen(self, message: messages.KernelChosen) -> None:
        launch = message.handle, message.line
        if not navigation.choose_kernel(self.state, message.frame, message.part, message.name, *launch):
            self.flash(f"the code that is shown does not launch {message.handle or message.name}: r compiles again")
        self.show()

    def on_line_chosen(self, message: messages.LineChosen) -> None:
        chosen = navigation.choose_line(self.state, message.file, message.line)
        self.show_selection()
        if message.jump and chosen:
            self._show_node()
        elif message.jump:
            self.flash("no node of the shown run was made at that line")

    def on_rules_changed(self, message: messages.RulesChanged) -> None:
        self.session.edit_rules(message.text, message.origin)

    def on_repro_asked(self, message: messages.ReproAsked) -> None:
        self.attempt(lambda: self.session.export_repro(message.node, message.rule))

    def on_flash(self, message: messages.Flash) -> None:
        self.flash(message.text, message.level)

    # ---------------------------------------------------------------- files

    def action_copy(self) -> None:
        """Where the pane has nothing of its own to copy."""
        self.flash(f"there is nothing to copy in {self.body.panes[self.body.current].LABEL}")

    def action_edit(self) -> None:
        """Open the selected node's line; where the last run failed before it had any, the line of the failure."""
        node, run = self.state.node, self.state.run
        cause = run and (run.failure or run.cause)
        file, line = place_of(cause) if cause and (node is None or self.state.shown is not run) else ("", 0)
        if file:
            self.post_message(messages.EditorAsked(file, line))
        elif node is not None and node.file:
            self.post_message(messages.EditorAsked(node.file, node.line))
        elif self.state.program is not None and not self.state.program.module:
            self.post_message(messages.EditorAsked(self.state.program.path))
        else:
            self.flash("no line of your program is known for this node")

    def on_copy_asked(self, message: messages.CopyAsked) -> None:
        from idbg_tui.terminal import suspend

        def copy() -> None:
            said = suspend.copy(self, message.text, message.what, str(self.session.folder))
            self.call_from_thread(self.flash, said)

        self.run_worker(copy, thread=True, exclusive=True, group="copy")

    def on_editor_asked(self, message: messages.EditorAsked) -> None:
        from idbg_tui.terminal import suspend

        def edit() -> None:
            if message.text is None:
                suspend.edit(self, message.path, message.line, self.settings.editor)
                return
            text = suspend.edit_text(self, message.path, message.text, message.line, self.settings.editor)
            if text != message.text:
                self.session.edit_rules(text)

        self.attempt(edit)
        self.refresh()

    # ---------------------------------------------------------------- panes

    def action_pane(self, name: PaneId) -> None:
        self.body.go(name)

    def action_next_pane(self, step: int) -> None:
        self.body.step(step)

    def action_zoom(self) -> None:
        self.body.zoom()

    def action_grow(self, step: int) -> None:
        self.body.grow(step)

    def action_help(self) -> None:
        from idbg_tui.help import Help, entries

        self.push_screen(Help(entries(self.keys, list(self.body.panes.values()))))
