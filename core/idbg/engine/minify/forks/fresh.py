"""Does a script do what we say of it, run by a stranger: in a fresh Python, from another folder?"""

import tempfile
from pathlib import Path

from idbg.engine.compat.builds.scratch import private
from idbg.engine.minify.forks.client import Forks
from idbg.engine.minify.forks.tried import Tried


def verified(script: Path, *, seconds: float, memory: int) -> Tried:
    """Run `python SCRIPT` once, with the user's environment and caches; where it is ended half-way, its compilers leave
    nothing torn there. At most `seconds`, and `memory` bytes. Raises WorkerError where no process can be started.
    """
    beside = private.folder if private.folder is not None and private.folder.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="idbg-", dir=beside, ignore_cleanup_errors=True) as folder:
        elsewhere = Path(folder) / "elsewhere"
        elsewhere.mkdir()
        with Forks(elsewhere, (), Path(folder) / "scratch", fork=False, own_caches=False) as forks:
            return forks.run(script.resolve(), seconds=seconds, memory=memory)
