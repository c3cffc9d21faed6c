"""Track the current step of the tour from the state and the pressed keys. No widget."""

from idbg_tui.panes.base import PaneId
from idbg_tui.state.state import State
from idbg_tui.tour.steps import STEPS, Before, Now, Step


class Tour:
    """The steps in order; one is left when it was done, or by `move`."""

    def __init__(self, steps: tuple[Step, ...] = STEPS) -> None:
        self.steps = steps
        self.at = 0
        self.praise = ""
        self.failed = False  # what the step waits for did not come
        self._before: Before | None = None  # None: the step is to begin
        self._pressed: set[str] = set()

    @property
    def step(self) -> Step:
        """The current step."""
        return self.steps[self.at]

    @property
    def words(self) -> str:
        """The text of the current step."""
        return self.step.on_failure if self.failed else self.step.words

    def key_pressed(self, action: str) -> None:
        """A key was pressed that does `action`."""
        self._pressed.add(action)

    def look(self, state: State, pane: PaneId) -> bool:
        """Go on if the step was done; whether the text changed."""
        if self._before is None:
            self._before = Before.of(state, pane)
            return True
        if not self.step.done(Now(state, pane, frozenset(self._pressed), self._before)):
            failed, self.failed = self.failed, self.step.failed(state)
            return self.failed != failed
        praise = self.step.praise
        self.move(1)
        self.praise = praise
        self._before = Before.of(state, pane)
        return True

    def move(self, step: int) -> bool:
        """Leave the step as it is for the next one or the one before; False where there is none."""
        at = self.at + step
        if not 0 <= at < len(self.steps):
            return False
        self.at, self.praise, self.failed = at, "", False
        self._before = None
        self._pressed.clear()
        return True
