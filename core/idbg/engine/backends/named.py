"""Any backend that torch knows by name, with Dynamo's graph handed over and the others read from what torch prints."""

from typing import cast

from idbg.engine import compat
from idbg.engine.backends.base import Job
from idbg.engine.compat import Compiled


class Named:
    checks = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.function = compat.lookup_backend(name)

    def compile(self, job: Job) -> Compiled:
        given = {"options": job.options} if job.options and compat.takes_options(self.function) else {}
        return cast("Compiled", self.function(job.gm, job.inputs, **given))
