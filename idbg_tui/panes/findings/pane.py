"""What is wrong with the program, the worst first: failures, wrong numbers, broken rules, graph breaks, recompiles,
slow kernels.
"""

from collections.abc import Hashable, Iterator
from dataclasses import replace
from itertools import islice
from typing import ClassVar

from msgspec import structs
from textual.binding import Binding, BindingType
from textual.timer import Timer

from idbg.format.failures import headline
from idbg.format.glyphs import MARKS, VERDICT_SIGNS
from idbg.schema.graphs import NodeId
from idbg.schema.repros import Sought
from idbg.views import diagnostics, findings, rule_findings, tree
from idbg.views.findings import Kind
from idbg_tui.messages import ActionRequest, DecisionRequest, DiffRequest, Flash, SidesRequest
from idbg_tui.panes import before_after
from idbg_tui.panes.section_pane import SectionPane
from idbg_tui.state import queries, sentences, stages
from idbg_tui.state.state import State
from idbg_tui.widgets import sections
from idbg_tui.widgets.section_rows import Row, place_of

GONE_SECONDS = 6.0  # what an edit fixed is listed so long, unless a key moves the cursor before


class FindingsPane(SectionPane):
    """The list of findings; enter goes to a line's nodes, one after the other, or to the pane that has all about it."""

    ID = "findings"
    WHOLE = "all findings"
    HINTS = (
        *(("enter", "go there"), ("H", "one kind, all"), ("x", "repro"), ("X", "minify"), ("t", "try it")),
        *(("p", "before, after"), ("s", "sort"), ("/", "find"), ("y", "copy")),
    )
    BINDINGS: ClassVar[list[BindingType]] = [Binding("H", "narrow", "only findings of this kind, or all", show=False)]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._selected: NodeId | None = None
        self._kinds: list[Kind] = []
        self._of_nodes: list[tree.Row] = []
        self._rules = 0  # the version of those that were checked
        self._gone_version = 0  # of the rules whose "gone" was listed long enough
        self._gone_timer: Timer | None = None

    def show(self, state: State) -> None:
        """List what the rules in force find at the shown stage, in every frame, and what else is wrong."""
        followed = self._follow(state)
        level, versions = queries.level(state), state.versions
        of_run = versions.graphs, versions.run, versions.decisions, state.running, state.beginning
        if not self.is_news(state, tuple(map(id, level)), versions.rules, versions.costs, *of_run, state.accelerator):
            return
        self._rules = versions.rules
        key = self.lines.chosen.key if self.lines.chosen is not None else None
        self._list(state)
        if followed or self.lines.chosen is None or self.lines.chosen.key != key:
            self._go_to(state.selected)
        total = sum(kind.section.count or 0 for kind in self._kinds)
        self.mark = f"{total:,}" if total else _none(state)

    def _list(self, state: State) -> None:
        """Derive the sections, with what the last edit fixed for a few seconds."""
        expired = self._gone_version == self._rules
        with sections.collector_paused():
            broken = rule_findings.view(queries.checked(state), fixed=not expired)
            run, times = queries.explained_run(state), queries.kernel_times(state)
            kinds = findings.kinds_of(state.history, run, broken, times)
            self._kinds = [_with_keys(state, kind) if kind.name == "numbers" else kind for kind in kinds]
        if not expired and self._has_gone():
            if self._gone_timer is not None:
                self._gone_timer.stop()
            self._gone_timer = self.set_timer(GONE_SECONDS, self._forget_gone)
        tables = [block for block in broken.body if isinstance(block, tree.Table)]
        self._of_nodes = [row for table in tables for rule in table.rows for row in rule.below if row.refs.nodes]
        if self.view not in {"", *(kind.name for kind in self._kinds)}:
            self.view = ""
        self.lay()

    def lay(self) -> None:
        if (state := self._state) is not None:
            with sections.collector_paused():
                rows = sections.rows(findings.section(self._kinds, self.view), self.fitted_look(state))
            self.lines.show_rows(rows, why_no_findings(state))

    def _has_gone(self) -> bool:
        return any(isinstance(block, tree.Row) for kind in self._kinds for block in kind.section.body)

    def _forget_gone(self) -> None:
        if self._gone_version != self._rules and self._state is not None:
            self._gone_version = self._rules
            if self._has_gone():
                self._list(self._state)

    def action_narrow(self) -> None:
        """Show one kind of findings alone, the worst first; after the last all of them."""
        names = ["", *(kind.name for kind in self._kinds)]
        if len(names) < 3:
            self.post_message(Flash("all findings are of one kind" if self._kinds else why_no_findings(self._state)))
            return
        self.turn_to(names[(names.index(self.view) + 1) % len(names)])
        self.post_message(Flash(f"only {self.view}: H shows the next kind" if self.view else "all findings"))

    def action_fold_all(self) -> None:
        """Fold or unfold all, as everywhere; who looks for a filter is shown which key narrows."""
        super().action_fold_all()
        self.post_message(Flash("folded or unfolded: H narrows to one kind of findings, / finds a text"))

    def every_finding(self, files: frozenset[str], most: int) -> Iterator[tuple[Hashable, str]]:
        """The keys of the rows that lead somewhere, `most` of them, also of those that are folded or of another kind;
        each with its text.
        """
        look = replace(self.look, files=files)
        items = tree.items(findings.section(self._kinds), lambda _: True)
        rows = (item.row for item in items if item.row is not None)
        leading = (row for row in rows if row.opens or row.refs.nodes or row.refs.file)
        for row in islice(leading, most):
            yield row.key, " ".join(sections.searched(row, look).split())

    def reveal(self, key: Hashable) -> bool:
        if self.view:
            self.turn_to("")
        return super().reveal(key)

    # ---------------------------------------------------------------- the selected node

    def _follow(self, state: State) -> bool:
        """Put the cursor on the row of the node that was selected elsewhere, if another one was."""
        if state.selected == self._selected:
            return False
        self._selected = state.selected
        self._go_to(state.selected)
        self.mark_selected(state)
        return True

    def _go_to(self, node: NodeId | None) -> None:
        """The row under the cursor stays if the node is in it; else the first that has it, if any."""
        row = self.lines.chosen
        if node is None or (row is not None and node in row.nodes):
            return
        key = next((row.key for row in self._of_nodes if node in row.refs.nodes), None)
        if (at := place_of(self.lines.items, key)) is not None:
            self.lines.place_cursor(at)

    def open_row(self, row: Row) -> None:
        """A rule's row goes to its first node, although the cursor on it selects none; what another pane has more of,
        there.
        """
        match row:
            case Row(key=("rule", *_), sought=Sought(node=NodeId() as node)):
                super().open_row(replace(row, nodes=(node,)))
            case Row(key=("break", *_)):
                self.post_message(DecisionRequest("breaks", row.key))
            case Row(key=("function" | "compile", *_)):
                self.post_message(DecisionRequest("recompiles", row.key))
            case Row(key=("finding", "failure", str(key))) if self._is_of_run(key):
                self.post_message(DiffRequest("failure"))
            case Row(key=("finding", "failure", *_)):
                super().open_row(row)  # a frame's, a side's or another run's
            case Row(key=("finding", "benchmark", *_) | ("slow", *_)):
                self.post_message(ActionRequest("pane_6"))
            case Row(key=("finding" | "keys", *_)):
                self.post_message(ActionRequest("pane_5"))
            case _:
                super().open_row(row)

    def _is_of_run(self, key: str) -> bool:
        """Whether the failure of this key is the one with which the last run ended."""
        run = self._state.run if self._state is not None else None
        if run is None or run.failure is None:
            return False
        message = str(headline(run.failure))
        return any((each.key, each.message) == (key, message) for each in diagnostics.wrong(run))

    def moved_to(self, row: Row) -> None:
        self._forget_gone()
        super().moved_to(row)


def _with_keys(state: State, kind: Kind) -> Kind:
    """The findings with the keys that lead on from each: what changed in the graph, a script of it."""
    body = (
        structs.replace(block, rows=[_keyed(state, row) for row in block.rows])
        if isinstance(block, tree.Table)
        else block
        for block in kind.section.body
    )
    return kind._replace(section=structs.replace(kind.section, body=tuple(body)))


def _keyed(state: State, row: tree.Row) -> tree.Row:
    beside = before_after.of_key(state, row.key)
    keys = ["p diff"] if isinstance(beside, SidesRequest) else []
    keys += ["x repro", "X minify"] if state.live else []
    words = tree.words((f" {MARKS['separator']} ".join([*keys, "enter in 5 KernelDiff"]), "dim"))
    return structs.replace(row, rows=[*row.below, tree.Row(("keys", row.key), words, refs=row.refs)], open="all")


def _none(state: State) -> str:
    """The mark where the shown stage breaks no rule: green where no other does either, and nothing else is wrong."""
    if queries.is_without_rules(state):
        return ""
    if queries.is_clean(state):
        return VERDICT_SIGNS["clean"]
    return "0 here" if sentences.other_levels(state) else ""


def why_no_findings(state: State | None) -> str:
    """Why there is nothing to list."""
    if state is None:
        return ""
    run = state.run
    if queries.level(state):
        if state.accelerator is None:
            return "no valid rules yet: fix the file in 8 Rules"
        nothing = findings.nothing([run]) if run is not None else ""
        if queries.is_without_rules(state):
            return "  ".join(filter(None, (nothing, "No accelerator is chosen, so there are no rules: a chooses one.")))
        here = f"{stages.names_of(queries.level(state))}: no rule of {state.accelerator.name} is broken"
        if other := sentences.other_levels(state):
            return f"{here} {MARKS['separator']} {other}: v goes there"
        return "  ".join(filter(None, (f"{here}.", nothing)))
    if state.running or state.beginning:
        return "compiling: findings are listed as they are made"
    if run is not None and run.failure is not None:
        return f"no graph was captured: {headline(run.failure)}"
    return "not compiled yet: r runs" if state.live else sentences.why_no_graph(state)
