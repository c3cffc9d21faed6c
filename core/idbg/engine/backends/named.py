"""A backend that torch knows by name: it is given Dynamo's graph; later graphs are read from what torch prints."""

from functools import cached_property

from idbg.engine.backends.base import Job
from idbg.engine.compat import dynamo
from idbg.engine.compat.lowering import Compiled, Compiler
from idbg.schema.errors import BadInput


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
