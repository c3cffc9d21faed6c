"""Manage this process's folder for unfinished files of compilers, install the wrappers in torch's modules, and detect
files that a killed compiler left.

It imports no torch: the program imports torch itself, after its own settings, and only then is anything installed.
"""

import importlib
import importlib.util
import logging
import os
import shutil
import struct
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
    """This process's folder for unfinished files, and the function that reports torn files."""

    folder: Path | None = None
    tell: Tell = _warn

    def new(self) -> Path:
        """A folder for one build."""
        return Path(tempfile.mkdtemp(dir=self.there(), prefix="build-"))

    def there(self) -> Path:
        """The folder, created where it is missing."""
        assert self.folder is not None
        self.folder.mkdir(parents=True, exist_ok=True)  # whatever tidies /tmp may have taken it from a long session
        return self.folder

    def environment(self) -> dict[str, str]:
        """The environment with which a process of ours uses the same folder."""
        return {SCRATCH: str(self.folder)} if self.folder else {}


private = Private()


def move(made: Path, place: Path) -> None:
    """Move a file in one step, also to another file system."""
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
    """From now on compilers of this process, and of torch's pool, write privately. Without a host's folder do nothing.

    `tell` gets a sentence for each torn file that was found, removed and built again.
    """
    if tell is not None:
        private.tell = tell
    folder = os.environ.pop(SCRATCH, "")  # the program need not see it
    if not folder or private.folder is not None:
        return
    private.folder = Path(folder)
    for name in AWAITED:
        if name in sys.modules:
            _put_into(sys.modules[name])
    sys.meta_path.insert(0, _WhenImported())


def _put_into(module: ModuleType) -> None:
    if "tempfile" in module.__dict__:
        module.__dict__["tempfile"] = _Temporary("tempfile")
    installer = {BUILDS: "compilers", POOL: "pool"}.get(module.__name__)
    if installer is None:
        return
    try:
        importlib.import_module(f"{__package__}.{installer}").install()
    except (AttributeError, ImportError, TypeError) as error:  # this torch lacks a name: compilers write as without us
        private.tell(f"compilers write into the cache directly: a killed one may leave a torn file there ({error})")


class _Temporary(ModuleType):
    """`tempfile` for modules of torch and Triton: their temporary folders are removed with this process."""

    def __getattr__(self, name: str) -> object:
        original = getattr(tempfile, name)
        if name not in ("TemporaryDirectory", "NamedTemporaryFile", "TemporaryFile", "mkdtemp", "mkstemp"):
            return original
        return lambda *args, **how: original(*args, **{"dir": private.there(), **how})


class _WhenImported(MetaPathFinder):
    """Installs the wrappers in the modules that use compilers, as they are imported."""

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


_ELF, _PRECOMPILED = b"\x7fELF", (b"gpch", b"CPCH")
_HEADER = 64  # bytes


def is_torn(path: Path) -> bool:
    """Whether the file exists and is incomplete by its header. Files of other kinds count as complete.

    A linker creates its output empty, and writes the header last: a killed one leaves a file that is too short, or that
    begins with zeros.
    """
    if path.suffix not in (".so", ".o", ".gch", ".pch"):
        return False
    try:
        with path.open("rb") as file:
            header, size = file.read(_HEADER), path.stat().st_size
    except OSError:
        return False
    if path.suffix in (".gch", ".pch"):
        return not header.startswith(_PRECOMPILED)
    if not header.startswith(_ELF):
        return header[:4] in (b"", b"\0\0\0\0")
    return len(header) < _HEADER or size < _end_of_sections(header)


def _end_of_sections(header: bytes) -> int:
    """The end of an ELF file's section table, which is its last part; 0 without one."""
    order = "<" if header[5] == 1 else ">"
    is_wide = header[4] == 2
    (start,) = struct.unpack_from(f"{order}Q" if is_wide else f"{order}I", header, 40 if is_wide else 32)
    each, count = struct.unpack_from(f"{order}HH", header, 58 if is_wide else 46)
    return int(start + each * count)
