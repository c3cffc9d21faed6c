"""The rules that the program breaks, the lines where it does, and what fixes them."""

import re
from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.timer import Timer

from idbg.format import file_names
from idbg.format.failures import headline
from idbg.format.glyphs import MARKS, SEVERITY_SIGNS, VERDICT_SIGNS
from idbg.schema.graphs import NodeId
from idbg.schema.repros import Sought
from idbg_tui.messages import ActionRequest, NodeChosen, ReproRequest
from idbg_tui.panes.searchable import SearchablePane
from idbg_tui.panes.violations.costs import Cost, costs_by_rule
from idbg_tui.panes.violations.rows import CodeLine, Gone, Item, RuleHeading, violation_list
from idbg_tui.state import queries, sentences, stages
from idbg_tui.state.state import State
from idbg_tui.widgets.item_list import ItemList
from idbg_tui.widgets.lines import Lines, StyledRow, clip, fit

_NAMES = 3
_MANY, _WIDE = 24, 140  # nodes of a line at most where the pane has so many cells
_CLAUSES = re.compile(rf"(.*)(?:, | {MARKS['arrow']} )")
_LEAST = 14  # cells of names, however long a line's text is
GONE_SECONDS = 6.0  # what went is listed so long, unless a key moves the cursor before


class ViolationLines(ItemList[Item]):
    """Rules and, under each, the user's lines."""

    ALL = "all violations"

    def __init__(self) -> None:
        super().__init__()
        self.files: frozenset[str] = frozenset()  # among which file names are unique
        self._rule = 0
        self._place = 0
        self._names = 0  # cells of the first few
        self._every = 0  # cells of as many as a wide pane lists
        self._text_width = 0  # cells of what stands beside them
        self._needed: dict[str, int] = {}  # rule -> cells that its lines need

    def show_items(self, items: Sequence[Item], empty: str = "") -> None:
        """Show another list; the cursor stays on what it was on, wherever that is now."""
        self._measure(items)
        if self.chosen is None:
            self.cursor = 0
        super().show_items(items, empty)
        self.show_cursor()

    def key(self, item: Item) -> object:
        match item:
            case CodeLine(file=file, line=line):
                return item.rule.name, file, line
            case Cost(place=place):
                return item.rule.name, "cost", place
        return item.rule.name, type(item)

    def copied(self, index: int) -> tuple[str, str]:
        return self.text(index).strip(), "the violation"

    def _measure(self, items: Sequence[Item]) -> None:
        """How wide each column is, from all its cells."""
        self._rule = max((len(item.rule.name) for item in items), default=0)
        self._place = max((len(_place(item, self.files)) for item in items if isinstance(item, CodeLine)), default=0)
        self._names = max((_width(item, _NAMES) for item in items if isinstance(item, CodeLine)), default=0)
        self._every = max((_width(item, _MANY) for item in items if isinstance(item, CodeLine)), default=0)
        self._text_width = max((len(item.text or item.code) for item in items if isinstance(item, CodeLine)), default=0)
        self._needed = {}
        for item in items:
            if isinstance(item, CodeLine):
                self._needed[item.rule.name] = max(self._needed.get(item.rule.name, 0), _needed(item))

    def draw(self, item: Item, width: int) -> StyledRow:
        match item:
            case RuleHeading() as heading:
                return self._heading(heading, width)
            case CodeLine() as line:
                return self._line(line, width)
            case Cost() as cost:
                return [("   ", ""), (clip(f"{MARKS['arrow']} {cost.text}", width - 3), cost.rule.severity)]
            case Gone() as gone:
                return [(clip(_gone(gone), width), "dim")]
            case rest:
                return [(f"   and {rest.count:,} more nodes: v walks through them", "dim")]

    def _heading(self, item: RuleHeading, width: int) -> StyledRow:
        severity = item.rule.severity
        sign = SEVERITY_SIGNS[severity] if item.count else VERDICT_SIGNS["clean"]
        count = f"{item.count:>6,}  "
        new = f"+{item.new:,} new  " if item.new else ""
        start = f" {sign} "
        name = fit(item.rule.name, self._rule)
        room = width - len(start) - len(name) - len(count) - len(new)
        return [
            (start, severity if item.count else "clean"),
            (name, "strong"),
            (count, ""),
            (new, "accent"),
            (clip(item.text, room), ""),
        ]

    def _line(self, item: CodeLine, width: int) -> StyledRow:
        start = f"   {MARKS['dot'] if item.new else ' '} "
        place = fit(_place(item, self.files), self._place) + "  "
        dots = MARKS["ellipsis"]
        left = width - len(start) - len(place) - 2
        allotted = max(_LEAST, min(left // 2, left - self._needed[item.rule.name]))
        named = min(self._names, allotted)
        if width >= _WIDE:
            named = min(self._every, max(allotted, left - self._text_width))
        names = fit(_names(item, named), named, dots) + "  "
        room = width - len(start) - len(place) - len(names)
        text = item.text if len(item.text) <= room else _essence(item)
        text = _within(text, room) if text else clip(item.code, room)
        return [(start, "accent"), (place, ""), (names, ""), (text, "dim")]


class ViolationsPane(SearchablePane):
    """The list of violations; enter goes to a line's nodes, one after the other."""

    ID = "violations"
    LABEL = "Violations"
    TIGHT = "Viol"
    HINTS = (("enter", "go to node"), ("x", "repro"), ("X", "minify"), ("/", "find"), ("y", "copy"))
    DEFAULT_CSS = """
    ViolationsPane > ViolationLines { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "repro", show=False),
        Binding("X", "repro(True)", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.lines = ViolationLines()
        self._seen: tuple[object, ...] = ()
        self._selected: NodeId | None = None
        self._checked: list[Item] = []  # with what the last edit made go
        self._empty = ""
        self._rules = 0  # the version of those that were checked
        self._gone_version = 0  # of the rules whose "gone" was listed long enough
        self._gone_timer: Timer | None = None

    def compose(self) -> ComposeResult:
        yield self.lines

    def show(self, state: State) -> None:
        """List what the rules in force find at the shown stage, in every frame."""
        self._follow(state)
        level = queries.level(state)
        versions = state.versions
        seen = (
            tuple(map(id, level)),
            versions.rules,
            versions.costs,
            versions.graphs,
            state.running,
            state.beginning,
            state.accelerator,
        )
        if seen == self._seen or not self.is_mounted:
            return
        self._seen = seen
        checked = [(state.checks.findings(graph), state.checks.change(graph)) for graph in level]
        self.lines.files = queries.source_files(state)
        self._checked = violation_list(checked, costs_by_rule(state))
        self._rules, self._empty = versions.rules, why_no_violations(state)
        if any(isinstance(item, Gone) for item in self._checked) and self._gone_version != self._rules:
            self._list_gone()
        self._list()
        self._go_to(state.selected)
        total = sum(queries.counts(state).values())
        self.mark = f"{total:,}" if total else _none(state)

    def _list_gone(self) -> None:
        """List what went, for a few seconds."""
        if self._gone_timer is not None:
            self._gone_timer.stop()
        self._gone_timer = self.set_timer(GONE_SECONDS, self._forget_gone)

    def _forget_gone(self) -> None:
        if self._gone_version != self._rules:
            self._gone_version = self._rules
            self._list()

    def _list(self) -> None:
        expired = self._gone_version == self._rules
        self.lines.show_items([item for item in self._checked if not (expired and isinstance(item, Gone))], self._empty)

    # ---------------------------------------------------------------- the selected node

    def _follow(self, state: State) -> None:
        """Put the cursor on the row of the node that was selected elsewhere."""
        if state.selected != self._selected:
            self._selected = state.selected
            self._go_to(state.selected)

    def _go_to(self, node: NodeId | None) -> None:
        """The row under the cursor stays if the node is in it; else the first that has it, if any."""
        items = self.lines.items
        rows = (self.lines.cursor, *(row for row, item in enumerate(items) if isinstance(item, CodeLine)))
        of_node = (row for row in rows if row < len(items) and node in _nodes_of(items[row]))
        row = next(of_node, None)
        if row is not None:
            self.lines.place_cursor(row)

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        item = self.lines.items[event.index] if self.lines.items else None
        if isinstance(item, Cost) and item.view and item.node is None:
            self.post_message(ActionRequest(item.view))
            return
        nodes = self._under_cursor()
        if nodes:
            here = nodes.index(self._selected) if self._selected in nodes else -1
            self.post_message(NodeChosen(nodes[(here + 1) % len(nodes)], jump=True))

    def on_lines_moved(self, event: Lines.Moved) -> None:
        event.stop()
        self._forget_gone()
        nodes = _nodes_of(self.lines.items[self.lines.cursor]) if self.lines.items else ()
        if nodes and self._selected not in nodes:
            self._selected = nodes[0]
            self.post_message(NodeChosen(nodes[0]))

    def _under_cursor(self) -> Sequence[NodeId]:
        """The nodes of the row under the cursor; for a rule, those of its first line."""
        items = self.lines.items
        below = (item for item in items[self.lines.cursor :] if not isinstance(item, RuleHeading | Cost))
        item = next(below, None)
        return item.nodes if isinstance(item, CodeLine) else ()

    def action_repro(self, smallest: bool = False) -> None:
        """Of the violation under the cursor; where the list has none, of how the run failed, as the key does."""
        nodes = self._under_cursor()
        if nodes:
            sought = Sought("violation", node=nodes[0], rule=self.lines.items[self.lines.cursor].rule.name)
            self.post_message(ReproRequest(sought, smallest=smallest))
        else:
            self.post_message(ActionRequest("minify" if smallest else "repro"))


def _nodes_of(item: Item) -> tuple[NodeId, ...]:
    if isinstance(item, Cost):
        return (item.node,) if item.node else ()
    return item.nodes if isinstance(item, CodeLine) else ()


def _gone(item: Gone) -> str:
    """ " ✔ gone: 15 alignment  dim 0 is 10  mlp.py:12, mlp.py:20 +3"."""
    words = item.findings[0] + (f" (and {len(item.findings) - 1} more)" if len(item.findings) > 1 else "")
    more = f" +{len(item.places) - _NAMES}" if len(item.places) > _NAMES else ""
    more = more if item.all_places else " and others"
    return f" {MARKS['gone']} gone: {item.count:,} {item.rule.name}  {words}  {', '.join(item.places[:_NAMES])}{more}"


def _place(item: CodeLine, files: frozenset[str]) -> str:
    if item.file:
        return file_names.place(item.file, item.line, files)
    return "inputs" if item.inputs else "no line"


def _essence(item: CodeLine) -> str:
    """A line's text without the number of other findings, which is left out before a figure is cut."""
    return item.text.partition(" (and ")[0]


def _within(text: str, room: int) -> str:
    """A line's text in `room` cells: clauses are left out before the cost, which is at the end."""
    head, colon, cost = text.rpartition(": ")
    if len(text) <= room or not colon:
        return clip(text, room)
    while head and len(head) + len(cost) + 3 > room:
        clause = _CLAUSES.match(head)
        head = clause[1] if clause else ""
    return clip(f"{head}{MARKS['ellipsis']}: {cost}", room)


def _needed(item: CodeLine) -> int:
    """Cells of a line's text, if there is a number in it."""
    text = _essence(item)
    return len(text) if any(map(str.isdigit, text)) else 0


def _names(item: CodeLine, room: int) -> str:
    """As many names as have room, a few at least, and how many more there are."""
    shown = next((least for least in range(len(item.nodes[:_MANY]), _NAMES, -1) if _width(item, least) <= room), _NAMES)
    more = f" +{len(item.nodes) - shown:,}" if len(item.nodes) > shown else ""
    return ", ".join(node.name for node in item.nodes[:shown]) + more


def _width(item: CodeLine, shown: int) -> int:
    names = sum(len(node.name) + 2 for node in item.nodes[:shown]) - 2
    return names + (len(f" +{len(item.nodes) - shown:,}") if len(item.nodes) > shown else 0)


def _none(state: State) -> str:
    """The mark where the shown stage breaks no rule: green where no other does either, and nothing else is wrong."""
    if queries.is_without_rules(state):
        return ""
    if queries.is_clean(state):
        return VERDICT_SIGNS["clean"]
    return "0 here" if sentences.other_levels(state) else ""


def why_no_violations(state: State) -> str:
    """Why there are no violations to list."""
    run = state.run
    if queries.level(state):
        if state.accelerator is None:
            return "no valid rules yet: fix the file in 8 Rules"
        if queries.is_without_rules(state):
            return "no accelerator is chosen, so there are no rules: a chooses one"
        here = f"{stages.names_of(queries.level(state))}: no rule of {state.accelerator.name} is broken"
        other = sentences.other_levels(state)
        return f"{here} {MARKS['separator']} {other}: v goes there" if other else here
    if state.running or state.beginning:
        return "compiling: violations are listed as soon as there is a graph"
    if run is not None and run.failure is not None:
        return f"no graph was captured: {headline(run.failure)}"
    return "not compiled yet: r runs"
