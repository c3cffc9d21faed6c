"""The backends of torch: `eager`, `inductor`, `aot` (Inductor behind rules), and every other by its name."""

from functools import cached_property

from torch.fx import GraphModule

from idbg.engine.backends.base import Job
from idbg.engine.compat import dynamo, lowering
from idbg.engine.compat.lowering import Compiled, Compiler
from idbg.schema.errors import BadInput
from idbg.schema.graphs import Part


class NamedBackend:
    """A backend by the name that torch, or the program itself, has registered; checks no rules."""

    checks = False

    def __init__(self, name: str) -> None:
        self.name = name

    @cached_property
    def function(self) -> Compiler:
        """Looked up at first use: the program itself may register it. Raises BadInput if it is not registered."""
        if self.name not in dynamo.backend_names():
            raise BadInput(
                f"there is no backend {self.name!r}: the program has not registered it by the time that it compiles",
                hint="call torch._dynamo.register_backend where the program is imported, before torch.compile",
            )
        return dynamo.lookup_backend(self.name)

    def compile(self, job: Job) -> Compiled:
        options = {"options": job.options} if job.options and dynamo.takes_options(self.function) else {}
        return self.function(job.gm, job.inputs, **options)


class Eager:
    """Runs what Dynamo captured; compiles nothing and checks no rules."""

    name = "eager"
    checks = False

    def compile(self, job: Job) -> Compiled:
        return job.gm.forward


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
