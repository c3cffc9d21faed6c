"""The undo history of the rules' text."""

import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from idbg.accelerators.toml_text import difference

Location = tuple[int, int]
"""Row and column of a text, both 0-based."""
Span = tuple[Location, Location]
"""Where a selection begins and ends; the cursor is at its end."""
TOP: Span = ((0, 0), (0, 0))

_MOST = 50  # steps that are kept
_PAUSE = 2.0  # seconds without a key end what is undone together
_TYPED = 100  # characters at most


class Step(NamedTuple):
    """What one undo takes back: `selection` was there before, and the last edit ends at `end` of the text after."""

    before: str
    after: str
    selection: Span
    end: Location


class UndoHistory:
    """A text with the steps that made it, and those that were undone. `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.text = ""
        self._clock = clock
        self._done: deque[Step] = deque(maxlen=_MOST)
        self._undone: list[Step] = []
        self._alone = True  # whether the next edit begins a step
        self._removed = False  # whether the last edit took anything out
        self._last = 0.0
        self._characters = 0  # of the step so far

    @property
    def is_fresh(self) -> bool:
        """Whether there is no text, and nothing to undo."""
        return not self.text and not self._done

    def open(self, text: str) -> None:
        """Begin with a text: it is where undo ends."""
        self.text = text
        self._done.clear()
        self._undone.clear()
        self._alone = True

    def become(self, text: str, selection: Span = TOP) -> None:
        """Take another text, as a step of its own."""
        if text != self.text:
            change = difference(self.text, text)
            self._push(Step(self.text, text, selection, location(text, change.start + len(change.text))))
            self._alone = True

    def typed(self, text: str, *, inserted: str, removed: str, selection: Span, end: Location) -> None:
        """Take the text that a key made, which took `removed` out and put `inserted` in its place.

        Single characters that are typed (or taken out) one after another are one step, until there is a pause, a
        hundred of them, or the end of a line.
        """
        if not inserted and not removed:
            return
        now, ends_line = self._clock(), "\n" in inserted + removed
        together = (
            bool(self._done)
            and not self._alone
            and not ends_line
            and len(inserted) <= 1
            and bool(removed) == self._removed
            and now - self._last <= _PAUSE
            and self._characters + len(inserted) <= _TYPED
        )
        if together:
            first = self._done.pop()
            self._push(Step(first.before, text, first.selection, end))
            self._characters += len(inserted)
        else:
            self._push(Step(self.text, text, selection, end))
            self._characters = len(inserted)
        self._removed, self._last = bool(removed), now
        self._alone = ends_line or len(inserted) > 1

    def checkpoint(self) -> None:
        """What is edited next is not undone together with what was edited last."""
        self._alone = True

    def undo(self) -> Step | None:
        """The step that is taken back; None where there is none."""
        if not self._done:
            return None
        step = self._done.pop()
        self._undone.append(step)
        self.text = step.before
        return step

    def redo(self) -> Step | None:
        """The step that is made again; None where there is none."""
        if not self._undone:
            return None
        step = self._undone.pop()
        self._done.append(step)
        self.text, self._alone = step.after, True
        return step

    def _push(self, step: Step) -> None:
        self._done.append(step)
        self._undone.clear()
        self.text = step.after


def location(text: str, index: int) -> Location:
    """Where the character `index` of a text stands."""
    return text.count("\n", 0, index), index - text.rfind("\n", 0, index) - 1
