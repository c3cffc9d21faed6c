"""The backend `aot`: AOTAutograd, the rules checked on Dynamo, forward and backward graphs, then Inductor's
lowering.
"""

from idbg.engine.backends.base import Job
from idbg.engine.backends.inductor import lowered_by_inductor
from idbg.engine.compat.lowering import Compiled


class Aot:
    """Inductor behind rules: the default."""

    name = "aot"
    checks = True

    def compile(self, job: Job) -> Compiled:
        return lowered_by_inductor(job)
