"""Recognise a program that goes another way where it is compiled, and run that way without a compiler.

The program, or a library, asks torch whether it is compiled (`torch.compiler.is_compiling`), and then builds a mask,
takes another kernel or draws other random numbers. In eager, with the answers that Dynamo gives, it goes the same way.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import zip_longest
from types import CodeType, FrameType
from typing import Any, Final

from idbg.engine.compat.compile_questions import answered_by
from idbg.engine.compat.stages import is_torchs
from idbg.engine.failures.owners import OURS
from idbg.engine.kerneldiff.sides.leaf_comparison import ComparisonRules, compare_leaves
from idbg.engine.kerneldiff.sides.random_draws import generators_differ
from idbg.engine.kerneldiff.sides.run import Side, run_eager
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.format.file_names import place
from idbg.schema.diff import DiffReport
from idbg.schema.remarks import Remark

Place = tuple[str, int]
"""A file and a line of it."""

OWN_WAY: Final = "the program's compiled way, without a compiler"
_MOST_LINES = 500_000  # that a run executes: after them the search ends


@dataclass(frozen=True)
class CompiledWay:
    """The way that the program goes where it is compiled. `again` runs the compiled program once more, and `begin` is
    called with the name of what runs next.
    """

    subject: Subject
    backward: bool
    again: Callable[[], Side]
    begin: Callable[[str], None]

    @cached_property
    def side(self) -> Side | None:
        """Its run in eager; None where nothing outside of torch asks whether it is compiled."""
        self.begin(OWN_WAY)
        side = self._run(frozenset())
        if self._asked and self._untraced:
            self._asked.clear()
            side = self._run(self._untraced)
        return side if self._asked else None

    def parting(self, report: DiffReport, reference: Side, test: Side) -> Remark | None:
        """Where eager and compiled part, if what is not right in the report depends on it."""
        if reference.result.name != "eager" or reference.values is None or test.values is None or self.side is None:
            return None
        names = [diff.name for diff in (*report.outputs, *report.gradients) if not diff.passed]
        if not generators_differ(reference, self.side) and _are_same(names, reference, self.side):
            return None
        return Remark("parted", place(*self._parting), place(*next(iter(self._asked))))

    def context(self) -> AbstractContextManager[None]:
        """While it lasts, the program in eager goes its compiled way."""
        return answered_by(self._answer(self._untraced))

    @cached_property
    def _asked(self) -> Counter[Place]:
        """How often each place has asked in the last run of the compiled way."""
        return Counter()

    @cached_property
    def _untraced(self) -> frozenset[Place]:
        """The places that ask in the compiled program in what runs as plain Python, and get False."""
        found: Counter[Place] = Counter()
        with answered_by(partial(_counted, found)):
            self.again()
        return frozenset(found)

    def _run(self, untraced: frozenset[Place]) -> Side:
        return run_eager(self.subject, "eager", [answered_by(self._answer(untraced))], backward=self.backward)

    def _answer(self, untraced: frozenset[Place]) -> Callable[[FrameType], bool | None]:
        def answer(frame: FrameType) -> bool | None:
            asks = _place(frame)
            if asks in untraced:
                return None
            self._asked[asks] += 1
            return True

        return answer

    @cached_property
    def _parting(self) -> Place:
        """The last line that both ways execute before they part; the one that asks where they execute the same."""
        lines = []
        for contexts in ([], [self.context()]):
            executed: list[tuple[CodeType, int]] = []
            run_eager(self.subject, OWN_WAY, [*contexts, _lines_executed(executed)], backward=self.backward)
            lines.append(executed)
        both = zip_longest(*lines)
        at = next((at for at, (one, other) in enumerate(both) if one != other), 0)
        return (lines[0][at - 1][0].co_filename, lines[0][at - 1][1]) if at else next(iter(self._asked))


def _are_same(names: Iterable[str], one: Side, other: Side) -> bool:
    """Whether the two sides have the same values of these names."""
    ours, theirs = ({name: side.leaves[name] for name in names if name in side.leaves} for side in (one, other))
    return all(diff.passed for diff in compare_leaves(ours, theirs, None, ComparisonRules(atol=0.0, rtol=0.0)))


def _counted(found: Counter[Place], frame: FrameType) -> None:
    found[_place(frame)] += 1


def _place(frame: FrameType) -> Place:
    return frame.f_code.co_filename, frame.f_lineno


@contextmanager
def _lines_executed(lines: list[tuple[CodeType, int]]) -> Iterator[None]:
    """Add the lines outside of torch that this thread executes, in order, without those of functions that return True
    or False: where two runs of such a function differ, what its caller does with the answer is what matters.
    """

    def traced(frame: FrameType, _: str, __: object) -> Any:
        code, began = frame.f_code, len(lines)
        if code.co_filename.startswith(("<", OURS)) or is_torchs(code.co_filename) or began > _MOST_LINES:
            return None

        def within(frame: FrameType, event: str, value: object) -> Any:
            if event == "line":
                lines.append((code, frame.f_lineno))
            elif event == "return" and isinstance(value, bool):
                del lines[began:]
            return within

        return within

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        yield
    finally:
        sys.settrace(before)
