"""The pane Node: all facts of the selected node or module, and where each leads."""

from textual.content import Content

from idbg.format.glyphs import MARKS, SEVERITY_SIGNS
from idbg.views import module, node
from idbg_tui.messages import KernelChosen
from idbg_tui.panes.section_pane import SectionPane
from idbg_tui.state import queries
from idbg_tui.state.sentences import why_no_graph
from idbg_tui.state.state import State
from idbg_tui.widgets import sections
from idbg_tui.widgets.section_rows import Row


class NodePane(SectionPane):
    """Everything about the selected node, unabridged, or about the module under the graph's cursor; enter on an input,
    a user or another stage goes there."""

    ID = "node"
    WHOLE = "all that is known of this node"
    HINTS = (("enter", "go"), ("i", "input"), ("u", "user"), ("/", "find"), ("y", "copy"))

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._about: tuple[object, ...] = ()

    def show(self, state: State) -> None:
        """Show the selected node from its top; one whose facts alone changed keeps the cursor."""
        versions = state.versions
        facts = versions.graphs, versions.selection, versions.rules, versions.run, versions.costs
        if not self.is_news(state, *facts):
            return
        name = state.heading.title if state.heading else state.node.name if state.node else ""
        self.mark = "".join(SEVERITY_SIGNS[severity] for severity in queries.selected_severities(state))
        self.set_title(self.heading() + Content(f" {MARKS['rule']} {name}" if name else ""))
        shown = (state.selected, state.heading.key if state.heading else "")
        before, self._about = self._about, shown
        self._lay(top=shown != before)

    def lay(self) -> None:
        self._lay(top=False)

    def _lay(self, *, top: bool) -> None:
        if (state := self._state) is None:
            return
        about, of_module = queries.about_node(state), queries.about_module(state)
        section = module.view(of_module) if of_module is not None else node.view(about) if about is not None else None
        rows = sections.rows(section, self.fitted_look(state)) if section is not None else ()
        self.lines.show_rows(rows, f"no node is selected: {why_no_graph(state)}", top=top)

    def moved_to(self, row: Row) -> None:
        """The facts stay those of this node."""

    def open_row(self, row: Row) -> None:
        match row.key:
            case ("launch", str(handle), int(line)) if row.kernel is not None:
                self.post_message(KernelChosen(*row.kernel, handle, line))
            case _:
                super().open_row(row)
