"""Which folder has this process for what its compilers have not finished, and when do torch's modules learn of it?

Imports no torch: a program imports it itself, when it has set what it likes, and only then is anything put into it.
"""

import importlib.util
import logging
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from idbg.config.environment import SCRATCH

BUILDS, POOL = "torch._inductor.codecache", "torch._inductor.compile_worker.subproc_pool"
AWAITED = (BUILDS, POOL, "triton.runtime.build", "triton.backends.nvidia.compiler")
Tell = Callable[[str], None]


log = logging.getLogger(__name__)


def _warn(text: str) -> None:
    log.warning("idbg: %s", text)  # no handler is ours in a process of the program's: Python writes it to stderr


@dataclass
class Private:
    """This process's folder for what is not finished, and whom to tell of what was found torn."""

    folder: Path | None = None
    tell: Tell = _warn

    def new(self) -> Path:
        """A folder for one build."""
        return Path(tempfile.mkdtemp(dir=self.there(), prefix="build-"))

    def there(self) -> Path:
        """The folder, made where it is not there."""
        assert self.folder is not None
        self.folder.mkdir(parents=True, exist_ok=True)  # whatever tidies /tmp may have taken it from a long session
        return self.folder

    def environment(self) -> dict[str, str]:
        """What a process of ours needs in its environment to have the same folder."""
        return {SCRATCH: str(self.folder)} if self.folder else {}


private = Private()


def move(made: Path, place: Path) -> None:
    """In one step, also from one file system to another."""
    try:
        made.replace(place)
    except OSError:
        beside = place.with_name(f".{place.name}.{os.getpid()}.{threading.get_ident()}.tmp")
        try:
            shutil.copy2(made, beside)
            beside.replace(place)
        finally:
            beside.unlink(missing_ok=True)


def begin(tell: Tell | None = None) -> None:
    """From here on compilers of this process, and of torch's pool, write privately. Nothing without a host's folder.

    `tell` gets a sentence for each torn file of others that was met, removed and built again.
    """
    if tell is not None:
        private.tell = tell
    given = os.environ.pop(SCRATCH, "")  # the program under debug need not see it
    if not given or private.folder is not None:
        return
    private.folder = Path(given)
    for name in AWAITED:
        if name in sys.modules:
            _put_into(sys.modules[name])
    sys.meta_path.insert(0, _WhenImported())


def _put_into(module: ModuleType) -> None:
    if "tempfile" in module.__dict__:
        module.__dict__["tempfile"] = _Temporary("tempfile")
    if module.__name__ == BUILDS:
        from idbg.engine.compat.builds import compilers

        compilers.install()
    elif module.__name__ == POOL:
        from idbg.engine.compat.builds import pool

        pool.install()


class _Temporary(ModuleType):
    """`tempfile` for modules of torch and Triton: their temporary folders go with this process."""

    def __getattr__(self, name: str) -> object:
        original = getattr(tempfile, name)
        if name not in ("TemporaryDirectory", "NamedTemporaryFile", "TemporaryFile", "mkdtemp", "mkstemp"):
            return original
        return lambda *given, **how: original(*given, **{"dir": private.there(), **how})


class _WhenImported(MetaPathFinder):
    """Looks out for the modules that use compilers, and for nothing else."""

    def __init__(self) -> None:
        self._awaited = {name for name in AWAITED if name not in sys.modules}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._awaited:
            return None
        self._awaited.discard(fullname)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def run_and_put(module: ModuleType) -> None:
            run(module)
            _put_into(module)

        spec.loader.exec_module = run_and_put  # type: ignore[method-assign]
        return spec
