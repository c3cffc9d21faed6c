"""Run the compiled program once more, observe its launches and keep the graphs of every stage.

The code that the test side compiled runs again if all of it was captured (`CompileRecord`); else the program is
compiled again.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import cast

import torch
from msgspec.structs import replace
from torch.fx import Node

from idbg.engine.capture.fx import user_line
from idbg.engine.compat import comparing, fx, registrations, stages
from idbg.engine.kerneldiff.kernels.watch import Watch
from idbg.engine.kerneldiff.sides.run import Call, Side, run_side
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.stages.captured import CompileRecord, FrameStages, users_place
from idbg.engine.kerneldiff.stages.chain import drop_saved
from idbg.engine.kerneldiff.stages.own_draws import judged_by_joint
from idbg.engine.kerneldiff.stages.own_dtypes import OwnDtypes
from idbg.engine.kerneldiff.stages.table import APPROXIMATED, LITTLE, called_frames, stage_table
from idbg.schema.attribution import Maker, StageError
from idbg.schema.diff import KernelError
from idbg.schema.faults import NanOrigin
from idbg.schema.graphs import GraphId
from idbg.schema.remarks import Remark

SMALLEST = 1e-9  # eager's relative error below which a launch's is not counted in it


@dataclass(frozen=True)
class ObservedRun:
    """The compiled model, observed: its outputs, its launches in order, each frame's graphs and code, and the `record`
    that they are of. `is_same_code`: it ran what the test side compiled, and nothing was compiled anew.
    """

    side: Side
    kernels: tuple[KernelError, ...]
    frames: tuple[FrameStages, ...]
    record: CompileRecord
    nan_origins: tuple[NanOrigin, ...] = ()
    is_same_code: bool = False

    def stages(
        self,
        kernels: Sequence[KernelError],
        *,
        failed: bool,
        sought: OwnDtypes = "",
        hidden: Callable[[Remark], None] = lambda _: None,
    ) -> tuple[StageError, ...]:
        """The stages of what was called, with the kernels as the last.

        If no stage is off by more than rounding, a stage that is off by a little is named if the outputs `failed`, or
        if it is proven to have changed a node by more. A stage may be right in float64 only, if what is `sought` is
        a NaN, or memory that outputs lie in. `hidden` is called for each frame that could not be judged and has no row.
        """
        if not self.frames:
            return ()
        below = self._kernels_row(kernels)
        bad_launch = below.frame if below.bad else ""
        rows = stage_table(
            self.frames, bad_launch=bad_launch, node_errors=not failed, in_own_dtypes=sought, hidden=hidden
        )
        if failed and not sought and not below.bad and not any(row.bad for row in rows):
            below = self._lost(below)
            little = rows if below.bad else stage_table(self.frames, share=LITTLE)
            is_found = below.bad or any(row.bad for row in little)
            rows = little if is_found else stage_table(self.frames, in_own_dtypes="rounding")
        elif not failed and not any(row.bad for row in rows) and any((row.error or 0.0) > APPROXIMATED for row in rows):
            changed = stage_table(self.frames, share=LITTLE, node_errors=True)
            rows = changed if any(row.changed for row in changed) else rows
        wrong = next((row.frame for row in rows if row.bad), "")
        if not below.bad and (of_wrong := [each for each in kernels if each.frame == wrong]):
            below = self._kernels_row(of_wrong)
        return (*rows, below)

    def _lost(self, row: StageError) -> StageError:
        """The kernels' row if all launches are right, but the program does not get what they computed."""
        for watch in (watch for frame in self.frames for watch in frame.watches.values()):
            for lost in watch.lost():
                file, line, _ = user_line(lost.node.meta.get("stack_trace") or "")
                made_by = _foreign_lowering(lost.node.target) or Maker(kind="wrapper", name="call", proven=lost.how)
                graph = GraphId(watch.frame, "post_grad", watch.graph.part)
                where = replace(row, frame=watch.frame, part=watch.graph.part, graph=graph, node=lost.node.name)
                return replace(where, judged=True, reason=(), bad=True, file=file, line=line, made_by=made_by)
        return row

    def suspects_by_nonfinite(self, kernels: Sequence[KernelError]) -> tuple[KernelError, ...]:
        """The launches, with the first one marked bad that writes NaN or an infinity where eager has a number."""
        first = next((origin for origin in self.nan_origins if origin.side == "compiled"), None)
        if first is None:
            return tuple(kernels)
        launch = (first.frame, first.part, first.handle)
        where = {"node": first.node, "file": first.file, "line": first.line, "bad": True}
        return tuple(
            replace(each, **where) if (each.frame, each.part, each.handle) == launch else each for each in kernels
        )

    def other_share(self) -> tuple[StageError, Remark] | None:
        """The kernels' row of the first launch whose random mask keeps another share than its graph's."""
        for kernel, (watch, place) in zip(self.kernels, self.record.launches, strict=True):
            outputs = (each for result in watch.results[place : place + 1] for each in result.outputs)
            if shares := next((each.shares for each in outputs if each.shares), None):
                return self._kernels_row([kernel]), shares.remark
        return None

    def _kernels_row(self, kernels: Sequence[KernelError]) -> StageError:
        bad = next((one for one in kernels if one.bad), None)
        worst = bad or max(kernels, key=_beyond_eager, default=None)
        if worst is None or worst.error is None:
            return StageError(stage="kernels", judged=False, reason=(Remark("no launch"),))
        added = max(0.0, worst.error - (worst.input_error or 0.0))
        row = StageError(
            stage="kernels", error=worst.error, added=added, output=worst.buffer, frame=worst.frame, part=worst.part
        )
        if bad is None:
            return row
        row = replace(row, bad=True, graph=bad.graph)
        reused = self._wrapper(bad)
        if reused is None and (lowered := self._lowering(bad)) is not None:
            node, made_by = lowered
            file, line, _ = user_line(node.meta.get("stack_trace") or "")
            return replace(row, node=node.name, file=file or bad.file, line=line or bad.line, made_by=made_by)
        node_name = bad.node or next(iter(bad.nodes), "")
        made_by = reused or Maker(kind="kernel", name=bad.name)
        return replace(row, node=node_name, file=bad.file, line=bad.line, made_by=made_by)

    def _watches(self, kernel: KernelError) -> Iterator[Watch]:
        """The wrapper that launches this kernel."""
        for watch in (watch for frame in self.frames for watch in frame.watches.values()):
            if (watch.frame, watch.graph.part) == (kernel.frame, kernel.part):
                yield watch

    def _wrapper(self, kernel: KernelError) -> Maker | None:
        """The wrapper as the cause, if it let the kernel write over memory that is still needed."""
        how = next((how for watch in self._watches(kernel) if (how := watch.wrong_reuse(kernel))), None)
        return Maker(kind="wrapper", name="call", proven=how) if how else None

    def _lowering(self, kernel: KernelError) -> tuple[Node, Maker] | None:
        """A lowering from outside of torch that made a part of the kernel, or what writes an op's code in place of
        torch's own, and the node that it lowers.
        """
        written = _foreign_overrides(kernel.name.partition("_")[0])
        for watch in self._watches(kernel):
            for name in (name for name in (kernel.node, *kernel.nodes) if name in watch.nodes):
                target = watch.nodes[name].target
                if (found := _foreign_lowering(target, written.get(fx.op_name(target)))) is not None:
                    return watch.nodes[name], found
        return None


def _foreign_lowering(target: object, written_by: object = None) -> Maker | None:
    """What lowers the op, or what its code is `written_by`, if it is not torch's own."""
    function = registrations.part_of(stages.lowering_of(target), lambda file: not stages.is_torchs(file))
    file, line = stages.place_of(function or written_by)
    return Maker(kind="lowering", name=str(target), file=file, line=line) if file else None


def _foreign_overrides(language: str) -> dict[str, object]:
    """The functions from outside of torch that write the code of ops ("tanh") in this language ("cpp", "triton")."""
    module = f"torch._inductor.codegen.{language}"
    named = ((path.split("."), value) for path, value in registrations.patched(module))
    return {path[-1]: registrations.function_of(value) for path, value in named if path[-2].endswith("Overrides")}


def run_observed(
    subject: Subject, compile: Callable[[Call], Call], *, backward: bool = False, before: CompileRecord | None = None
) -> ObservedRun:
    """Run the compiled model once more, with Inductor's kernels observed and every graph kept. Runs what was compiled
    `before` if all of it was captured and no compile is needed.
    """
    if before is not None and before.is_whole:
        graphs = len(before.watches)
        observed = _run_observed(subject, lambda _: cast("Call", before.call), backward, before, is_same_code=True)
        watches = before.watches
        if observed.side.error is None and len(watches) == graphs and all(watch.called for watch in watches):
            return observed
    torch.compiler.reset()
    return _run_observed(subject, compile, backward, CompileRecord())


def stages_with_own_draws(
    subject: Subject, compile: Callable[[Call], Call], above: Sequence[StageError], *, backward: bool
) -> tuple[tuple[StageError, ...], Remark] | None:
    """The stages of the program as it is compiled without a comparison, with Inductor's own random operators, if one
    is proven wrong, and how: by equal draws, or by what a random mask keeps. `above` stands for graphs whose draws
    cannot be numbered.
    """
    torch.compiler.reset()
    observed = _run_observed(subject, compile, backward, CompileRecord(), as_eager=False)
    frames = [found for frame in observed.frames if (found := judged_by_joint(frame)) is not None]
    rows = stage_table(frames) if frames else tuple(row for row in above if row.stage != "kernels")
    if any(row.bad and row.made_by is not None and row.made_by.proven for row in rows):
        return rows, Remark("other by own draws")
    below = None if any(row.bad for row in rows) else observed.other_share()
    return below and ((*rows, below[0]), below[1])


def _run_observed(
    subject: Subject,
    compile: Callable[[Call], Call],
    backward: bool,
    record: CompileRecord,
    *,
    is_same_code: bool = False,
    as_eager: bool = True,
) -> ObservedRun:
    def around(stack: ExitStack) -> Call:
        if as_eager:
            stack.enter_context(comparing.random_as_eager())
        stack.enter_context(record.begun())
        return record.compiling(compile)(subject.model)

    side = run_side("kernels", subject, around, backward)
    if side.result.failure is not None:
        for watch in (watch for watch in record.watches if not watch.called):
            watch.problem = f"the run ended before its graph was called: {side.result.failure.first_line}"
    frames = tuple(called_frames(record.frames))
    for frame in frames:
        drop_saved(frame)
    kernels = tuple(_placed(record.kernels, frames))
    return ObservedRun(side, kernels, frames, record, record.nan_origins, is_same_code)


def _placed(kernels: Sequence[KernelError], frames: Sequence[FrameStages]) -> Iterator[KernelError]:
    """The launches with the program's own lines, also for code inside of torch."""
    by_name = {watch.frame: frame for frame in frames for watch in frame.watches.values()}
    for kernel in kernels:
        frame = by_name.get(kernel.frame)
        file, line = users_place(frame, kernel.file, kernel.line) if frame is not None else (kernel.file, kernel.line)
        yield replace(kernel, file=file, line=line)


def _beyond_eager(kernel: KernelError) -> float:
    """How many times as wrong as eager a launch is: cancellation is as wrong in both."""
    if kernel.error is None:
        return -1.0
    return kernel.error / max(kernel.eager_error or 0.0, SMALLEST)
