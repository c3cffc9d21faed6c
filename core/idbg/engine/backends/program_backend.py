"""A backend of the program's own, called as without idbg, with its graphs captured."""

from collections.abc import Mapping
from typing import Any

from idbg import plugins
from idbg.accelerators import adapter as adapters
from idbg.engine.backends.base import PARTS, Job, TargetBackend
from idbg.engine.backends.torch_backends import inner_of
from idbg.engine.capture.run import current_is
from idbg.engine.compat import backend_calls, dynamo
from idbg.engine.compat.lowering import Compiled, Compiler

INDUCTOR = "inductor"


class ProgramBackend:
    """A backend as torch calls it. `checks`: its graphs are checked against the rules."""

    def __init__(self, function: Compiler, *, checks: bool) -> None:
        self.name = backend_calls.name_of(function)
        self.function, self.checks = function, checks

    def compile(self, job: Job) -> Compiled:
        with current_is(None), backend_calls.replace_inner_compile(self.function, lambda inner: inner_of(job, inner)):
            compiled = self.function(job.gm, job.inputs)
        job.frame.finish()  # torch has printed all: what it gave to compilers of others is read
        for graph in list(job.frame.graphs.values()):
            if graph.id.stage in PARTS and graph.id.stage not in job.frame.trail:  # it was only printed
                job.check(graph)
        return compiled


def is_own(backend: object) -> bool:
    """Whether a program that passes this to torch.compile has its own backend: neither Inductor nor one of idbg's."""
    inside = backend_calls.innermost(backend)
    if isinstance(inside, str):
        return (
            inside != INDUCTOR
            and inside in (*plugins.names(adapters.GROUP), *dynamo.backend_names())
            and (not inside.startswith("idbg_"))
        )
    return callable(inside) and not isinstance(inside, TargetBackend) and not _is_of_idbg(inside)


def _is_of_idbg(backend: object) -> bool:
    module = getattr(backend, "__module__", None) or type(backend).__module__
    return module.partition(".")[0] == "idbg"


def program_backend(arguments: Mapping[str, Any], *, checks: bool) -> ProgramBackend:
    """The backend that these arguments of torch.compile name, called with its mode and options as torch does."""
    how = [arguments.get(name) for name in ("mode", "options", "dynamic")]
    return ProgramBackend(backend_calls.with_arguments(arguments["backend"], *how), checks=checks)
