"""Advance the tour."""

from functools import partial

from idbg_tui.controllers.context import Actions, Context
from idbg_tui.tour.strip import TourStrip


class Touring:
    """Checks after each change whether the step was done; its keys go to the next or last step, or end the tour."""

    def __init__(self, context: Context, strip: TourStrip | None) -> None:
        self._context, self._strip = context, strip

    def actions(self) -> Actions:
        """What the keys do."""
        return {"tour_skip": partial(self._move, 1), "tour_back": partial(self._move, -1), "tour_leave": self._leave}

    def key_pressed(self, action: str) -> None:
        """A key was pressed that does `action`, and it was done."""
        if self._strip is not None:
            self._strip.tour.key_pressed(action)
            self.look()

    def look(self) -> None:
        """Go on if the step was done."""
        if self._strip is not None and self._strip.tour.look(self._context.state, self._context.body.current):
            self._strip.refresh()

    def _move(self, step: int) -> None:
        if self._strip is None:
            self._context.flash("no tour is shown: idbg tour begins one")
        elif self._strip.tour.move(step):
            self._strip.refresh()
            self.look()
        else:
            self._context.flash("the tour begins here" if step < 0 else "the tour ends here: ^t takes it away")

    def _leave(self) -> None:
        if self._strip is None:
            self._context.flash("no tour is shown: idbg tour begins one")
            return
        self._strip.remove()
        self._strip = None
        self._context.flash("idbg tour begins it again")
