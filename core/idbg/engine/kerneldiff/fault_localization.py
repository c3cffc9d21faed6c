"""Locate a comparison's error: the first wrong stage and kernel, or the first wrong node if no kernel is observable."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import isfinite
from typing import Any, NamedTuple

import torch
from msgspec.structs import replace
from torch.fx import GraphModule, Node

from idbg.engine.capture.fx import user_line
from idbg.engine.capture.run import uncaptured
from idbg.engine.compat import comparing, fx, registrations, stages, tracing
from idbg.engine.kerneldiff.float64.undeclared_writes import UndeclaredWrite, WithoutUndeclaredWrites
from idbg.engine.kerneldiff.kernels.bisect import first_bad_node
from idbg.engine.kerneldiff.kernels.inputs import copied
from idbg.engine.kerneldiff.layers.findings import LayerFindings
from idbg.engine.kerneldiff.layers.search import first_wrong_layers, is_observable
from idbg.engine.kerneldiff.observed_run import ObservedRun, run_observed
from idbg.engine.kerneldiff.request import Backend, ComparisonRequest, compile_backend, name_of
from idbg.engine.kerneldiff.sides.run import Call, Side, run_compiled, run_eager, run_side
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.stages.captured import CompileRecord, FrameStages, users_place
from idbg.engine.kerneldiff.stages.other_backends import BackendGraph, backend_graphs
from idbg.engine.kerneldiff.stages.own_dtypes import OwnDtypes
from idbg.engine.kerneldiff.stages.unexecuted import unexecuted_node
from idbg.engine.kerneldiff.tensors.allowance import KERNEL_K
from idbg.schema.attribution import Maker, StageError
from idbg.schema.diff import DiffReport, KernelError, TensorDiff
from idbg.schema.errors import first_line
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
        layers = None
        if not kernels and not nothing_ran:
            layers = self._layers() if failed else None
            if layers is None:
                self.notes.append(Remark("no kernels", name_of(self.request.test)))
            kernels = layers.layers if layers is not None else self._bisected() if failed else ()
        if report.passed or unaccused:
            kernels = _not_accused(kernels)
        self.begin("stages")
        with comparing.inductor_set(self.request.options), uncaptured():
            kernels, rows = _stages(observed, kernels, report, self.notes)
            if layers is not None:
                rows = layers.stages
            elif not rows and not nothing_ran:
                rows = _of_a_backend(kernels, name_of(self.request.test))
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

    def _layers(self) -> LayerFindings | None:
        """The layers of another compiler whose model can be run with extra outputs; None where there is none."""
        if not is_observable():
            return None
        self.begin("layers")
        compile = partial(torch.compile, backend=compile_backend(self.request.test), dynamic=self.request.dynamic)
        with comparing.inductor_set(self.request.options), uncaptured():
            smallest = min(KERNEL_K, self.request.k)
            found = first_wrong_layers(self.subject, compile, self.backward, self.notes.append, smallest)
        bad = next((at for at, row in enumerate(found.stages) if row.bad), None) if found is not None else None
        if found is None or bad is None or found.stages[bad].node:
            return found
        # it is wrong at no known node: the first one that the backend computes wrong, in parts of the graph
        if not (nodes := self._bisected()):
            return found
        node = nodes[0]
        place = {"graph": node.graph, "node": node.node, "file": node.file, "line": node.line}
        rows = (*found.stages[:bad], replace(found.stages[bad], **place), *found.stages[bad + 1 :])
        return LayerFindings(found.layers, rows)

    def _bisected(self) -> tuple[KernelError, ...]:
        """The first wrong node, bisected, for a backend whose kernels cannot be observed."""
        name = name_of(self.request.test)
        try:
            with uncaptured(), self.subject.restored():
                # nothing that far off: then what is as far off as made the outputs fail
                searches = (
                    first_bad_of(self.subject, compile_backend(self.request.test), dynamic=self.request.dynamic, k=k)
                    for k in (KERNEL_K, min(KERNEL_K, self.request.k))
                )
                nodes = next((found for found in searches if found), ())
                nodes = nodes or self._in_aten()
        except Exception as error:  # broad on purpose: a backend may raise anything on a part of a graph
            text = first_line(error)
            self.notes.append(Remark("search failed", name, text))
            return ()
        if not nodes:
            self.notes.append(Remark("nothing bisected"))
        return nodes

    def _in_aten(self) -> tuple[KernelError, ...]:
        """The first wrong node of the ATen graphs that the backend is given, in the order of their calls."""
        torch.compiler.reset()
        parts: list[BackendGraph] = []

        def around(stack: ExitStack) -> Call:
            nonlocal parts
            parts = stack.enter_context(backend_graphs())
            return torch.compile(
                self.subject.model, backend=compile_backend(self.request.test), dynamic=self.request.dynamic
            )

        run_side("nodes", self.subject, around, self.backward)
        wrong = (part.wrong() for part in sorted(parts, key=lambda part: part.called))
        return tuple(islice(filter(None, wrong), 1))

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
            graphs = _graphs(self.subject, self.request.dynamic, grad=self.backward)
            found = unexecuted_node([called.gm for called in graphs], run)
        if found is None:
            return row
        frame, other = graphs[found.graph].frame, found.substitute
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


def _of_a_backend(kernels: Sequence[KernelError], name: str) -> tuple[StageError, ...]:
    """The stages of a backend that compiles Dynamo's graph in its own way."""
    bad = next((one for one in kernels if one.bad), None)
    if bad is None:
        return (
            StageError(stage="dynamo", judged=False, reason=(Remark("own way", name),)),
            StageError(stage="kernels", judged=False, reason=(Remark("none observed", name),)),
        )
    return (
        StageError(stage="dynamo", error=0.0, frame=bad.frame),
        StageError(
            stage="kernels",
            error=bad.error,
            added=bad.error,
            bad=True,
            frame=bad.frame,
            graph=bad.graph,
            node=bad.node,
            file=bad.file,
            line=bad.line,
            made_by=Maker(kind="backend", name=name),
        ),
    )


def first_bad_of(
    subject: Subject, backend: Backend, *, dynamic: bool | None = None, k: float = KERNEL_K
) -> tuple[KernelError, ...]:
    """The first node of the first Dynamo graph that the backend computes wrong, as a launch; empty if no graph is
    wrong.

    Only the forward is searched. Raises what the backend raises.
    """
    for called in _graphs(subject, dynamic):
        result = first_bad_node(called.gm, called.inputs, backend, dynamic=dynamic, k=k)
        if result.node:
            return (result.launch(called.frame, "dynamo"),)
    return ()


class _CalledGraph(NamedTuple):
    """A graph of Dynamo's, with the values that it is first called with."""

    frame: str
    gm: GraphModule
    inputs: tuple[object, ...]


def _graphs(subject: Subject, dynamic: bool | None, *, grad: bool = False) -> list[_CalledGraph]:
    """The graphs of the program; `grad`: where gradients are recorded, with the backward of autograd functions."""
    calls: dict[GraphModule, _CalledGraph] = {}

    def remember(gm: GraphModule, _: object) -> Callable[..., Any]:
        frame = tracing.frame_name()

        def run(*args: object) -> Any:
            if gm not in calls:
                calls[gm] = _CalledGraph(frame, gm, tuple(copied(args)))
            return gm.forward(*args)

        return run

    torch.compiler.reset()
    with subject.restored(), torch.set_grad_enabled(grad or subject.grad):
        torch.compile(subject.model, backend=remember, dynamic=dynamic)(*subject.args, **subject.kwargs)
    return list(calls.values())
