"""Compare each graph that a program compiles, at its first call in the program, as the program compiled it.

The graph runs in eager, compiled and in float64 on copies of the call's arguments: neither hooks of parameters
(DistributedDataParallel's, FSDP's) nor the program's own values are touched. Graphs with collectives run at the same
time in all ranks.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial, update_wrapper

import torch
from msgspec.structs import replace
from torch import Tensor
from torch.fx import GraphModule

from idbg.engine.backends.program_backend import INDUCTOR
from idbg.engine.compat import comparing, distributed
from idbg.engine.compat.lowering import Compiled
from idbg.engine.kerneldiff.comparison import ComparisonRun
from idbg.engine.kerneldiff.float64.draws import recorded_draws
from idbg.engine.kerneldiff.in_program.later_calls import is_power_of_two
from idbg.engine.kerneldiff.in_program.lockstep import Lockstep
from idbg.engine.kerneldiff.in_program.node_values import inputs_measured, nodes_measured
from idbg.engine.kerneldiff.request import ComparisonRequest
from idbg.engine.kerneldiff.sides.random_draws import without_verdict_of_failed
from idbg.engine.kerneldiff.sides.run import Call, NothingToDifferentiate, run_eager, run_side
from idbg.engine.kerneldiff.sides.subject import Subject, can_be_written
from idbg.engine.program.load import Workload
from idbg.schema import events
from idbg.schema.diff import Comparison, DiffReport, TensorDiff
from idbg.schema.errors import BadInput, first_line
from idbg.schema.graphs import Frame
from idbg.schema.node_values import CallValues
from idbg.schema.programs import Float64On
from idbg.schema.remarks import Remark
from idbg.traces.frame import Emit


@dataclass
class GraphComparisons:
    """Those of one run, whose Inductor draws random numbers as eager does (`comparing.random_as_eager`). `reported`
    gets each report, with the frame before the names of its tensors.
    """

    run: int
    emit: Emit
    request: Comparison
    float64: Float64On
    replicas: distributed.Replicas
    reported: Callable[[DiffReport], None]
    _frames: dict[tuple[str, int], int] = field(default_factory=dict)  # compiles of a function, by its name and line

    def watched(self, frame: Frame, backend: str, gm: GraphModule, compiled: Compiled) -> Compiled:
        """What to call in place of the compiled graph. `gm` is a copy, `comparing.without_checkpoints`."""
        place = frame.function, frame.line
        nth = self._frames[place] = self._frames.get(place, -1) + 1
        calls = 0

        def call(*args: object) -> object:
            nonlocal calls
            calls += 1
            if is_power_of_two(calls):
                self._measured(frame, gm, args, calls)
            if calls == 1:
                self._compared(_Call(frame, nth, backend, gm, compiled, args))
            return compiled(*args)

        return update_wrapper(call, compiled)

    def _measured(self, frame: Frame, gm: GraphModule, args: tuple[object, ...], call: int) -> None:
        values = inputs_measured(gm, args, self.replicas.ranks())
        self.emit(events.NodeValuesMeasured(run=self.run, values=CallValues(frame=frame.id, call=call, values=values)))

    def _compared(self, call: "_Call") -> None:
        """Compare the call, whatever comes of it: the program goes on as without it."""
        try:
            report = self._report(call)
        except BadInput as error:
            report = _not_comparable(call.backend, Remark("ranks apart", detail=error.message))
        # Broad on purpose: an op without a rule for copies or statistics must not end the user's program.
        except Exception as error:
            report = _not_comparable(call.backend, Remark("cannot run", detail=first_line(error)))
        self.reported(_named(report, f"{call.frame.function} {call.frame.id}: ", call.names()))

    def _report(self, call: "_Call") -> DiffReport:
        lockstep = call.lockstep()
        if lockstep is not None:
            lockstep.begin()
        args = _copies(call.args)
        subject = Subject(Workload(_finished(call.gm), args, {}, None, torch.is_grad_enabled()))
        backward = subject.grad and any(each.requires_grad for each in subject.inputs.values())
        with recorded_draws() as draws:
            reference = run_eager(subject, backward=backward)
        if isinstance(reference.error, NothingToDifferentiate):
            backward, reference = False, run_eager(subject)
        with subject.restored():
            values = nodes_measured(call.gm, args)
        self.emit(
            events.NodeValuesMeasured(run=self.run, values=CallValues(frame=call.frame.id, call=1, values=values))
        )
        test = run_side(
            call.backend, subject, partial(_entered, _finished(call.compiled)), backward, backend=call.backend
        )
        for side in (reference, test):
            if side.error is not None:  # of the copies: the program itself does not run them
                return _not_comparable(call.backend, Remark("cannot run", detail=first_line(side.error)))
        request = ComparisonRequest(
            call.gm,
            test=call.backend,
            atol=self.request.atol,
            rtol=self.request.rtol,
            k=self.request.k,
            float64=self.float64,
            agree=lockstep.any if lockstep is not None else bool,
        )
        comparison = ComparisonRun(request, subject)
        comparison.backward = backward
        draws_as_eager = not draws or call.backend == INDUCTOR
        report = comparison.of_sides(reference, test, draws_as_eager=draws_as_eager)
        if report.verdict == "failed" and not draws_as_eager:
            return without_verdict_of_failed(report, Remark("own draws", call.backend))
        return report


@dataclass(frozen=True)
class _Call:
    """The first call of one compiled graph: the `nth` of its function."""

    frame: Frame
    nth: int
    backend: str
    gm: GraphModule
    compiled: Compiled
    args: tuple[object, ...]

    def lockstep(self) -> Lockstep | None:
        """The agreement with the other ranks, where a run of the graph may wait for them."""
        if not distributed.may_communicate(self.gm, self.args):
            return None
        store = distributed.shared_store(f"{self.frame.function}:{self.frame.line}/{self.nth}")
        return None if store is None else Lockstep(store, torch.distributed.get_world_size())

    def names(self) -> dict[str, str]:
        """The names of the graph's arguments, by those that a comparison has for them."""
        nodes = (node for node in self.gm.graph.nodes if node.op == "placeholder")
        return {f"args[{at}]": node.name for at, node in enumerate(nodes)}


def _finished(model: Call) -> Call:
    """The model, whose results are there when it returns."""

    def call(*args: object) -> object:
        return distributed.finished(model(*args))

    return call


def _entered(compiled: Call, _: ExitStack) -> Call:
    return compiled


def _copies(args: tuple[object, ...]) -> tuple[object, ...]:
    """Leaves with the same values and strides, the same tensor once: hooks of the program's own do not see them."""
    copies: dict[int, Tensor] = {}
    for each in args:
        if isinstance(each, Tensor) and id(each) not in copies:
            copies[id(each)] = _copy(each)
    return tuple(copies.get(id(each), each) for each in args)


def _copy(tensor: Tensor) -> Tensor:
    value = tensor.detach()
    if comparing.wraps_others(tensor) or not can_be_written(value):
        copy = value.clone() if comparing.wraps_others(tensor) else value
    else:
        copy = torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device=value.device)
        copy.copy_(value)
    return copy.requires_grad_(tensor.requires_grad)


def _named(report: DiffReport, prefix: str, arguments: Mapping[str, str]) -> DiffReport:
    """The report with these names of arguments, and the prefix before each tensor."""

    def name_of(name: str) -> str:
        at = name.find("args[")
        known = name[at : name.find("]", at) + 1] if at >= 0 else ""
        return prefix + (name.replace(known, arguments.get(known, known), 1) if known else name)

    def named(diffs: tuple[TensorDiff, ...]) -> tuple[TensorDiff, ...]:
        return tuple(replace(diff, name=name_of(diff.name)) for diff in diffs)

    return replace(report, outputs=named(report.outputs), gradients=named(report.gradients))


def _not_comparable(backend: str, why: Remark) -> DiffReport:
    return DiffReport(test=backend, reference="eager", verdict="waiting", mode="tolerance", not_comparable=why)
