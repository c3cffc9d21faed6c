"""Do the worker's request to run a program with an edited kernel."""

import time
from collections.abc import Callable, Mapping

import torch
from msgspec.structs import replace

from idbg.engine.backends import TargetBackend
from idbg.engine.capture.run import RunCapture, capturing
from idbg.engine.kernel_edit import EditedKernel
from idbg.engine.kerneldiff.request import ComparisonRequest
from idbg.engine.program.load import Model, Programs, Workload
from idbg.engine.program.torch_compile import CurrentBackend, original_torch_compile
from idbg.schema import events
from idbg.schema.diff import Comparison
from idbg.schema.errors import BadInput
from idbg.schema.events import SessionEvent
from idbg.schema.kernel_edits import EDITED, ORIGINAL, KernelEdit
from idbg.schema.programs import Target
from idbg.worker.protocol import EditKernel


class _Tried(BaseException):
    """The version was tried: stop the rest of a script."""


def edit_kernel(
    request: EditKernel,
    target: Target,
    programs: Programs,
    capture: RunCapture,
    backend_for: Callable[[Mapping[str, object]], TargetBackend],
    emit: Callable[[SessionEvent], None],
) -> KernelEdit:
    """The version of the request, with what it did in the program. Raises BadInput where the program does not have this
    kernel any more, and what the program raises.
    """
    began = time.monotonic()
    tried: list[KernelEdit] = []
    kernel, comparison = request.kernel, request.comparison

    def step(words: str) -> None:
        emit(
            events.KernelEditing(
                run=request.run,
                frame=kernel.frame,
                part=kernel.part,
                name=kernel.name,
                version=request.version,
                step=words,
            )
        )

    edited = EditedKernel(kernel, request.edit(), random_as_eager=comparison is not None, step=step)

    def use(workload: Workload, name: str, own: CurrentBackend | None) -> None:
        backend = backend_for(own.arguments).with_options(own.options) if own else backend_for({})

        def compile(model: Model) -> Model:
            compiled: Model = torch.compile(model, backend=backend, dynamic=target.dynamic)
            return compiled

        with original_torch_compile():
            found = edited.tried(workload, compile, _settings(workload, comparison or Comparison(), target))
        if found is not None:
            tried.append(found)
            raise _Tried

    try:
        with capturing(capture):
            programs.run(request.program, target, capture, use)
    except _Tried:
        return replace(tried[0], seconds=time.monotonic() - began)
    raise BadInput(
        f"the program compiles differently now: it has no kernel {kernel.name}",
        hint="run the program again, and edit a kernel of that run",
    )


def _settings(workload: Workload, comparison: Comparison, target: Target) -> ComparisonRequest:
    """How the outputs with the edited kernel are compared with those of the original."""
    return ComparisonRequest(
        workload.model,
        loss=workload.loss,
        backward=comparison.backward,
        reference=ORIGINAL,
        test=EDITED,
        atol=comparison.atol,
        rtol=comparison.rtol,
        k=comparison.k,
        dynamic=target.dynamic,
        float64=target.float64,
        memory=target.float64_memory,
    )
