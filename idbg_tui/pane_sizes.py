"""How large the panes are: shares of the screen, remembered for each size of the terminal."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from textual.geometry import Size

from idbg_tui import remembered
from idbg_tui.panes.base import PaneId

Split = Literal["graph", "top", "source", "tabs"]
"""A border between panes: right of the graph, below the upper row, below the source, right of the tabs."""
_LEAST, _MOST = 20, 80  # percent
_TALL = 50  # rows, from which the node's pane has room for all that is known of most nodes:
_NODE_ROWS = 20
_STEP = 40, 15  # columns and rows: terminals that differ by less have the same sizes


@dataclass(frozen=True)
class Sizes:
    """Shares in percent: the graph's width, the upper row's height, the source's height, the tabs' width."""

    graph: int = 50
    top: int = 64
    source: int = 62
    tabs: int = 64

    def grown(self, pane: PaneId, step: int) -> "Sizes":
        """The shares after making one pane larger (or smaller, with a negative step)."""
        step *= 5
        match pane:
            case "graph":
                return self.having(graph=self.graph + step, top=self.top + step)
            case "source":
                return self.having(graph=self.graph - step, source=self.source + step)
            case "node":
                return self.having(graph=self.graph - step, source=self.source - step)
            case "rules":
                return self.having(tabs=self.tabs - step, top=self.top - step)
            case _:
                return self.having(tabs=self.tabs + step, top=self.top - step)

    def having(self, **shares: int) -> "Sizes":
        """With other shares, each within its bounds."""
        return replace(self, **{name: max(_LEAST, min(_MOST, share)) for name, share in shares.items()})


def at_first(terminal: Size) -> Sizes:
    """The sizes that nobody has changed."""
    sizes = Sizes()
    if terminal.height < _TALL:
        return sizes
    right = (terminal.height - 2) * sizes.top // 100
    return sizes.having(source=min(sizes.source, 100 - 100 * _NODE_ROWS // right))


class RememberedSizes:
    """The sizes that the user chose, by the terminal's size."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._by_size = remembered.read(path, dict[str, Sizes])

    def of(self, terminal: Size) -> Sizes:
        """The sizes for a terminal."""
        return self._by_size.get(_name(terminal)) or at_first(terminal)

    def keep(self, terminal: Size, sizes: Sizes | None, *, write: bool = True) -> None:
        """Remember these; None are those at first. Without `write` only while the program runs."""
        self._by_size.pop(_name(terminal), None)
        if sizes is not None:
            self._by_size[_name(terminal)] = sizes
        if write:
            remembered.write(self._path, self._by_size)


def _name(terminal: Size) -> str:
    columns, rows = terminal.width // _STEP[0] * _STEP[0], terminal.height // _STEP[1] * _STEP[1]
    return f"{columns}x{rows}"
