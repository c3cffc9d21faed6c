"""A pytest plugin that checks what tests compile. pytest loads only `plugin`.

The fixture `idbg` is a `Watcher`; the marker `idbg` and `pytest --idbg` need no code; `conformance` is a test of each
program of the conformance kit. docs/pytest.md describes them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from idbg.testing.backend_conformance import conformance as conformance
    from idbg.testing.watcher import Found as Found
    from idbg.testing.watcher import Watcher as Watcher

__all__ = ["Found", "Watcher", "conformance"]
_HOMES = {
    "Found": "idbg.testing.watcher",
    "Watcher": "idbg.testing.watcher",
    "conformance": "idbg.testing.backend_conformance",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'idbg.testing' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
