"""By which names in its environment is a child process of ours told what it needs to know?"""

import contextlib
import os
import re
import site
from collections.abc import Mapping
from pathlib import Path

import idbg

NICENESS = "IDBG_NICE"  # how nice it is to be
PATH_ADDED = "IDBG_PATH_ADDED"  # PYTHONPATH begins with an entry of ours, which the program must not see
SCRATCH = "IDBG_SCRATCH"  # the folder that the host made for what its compilers have not finished, and removes
_IMPORT = re.compile(r"^\s*(import|from)\s+torch\b", re.MULTILINE)
_ROOT = str(Path(idbg.__file__).resolve().parents[1])


def importable(added: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables of our environment and these, with PYTHONPATH such that a child can import `idbg` from where it was
    imported here.
    """
    environ = {**os.environ, **(added or {})}
    path = [entry for entry in environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if _ROOT not in {*site.getsitepackages(), site.getusersitepackages(), *path}:
        environ |= {"PYTHONPATH": os.pathsep.join([_ROOT, *path]), PATH_ADDED: "1"}
    return environ


def sets_up_torch(script: Path) -> bool:
    """Whether it sets environment variables before it imports torch, which reads some of them then."""
    text = ""
    with contextlib.suppress(OSError):
        text = script.read_text(encoding="utf-8", errors="replace")
    imported = _IMPORT.search(text)
    return imported is not None and "environ" in text[: imported.start()]
