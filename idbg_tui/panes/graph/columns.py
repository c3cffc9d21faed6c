"""Draw a node, or a heading, of a graph as one line of columns."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from idbg.analysis.ops import short_name
from idbg.analysis.outline import ModuleHeading
from idbg.analysis.partition import HOST
from idbg.format.amounts import column_size, counted
from idbg.format.file_names import short
from idbg.format.glyphs import MARKS, SEVERITY_SIGNS
from idbg.schema.code import Kernel
from idbg.schema.diff import KernelError
from idbg.schema.graphs import Node
from idbg.schema.violations import Severity
from idbg.views import kernel_times
from idbg.views.graphs import op_of, shape_of
from idbg.views.module import NO_TOTALS, ModuleTotals
from idbg.views.tree import UNSORTED, Order
from idbg_tui.widgets.cutting import cut_name, cut_shape
from idbg_tui.widgets.lines import StyledRow, clip, cut, fit

GUTTER = 2
_SAMPLE = 4000
_MODULE_DEPTH = 6
_NUMBER = re.compile(r"(\d+)$")
_WIDEST = 100  # cells of a name, however much room there is
_ROOMY = 24  # cells of a name, indentation included
_FILE = 20  # cells of a file's name
_MODULE = 32  # cells of a module's path
_LEAST_SOURCE = 16  # cells of the user's text after its line; fewer say nothing
# what is read least gives way first: (column, what it keeps at least); 0 leaves it out whole
_SHRINK = (
    ("module", 14), ("name", 22), ("op", 14), ("file", 0), ("name", 16), ("op", 10), ("line", 0),
    ("name", 12), ("op", 0), ("flow", 0), ("module", 0),
    ("shape", 16), ("error", 0), ("time", 0), ("kernel", 0), ("shape", 10), ("verdict", 2), ("side", 0), ("name", 8),
    ("shape", 0),
)  # fmt: skip
# the same where names do not tell the op ("out_1", "x_3")
_SHRINK_NAMELESS = (
    ("module", 14), ("name", 22), ("op", 14), ("file", 0), ("name", 12), ("line", 0), ("flow", 0),
    ("module", 0), ("op", 10), ("shape", 16), ("name", 8),
    ("error", 0), ("time", 0), ("kernel", 0), ("shape", 10), ("verdict", 2), ("side", 0), ("shape", 0), ("op", 0),
)  # fmt: skip
_GIVE_BACK = ("shape", "name", "op")
_HEADS = {
    "flow": "flow", "tint": "", "name": "node", "module": "module", "op": "op", "shape": "tensor", "verdict": "rule",
    "side": "runs", "kernel": "kern", "time": "time", "error": "error", "memory": "memory", "file": "file",
    "line": "line", "source": "source",
}  # fmt: skip
CHOICES = {
    "flow": "lanes of the values", "op": "the operator", "tensor": "dtype and shape of the result",
    "rule": "the severest rule that it breaks", "runs": "the partition that it runs in, or the host",
    "kern": "the kernel that computes it", "time": "the time of that kernel", "error": "the error of that kernel",
    "memory": "what is in memory while it runs, where there is room",
    "file": "your file, where there are several", "line": "your line",
    "source": "your text on that line, where there is room",
}  # fmt: skip
"""The columns that can be left out, by the names over them."""
_RIGHT = frozenset({"time", "error", "memory", "file", "line"})


@dataclass(frozen=True)
class GraphColumns:
    """Widths of the columns, in cells; 0 where there is no room for one, or nothing to say in it."""

    name: int = 8
    op: int = 4
    shape: int = 4
    verdict: int = 10
    side: int = 5
    kernel: int = 4
    time: int = 0
    error: int = 0
    file: int = 0  # of the line, where the graph's nodes are of several
    line: int = 5
    source: int = 0  # the user's text on that line, where there is room to spare
    longest: int = 0  # what the names want, however long
    nameless: bool = False  # names do not tell the op
    tint: int = 0  # a sign in the colour that the user chose
    flow: int = 0  # lanes of values, and a column of what the next row reads
    memory: int = 0  # what is in memory while a node runs
    module: int = 0  # the path of a node's module, where no heading has it
    modules: int = 0  # what those paths want
    order: Order = UNSORTED  # of the rows; its column gives no room to others

    @property
    def total(self) -> int:
        """Cells of a row: the gutter, and each column with the blank after it."""
        widths: list[int] = [getattr(self, name) for name in _HEADS]
        return GUTTER + sum(width + 1 for width in widths if width)

    def without(self, names: Collection[str]) -> "GraphColumns":
        """The same without the columns of these names, as they stand over the rows; that of the nodes stays."""
        left_out = {column: 0 for column, name in _HEADS.items() if name in names and name in CHOICES}
        return replace(self, **left_out)  # type: ignore[arg-type]  # they are all cells

    def sorted_by(self, order: Order) -> "GraphColumns":
        """The columns of rows that are sorted: beside them are no lanes and over them no modules."""
        return replace(self, order=order, flow=0, module=self.modules) if order != UNSORTED else self

    def within(self, width: int) -> "GraphColumns":
        """The same columns, made to fit; what is left over goes to those that were cut, then to the user's text, then
        to the memory, unless the rows are sorted by that.
        """
        columns = replace(self, source=0, memory=self.memory if self.order[0] == "memory" else 0)
        for column, least in _SHRINK_NAMELESS if self.nameless else _SHRINK:
            over = columns.total - width
            if over <= 0:
                break
            if not least and _HEADS[column] == self.order[0]:
                continue
            present = getattr(columns, column)
            columns = replace(columns, **{column: min(present, max(least, present - over) if least else 0)})
        for column in _GIVE_BACK:
            present, room = getattr(columns, column), width - columns.total
            if present and room > 0:
                columns = replace(columns, **{column: min(getattr(self, column), present + room)})
        room = width - columns.total
        columns = replace(columns, name=max(columns.name, min(self.longest, columns.name + room)))
        source = min(self.source, width - columns.total - 1)
        if source >= min(_LEAST_SOURCE, self.source):
            columns = replace(columns, source=source)
        is_last = columns.source == self.source and columns.total + self.memory < width
        return replace(columns, memory=self.memory) if is_last else columns


def measure(nodes: Sequence[Node], depths: Sequence[int]) -> GraphColumns:
    """Columns as wide as the nodes want them; `depths` is how far each is indented.

    They are of the whole graph, so that they stay put while it scrolls; of a large one, of a sample of its nodes.
    """
    step = max(1, len(nodes) // _SAMPLE)
    sample = nodes[::step]
    names = [len(n.name) + 2 * min(d, _MODULE_DEPTH) for n, d in zip(sample, depths[::step], strict=True)]
    calls = [node for node in sample if node.op.startswith("call")]
    named = sum(short_name(node.target).strip("_") in node.name for node in calls)
    line = max((max(len(str(node.line)) + 1, len(_HEADS["line"])) for node in sample if node.line), default=0)
    files = {node.file for node in sample if node.file}
    return GraphColumns(
        modules=min(_MODULE, max((len(node.module) for node in sample), default=0)),
        name=min(40, longest := max(names, default=8)),
        op=min(28, max((len(op_of(node)) for node in sample), default=4)),
        shape=min(30, max((len(shape_of(node)) for node in sample), default=4)),
        verdict=0,
        side=0,
        kernel=0,
        file=min(_FILE, max(len(short(file)) for file in files)) if len(files) > 1 else 0,
        line=line,
        source=max((len(node.code) for node in sample), default=0),
        longest=min(longest, _WIDEST),
        nameless=2 * named < len(calls),
    )


def kernel_mark(kernels: Sequence[Kernel]) -> str:
    """Which kernels compute a node: "k3" for a generated one that ends in _3, "ext" for an extern one, "+" for more."""
    if not kernels:
        return ""
    number = _NUMBER.search(kernels[0].name)
    mark = f"k{number[1]}" if number and kernels[0].source else "ext"
    return mark + ("+" if any(kernel.name != kernels[0].name for kernel in kernels) else "")


def is_kernel(kernel: Kernel, query: str) -> bool:
    """Whether a kernel is called so: by its number ("5", "k5"; generated ones only), or by a part of its name."""
    number = _NUMBER.search(kernel.name)
    wanted = query.removeprefix("k")
    if wanted.isdigit():
        return number is not None and bool(kernel.source) and int(number[1]) == int(wanted)
    return bool(query) and query in kernel.name.lower()


def error_mark(errors: Sequence[KernelError]) -> str:
    """The worst relative error (RMSE over RMS) of these kernels: "3e-02"; "0"; "" where none was observed."""
    worst = max((one.error for one in errors if one.error is not None), default=None)
    return "" if worst is None else short_error(worst)


def short_error(error: float) -> str:
    """An error in a graph's row."""
    return f"{error:.0e}" if error else "0"


def short_size(nbytes: int) -> str:
    """Bytes in a graph's row: "61.2MiB"."""
    return column_size(nbytes).replace(" ", "")


def side_mark(side: int | None, *, crosses: bool) -> str:
    """Where a node runs: "p2", "host", with an arrow where its value goes to another side; "" if that is not known."""
    if side is None:
        return ""
    name = "host" if side == HOST else f"p{side + 1}"
    return name + MARKS["arrow"] if crosses else name


@dataclass(frozen=True)
class RowFacts:
    """What stands in a node's line that the node itself does not know."""

    relation: str = ""  # to the selected node: "input", "user"
    marked: bool = False
    severity: Severity | None = None
    words: str = ""
    kernel: str = ""
    error: str = ""  # of the kernels whose first node this is, if they were compared
    bad: bool = False  # a kernel that computes it is wrong by itself
    wrong: bool = False  # the numbers are wrong since this node: the error is its own
    time: str = ""  # of the kernels whose first node this is, if they were measured
    memory: str = ""  # what is in memory while it runs
    side: str = ""  # where it runs, if something falls back to the host
    selected: bool = False
    flow: StyledRow = ()  # the lanes beside it
    tint: tuple[str, str] = (" ", "")  # a sign, and the look of it and of the name, where nodes are coloured


def node_row(node: Node, depth: int, facts: RowFacts, columns: GraphColumns) -> StyledRow:
    """One node: gutter, lanes, name, op, shape, verdict, partition, kernel with its time and error, line."""
    dots = MARKS["ellipsis"]
    indent = _indent(depth, columns)
    related = {"input": MARKS["up"], "user": MARKS["down"]}.get(facts.relation, " ")
    arrow = MARKS["dot"] if facts.selected else related
    computes = node.op.startswith("call")
    sign = SEVERITY_SIGNS[facts.severity] if facts.severity else ""
    verdict = f"{sign} {facts.words}" if sign else ""
    name_width = columns.name - len(indent)
    of_name = "reject" if facts.wrong else facts.tint[1] or ("" if computes else "dim")
    return [
        _gutter(facts.wrong, facts.marked),
        (arrow, "accent" if arrow != " " else ""),
        *_flow(facts.flow, columns),
        *([facts.tint, (" ", "")] if columns.tint else ()),
        (indent, "dim"),
        (fit(cut_name(node.name, name_width), name_width, dots) + " ", of_name),
        (_cell(node.module, columns.module), "dim"),
        (_cell(op_of(node), columns.op), "strong" if computes else "dim"),
        (_cell(cut_shape(shape_of(node), columns.shape), columns.shape), "dim" if not computes else ""),
        (_cell(verdict, columns.verdict), facts.severity or ""),
        (_cell(facts.side, columns.side), "dim"),
        (_cell(facts.kernel, columns.kernel), _kernel_style(facts)),
        (_cell(facts.time.rjust(columns.time), columns.time), _kernel_style(facts)),
        (_cell(facts.error.rjust(columns.error), columns.error), "reject" if facts.wrong else _kernel_style(facts)),
        (_cell(facts.memory.rjust(columns.memory), columns.memory), "dim"),
        (_cell(cut(short(node.file), columns.file).rjust(columns.file), columns.file), "dim"),
        (_cell((f":{node.line}" if node.line else "").rjust(columns.line), columns.line), "dim"),
        (clip(node.code, columns.source), "dim"),
    ]


def heads(columns: GraphColumns) -> StyledRow:
    """The names of the columns, each where its column is; an arrow stands before the one by which rows are sorted."""
    by, direction = columns.order
    pieces = [(" " * GUTTER, "dim")]
    for name, head, width in widths(columns):
        shown = head[:width] if name != "flow" or width >= len(head) else ""
        text = _cell(shown.rjust(width) if name in _RIGHT else shown, width)
        if by and head == by:  # its arrow is in the blank before it
            before = text[: len(text) - len(text.lstrip())]
            pieces[-1] = pieces[-1][0] if before else pieces[-1][0][:-1], "dim"
            text = before[:-1] + MARKS["up" if direction == "up" else "down"] + text[len(before) :]
        pieces.append((text, "accent" if by and head == by else "dim"))
    return pieces


def head_at(columns: GraphColumns, x: int) -> str:
    """The name of the column over which a cell is; the blank before a column is its own."""
    end = GUTTER
    for _, head, width in widths(columns):
        end += width + 1
        if x < end - 1:
            return head
    return ""


def widths(columns: GraphColumns) -> Iterator[tuple[str, str, int]]:
    """The columns that there is room for: the field, the name over it, its cells."""
    return ((name, head, width) for name, head in _HEADS.items() if (width := getattr(columns, name)))


def _gutter(wrong: bool, marked: bool = False) -> tuple[str, str]:
    """The first cell of a row: numbers are wrong since a node of it, or the chosen kernel computes it."""
    return (SEVERITY_SIGNS["reject"], "reject") if wrong else (MARKS["bar"], "accent") if marked else (" ", "")


def _kernel_style(facts: RowFacts) -> str:
    return "reject" if facts.bad else "accent" if facts.kernel else ""


def heading_row(
    heading: ModuleHeading,
    broken: Mapping[Severity, int],
    columns: GraphColumns,
    *,
    folded: bool,
    hides: bool = False,
    wrong: bool = False,
    matched: int = 0,
    flow: StyledRow = (),
    tint: tuple[str, str] = (" ", ""),
    totals: ModuleTotals = NO_TOTALS,
    memory: str = "",
) -> StyledRow:
    """One module: fold sign, name and class, how many nodes, and how many violations, with the severest one's sign; of
    a folded one how many kernels, their time together, their worst error, and the most memory.

    With `hides` the selected node is in there, and the heading bears its mark; with `wrong`, one since which the
    numbers are. With `matched`, the nodes of it that a filter leaves, it is named by its whole path.
    """
    dots = MARKS["ellipsis"]
    start = "" if matched else _indent(heading.depth, columns) + MARKS["closed" if folded else "open"] + " "
    name = heading.path if matched else heading.title
    nodes = (f"{matched:,} of " if matched else "") + counted(heading.last - heading.first, "node")
    room = columns.name + (columns.op + 1 if columns.op else 0) - len(start)
    kind = heading.kind if matched else alike_words(heading) or heading.kind
    spare = max(0, columns.shape - len(nodes) - 1)
    over = min(spare, max(0, len(name) + (len(kind) + 2 if kind else 0) - room))  # it goes on over the tensors
    room += over
    title = cut(name, room, dots)
    kind = cut(kind, max(0, room - len(title) - 2), dots)
    worst = next(iter(broken), None)
    verdict = f"{SEVERITY_SIGNS[worst]} {sum(broken.values()):,}" if worst else ""
    return [
        _gutter(wrong),
        (MARKS["dot"] if hides else " ", "accent"),
        *_flow(flow, columns),
        *([tint, (" ", "")] if columns.tint else ()),
        (start, "dim"),
        (title, "strong"),
        (fit(f"  {kind}" if kind else "", room - len(title), dots) + " ", "dim"),
        (_cell(nodes, columns.shape - over), "dim"),
        (_cell(verdict, columns.verdict), worst or ""),
        *_totals(totals, memory, columns),
    ]


def _totals(totals: ModuleTotals, memory: str, columns: GraphColumns) -> StyledRow:
    kernels, worst = len(totals.by_kernel), totals.worst
    style = "reject" if totals.wrong else "accent"
    error = error_mark([worst.error] if worst is not None and worst.error is not None else ())
    return [
        (_cell("", columns.side), ""),
        (_cell(f"{MARKS['times']}{kernels}" if kernels else "", columns.kernel), style),
        (_cell(kernel_times.short_time_of(totals.microseconds).rjust(columns.time), columns.time), style),
        (_cell(error.rjust(columns.error), columns.error), style),
        (_cell(memory.rjust(columns.memory), columns.memory), "dim"),
    ]


def alike_words(heading: ModuleHeading) -> str:
    """How many modules are like this one, or in what it differs: "×12 alike", "×11 as 0, 2 nodes differ"."""
    times = f"{MARKS['times']}{heading.alike} " if heading.alike else ""
    if not heading.twin:
        return f"{heading.kind} {times}alike".lstrip() if times else ""
    differing = len(heading.differing)
    differ = f", {counted(differing, 'node')} {'differs' if differing == 1 else 'differ'}" if differing else ""
    return f"{times}{'' if differ else 'same '}as {heading.twin}{differ}"


def _indent(depth: int, columns: GraphColumns) -> str:
    """A guide for each module around it; beside lanes, which are lines too, blanks: one where there is little room."""
    step = MARKS["guide"] + " " if not columns.flow else "  " if columns.name >= _ROOMY else " "
    return step * min(depth, _MODULE_DEPTH)


def _flow(lanes: StyledRow, columns: GraphColumns) -> StyledRow:
    return [*lanes, (" ", "")] if columns.flow else []


def _cell(text: str, width: int) -> str:
    return fit(text, width, MARKS["ellipsis"]) + " " if width else ""
