"""Which keys compare a run with a reference, and look into what was found?"""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import ClassVar, Literal

from textual.binding import Binding, BindingType

from idbg.format.glyphs import MARKS
from idbg.schema.diff import Comparison, ErrorMap, TensorDiff
from idbg.session.store import safe_name
from idbg_tui.actions.lowered import LoweredActions
from idbg_tui.layout import Body
from idbg_tui.messages import DiffAsked, Flash
from idbg_tui.state import queries
from idbg_tui.widgets.listing import Entry, Listing, sentences

CHART_KEY = "t"
Kind = Literal["outputs", "kernels"]


class TextListing(Listing):
    """Why a side failed, in full."""

    HINTS = ("y Y copy", "esc closes")


class TensorListing(Listing):
    """One output, looked into; its keys go through the slices of its error map."""

    HINTS = ("[ ] slice", "p PNG", "y Y copy", "esc closes")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "app.slice(-1)", show=False),
        Binding("right_square_bracket", "app.slice(1)", show=False),
        Binding("p", "app.save_map", show=False),
    ]


class DiffActions(LoweredActions):
    """The part of the app that compares."""

    body: Body
    _looked_into: str = ""  # the output whose listing is open

    def action_compare(self, kind: Kind) -> None:
        """Run the program again, and hold it against eager and float64."""
        comparison = Comparison(per_kernel=kind == "kernels")
        if self.attempt(lambda: self.session.run(comparison=comparison)):
            self.body.go("kernel_diff")
            self.show()

    def on_diff_asked(self, message: DiffAsked) -> None:
        if message.what == "chart":
            self._open("The error from kernel to kernel", CHART_KEY, self._chart)
            return
        if message.what == "failure":
            failed = f"{message.name or 'The program'} failed"
            self._push(TextListing(failed, "", lambda width: self._failure(message.name, width)))
            return
        diff = self._tensor(message.name)
        if diff is None:
            return
        self._looked_into = diff.name
        self._push(TensorListing(diff.name, "", self._entries))
        if self._map is None and diff.worst is not None and self.session.live:
            index = diff.worst.index[:-2]
            self.attempt(lambda: self.session.map_errors(diff.name, index))

    def _chart(self, width: int) -> Sequence[Entry]:
        from idbg_tui.panes.kernel_diff import chart

        run = queries.compared_run(self.state)
        report = run and run.diff
        if not report:
            return list(sentences("nothing was compared yet: D compares every kernel", width, "dim"))
        found = chart.entries(report, width, self.size.height)
        first = report.kernels[0] if report.kernels else None
        if run is None or first is None or queries.has_code_of(self.state, run, first.frame, first.part):
            return found
        return [replace(entry, node=None) for entry in found]  # another run is shown: its nodes are others

    def _failure(self, side: str, width: int) -> Sequence[Entry]:
        """All that is known of why a side failed; "" is the program, of the run in hand."""
        from idbg_tui.panes.kernel_diff import detail

        compared, run = queries.compared_run(self.state), self.state.run
        report = compared.diff if compared else None
        failures = {one.name: one.failure for one in report.sides} if report else {}
        found = failures.get(side) or (report.failure if report and run is compared else run and run.failure)
        return detail.failure_entries(found, width) if found else []

    def _entries(self, width: int) -> Sequence[Entry]:
        from idbg_tui.panes.kernel_diff import detail, heat

        diff = self._tensor(self._looked_into)
        if diff is None:
            return list(sentences(f"{self._looked_into} is not in the last comparison", width, "dim"))
        found = detail.entries(diff, width)
        if self._map is not None:
            colours = not (self.no_color or self.current_theme.ansi or MARKS["guide"] == "|")
            found += [*sentences("", width), *heat.entries(self._map, width, colours=colours)]
        return found

    def _tensor(self, name: str) -> TensorDiff | None:
        compared = queries.compared_run(self.state)
        report = compared and compared.diff
        tensors = (*report.outputs, *report.gradients) if report else ()
        return next((one for one in tensors if one.name == name), None)

    @property
    def _map(self) -> ErrorMap | None:
        compared = queries.compared_run(self.state)
        return compared.maps.get(self._looked_into) if compared else None

    def action_slice(self, step: int) -> None:
        """Map the slice before or after the one that is shown."""
        found, diff = self._map, self._tensor(self._looked_into)
        meta = diff.reference if diff else None
        if found is None or meta is None:
            return
        leading = [dim for dim in meta.shape[:-2] if isinstance(dim, int)]
        place = 0
        for at, size in zip(found.index, leading, strict=True):
            place = place * size + at
        if not 0 <= place + step < prod(leading):
            self.post_message(Flash("there is no further slice"))
            return
        index, rest = [], place + step
        for size in reversed(leading):
            rest, at = divmod(rest, size)
            index.append(at)
        self.attempt(lambda: self.session.map_errors(found.name, tuple(reversed(index))))

    def action_save_map(self) -> None:
        """Write the map that is shown as a picture into the session's folder."""
        found = self._map
        if found is None:
            self.post_message(Flash("there is no map of this output"))
            return
        slice_ = "".join(f"-{at}" for at in found.index)
        path = Path(self.session.folder) / f"error-{safe_name(found.name)}{slice_}.png"

        def save() -> None:
            from idbg.reports.plots import save_error_map

            save_error_map(found, path)
            self.post_message(Flash(f"written: {path}"))

        self.attempt(save)
