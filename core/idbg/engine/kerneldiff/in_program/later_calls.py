"""Compare later calls of what a script compiles: 2, 4, 8, ..., with other sizes, and once where a guard was skipped.

The program's own compiled code runs, so that what its guards let through is compared. Where Inductor draws random
numbers in it, eager cannot draw the same: then a twin runs, compiled apart to draw as eager does.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import islice
from types import CodeType

import msgspec
import torch
from torch import Tensor

from idbg.engine.capture.run import uncaptured
from idbg.engine.compat import comparing, cuda_graphs, inspecting
from idbg.engine.kerneldiff.comparison import ComparisonRun
from idbg.engine.kerneldiff.request import ComparisonRequest
from idbg.engine.kerneldiff.sides.python_state import PythonState
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.tensors.tree import leaves
from idbg.engine.program.load import Model, Workload
from idbg.engine.program.torch_compile import ProgramCall
from idbg.format.file_names import near_place
from idbg.schema.diff import DiffReport, Mode
from idbg.schema.errors import first_line
from idbg.schema.remarks import Remark

_SHOWN = 3  # changes that a sentence names


def is_power_of_two(number: int) -> bool:
    """Whether it is 1, 2, 4, 8, ...: the calls of a function that are looked at."""
    return number & number - 1 == 0


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
    _skipped: set[str] = field(default_factory=set)  # state that changed where guards are filtered, and was compared
    _twin: "_Twin | None" = None

    def __post_init__(self) -> None:
        self._is_right(1, self.workload)
        self._seen.add(_sizes(self.workload))

    def is_due(self, call: ProgramCall, workload: Workload) -> bool:
        """Whether this call is to be compared: a power of two, the 1st, 2nd, 4th, ... of other sizes, or where guards
        are filtered the first one after something in its Python state has changed.
        """
        if self.is_over:
            return False
        is_new = (sizes := _sizes(workload)) not in self._seen
        self._seen.add(sizes)
        if is_new and is_power_of_two(len(self._seen) - 1):
            return True
        # of no other function: this walks its Python state at each call
        if call.of_dynamo.guard_filter is not None and (new := self._state.effects().keys() - self._skipped):
            self._skipped |= new
            return True
        return is_power_of_two(call.number)

    def compared(self, call: ProgramCall, workload: Workload) -> tuple[ComparisonRun, DiffReport] | None:
        """Compare the call, from the state before it, which is restored. Returns the comparison of one that is not
        right: no call is compared after it. Raises what copies or the judge raise.
        """
        where = self._where(call)
        if why := self._cannot_run_again(call):
            self.is_over = True
            raise RuntimeError(why)
        comparison, report = self._judged(call, workload)
        if report.passed:
            self._is_right(call.number, workload)
            self.numbers.append(call.number)
            return None
        self.is_over = True
        lost = any(isinstance(side.error, torch.OutOfMemoryError) for side in comparison.sides)
        if report.verdict == "failed" or (report.raises_alone and not lost):
            self.numbers.append(call.number)
            note = Remark("later call", where, self._changed(call, workload), str(self._right))
        elif report.not_comparable:
            note = _not_judged(where, report.not_comparable)
            report = msgspec.structs.replace(report, not_comparable=note)
        else:
            failed = [side.error for side in comparison.sides if side.error is not None]
            raise RuntimeError(first_line(failed[0]) if failed else "it has no verdict")  # no SystemExit of a side
        return comparison, msgspec.structs.replace(report, notes=(note, *report.notes))

    def _cannot_run_again(self, call: ProgramCall) -> str:
        """Why a further run would change what the program goes on with; "" if it would not."""
        subject = self.comparison.subject
        if subject.optimizers:  # other tensors of the same values: guards check objects
            return "its optimizer's state would be restored as other tensors, for which the program compiles again"
        on_gpu = any(tensor.is_cuda for tensor in subject.tensors.values())
        if on_gpu and cuda_graphs.is_requested(call.backend.options.get("triton.cudagraphs")):
            return "a further run of CUDA graphs writes over outputs that the program may still hold"
        return ""

    def not_compared(self, call: ProgramCall, error: Exception) -> Remark:
        """Why a call has no verdict."""
        return _not_judged(self._where(call), first_line(error))

    def _where(self, call: ProgramCall) -> str:
        return f"call {call.number} of {self.name}{_place(call.model)}"

    def _judged(self, call: ProgramCall, workload: Workload) -> tuple[ComparisonRun, DiffReport]:
        """The comparison. Tolerances are looked at first; float64 runs where eager's are passed."""
        if self.comparison.replaced_draws:
            self._twin = self._twin or _Twin(call)
        with self._twin.entered() if self._twin else nullcontext(workload.compiled) as compiled:
            comparison, report = self._of(compiled, workload)
        if isinstance(why := report.not_comparable, Remark) and why.kind == "own draws":  # the first call drew none
            self._twin = _Twin(call)
            return self._judged(call, workload)
        return comparison, report

    def _of(self, compiled: Model | None, workload: Workload) -> tuple[ComparisonRun, DiffReport]:
        first = self.comparison
        modes: tuple[Mode, ...] = ("tolerance", first.request.chosen_mode)
        for mode in dict.fromkeys(modes):
            subject = Subject(workload, input_gradients=first.subject.input_gradients)
            subject.compiled_way = first.subject.compiled_way
            comparison = ComparisonRun(_request(first.request, compiled, mode), subject)
            comparison.backward, subject.grad = first.backward, first.subject.grad
            report = comparison.run()
            if report.passed:
                break
        return comparison, report

    def _is_right(self, number: int, workload: Workload) -> None:
        self._right, self._facts = number, _facts(workload)
        self._state = PythonState.of({"": workload.model})

    def _changed(self, call: ProgramCall, workload: Workload) -> str:
        """What is another since the last right call, as people read it."""
        now, before = _facts(workload), self._facts
        changes = [f"{name} is {now[name]}, not {was}" for name, was in before.items() if now.get(name, was) != was]
        effects = dict.fromkeys(  # one attribute may be reached in two ways
            f"{name.partition(' #')[0]} is {effect.after.shown}, not {effect.before.shown}"
            for name, effect in self._state.effects().items()
        )
        filtered = ["guard_filter_fn skips guards"] if effects and call.of_dynamo.guard_filter is not None else []
        shown = [*changes[:_SHOWN], *islice(effects, _SHOWN), *filtered]
        return "; ".join(shown) if shown else "nothing that is known"


class _Twin:
    """What the program compiles, compiled once more, apart from it, with Inductor drawing as eager does."""

    def __init__(self, call: ProgramCall) -> None:
        self._private = inspecting.Private()
        apart = inspecting.private_of(comparing.uncompiled(call.model), self._private)
        settings = call.of_dynamo
        self._compiled = inspecting.compiled(apart, call.backend, settings.dynamic, settings.guard_filter)

    @contextmanager
    def entered(self) -> Iterator[Model]:
        with ExitStack() as stack:
            stack.enter_context(inspecting.state_restored(self._private))
            stack.enter_context(uncaptured(lowers=True))
            stack.enter_context(comparing.random_as_eager())
            yield self._compiled


def _request(first: ComparisonRequest, compiled: Model | None, mode: Mode) -> ComparisonRequest:
    """The settings of a later call: it reports no progress, and nothing but its verdict is sought."""
    return replace(
        first,
        compiled=compiled,
        mode=mode,
        later=True,
        runs=1,
        per_kernel=False,
        nan=False,
        steps=0,
        kept=False,
        on_side=None,
        on_result=None,
    )


def _not_judged(where: str, why: Remark | str) -> Remark:
    return Remark("later call not judged", where, why if isinstance(why, str) else (why,))


def _sizes(workload: Workload) -> str:
    return str({name: tuple(value.shape) for name, value in _arguments(workload).items() if isinstance(value, Tensor)})


def _arguments(workload: Workload) -> Mapping[str, object]:
    return leaves(workload.args, "args") | leaves(dict(workload.kwargs), "kwargs")


def _facts(workload: Workload) -> dict[str, str]:
    """What a guard may depend on: sizes and dtypes of what a call receives, numbers and texts, a module's mode."""
    facts: dict[str, str] = {}
    for name, value in _arguments(workload).items():
        if isinstance(value, Tensor):
            facts |= {f"size {dim} of {name}": str(size) for dim, size in enumerate(value.shape)}
            facts[f"the dtype of {name}"] = str(value.dtype)
        elif isinstance(value, (int, float, str, type(None))):
            facts[name] = repr(value)
    if isinstance(workload.model, torch.nn.Module):
        facts["training"] = str(workload.model.training)
    return facts


def _place(model: Callable[..., object]) -> str:
    """Where the function begins: " (model.py:9)"; "" where that is not known."""
    function = type(model).forward if isinstance(model, torch.nn.Module) else model
    code = getattr(function, "__code__", None)
    return f" ({near_place(code.co_filename, code.co_firstlineno)})" if isinstance(code, CodeType) else ""
