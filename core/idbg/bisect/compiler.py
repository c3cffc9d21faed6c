"""Find the part of the compiler that causes a failure: the backend, its subsystem, and the application of that.

Uses the table of backends of torch's `CompilerBisector`, but each try is a process, and a try that fails in another way
is undecided.
"""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from idbg.bisect.tries import BisectTries, compared, failed
from idbg.config.options import INDUCTOR, family
from idbg.reduce.ddmin import first_failing
from idbg.schema.bisection import GRAPHS, PYTHON, Answer, Bisected, Level, Outcome, Subsystem, SuspectPart, Try
from idbg.schema.remarks import Remark


class CompilerSearch:
    """One search; `found` is the result so far, also if it was stopped."""

    def __init__(self, attempt: Try, tries: BisectTries) -> None:
        self.found: SuspectPart | None = None
        self.note: Remark | str = ""
        self._graphs: int | None = None  # how many graphs Inductor compiles in the tries
        self._counts: dict[str, int] = {}  # of those
        self._attempt, self._tries = replace(attempt, parts=True), tries

    def run(self) -> None:
        """Search. Raises BadInput where it cannot be tried; Stopped."""
        self._attempt = replace(compared(self._attempt, self._tries), parts=False)
        if self._tries.sought is None:
            return
        if (lowering := self._tries.answer.lowering) is not None:  # the exception itself tells the part
            self.found = SuspectPart(INDUCTOR, lowering=lowering)
            return
        self.found = self._backend()
        if self.found.backend == INDUCTOR:
            self._graph(self._tries.answer.counts.get(GRAPHS, 0))
        parts = {each.name: each.subsystems for each in self._tries.answer.parts}
        for part in parts.get(self.found.backend, ()):
            if self._is_in(part):
                return

    def known(self) -> Bisected:
        """The result so far."""
        return Bisected("compiler", part=self.found)

    def _backend(self) -> SuspectPart:
        """The first backend that fails so: the last needs no try."""
        names = list(self._backends())
        for name in names[:-1]:
            outcome, answer = self._try(Level(name))
            # what does not run without a compiler is no compiler's fault, however it fails
            if outcome == "fails" or (name == PYTHON and answer.signature is not None):
                return SuspectPart(name, otherwise=answer.words if outcome == "other" else "")
        return SuspectPart(names[-1])

    def _backends(self) -> Iterator[str]:
        """From the program without a compiler to the one that it was compiled with."""
        yield PYTHON
        if self._tries.answer.own:
            yield from ("eager", "aot_eager", self._tries.answer.own)
            return
        own = self._attempt.target.backend
        through_inductor = family(own) == INDUCTOR and own not in ("eager", "mock")
        last = INDUCTOR if through_inductor or self._attempt.command else own
        for each in self._tries.answer.parts:
            if each.name == INDUCTOR or (last != INDUCTOR and each.name not in ("eager", "aot_eager")):
                break
            if each.name == last:
                break
            yield each.name
        yield last

    def _graph(self, count: int) -> None:
        """Find the graph that fails among several; later tries compile only the graphs up to it."""
        if count < 2:
            return
        found = self._first(count, lambda number: Level(INDUCTOR, graphs=number))
        if found is None:  # a bound that lets all in is known to change nothing
            return
        _, self._graphs, answer = found
        self._counts = answer.counts
        self.found = SuspectPart(INDUCTOR, frame=answer.last.frame if answer.last is not None else "", graphs=count)

    def _is_in(self, part: Subsystem) -> bool:
        """Whether the part causes the failure; if so, find which of its applications does."""
        assert self.found is not None
        counts = self._counts or self._tries.answer.counts
        count = counts.get(part.name)
        is_counted = bool(counts) and self.found.backend == INDUCTOR
        if is_counted and not part.setting and not count:
            return False  # it was never applied: nothing to switch off
        outcome, _ = self._try(Level(self.found.backend, part.name, 0), setting=part)
        if outcome != "passes":
            return False
        found = replace(self.found, subsystem=part.name, setting=part.setting, value=part.value)
        self.found = found
        if not part.setting:
            count = count if is_counted else self._counted(found)
            self.found = self._application(found, count or 0)
        return True

    def _counted(self, found: SuspectPart) -> int:
        """How often the part is applied without a limit; 0 if unknown."""
        outcome, answer = self._try(Level(found.backend, found.subsystem))
        return answer.counts.get(found.subsystem, 0) if outcome == "fails" else 0

    def _application(self, found: SuspectPart, count: int) -> SuspectPart:
        """The first application with which it fails."""
        if not count:
            return found
        first = self._first(count, lambda number: Level(found.backend, found.subsystem, number))
        if first is None:
            return replace(found, of=count)
        low, _, answer = first
        return replace(
            found, application=answer.last, of=count, first=low + 1, before=answer.before, after=answer.after
        )

    def _first(self, count: int, level: Callable[[int], Level]) -> tuple[int, int, Answer] | None:
        """The last of `count` limits that is known to pass, the first that fails, and its answer; None if all that is
        counted together fails, but not with a limit that lets all of it in.
        """
        answers: dict[int, Answer] = {}

        def fails(number: int) -> bool | None:
            outcome, answers[number] = self._try(level(number), of=count)
            return failed(outcome)

        low, high = first_failing(count, fails)
        return None if high not in answers and not fails(high) else (low, high, answers[high])

    def _try(self, level: Level, *, setting: Subsystem | None = None, of: int = 0) -> tuple[Outcome, Answer]:
        if level.backend == INDUCTOR and level.graphs is None:
            level = replace(level, graphs=self._graphs)
        return self._tries(replace(self._attempt, level=level), describe(level, setting, of))


def describe(level: Level, part: Subsystem | None = None, of: int = 0) -> str:
    """Describe a try."""
    if level.backend == PYTHON:
        return "without torch.compile"
    if level.graphs is not None and not level.subsystem:
        return f"{level.backend} for graphs 1 to {level.graphs} of {of}"
    if not level.subsystem:
        return f"backend {level.backend}"
    if part is not None and part.setting:
        return f"{level.backend} with {part.setting}={part.value}"
    if level.applied == 0:
        return f"{level.backend} without {level.subsystem}"
    if level.applied is None:
        return f"{level.backend}, {level.subsystem} counted"
    return f"{level.backend}, {level.subsystem} 1 to {level.applied} of {of}"
