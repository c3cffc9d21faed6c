"""Compare later calls of what a script compiles: 2, 4, 8, ..., with other sizes, and once where a guard was skipped."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType

import torch
from torch import Tensor

from idbg.engine.kerneldiff.comparison import ComparisonRun
from idbg.engine.kerneldiff.request import ComparisonRequest, name_of
from idbg.engine.kerneldiff.sides.python_state import PythonState
from idbg.engine.kerneldiff.sides.run import NothingToDifferentiate, Side, run_compiled, run_eager
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.tensors.tree import leaves
from idbg.engine.program.load import LaterCall, Workload
from idbg.schema.diff import DiffReport
from idbg.schema.errors import first_line
from idbg.schema.remarks import Remark

Sizes = Mapping[str, tuple[int, ...]]

_SHOWN = 3  # changes that a sentence names


@dataclass
class ComparedCalls:
    """Which calls of one compiled function were compared, and what is known of the last right one. `comparison` is
    that of the first call.
    """

    name: str
    comparison: ComparisonRun
    workload: Workload
    numbers: list[int] = field(default_factory=lambda: [1])
    is_over: bool = False
    _seen: set[str] = field(default_factory=set)
    _right: int = 1
    _skipped: bool = False  # a call that a skipped guard let through was compared

    def __post_init__(self) -> None:
        self._sizes = _sizes(self.workload)
        self._seen.add(str(self._sizes))
        self._state = PythonState.of({"": self.workload.model})

    def is_due(self, call: LaterCall) -> bool:
        """Whether this call is to be compared: a power of two, the 1st, 2nd, 4th, ... of other sizes, or the first one
        with another Python state where guards are filtered.
        """
        if self.is_over:
            return False
        is_new = (sizes := str(_sizes(call.workload))) not in self._seen
        self._seen.add(sizes)
        if is_new and _is_power(len(self._seen) - 1):
            return True
        if call.filtered and not self._skipped and self._state.effects():
            self._skipped = True
            return True
        return _is_power(call.number)

    def compared(self, call: LaterCall) -> tuple[ComparisonRun, DiffReport, Remark] | None:
        """Compare the call, from copies of the state before it. Returns the comparison of one that is wrong, and what
        is said of it. Raises what copies or the judge raise.
        """
        self.numbers.append(call.number)
        workload = call.workload
        changed = self._changed(call)
        found = _judged(self.comparison, workload)
        if found is not None:
            self.is_over = True
            where = f"call {call.number} of {_place(workload.model)}"
            return *found, Remark("later call", where, changed, str(self._right))
        self._right, self._sizes = call.number, _sizes(workload)
        self._state = PythonState.of({"": workload.model})
        return None

    def _changed(self, call: LaterCall) -> str:
        """What is another since the last right call, as people read it."""
        now = _sizes(call.workload)
        changes = [
            f"{name} is {list(now[name])}, not {list(self._sizes[name])}"
            for name in now
            if name in self._sizes and now[name] != self._sizes[name]
        ]
        effects = [
            f"{name} is {effect.after.shown}, not {effect.before.shown}"
            for name, effect in self._state.effects().items()
        ]
        filtered = ["guard_filter_fn skips guards"] if effects and call.filtered else []
        shown = [*changes[:_SHOWN], *effects[:_SHOWN], *filtered]
        return "; ".join(shown) if shown else "not known"


def _judged(first: ComparisonRun, workload: Workload) -> tuple[ComparisonRun, DiffReport] | None:
    """The comparison of a wrong call. Tolerances are looked at first; float64 runs where eager's are passed."""
    subject = Subject(workload)
    backward, request = first.backward, first.request
    reference, test = _sides(first, subject, workload, backward)
    if any(isinstance(side.error, NothingToDifferentiate) for side in (reference, test)):
        backward = False
        reference, test = _sides(first, subject, workload, backward)
    if reference.values is None or test.values is None:
        raise reference.error or test.error or RuntimeError("a side gave nothing")
    for mode in dict.fromkeys(("tolerance", request.chosen_mode)):
        again = ComparisonRequest(
            subject.model,
            test=request.test,
            atol=request.atol,
            rtol=request.rtol,
            k=request.k,
            mode=mode,
            options=request.options,
            float64=request.float64,
        )
        comparison = ComparisonRun(again, subject)
        comparison.backward = backward
        report = comparison.of_sides(reference, test, draws_as_eager=True)
        if report.verdict != "failed":
            return None
    report = comparison.steady(report, reference)
    if report.verdict == "failed" and reference.values.drew:
        raise RuntimeError("it draws random numbers, and the compiled program may draw others")
    return (comparison, report) if report.verdict == "failed" else None


def _sides(first: ComparisonRun, subject: Subject, workload: Workload, backward: bool) -> tuple[Side, Side]:
    """Eager and the program's own compiled code, each from the state before the call."""
    compiled = workload.compiled
    assert compiled is not None
    reference = run_eager(subject, backward=backward)
    name = name_of(first.request.test)
    return reference, run_compiled(name, subject, lambda _: compiled, backward=backward, fresh=False)


def not_compared(calls: ComparedCalls, call: LaterCall, error: Exception) -> Remark:
    """Why a call has no verdict."""
    calls.numbers.remove(call.number)
    return Remark("later call not judged", f"call {call.number} of {_place(call.workload.model)}", first_line(error))


def _sizes(workload: Workload) -> Sizes:
    found = leaves(workload.args, "args") | leaves(dict(workload.kwargs), "kwargs")
    return {name: tuple(value.shape) for name, value in found.items() if isinstance(value, Tensor)}


def _is_power(number: int) -> bool:
    return number & number - 1 == 0


def _place(model: Callable[..., object]) -> str:
    """The function's name, and where it begins: `forward (model.py:9)`."""
    function = type(model).forward if isinstance(model, torch.nn.Module) else model
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return str(getattr(function, "__name__", type(function).__name__))
    return f"{code.co_name} ({Path(code.co_filename).name}:{code.co_firstlineno})"
