"""The backend `eager`: Dynamo's graph, captured and run as it is."""

from idbg.engine.backends.base import Job
from idbg.engine.compat.lowering import Compiled


class Eager:
    """Runs what Dynamo captured; nothing is compiled, and no rule is asked."""

    name = "eager"
    checks = False

    def compile(self, job: Job) -> Compiled:
        return job.gm.forward
