"""How do the processes of torch's pool learn where compilers write?"""

from torch._inductor.compile_worker import subproc_pool
from torch._inductor.utils import python_subprocess_env

from idbg.engine.compat.builds.scratch import begin, private


class Pickler(subproc_pool.SubprocPickler):
    """What the pool makes first in its own process, by this name: there it brings all of ours along."""

    def __init__(self) -> None:
        super().__init__()
        begin()


def install() -> None:
    """Pools that this process starts from here on have its folder."""
    subproc_pool.__dict__["SubprocPickler"] = Pickler
    subproc_pool.__dict__["python_subprocess_env"] = lambda: {**python_subprocess_env(), **private.environment()}
