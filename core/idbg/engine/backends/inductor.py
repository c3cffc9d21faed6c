"""The backend `inductor`: TorchInductor as it is, with every graph and kernel captured and no rules checked."""

from torch.fx import GraphModule

from idbg.engine.backends.base import Job
from idbg.engine.compat import lowering
from idbg.engine.compat.lowering import Compiled, Compiler
from idbg.schema.graphs import Part


class Inductor:
    """Torch's own pipeline; checks no rules."""

    name = "inductor"
    checks = False

    def compile(self, job: Job) -> Compiled:
        return lowered_by_inductor(job)


def lowered_by_inductor(job: Job) -> Compiled:
    """Inductor's own pipeline, with each ATen graph captured on its way into the inner compile."""

    return lowering.compile_fx(job.gm, job.inputs, inner_of(job, lowering.compile_fx_inner), job.options)


def inner_of(job: Job, inner: Compiler) -> Compiler:
    """Inductor's inner compile, with the graph captured first."""

    def captured(gm: GraphModule, inputs: list[object], **kwargs: object) -> Compiled:
        part: Part = (
            "backward" if kwargs.get("is_backward") else "inference" if kwargs.get("is_inference") else "forward"
        )
        return job.lowering(part, inner)(gm, inputs, **kwargs)

    return captured
