"""The folders that idbg reads and writes.

A user without a home folder (in containers) gets a folder in the temporary one.
"""

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import cache as once
from pathlib import Path

import platformdirs

from idbg.schema.errors import BadInput


def config() -> Path:
    """The folder of settings and themes."""
    return _at_home(platformdirs.user_config_path, "config")


def data() -> Path:
    """The folder of measurements."""
    return _at_home(platformdirs.user_data_path, "data")


def cache() -> Path:
    """The folder of files that can be created again."""
    return _at_home(platformdirs.user_cache_path, "cache")


def expanded(path: str) -> Path:
    """A path that the user wrote, with `~` expanded. Raises BadInput for an unknown home folder and a name that is too
    long.
    """
    try:
        found = Path(path).expanduser()
    except RuntimeError as error:
        raise BadInput(f"{path}: there is no such home folder", hint="give the path without ~") from error
    check_length(found)
    return found


def check_length(path: Path) -> None:
    """Raises BadInput for a name that is too long for the file system: most of pathlib raises OSError."""
    try:
        path.lstat()
    except (OSError, ValueError) as error:  # other problems are reported where the path is used
        if getattr(error, "errno", 0) == errno.ENAMETOOLONG:
            hint = "most file systems allow 255 bytes for a name, and 4,096 for a path"
            raise BadInput(f"the name {str(path)[:40]}… is too long for a file", hint=hint) from error


def check_here() -> None:
    """Raises BadInput where the working directory was removed: every relative path needs it."""
    try:
        os.getcwd()
    except FileNotFoundError as error:
        hint = "cd to one that exists, also where a folder of the same name was created since"
        raise BadInput("the working directory was removed", hint=hint) from error


def inductor_cache(environ: Mapping[str, str]) -> Path:
    """Inductor's cache, as torch finds it."""
    named = environ.get("TORCHINDUCTOR_CACHE_DIR")
    return Path(named) if named else Path(tempfile.gettempdir()) / f"torchinductor_{_user()}"


def forget_graphs(inductor: Path) -> None:
    """Remove compiled graphs from Inductor's cache, but not their kernels: torch's key does not contain the lowerings
    that a program registers.
    """
    for folder in ("fxgraph", "aotautograd"):
        shutil.rmtree(inductor / folder, ignore_errors=True)


def triton_cache(environ: Mapping[str, str]) -> Path:
    """Triton's cache outside of Inductor."""
    named = environ.get("TRITON_CACHE_DIR")
    return Path(named) if named else Path(os.path.expanduser("~")) / ".triton" / "cache"


def _user() -> str:
    import getpass

    try:
        name = getpass.getuser()
    except (KeyError, ImportError, OSError):
        name = f"uid_{os.getuid()}"
    return re.sub(r'[\\/:*?"<>|]', "_", name)


def _at_home(folder: Callable[[str], Path], kind: str) -> Path:
    try:
        return folder("idbg")
    except RuntimeError:
        return _without_home() / kind


@once
def _without_home() -> Path:
    """A folder that only this user can write: libraries are loaded from it."""
    folder = Path(tempfile.gettempdir()) / f"idbg-uid-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return folder
    if folder.is_symlink() or status.st_uid != os.getuid() or status.st_mode & 0o077:
        return Path(tempfile.mkdtemp(prefix="idbg-uid-"))
    return folder
