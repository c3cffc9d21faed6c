"""Locate a comparison's error: the first wrong stage and kernel, or the first wrong node if no kernel is observable."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Any

import torch
from msgspec.structs import replace
from torch.fx import GraphModule, Node

from idbg.engine.capture.fx import user_line
from idbg.engine.capture.run import uncaptured
from idbg.engine.compat import comparing, fx, registrations, stages, tracing
from idbg.engine.kerneldiff.float64.undeclared_writes import UndeclaredWrite, WithoutUndeclaredWrites
from idbg.engine.kerneldiff.layers.compilers import Compiler, any_backend, first_wrong_graph, loaded_compilers
from idbg.engine.kerneldiff.layers.findings import LayerFindings
from idbg.engine.kerneldiff.observed_run import ObservedRun, run_observed
from idbg.engine.kerneldiff.request import ComparisonRequest, compile_backend, name_of
from idbg.engine.kerneldiff.sides.run import Side, run_compiled, run_eager
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.stages.captured import CompileRecord, FrameStages, users_place
from idbg.engine.kerneldiff.stages.own_dtypes import OwnDtypes
from idbg.engine.kerneldiff.stages.unexecuted import unexecuted_node
from idbg.engine.kerneldiff.tensors.allowance import KERNEL_K
from idbg.schema.attribution import Maker, StageError
from idbg.schema.diff import DiffReport, KernelError, TensorDiff
from idbg.schema.graphs import GraphId
from idbg.schema.remarks import NoFloat64, Remark

UNDONE = "eager without undeclared writes"
FAR = 10.0  # times what is allowed: no rounding
_CACHE = "code from a cache, or CUDA graphs"
_WITHOUT_BACKEND = (("eager", "Dynamo"), ("aot_eager", "AOTAutograd"))
"""What compiles nothing, and what is then to blame: Dynamo's graph, and that as AOTAutograd traces it."""


@dataclass(frozen=True)
class FaultLocalization:
    """Locates the error of one comparison. `notes` collects remarks for the report; `begin` is called with the name of
    what runs next; `failing` gives the error by which another run fails, None if it does not; `keep` receives what runs
    the observed program again. `compiled`: what the test side has compiled. `undeclared`: writes that the program's own
    ops do not declare.
    """

    request: ComparisonRequest
    subject: Subject
    backward: bool
    notes: list[Remark]
    begin: Callable[[str], None]
    failing: Callable[[Side], float | None]
    keep: Callable[[CompileRecord], None]
    compiled: CompileRecord
    undeclared: tuple[UndeclaredWrite, ...] = ()

    def located(self, report: DiffReport) -> DiffReport:
        """The report with its kernels and stages, and the first bad one of each."""
        unaccused = report.tensors_agree
        failed = report.verdict == "failed" and not unaccused
        observed = self._observed()
        kernels = observed.kernels
        nothing_ran = observed.side.result.failure is not None and not (kernels or failed)
        elsewhere = self._elsewhere(failed) if not kernels and not nothing_ran else None
        if elsewhere is not None:
            kernels = elsewhere.layers
        if report.passed or unaccused:
            kernels = _not_accused(kernels)
        self.begin("stages")
        with comparing.inductor_set(self.request.options), uncaptured():
            kernels, rows = _stages(observed, kernels, report, self.notes)
            if not rows and not nothing_ran:
                rows = elsewhere.stages if elsewhere is not None else _unknown(name_of(self.request.test))
        if failed and not any(row.bad for row in rows):
            rows = self._of_a_cache(rows, observed, report) or self._before_the_backend(rows, report)
        elif failed and observed.frames and not is_alias_alone(report) and (error := self.failing(observed.side)):
            rows = (*rows[:-1], replace(rows[-1], error=error))
        if failed and self.undeclared and (maker := self._undeclared()):
            rows, kernels = _made_by(maker, rows, observed.frames), _not_accused(kernels)
        if report.passed or unaccused:
            rows = tuple(
                replace(row, bad=False, harmless=row.bad, changed=row.changed and report.passed) for row in rows
            )
        if report.only_effects_differ:
            rows = self._before_the_backend(rows, report)
        bad = next((at for at, kernel in enumerate(kernels) if kernel.bad), None)
        births = None if report.births is None else (*report.births, *observed.nan_origins)
        return replace(
            report, kernels=kernels, first_bad_kernel=bad, stages=rows, notes=tuple(self.notes), births=births
        )

    def _observed(self) -> ObservedRun:
        self.begin("kernels")
        compile = partial(torch.compile, backend=compile_backend(self.request.test), dynamic=self.request.dynamic)
        with comparing.inductor_set(self.request.options), uncaptured():
            observed = run_observed(self.subject, compile, backward=self.backward, before=self.compiled)
        record = observed.record
        if record.call is not None:
            self.keep(record)
        if (failure := observed.side.result.failure) is not None:
            self.notes.append(Remark("not observed", detail=failure.first_line))
        elif record.problem:
            self.notes.append(Remark("partly observed", detail=record.problem))
        elif observed.kernels and self._has_cpp_wrapper:
            self.notes.append(Remark("Python wrapper"))
        return observed

    @property
    def _has_cpp_wrapper(self) -> bool:
        with comparing.inductor_set(self.request.options):
            return comparing.has_cpp_wrapper()

    def _elsewhere(self, failed: bool) -> LayerFindings | None:
        """What another compiler computes wrong, if the comparison failed: a layer of one whose layers can be observed,
        else a node.
        """
        name = name_of(self.request.test)
        compilers = loaded_compilers() if failed else []
        if compilers:
            self.begin("layers")
        found = self._first_wrong_graph(compilers)
        if found is None:
            self.notes.append(Remark("no kernels", name))
        if not failed or (found is not None and found.is_located):
            return found
        noted = len(self.notes)
        bisected = self._first_wrong_graph([any_backend(name, self.request.dynamic)])
        if bisected is None and len(self.notes) == noted:
            self.notes.append(Remark("nothing bisected"))
        return found.located_at(bisected.layers[0]) if found is not None and bisected is not None else found or bisected

    def _first_wrong_graph(self, compilers: Sequence[Compiler]) -> LayerFindings | None:
        compile = partial(torch.compile, backend=compile_backend(self.request.test), dynamic=self.request.dynamic)
        # nothing that far off: then what is as far off as made the outputs fail
        factors = dict.fromkeys((KERNEL_K, min(KERNEL_K, self.request.k)))
        with comparing.inductor_set(self.request.options), uncaptured(), self.subject.restored():
            return first_wrong_graph(compilers, self.subject, compile, self.backward, self.notes.append, list(factors))

    def _of_a_cache(
        self, rows: tuple[StageError, ...], observed: ObservedRun, report: DiffReport
    ) -> tuple[StageError, ...]:
        """The rows if every stage is right, and so are the outputs of the observed run. What was compiled anew for it
        is right where a cache or CUDA graphs were wrong; where the same code ran again, no cache is to blame.
        """
        clearly = any(diff.failed and is_far(diff) for diff in (*report.outputs, *report.gradients))
        right = clearly and self.failing(observed.side) == 0.0
        if not right or rows[-1].stage != "kernels" or not rows[-1].judged:
            return ()
        if observed.is_same_code:
            self.notes.append(Remark("not repeated"))
            return rows
        made_by = Maker(kind="cache", name=_CACHE, proven=Remark("right anew"))
        if self._has_cpp_wrapper:
            made_by = Maker(kind="wrapper", name="cpp_wrapper", proven=Remark("right in Python"))
        return (*rows[:-1], replace(rows[-1], error=None, added=None, bad=True, output="", made_by=made_by))

    def _undeclared(self) -> Maker | None:
        """The op with an undeclared write on which the outputs depend."""
        self.begin(UNDONE)
        if not self.failing(run_eager(self.subject, UNDONE, [WithoutUndeclaredWrites()], backward=self.backward)):
            return None
        first = self.undeclared[0]
        function = registrations.functions_of_op(first.op).get("init")
        file, line = stages.place_of(function)
        proven = Remark("undeclared alias" if first.returned else "undeclared", first.argument)
        return Maker(kind="op", name=first.op, file=file, line=line, proven=proven)

    def _before_the_backend(self, rows: tuple[StageError, ...], report: DiffReport) -> tuple[StageError, ...]:
        """Whether the program is wrong before any backend compiles it: as Dynamo and AOTAutograd run it. Where a
        tolerance decides over narrow numbers, those that differ there too may be rounding, and accuse neither.
        """
        may_round = report.mode == "tolerance" and report.float64_missing != NoFloat64("not narrow")
        for backend, name in _WITHOUT_BACKEND:
            self.begin(name)
            compile = partial(torch.compile, backend=compile_backend(backend), dynamic=self.request.dynamic)
            with uncaptured():
                error = self.failing(run_compiled(backend, self.subject, compile, backward=self.backward))
            if error and isfinite(error) and may_round:
                self.notes.append(Remark("maybe uncompiled", backend))
                return rows
            if error:
                return (self._of_dynamo(error, name), *rows[1:])
        return rows

    def _of_dynamo(self, error: float, name: str) -> StageError:
        """The row of a program that is wrong with nothing compiled below Dynamo, with what Dynamo traces and eager
        never runs.
        """
        proven = Remark("wrong uncompiled" if isfinite(error) else "so uncompiled")
        row = StageError(
            stage="dynamo",
            error=error if isfinite(error) else None,
            bad=True,
            made_by=Maker(kind="dynamo", name=name, proven=proven),
        )
        run = partial(run_eager, self.subject, backward=self.backward)
        with uncaptured():
            graphs = _graphs(self.subject, self.request.dynamic, self.backward)
            found = unexecuted_node(list(graphs), run)
        if found is None:
            return row
        frame, other = list(graphs.values())[found.graph], found.substitute
        row = replace(row, frame=frame, graph=GraphId(frame, "dynamo"), node=found.node)
        if other is None:
            made_by = Maker(kind="dynamo", name=name, proven=Remark("never run in eager"))
        else:
            what = f"{name}, which traces {other.function} in place of what eager calls"
            made_by = Maker(kind="dynamo", name=what, file=other.file, line=other.line, proven=proven)
        return replace(row, file=found.line.file, line=found.line.line, made_by=made_by)


def _stages(
    observed: ObservedRun, kernels: tuple[KernelError, ...], report: DiffReport, notes: list[Remark]
) -> tuple[tuple[KernelError, ...], tuple[StageError, ...]]:
    """The launches and the stages of an observed run. If no stage and no launch makes a NaN from exact inputs, the
    first launch that writes one is marked bad.
    """
    failed = report.verdict == "failed" and not report.tensors_agree
    ceased = failed and any({"nan", "inf"} & {*diff.failed_by} for diff in (*report.outputs, *report.gradients))
    moved = failed and is_alias_alone(report)
    sought: OwnDtypes = "nonfinite" if ceased else "alias" if moved else ""
    rows = observed.stages(kernels, failed=failed, sought=sought, hidden=notes.append)
    if moved and rows and not any(row.bad for row in rows):
        notes.append(Remark("alias elsewhere"))
    if ceased and rows and not any(row.bad for row in rows):
        kernels = observed.suspects_by_nonfinite(kernels)
        rows = observed.stages(kernels, failed=failed)
    below = rows[-1] if rows else None
    if below is not None and below.bad and below.made_by is not None and below.made_by.kind == "lowering":
        lowered = {
            "file": below.file,
            "line": below.line,
        }  # the line of the node that is lowered, of all that are fused
        kernels = tuple(replace(each, **lowered) if each.bad else each for each in kernels)
    return kernels, rows


def is_alias_alone(report: DiffReport) -> bool:
    """Whether the numbers are right, and outputs fail by the memory that they lie in."""
    failed = [diff.failed_by for diff in (*report.outputs, *report.gradients) if diff.failed]
    return bool(failed) and all(each == ("alias",) for each in failed)


def _made_by(maker: Maker, rows: Sequence[StageError], frames: Sequence[FrameStages]) -> tuple[StageError, ...]:
    """The first bad stage, or Dynamo's if none is bad, with this op as its maker; Dynamo's with the op's node."""
    at = next((at for at, row in enumerate(rows) if row.bad), 0)
    row = replace(rows[at], judged=True, reason=(), bad=True, made_by=maker)
    called = ((frame, node) for frame in frames for node in frame.dynamo.graph.nodes if _calls(node, maker.name))
    if row.stage == "dynamo" and not row.node and (found := next(called, None)) is not None:
        frame, node = found
        file, line = users_place(frame, *user_line(node.meta.get("stack_trace") or "")[:2])
        graph = GraphId(frame.frame, "dynamo")
        row = replace(row, frame=frame.frame, graph=graph, node=node.name, file=file, line=line)
    return (*rows[:at], row, *rows[at + 1 :])


def _calls(node: Node, op: str) -> bool:
    """Whether it calls this op ("my::op"), of whatever overload."""
    return node.op == "call_function" and f".{op.replace('::', '.')}." in f".{fx.qualified_target(node)}."


def _not_accused(kernels: Sequence[KernelError]) -> tuple[KernelError, ...]:
    return tuple(replace(each, bad=False, harmless=each.bad) for each in kernels)


def is_far(diff: TensorDiff) -> bool:
    """Whether it fails by more than rounding could explain."""
    return not diff.criteria or any(each.exceeded and each.share > FAR for each in diff.criteria)


def _unknown(name: str) -> tuple[StageError, ...]:
    """The stages of a backend that compiles Dynamo's graph in its own way."""
    return (
        StageError(stage="dynamo", judged=False, reason=(Remark("own way", name),)),
        StageError(stage="kernels", judged=False, reason=(Remark("none observed", name),)),
    )


def _graphs(subject: Subject, dynamic: bool | None, grad: bool) -> dict[GraphModule, str]:
    """The program's graphs in the order of their first calls, with their frames; `grad`: as they are where gradients
    are recorded, with the backward of autograd functions.
    """
    frames: dict[GraphModule, str] = {}

    def remember(gm: GraphModule, _: object) -> Callable[..., Any]:
        frame = tracing.frame_name()

        def run(*args: object) -> Any:
            frames.setdefault(gm, frame)
            return gm.forward(*args)

        return run

    torch.compiler.reset()
    with subject.restored(), torch.set_grad_enabled(grad or subject.grad):
        torch.compile(subject.model, backend=remember, dynamic=dynamic)(*subject.args, **subject.kwargs)
    return frames
