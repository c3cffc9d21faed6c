"""Leave out of a run what the program compiles again only because a comparison compiled it before.

The program's own call after a comparison finds the code that was compared. It is compiled again where that failed,
where its guards hold for one call, or where a search cleared Dynamo's code: then other functions are too, at their next
calls.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType

from idbg.engine.capture.frame import Code
from idbg.engine.capture.run import RunCapture, code_key, uncaptured
from idbg.engine.compat import dynamo


@contextmanager
def repeats_left_out(capture: RunCapture) -> Iterator[None]:
    """While it lasts, compiles that repeat one of the run's are not captured."""
    repeats = _Repeats(capture)
    with dynamo.observe_compiles(capture.unpaused("repeated compiles"), repeats.compile, repeats.reset):
        yield


class _Repeats:
    """Counts the compiles of each code that Dynamo holds, and those that it has lost."""

    def __init__(self, capture: RunCapture) -> None:
        self.capture = capture
        self.held: Counter[Code] = Counter()
        self.lost: Counter[Code] = Counter()
        self.failed: dict[Code, set[str]] = {}  # frames whose backend failed in a comparison, by torch's compile ids

    def reset(self) -> None:
        """Dynamo clears its code: for the program itself, or for something that compiles beside the run."""
        if self.capture.is_paused or self.capture.is_comparing:
            self.lost += self.held
        else:
            self.lost.clear()
        self.held.clear()

    def compile(self, code: CodeType, compile: dynamo.Compile) -> object:
        """Compile one frame; captured if the run has not captured it before."""
        if self.capture.is_paused:
            return compile()
        key = code_key(code)
        errors = self.capture.outcomes.errors
        before = set(errors)
        if self.capture.is_comparing and not (self.capture.is_later_call and self.lost[key] > 0):
            self.capture.compared[key] += 1
        elif self.lost[key] > 0 or self.capture.compared[key] > 0:
            return self._again(key, compile)
        try:
            result = compile()
        except Exception:  # broad on purpose: a backend raises anything, and it is raised again
            self.failed[key] = set(errors) - before if self.capture.is_comparing else set()
            raise
        self.held[key] += 1
        return result

    def _again(self, key: Code, compile: dynamo.Compile) -> object:
        self.held[key] += self.lost[key] > 0
        self.lost -= Counter([key])
        self.capture.compared -= Counter([key])
        with uncaptured(lowers=True):
            try:
                return compile()
            except Exception as error:
                # the program's own error ends the run, and is not one that it caught
                self.capture.outcomes.errors.update(dict.fromkeys(self.failed.pop(key, ()), error))
                raise
