"""Which folders of the user's are read and written, also where there is no home?

A user without a home (a uid that no list knows, HOME unset: containers) has a folder of ours in the temporary one.
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
    """The folder of what was measured before."""
    return _at_home(platformdirs.user_data_path, "data")


def cache() -> Path:
    """The folder of what can be made again."""
    return _at_home(platformdirs.user_cache_path, "cache")


def expanded(path: str) -> Path:
    """A path that the user wrote, with `~` as the home that it stands for. Raises BadInput where there is none, and for
    a name that is too long.
    """
    try:
        found = Path(path).expanduser()
    except RuntimeError as error:
        raise BadInput(f"{path}: there is no such home folder", hint="give the path without ~") from error
    check_length(found)
    return found


def check_length(path: Path) -> None:
    """Raises BadInput for a name that is longer than the file system takes, as nearly all of pathlib raises OSError."""
    try:
        path.lstat()
    except (OSError, ValueError) as error:  # whatever else is wrong with it is said where it is used
        if getattr(error, "errno", 0) == errno.ENAMETOOLONG:
            hint = "most file systems take 255 bytes of a name, and 4,096 of a path"
            raise BadInput(f"the name {str(path)[:40]}… is longer than a file's can be", hint=hint) from error


def check_here() -> None:
    """Raises BadInput where the folder that the user stands in was removed: every relative path needs it."""
    try:
        os.getcwd()
    except FileNotFoundError as error:
        hint = "cd to one that exists, also where one of the same name was made since"
        raise BadInput("the folder that you stand in was removed", hint=hint) from error


def inductor_cache(environ: Mapping[str, str]) -> Path:
    """Where torch keeps what Inductor compiled, as torch finds it."""
    named = environ.get("TORCHINDUCTOR_CACHE_DIR")
    return Path(named) if named else Path(tempfile.gettempdir()) / f"torchinductor_{_user()}"


def forget_graphs(inductor: Path) -> None:
    """Remove the graphs that are compiled from a cache of Inductor's, and leave their kernels: torch takes a graph for
    the same whatever lowerings a program has registered.
    """
    for folder in ("fxgraph", "aotautograd"):
        shutil.rmtree(inductor / folder, ignore_errors=True)


def triton_cache(environ: Mapping[str, str]) -> Path:
    """Where Triton keeps its own, outside of Inductor."""
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
    """Ours alone: libraries are loaded from it, and others may write to the temporary folder."""
    folder = Path(tempfile.gettempdir()) / f"idbg-uid-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return folder
    if folder.is_symlink() or status.st_uid != os.getuid() or status.st_mode & 0o077:
        return Path(tempfile.mkdtemp(prefix="idbg-uid-"))
    return folder
