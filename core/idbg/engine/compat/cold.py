"""How does a run find nothing in torch's caches, and leave nothing in them?"""

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
    """The caches of the last cold run: what it built is asked for after its end (assembly, kernels alone)."""

    last: TemporaryDirectory[str] | None = None


_folder = _Folder()


@contextmanager
def fresh_caches() -> Iterator[None]:
    """While it lasts, torch's and Triton's caches on disk are an empty folder, and those in memory begin empty.

    Torch keeps precompiled C++ headers in one place for all (its `fresh_cache` does too), and a process asks only once
    which vector instructions it has. What it leaves goes with `forget_last`, or with this process: the host removes
    what is left of the folder.
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
    """What the last cold run built is no longer asked for: nothing of it is found from here on."""
    if _folder.last is not None:
        torch._inductor.utils.clear_caches()
        _folder.last.cleanup()
        _folder.last = None
