"""Run with empty caches of torch and Triton, and leave nothing in them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory

import torch._inductor.utils

from idbg.engine.compat.builds.scratch import private

_VARIABLES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")


@dataclass
class _Folder:
    """The caches of the last cold run: its kernels are read after its end."""

    last: TemporaryDirectory[str] | None = None


_folder = _Folder()


@contextmanager
def fresh_caches() -> Iterator[None]:
    """While it lasts, torch's and Triton's caches on disk are an empty folder, and those in memory begin empty.

    Precompiled C++ headers stay in torch's common folder (as with its `fresh_cache`), and a process finds its vector
    instructions only once. `forget_last` removes the folder; the host removes what a process leaves of it.
    """
    forget_last()
    place = private.there() if private.folder is not None else None
    _folder.last = TemporaryDirectory(prefix="cold-", dir=place, ignore_cleanup_errors=True)
    folder = _folder.last.name
    before = {name: os.environ.get(name) for name in _VARIABLES}
    torch._inductor.utils.clear_caches()
    os.environ.update(zip(_VARIABLES, (folder, os.path.join(folder, "triton")), strict=True))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def forget_last() -> None:
    """Remove the caches of the last cold run."""
    if _folder.last is not None:
        torch._inductor.utils.clear_caches()
        _folder.last.cleanup()
        _folder.last = None
