"""A screen that is drawn as soon as something changed, and of which only the changed lines are made.

Textual draws at the next tick of a clock of 60 frames a second, and makes every line of every widget for each frame, to
write the few that changed: 15 ms of waiting and 10 ms of work for a step of a cursor. A version of Textual that lacks a
private name which is used here does so too.
"""

import time
from collections.abc import Iterable, Iterator
from typing import Self

from textual import events
from textual._compositor import ChopsUpdate, Compositor
from textual.geometry import Region
from textual.screen import UPDATE_PERIOD, Screen
from textual.strip import Strip
from textual.widget import Widget

_draw = Screen._on_timer_update


class ChangedLinesCompositor(Compositor):
    """A compositor that makes only the lines which an update shows."""

    def render_partial_update(self) -> ChopsUpdate | None:
        """The changed regions, each piece from the front-most widget that covers it; None where nothing changed."""
        try:
            update = self._changed_lines()
            self._dirty_regions.clear()
        except AttributeError:
            return super().render_partial_update()
        return update

    def _changed_lines(self) -> ChopsUpdate | None:
        spans = [span for span in self._regions_to_spans(self._dirty_regions) if 0 <= span[0] < self.size.height]
        if not spans:
            return None
        cuts = self.cuts
        chops: list[dict[int, Strip | None]] = [dict.fromkeys(row[:-1]) for row in cuts]
        missing: dict[int, dict[int, int]] = {}  # row -> start and end of the pieces that no widget has filled
        for y, first, last in spans:
            pieces = zip(cuts[y], cuts[y][1:], strict=False)
            missing.setdefault(y, {}).update({x: end for x, end in pieces if x < last and end > first})
        for widget, (region, clip) in self.visible_widgets.items():
            shown = region.intersection(clip)
            rows = [y for y in shown.line_range if y in missing and any(x in shown.column_range for x in missing[y])]
            for first, last in _runs(rows):
                part = Region(shown.x - region.x, first - region.y, shown.width, last - first)
                for y, strip in enumerate(widget.render_lines(part), first):
                    for x, end in [*missing[y].items()]:
                        if shown.x <= x < shown.right:
                            chops[y][x] = strip.crop(x - shown.x, end - shown.x)
                            del missing[y][x]
        return ChopsUpdate(chops, spans, [row[1:] for row in cuts])


def _runs(rows: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Rows in order as ranges, from and to (exclusive)."""
    first = last = -1
    for row in rows:
        if row != last:
            if first < last:
                yield first, last
            first = row
        last = row + 1
    if first < last:
        yield first, last


class ImmediateScreen(Screen[object]):
    """A screen that is drawn when all that changed it has been handled, unless it was drawn a moment ago."""

    def __init__(self) -> None:
        super().__init__(id="_default")
        self._compositor = ChangedLinesCompositor()
        self._drawn = 0.0  # when
        self._focusing = False

    async def _on_idle(self, event: events.Idle) -> None:
        try:
            repaint = self._dirty_widgets or self._repaint_required or self._recompose_required
            changed = repaint or self._layout_required or self._scroll_required
            waits = self.app._batch_count or not self.is_current
        except AttributeError:
            return
        if changed and not waits and time.monotonic() - self._drawn >= UPDATE_PERIOD:  # else Textual goes on
            event.prevent_default()
            self._on_timer_update()

    def _on_timer_update(self) -> None:
        self._drawn = time.monotonic()
        _draw(self)

    # ---------------------------------------------------------------- the focus

    def set_focus(self, widget: Widget | None, scroll_visible: bool = True, from_app_focus: bool = False) -> None:
        """Focus a widget; nothing but what is drawn differently with the focus is drawn."""
        self._focusing = True
        super().set_focus(widget, scroll_visible, from_app_focus)
        self._focusing = False

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        # `focused` is a reactive, which repaints the whole screen
        if self._focusing and not (regions or layout or recompose):
            return self
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def _update_focus_styles(self, focused: Widget | None = None, blurred: Widget | None = None) -> None:
        """Style the widgets into which the focus came, or which it left: those that have rules for that, and not what
        else is in them, as Textual does.
        """
        came, left = (set(widget.ancestors_with_self) if widget else set() for widget in (focused, blurred))
        try:
            styled = [node for node in came ^ left if isinstance(node, Widget) and node._has_focus_within]
        except AttributeError:
            super()._update_focus_styles(focused, blurred)
        else:
            self.app.stylesheet.update_nodes(styled, animate=True)
