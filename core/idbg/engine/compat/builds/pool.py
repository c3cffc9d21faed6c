"""Give the processes of torch's compile pool the folder for unfinished files."""

from typing import TYPE_CHECKING

from idbg.engine.compat.builds.scratch import begin, private
from idbg.engine.compat.names import find

if TYPE_CHECKING:
    from torch._inductor.compile_worker import subproc_pool
    from torch._inductor.utils import python_subprocess_env
else:
    subproc_pool = find("torch._inductor.compile_worker.subproc_pool")
    python_subprocess_env = find("torch._inductor.utils.python_subprocess_env")


class Pickler(subproc_pool.SubprocPickler):
    """The pool creates this first in its own process, by this name: it installs the wrappers there."""

    def __init__(self) -> None:
        super().__init__()
        begin()


def install() -> None:
    """Pools that this process starts from now on use its folder."""
    subproc_pool.__dict__["SubprocPickler"] = Pickler
    subproc_pool.__dict__["python_subprocess_env"] = lambda: {**python_subprocess_env(), **private.environment()}
