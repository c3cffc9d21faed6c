"""Which panes are on the screen, how large, and which one has the keys?"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget

from idbg.format.glyphs import MARKS
from idbg_tui.panes.base import Pane
from idbg_tui.state.state import State

WIDE = (110, 30)
"""Columns and rows that it takes to show every pane at once; below, one pane is shown at a time."""
TABS = (4, 5, 6, 7)
"""The panes that share one frame."""


@dataclass(frozen=True)
class Sizes:
    """Shares in percent: the graph's width, the upper row's height, the source's height, the tabs' width."""

    graph: int = 50
    top: int = 64
    source: int = 62
    tabs: int = 64

    def grown(self, number: int, step: int) -> "Sizes":
        """The shares after making one pane larger (or smaller, with a negative step)."""
        step *= 5
        match number:
            case 1:
                return self._with(graph=self.graph + step, top=self.top + step)
            case 2:
                return self._with(graph=self.graph - step, source=self.source + step)
            case 3:
                return self._with(graph=self.graph - step, source=self.source - step)
            case 8:
                return self._with(tabs=self.tabs - step, top=self.top - step)
            case _:
                return self._with(tabs=self.tabs + step, top=self.top - step)

    def _with(self, **shares: int) -> "Sizes":
        return replace(self, **{name: max(20, min(80, share)) for name, share in shares.items()})


class TabLine(Widget):
    """All panes in one line, for a screen that shows one at a time."""

    DEFAULT_CSS = """
    TabLine { height: 1; padding: 0 1; background: $surface; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._line = Content("")
        self._ends: list[tuple[int, int]] = []
        self._shown: tuple[list[Pane], int] = ([], 1)

    def show(self, panes: list[Pane], current: int) -> None:
        """Name the panes, as shortly as the width asks for."""
        self._shown = panes, current
        names = tab_names(panes, current, self.size.width - 2)
        self._ends, end = [], 0
        for number, name in names:
            end += len(name) + 2
            self._ends.append((end, number))
        line = _tabs(names, current, "  ")
        if not line.is_same(self._line):
            self._line = line
            self.refresh()

    def on_resize(self) -> None:
        self.show(*self._shown)  # what it is told first comes before it has a width

    def render(self) -> Content:
        return self._line

    async def on_click(self, event: events.Click) -> None:
        number = next((number for end, number in self._ends if event.x <= end), None)
        if number is not None:
            await self.run_action(f"app.pane({number})")


class TabBox(Vertical):
    """The panes that share one frame: one is shown, all are named in its border."""


class Body(Vertical):
    """All panes. Wide terminals show them side by side, small ones (and zoom) show one."""

    DEFAULT_CSS = """
    Body { height: 1fr; }
    Body Pane { height: 1fr; width: 1fr; }
    Body > #top > Pane, Body > #top > #right > Pane, Body TabBox, Body > #bottom > Pane {
        border: round $border-blurred;
        border-title-color: $foreground 70%;
        border-subtitle-color: $foreground 60%;
        &:focus-within { border: round $border; border-title-color: $foreground; border-title-style: bold; }
    }
    Body.-one {
        & > #top > Pane, & > #top > #right > Pane, & TabBox, & > #bottom > Pane {
            border: none;
            border-top: solid $border;
        }
    }
    Body.-ascii {
        & > #top > Pane, & > #top > #right > Pane, & TabBox, & > #bottom > Pane {
            border: ascii $border-blurred;
            &:focus-within { border: ascii $border; }
        }
        & > #top > GraphPane, & TabBox { border-right: none !important; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "app.next_pane(1)", show=False),
        Binding("shift+tab", "app.next_pane(-1)", show=False),
    ]

    def __init__(self, panes: list[Pane]) -> None:
        super().__init__()
        self.panes = {pane.NUMBER: pane for pane in panes}
        self.current = 1
        self.zoomed = False
        self.sizes = Sizes()
        self._tab = 4
        self._line = TabLine()
        self._titles: Content | None = None

    def compose(self) -> ComposeResult:
        yield self._line
        with Horizontal(id="top"):
            yield self.panes[1]
            with Vertical(id="right"):
                yield self.panes[2]
                yield self.panes[3]
        with Horizontal(id="bottom"):
            with TabBox(id="tabs"):
                yield self.panes[4]
            yield self.panes[8]

    def on_mount(self) -> None:
        self.settle()

    def on_resize(self) -> None:
        self.settle()

    async def fill(self, panes: list[Pane]) -> None:
        """Put panes in the places that were kept for them; a key that came before goes to its pane now."""
        kept = [self.panes[pane.NUMBER] for pane in panes]
        self.panes |= {pane.NUMBER: pane for pane in panes}
        self.settle()
        await self.query_one("#tabs").mount(*(pane for pane in panes if pane.NUMBER in TABS))
        with self.app.batch_update():
            await self.query_one("#bottom").mount(*(pane for pane in panes if pane.NUMBER not in TABS))
            for frame in kept:
                if frame.is_attached:
                    await frame.remove()
            self.go(self.current)

    @property
    def alone(self) -> bool:
        """Whether one pane has the screen: it is zoomed, or there is no room for more."""
        return self.single or self.zoomed

    @property
    def single(self) -> bool:
        """Whether one pane is shown at a time because there is no room for more."""
        size = self.app.size
        return size.width < WIDE[0] or size.height < WIDE[1]

    def show(self, state: State) -> None:
        """Let every pane show the state, then name them in tabs."""
        for pane in self.panes.values():
            pane.show(state)
        self.refresh_titles()

    def refresh_titles(self) -> None:
        tabs = (self._tab,) if self.single else TABS
        names = [(number, self.panes[number].heading().plain) for number in tabs]
        titles = _tabs(names, self._tab, f" {MARKS['guide']} ")
        if self._titles is None or not titles.is_same(self._titles):
            self._titles = titles
            self.query_one("#tabs").border_title = titles
        if self.single:
            self._line.show(list(self.panes.values()), self.current)

    def go(self, number: int) -> None:
        """Give a pane the keys, and show it if it is hidden."""
        self.current = number
        if number in TABS:
            self._tab = number
        self.settle()
        if self.panes[number].is_attached:
            self.panes[number].focus_target().focus()
        self.refresh_titles()

    def focus_moved(self, widget: Widget | None) -> None:
        """The focus went somewhere by itself (a click): its pane is the current one."""
        pane = next((node for node in widget.ancestors_with_self if isinstance(node, Pane)), None) if widget else None
        if pane is not None:
            self.current = pane.NUMBER

    def step(self, step: int) -> None:
        """Go to the next pane; on a wide screen, of those that can be seen."""
        numbers = [number for number in self.panes if self.single or number not in TABS or number == self._tab]
        self.go(numbers[(numbers.index(self.current) + step) % len(numbers)])

    def zoom(self) -> None:
        """Show the current pane alone, or all of them again."""
        self.zoomed = not self.zoomed
        self.settle()

    def grow(self, step: int) -> None:
        """Make the current pane larger or smaller; 0 puts all sizes back."""
        self.sizes = self.sizes.grown(self.current, step) if step else Sizes()
        self.settle()

    def settle(self) -> None:
        """Show and size the panes as the screen allows."""
        alone = self.alone
        sizes = self.sizes
        self._line.display = self.single
        self.set_class(self.single, "-one")
        for number, pane in self.panes.items():
            pane.display = number == self.current if alone else number not in TABS or number == self._tab
        shown = {"#top": (1, 2, 3), "#right": (2, 3), "#bottom": (4, 5, 6, 7, 8), "#tabs": TABS}
        for query, numbers in shown.items():
            self.query_one(query).display = not alone or self.current in numbers
        self.query_one("#top").styles.height = "1fr" if alone else f"{sizes.top}%"
        self.query_one("#bottom").styles.height = "1fr"
        self.panes[1].styles.width = "1fr" if alone else f"{sizes.graph}%"
        self.panes[2].styles.height = "1fr" if alone else f"{sizes.source}%"
        self.query_one("#tabs").styles.width = "1fr" if alone else f"{sizes.tabs}%"
        self.refresh_titles()


def tab_names(panes: Sequence[Pane], current: int, width: int) -> list[tuple[int, str]]:
    """The panes' names for one line of `width` cells: whole, short, without marks, or but for the current numbers."""
    whole = [(pane.NUMBER, pane.heading().plain) for pane in panes]
    short = [(pane.NUMBER, pane.short_heading()) for pane in panes]
    bare = [(pane.NUMBER, f"{pane.NUMBER} {pane.SHORT or pane.LABEL}") for pane in panes]
    number = [(pane.NUMBER, pane.short_heading() if current == pane.NUMBER else str(pane.NUMBER)) for pane in panes]
    fitting = (names for names in (whole, short, bare) if sum(len(name) + 2 for _, name in names) - 2 <= width)
    return next(fitting, number)


def _tabs(names: list[tuple[int, str]], current: int, between: str) -> Content:
    """The names of panes that share a place, the current one in bold."""
    pieces: list[tuple[str, str]] = []
    for number, name in names:
        if pieces:
            pieces.append((between, "not bold dim"))
        pieces.append((name, "bold $primary" if number == current else "not bold $foreground 70%"))
    return Content.assemble(*pieces)
