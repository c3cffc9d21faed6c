"""The environment of child processes: our variables, and a PYTHONPATH that finds `idbg`."""

import contextlib
import os
import re
import site
from collections.abc import Mapping
from pathlib import Path

import idbg

NICENESS = "IDBG_NICE"  # the process's niceness
PATH_ADDED = "IDBG_PATH_ADDED"  # the first entry of PYTHONPATH is ours: hide it from the program
SCRATCH = "IDBG_SCRATCH"  # the host's folder for unfinished builds; the host removes it
_IMPORT = re.compile(r"^\s*(import|from)\s+torch\b", re.MULTILINE)
_ROOT = str(Path(idbg.__file__).resolve().parents[1])


def importable(added: Mapping[str, str] | None = None) -> dict[str, str]:
    """Our environment and these variables, with a PYTHONPATH from which a child imports the same `idbg`."""
    environ = {**os.environ, **(added or {})}
    path = [entry for entry in environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if _ROOT not in {*site.getsitepackages(), site.getusersitepackages(), *path}:
        environ |= {"PYTHONPATH": os.pathsep.join([_ROOT, *path]), PATH_ADDED: "1"}
    return environ


def sets_up_torch(script: Path) -> bool:
    """Whether it sets environment variables before it imports torch: torch reads some of them on import."""
    text = ""
    with contextlib.suppress(OSError):
        text = script.read_text(encoding="utf-8", errors="replace")
    imported = _IMPORT.search(text)
    return imported is not None and "environ" in text[: imported.start()]
