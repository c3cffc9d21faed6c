"""The backend `eager`: Dynamo's graph, captured and run as it is."""

from idbg.engine.backends.base import Job
from idbg.engine.compat.lowering import Compiled


class Eager:
    """Runs what Dynamo captured; compiles nothing and checks no rules."""

    name = "eager"
    checks = False

    def compile(self, job: Job) -> Compiled:
        return job.gm.forward
