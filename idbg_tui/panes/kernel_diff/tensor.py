"""List all figures of one output over the screen, with the map of its errors slice by slice."""

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType

from idbg.format.glyphs import is_plain
from idbg.schema.diff import ErrorMap, TensorDiff
from idbg.schema.errors import IdbgError
from idbg.session.store import safe_name
from idbg.views.diff import tensor_rows
from idbg.views.tensors import outcome
from idbg.views.tree import Section
from idbg_tui.messages import Flash
from idbg_tui.panes.kernel_diff import pictures
from idbg_tui.state import queries
from idbg_tui.state.state import State
from idbg_tui.widgets import sections
from idbg_tui.widgets.listing import Listing
from idbg_tui.widgets.section_rows import Look, Row, sentences

RequestMap = Callable[[str, tuple[int, ...]], object]
"""Requests the error map of an output's slice, given by the index in all but its last two dims."""
_SHOWN = ("because", "note", "histogram", "map", "figures")  # rows of the view: its figures have the others too


def tensor_of(state: State, name: str) -> TensorDiff | None:
    """An output or a gradient of the last comparison; None if it has none of this name."""
    compared = queries.compared_run(state)
    report = compared and compared.diff
    tensors = (*report.outputs, *report.gradients) if report else ()
    return next((one for one in tensors if one.name == name), None)


def tensor_lines(diff: TensorDiff, error_map: ErrorMap | None, look: Look, *, colours: bool = True) -> list[Row]:
    """The verdict, every figure, the histogram and the map."""
    rows = [row for row in tensor_rows(diff, error_map, diff.name) if row.key[1] in _SHOWN]  # type: ignore[index]
    section = Section("", "", body=tuple(each for row in rows for each in (row.below if row.folds else (row,))))
    style = {"passed": "clean", "failed": "reject"}.get(outcome(diff), "dim")
    painted = sections.rows(section, look, partial(pictures.drawn, colours=colours))
    return [*sentences(_verdict(diff), look, style), *painted]


def _verdict(diff: TensorDiff) -> str:
    kind = str(diff.reference or "no tensor")
    if not diff.judged:
        return f"{diff.name} {kind}: no verdict (yet)"
    came_to = "passes" if diff.passed else f"fails by: {', '.join(diff.failed_by)}"
    return f"{diff.name} {kind} {came_to}"


class TensorListing(Listing):
    """One output; its keys go through the slices of its error map."""

    HINTS = ("[ ] slice", "O PNG", "y Y copy", "esc closes")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "screen.slice(-1)", "the slice before", show=False),
        Binding("right_square_bracket", "screen.slice(1)", "the next slice", show=False),
        Binding("O", "screen.save_map", "write the error map as PNG", show=False),
    ]

    def __init__(self, output: str, state: State, request_map: RequestMap, folder: Path) -> None:
        """`folder` takes the pictures of maps."""
        super().__init__(output, "", self._rows)
        self._output, self._state, self._request_map, self._folder = output, state, request_map, folder

    @property
    def error_map(self) -> ErrorMap | None:
        """The slice that was mapped last, if one was."""
        compared = queries.compared_run(self._state)
        return compared.maps.get(self._output) if compared else None

    def _rows(self, look: Look) -> Sequence[Row]:
        diff = tensor_of(self._state, self._output)
        if diff is None:
            return list(sentences(f"{self._output} is not in the last comparison", look, "dim"))
        colours = not (self.app.no_color or self.app.current_theme.ansi or is_plain())
        return tensor_lines(diff, self.error_map, look, colours=colours)

    def action_slice(self, step: int) -> None:
        """Map the slice before or after the one that is shown."""
        shown, diff = self.error_map, tensor_of(self._state, self._output)
        meta = diff.reference if diff else None
        if shown is None or meta is None:
            return
        leading = [dim for dim in meta.shape[:-2] if isinstance(dim, int)]
        place = 0
        for at, size in zip(shown.index, leading, strict=True):
            place = place * size + at
        if not 0 <= place + step < prod(leading):
            self.post_message(Flash("there is no further slice"))
            return
        index, rest = [], place + step
        for size in reversed(leading):
            rest, at = divmod(rest, size)
            index.append(at)
        self._attempt(lambda: self._request_map(shown.name, tuple(reversed(index))))

    def action_save_map(self) -> None:
        """Write the map that is shown as a picture into the session's folder."""
        shown = self.error_map
        if shown is None:
            self.post_message(Flash("there is no map of this output"))
            return
        slice_ = "".join(f"-{at}" for at in shown.index)
        path = self._folder / f"error-{safe_name(shown.name)}{slice_}.svg"

        def save() -> None:
            from idbg.reports.drawings.files import write_error_map

            write_error_map(shown, path)
            self.post_message(Flash(f"written: {path}"))

        self._attempt(save)

    def _attempt(self, do: Callable[[], object]) -> None:
        try:
            do()
        except IdbgError as error:
            self.post_message(Flash(error.in_one_line, "error"))
