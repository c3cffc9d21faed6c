"""Judge the side effects of two sides: what eager changes in the program's Python state and the compiled program not.

A difference is accused only if it is there again: in a second run of eager, rounded differently, and at a second call
of the compiled program, which compiles nothing more.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from idbg.engine.capture.run import uncaptured
from idbg.engine.kerneldiff.float64.rounding import PerturbedRounding
from idbg.engine.kerneldiff.sides.python_state import Effect, Effects, differ
from idbg.engine.kerneldiff.sides.run import Call, Side, run_compiled, run_eager
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.tensors.tree import AFTER
from idbg.schema.diff import TensorDiff
from idbg.schema.remarks import Remark

AGAIN = "side effects again"


@dataclass
class EffectCheck:
    """Judges side effects. `accused` are the names of those that differ. `dynamo` compiles nothing below Dynamo, `test`
    runs the test side once more, `own_way` is eager's side of what the program chooses to do where it is compiled;
    `begin` is called with the name of what runs next.
    """

    subject: Subject
    backward: bool
    dynamo: Callable[[Call], Call]
    test: Callable[[], Side]
    own_way: Callable[[], Side | None]
    notes: list[Remark]
    begin: Callable[[str], None]
    accused: list[str] = field(default_factory=list)

    def judged(self, reference: Side, test: Side) -> tuple[TensorDiff, ...]:
        """A diff for each side effect that differs. What cannot be judged is noted."""
        if self.subject.has_more_state:
            self._not_judged(["the rest of the program's state"], Remark("too much state"))
        names = [] if reference.result.name != "eager" else unlike(reference, test)
        if not names or reference.values is None or test.values is None:
            return ()
        self.begin(AGAIN)
        with uncaptured():
            eager = run_eager(self.subject, AGAIN, [PerturbedRounding(0)], backward=self.backward)
        varies = {name for name in names if name in unlike(reference, eager, names) or eager.values is None}
        again = self.test()
        once = set(names) - varies - set(unlike(reference, again, names))
        drawn = reference.values.generators != test.values.generators
        self.accused = [name for name in names if name not in varies | once]
        chosen = self.accused if drawn else self._chosen(again)
        self._not_judged(chosen, Remark("other draws", test.result.name) if drawn else Remark("asks compiler"))
        self.accused = [name for name in self.accused if name not in chosen]
        stated = {name for name in varies if not _is_of_warnings(name, reference.values.effects, test.values.effects)}
        self._not_judged(sorted(stated), Remark("eager's effects vary"))
        self._not_judged(sorted(once), Remark("only while compiling"))
        since_dynamo = self._of_dynamo(reference) if self.accused else ()
        return tuple(
            _diff(name, reference.values.effects, test.values.effects, "Dynamo" if name in since_dynamo else "")
            for name in self.accused
        )

    def fails(self, reference: Side, side: Side) -> bool:
        """Whether another side has a side effect that is accused."""
        return bool(unlike(reference, side, self.accused))

    def _chosen(self, test: Side) -> list[str]:
        """The names of those that are as in the program's own compiled way."""
        own = self.own_way() if self.accused else None
        if own is None or own.values is None:
            return []
        differing = unlike(own, test, self.accused)
        return [name for name in self.accused if name not in differing]

    def _of_dynamo(self, reference: Side) -> list[str]:
        """The names of those that Dynamo's graphs have too, with nothing compiled below them."""
        compiled: list[Call] = []

        def compile(model: Call) -> Call:
            compiled[:] = compiled or [self.dynamo(model)]
            return compiled[0]

        with uncaptured():
            for _ in range(2):  # the first one compiles
                side = run_compiled("eager", self.subject, compile, backward=self.backward, fresh=False)
        return unlike(reference, side, self.accused)

    def _not_judged(self, names: Iterable[str], why: Remark) -> None:
        if names := list(names):
            self.notes.append(Remark("effects not judged", ", ".join(names), (why,)))


def unlike(one: Side, other: Side, names: Iterable[str] | None = None) -> list[str]:
    """The names of the side effects, or of these, that the two sides have not in common."""
    if one.values is None or other.values is None:
        return []
    ours, theirs = one.values.effects, other.values.effects
    every = dict.fromkeys((*ours, *theirs)) if names is None else names
    return [name for name in every if differ(ours.get(name), theirs.get(name))]


def _diff(name: str, reference: Effects, test: Effects, since: str) -> TensorDiff:
    wanted, found = (_left(one.get(name), two.get(name)) for one, two in ((reference, test), (test, reference)))
    if _is_of_warnings(name, reference, test):
        note = Remark("warnings since" if since else "warnings", wanted, found, since)
        return TensorDiff(name=name, passed=False, failed_by=("warnings",), note=note)
    note = Remark("effect since" if since else "effect", wanted, found, since)
    return TensorDiff(name=name + AFTER, passed=False, failed_by=("effect",), note=note)


def _is_of_warnings(name: str, *sides: Effects) -> bool:
    return any(side[name].kind == "warnings" for side in sides if name in side)


def _left(own: Effect | None, other: Effect | None) -> str:
    """What a side leaves; one that changes nothing leaves what was there before."""
    if own is not None:
        return own.after.shown
    return other.before.shown if other is not None else ""
