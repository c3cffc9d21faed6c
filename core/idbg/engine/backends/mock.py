"""The backend `mock`: an accelerator that only says no.

Rules are checked on the Dynamo and ATen graphs; what passes runs eagerly.
"""

from typing import cast

from torch.fx import GraphModule

from idbg.engine import compat
from idbg.engine.backends.base import Job
from idbg.engine.compat import Compiled


class Mock:
    name = "mock"
    checks = True

    def compile(self, job: Job) -> Compiled:
        forward, backward, inference = (job.lowering(part, _as_it_is) for part in ("forward", "backward", "inference"))
        return cast("Compiled", compat.aot_autograd(forward, backward, inference)(job.gm, job.inputs))


def _as_it_is(gm: GraphModule, inputs: list[object]) -> Compiled:
    return compat.boxed(gm.forward)
