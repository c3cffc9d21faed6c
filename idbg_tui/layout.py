"""Arrange the panes: which are visible, how large, and which has the focus."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, cast, get_args

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from idbg.format.glyphs import MARKS
from idbg_tui.pane_sizes import RememberedSizes, Sizes, Split
from idbg_tui.panes.base import Pane, PaneId
from idbg_tui.widgets.clicks import clickable
from idbg_tui.widgets.titled import Titled

if TYPE_CHECKING:
    from idbg_tui.state.state import State

WIDE = (110, 30)
"""Columns and rows that it takes to show every pane at once; below, one pane is shown at a time."""
ORDER: tuple[PaneId, ...] = get_args(PaneId)
"""The panes by their numbers: the first is 1."""
TABS: tuple[PaneId, ...] = ("findings", "kernel_diff", "benchmarks", "log", "repros", "why", "switches", "processes")
"""The panes that share one frame."""
_BOXES: dict[str, tuple[PaneId, ...]] = {
    "#top": ("graph", "source", "node"),
    "#right": ("source", "node"),
    "#bottom": (*TABS, "rules"),
    "#tabs": TABS,
}
"""Which panes are in which box, here and in those inside it."""
_DIVIDED: dict[Split, str] = {"graph": "#top", "source": "#right", "tabs": "#bottom"}
"""The box that a border divides; all of it where none is named."""


class TabLine(Widget):
    """All panes in one line, for a screen that shows one at a time."""

    DEFAULT_CSS = """
    TabLine { height: 1; padding: 0 1; background: $surface; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.auto_links = False  # the names are not underlined
        self._line = Content("")
        self._shown: tuple[list[Pane], PaneId] = ([], ORDER[0])

    def show(self, panes: list[Pane], current: PaneId) -> None:
        """Name the panes, as shortly as the width asks for."""
        self._shown = panes, current
        room = self.size.width
        # names close together are better than three letters of them, and those than numbers
        gap, names = next(
            (
                (gap, names)
                for ways in (WHOLE_NAMES, LETTERS)
                for gap in (2, 1)
                if (names := fitting_names(panes, room, gap, ways))
            ),
            (2, tab_names(panes, current, room)),
        )
        line = _tabs(names, current, " " * gap)
        if not line.is_same(self._line):
            self._line = line
            self.refresh()

    def on_resize(self) -> None:
        self.show(*self._shown)  # the first call comes before it has a width

    def render(self) -> Content:
        return self._line


class TabBox(Titled, Vertical):
    """The panes that share one frame: one is shown, all are named in its border, as shortly as its width asks for."""

    class Resized(Message):
        """There is other room for the names."""

    def on_resize(self) -> None:
        self.post_message(self.Resized())


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
        & > #top > GraphPane, & TabBox { border-right: none !important; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "app.do('next_pane')", show=False),
        Binding("shift+tab", "app.do('pane_before')", show=False),
    ]

    class Went(Message):
        """Another pane is the current one."""

    def __init__(self, panes: list[Pane], remembered: RememberedSizes) -> None:
        super().__init__()
        self.remembered = remembered
        self.dragged: Split | None = None
        self.panes = {pane.ID: pane for pane in panes}
        number(panes)
        self.current: PaneId = ORDER[0]
        self._focused: Widget | None = None
        self.zoomed = False
        self._tab: PaneId = TABS[0]
        self._line = TabLine()

    def actions(self) -> Mapping[str, Callable[[], object]]:
        """What the keys of keymap.KEYS do here, by their names."""
        gone_to = {f"pane_{number}": partial(self.go, pane) for number, pane in enumerate(ORDER, 1)}
        return gone_to | {
            "next_pane": partial(self.step, 1),
            "pane_before": partial(self.step, -1),
            "zoom": self.zoom,
            "grow": partial(self.grow, 1),
            "shrink": partial(self.grow, -1),
            "even": partial(self.grow, 0),
        }

    def compose(self) -> ComposeResult:
        yield self._line
        with Horizontal(id="top"):
            yield self.panes["graph"]
            with Vertical(id="right"):
                yield self.panes["source"]
                yield self.panes["node"]
        with Horizontal(id="bottom"):
            with TabBox(id="tabs"):
                yield self.panes["findings"]
            yield self.panes["rules"]

    def on_mount(self) -> None:
        self.settle()

    def on_resize(self) -> None:
        self.settle()

    def on_tab_box_resized(self, message: TabBox.Resized) -> None:
        message.stop()
        self.refresh_titles()

    async def fill(self, panes: list[Pane]) -> None:
        """Put panes in the places that were kept for them; a key that came before goes to its pane now."""
        frames = [self.panes[pane.ID] for pane in panes]
        number(panes)
        self.panes |= {pane.ID: pane for pane in panes}
        self.settle()
        with self.app.batch_update():
            for frame, pane in zip(frames, panes, strict=True):
                if not self.is_attached:  # the user has left: nothing can be mounted any more
                    return
                if frame.is_attached and isinstance(frame.parent, Widget):
                    await frame.parent.mount(pane, before=frame)
                    await frame.remove()
                else:
                    await self.query_one("#tabs").mount(pane)
            self.settle()
            self.go(self.current)

    @property
    def sizes(self) -> Sizes:
        """Of the panes, for this terminal."""
        return self.remembered.of(self.app.size)

    @property
    def alone(self) -> bool:
        """Whether one pane has the screen: it is zoomed, or there is no room for more."""
        return self.single or self.zoomed

    @property
    def single(self) -> bool:
        """Whether one pane is shown at a time because there is no room for more."""
        size = self.app.size
        return size.width < WIDE[0] or size.height < WIDE[1]

    def show(self, state: "State") -> None:
        """Let every pane show the state, then name them in tabs."""
        for pane in self.panes.values():
            pane.show(state)
        self.refresh_titles()

    def refresh_titles(self) -> None:
        """Name the panes again where several share a place, after a mark or the current pane has changed."""
        tabs = [self.panes[pane] for pane in ((self._tab,) if self.single else TABS) if self._is_named(pane)]
        between = f" {MARKS['guide']} "
        names = tab_names(tabs, self._tab, self.query_one("#tabs").outer_size.width - 4, len(between))
        self.query_one(TabBox).set_title(_tabs(names, self._tab, between))
        if self.single:
            self._line.show([pane for pane in self.panes.values() if self._is_named(pane.ID)], self.current)

    def _is_named(self, pane: PaneId) -> bool:
        return not self.panes[pane].hidden or pane == self.current

    def go(self, pane: PaneId) -> None:
        """Focus a pane, and show it if it is hidden."""
        self.current = pane
        if pane in TABS:
            self._tab = pane
        self.settle()
        if self.panes[pane].is_attached:
            self.screen.set_focus(self.panes[pane].focus_target())  # at once: the next key may be there already
            self._focused = self.screen.focused
        self.refresh_titles()
        self.post_message(self.Went())

    def focus_moved(self, widget: Widget | None) -> None:
        """The focus went somewhere by itself (a click): its pane is the current one. Events of a focus from before the
        last key come late, and are left alone.
        """
        if widget is self._focused or widget is not self.screen.focused:
            return
        self._focused = widget
        pane = next((node for node in widget.ancestors_with_self if isinstance(node, Pane)), None) if widget else None
        if pane is not None:
            self.current = pane.ID

    def step(self, step: int) -> None:
        """Go to the next pane; on a wide screen, of those that can be seen."""
        named = [pane for pane in self.panes if self._is_named(pane)]
        seen = [pane for pane in named if self.single or pane not in TABS or pane == self._tab]
        self.go(seen[(seen.index(self.current) + step) % len(seen)])

    def zoom(self) -> None:
        """Show the current pane alone, or all of them again."""
        self.zoomed = not self.zoomed
        self.settle()

    def grow(self, step: int) -> None:
        """Make the current pane larger or smaller; 0 puts all sizes back."""
        self._resize(self.sizes.grown(self.current, step) if step else None)

    def _resize(self, sizes: Sizes | None, *, write: bool = True) -> None:
        self.remembered.keep(self.app.size, sizes, write=write)
        self.settle()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """The mouse takes hold of a border between panes."""
        self.dragged = self._split_at(event.screen_x, event.screen_y) if event.button == 1 else None
        if self.dragged is not None:
            event.stop()
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """The border follows the mouse."""
        if self.dragged is not None:
            divided = _DIVIDED.get(self.dragged)
            box = self.query_one(divided).region if divided else self.region
            if self.dragged in ("graph", "tabs"):
                share = (event.screen_x + 1 - box.x) / max(box.width, 1)
            else:
                share = (event.screen_y + 1 - box.y) / max(box.height, 1)
            sizes = self.sizes.having(**{self.dragged: round(100 * share)})
            if sizes != self.sizes:
                self._resize(sizes, write=False)

    def on_mouse_up(self) -> None:
        if self.dragged is not None:
            self.dragged = None
            self.release_mouse()
            self._resize(self.sizes)

    def _split_at(self, x: int, y: int) -> Split | None:
        """The border at this place of the screen; None where there is none to move. Titles in borders are none."""
        if self.alone:
            return None
        regions = {split: self._first_of(split).region for split in get_args(Split)}
        for split, region in regions.items():
            beside = y in region.line_range and x in (region.right - 1, region.right)
            below = x in region.column_range and y == region.bottom - 1
            if below if split in ("top", "source") else beside:
                return cast("Split", split)
        return None

    def _first_of(self, split: Split) -> Widget:
        """What is left of the border, or above it."""
        return self.panes[split] if split in ("graph", "source") else self.query_one(f"#{split}")

    def settle(self) -> None:
        """Show and size the panes as the screen allows."""
        alone = self.alone
        sizes = self.sizes
        self._line.display = self.single
        self.set_class(self.single, "-one")
        for name, pane in self.panes.items():
            pane.display = name == self.current if alone else name not in TABS or name == self._tab
        for box, panes in _BOXES.items():
            self.query_one(box).display = not alone or self.current in panes
        self.query_one("#top").styles.height = "1fr" if alone else f"{sizes.top}%"
        self.query_one("#bottom").styles.height = "1fr"
        self.panes["graph"].styles.width = "1fr" if alone else f"{sizes.graph}%"
        self.panes["source"].styles.height = "1fr" if alone else f"{sizes.source}%"
        self.query_one("#tabs").styles.width = "1fr" if alone else f"{sizes.tabs}%"
        self.refresh_titles()


def number(panes: Iterable[Pane]) -> None:
    """Set the number of the key of each pane."""
    for pane in panes:
        pane.number = ORDER.index(pane.ID) + 1


NameOf = Callable[[Pane], str]
WHOLE_NAMES: tuple[NameOf, ...] = (
    lambda pane: pane.heading().plain,
    lambda pane: pane.short_heading(),
    lambda pane: pane.tight_heading(),
)
"""A pane's name in its tab, in ever fewer letters, with its mark: a count is what the tab is read for."""
LETTERS: tuple[NameOf, ...] = (
    lambda pane: pane.tight_heading() if pane.mark else pane.three_letters,
    lambda pane: pane.three_letters + pane.short_mark,
    lambda pane: pane.three_letters,
)


def fitting_names(
    panes: Sequence[Pane], width: int, gap: int, ways: Iterable[NameOf]
) -> list[tuple[PaneId, str]] | None:
    """The panes' names for one line of `width` cells, `gap` between two, in the first way that fits."""
    named = ([(pane.ID, way(pane)) for pane in panes] for way in ways)
    return next((names for names in named if sum(len(name) + gap for _, name in names) - gap <= width), None)


def tab_names(panes: Sequence[Pane], current: PaneId, width: int, gap: int = 2) -> list[tuple[PaneId, str]]:
    """The same; where nothing fits the numbers, and the name of the current one."""
    numbers = [(pane.ID, pane.short_heading() if current == pane.ID else pane.digit) for pane in panes]
    return fitting_names(panes, width, gap, (*WHOLE_NAMES, *LETTERS)) or numbers


def _tabs(names: list[tuple[PaneId, str]], current: PaneId, between: str) -> Content:
    """The names of panes that share a place, the current one in bold; a click on one goes there."""
    pieces: list[tuple[str, str] | Content] = []
    for pane, name in names:
        if pieces:
            pieces.append((between, "not bold dim"))
        style = "bold $primary" if pane == current else "not bold $foreground 70%"
        pieces.append(clickable(name, style, f"app.do('pane_{ORDER.index(pane) + 1}')"))
    return Content.assemble(*pieces)
