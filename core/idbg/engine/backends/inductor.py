"""The backends `inductor` and `aot`: TorchInductor with all graphs and kernels captured; `aot` also checks rules."""

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
        return lowering.compile_fx(job.gm, job.inputs, inner_of(job, lowering.compile_fx_inner), job.options)


class Aot(Inductor):
    """The same behind rules, which are checked on Dynamo, forward and backward graphs: the default."""

    name = "aot"
    checks = True


def inner_of(job: Job, inner: Compiler) -> Compiler:
    """Inductor's inner compile, with the graph captured first."""

    def captured(gm: GraphModule, inputs: list[object], **kwargs: object) -> Compiled:
        part: Part = (
            "backward" if kwargs.get("is_backward") else "inference" if kwargs.get("is_inference") else "forward"
        )
        return job.lowering(part, inner)(gm, inputs, **kwargs)

    return captured
