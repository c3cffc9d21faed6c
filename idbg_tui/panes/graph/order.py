"""Sort the nodes of a graph by what stands in one of its columns."""

import re
from collections.abc import Callable, Iterable, Sequence

from idbg.checking.rule_costs import RuleCosts
from idbg.constraints import Findings
from idbg.format.file_names import short
from idbg.schema.graphs import Graph, Node
from idbg.schema.violations import SEVERITIES
from idbg.views.graphs import op_of
from idbg.views.tree import Direction
from idbg_tui.panes.graph.columns import kernel_mark
from idbg_tui.panes.graph.figures import GraphFigures

PROGRAM = "in the order of the program, under its modules"
USUAL: dict[str, Direction] = {
    "node": "up",
    "module": "up",
    "op": "up",
    "tensor": "down",
    "rule": "down",
    "runs": "up",
    "kern": "up",
    "time": "down",
    "error": "down",
    "memory": "down",
    "file": "up",
    "line": "up",
}
"""The columns by which nodes can be sorted, by the names over them, and how they are at first."""
_DIGITS = re.compile(r"(\d+)")
Key = tuple[object, ...]
Value = Callable[[int], Key | None]


def natural(text: str) -> Key | None:
    """A key by which "conv_2" is before "conv_10"; None for no text."""
    parts = _DIGITS.split(text)
    return tuple((int(part), "") if at % 2 else (-1, part) for at, part in enumerate(parts)) if text else None


def in_order(indices: Iterable[int], value: Value, direction: Direction) -> list[int]:
    """The indices by the value of each, equal ones in the order of the program; those without a value are last."""
    keys = {index: value(index) for index in indices}
    known = [index for index, key in keys.items() if key is not None]
    known.sort(key=lambda index: keys[index] or (), reverse=direction == "down")
    return [*known, *(index for index, key in keys.items() if key is None)]


class NodeValues:
    """What the nodes of a graph are sorted by, for each column."""

    def __init__(
        self,
        graph: Graph,
        figures: GraphFigures,
        findings: Findings | None,
        costs: RuleCosts | None,
        live: Sequence[int],
    ) -> None:
        self._nodes, self._figures, self._findings = graph.nodes, figures, findings
        self._costs, self._live = costs, live

    def of(self, column: str) -> Value:
        """The values of one column of `USUAL`."""
        text = _TEXTS.get(column)
        if text is not None:
            return lambda at: natural(text(self._nodes[at]))
        return {
            "tensor": self._bytes,
            "rule": self._rule,
            "runs": self._side,
            "kern": self._kernel,
            "time": self._time,
            "error": self._error,
            "memory": self._memory,
        }[column]

    def _bytes(self, at: int) -> Key | None:
        tensors = self._nodes[at].tensors
        return (sum(tensor.nbytes or 0 for tensor in tensors),) if tensors else None

    def _rule(self, at: int) -> Key | None:
        broken = self._findings.broken_at(at) if self._findings else ()
        worst = min((SEVERITIES.index(rule.severity) for rule, _ in broken), default=None)
        return (-worst, len(broken)) if worst is not None else None

    def _side(self, at: int) -> Key | None:
        side = self._costs.side_of.get(self._nodes[at].name) if self._costs else None
        return (side,) if side is not None else None

    def _kernel(self, at: int) -> Key | None:
        return natural(kernel_mark([kernel for kernel, _ in self._figures.launches(at)]))

    def _time(self, at: int) -> Key | None:
        times = self._figures.times(self._figures.firsts(at, self._figures.launches(at)))
        return (sum(time.median_us for time in times),) if times else None

    def _error(self, at: int) -> Key | None:
        errors = self._figures.errors(self._figures.firsts(at, self._figures.launches(at)))
        known = [error.error for error in errors if error.error is not None]
        known += [self._figures.wrong[at]] if at in self._figures.wrong else []
        return (max(known),) if known else None

    def _memory(self, at: int) -> Key | None:
        return (self._live[at],) if self._live else None


def _line(node: Node) -> str:
    return f"{short(node.file)}:{node.line}" if node.line else ""


_TEXTS: dict[str, Callable[[Node], str]] = {
    "node": lambda node: node.name,
    "module": lambda node: node.module,
    "op": op_of,
    "file": _line,
    "line": _line,
}
