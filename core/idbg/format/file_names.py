"""Shorten file names so that each still differs from every other file of the program."""

from functools import lru_cache
from os.path import isabs, pardir, relpath
from pathlib import PurePath

from idbg.format.glyphs import MARKS

_PACKAGES = ("site-packages", "dist-packages")


@lru_cache(maxsize=4096)  # a list asks for each of its rows
def short(file: str, others: frozenset[str] = frozenset()) -> str:
    """ "model.py"; of an installed package "torchvision/…/resnet.py"; where another of the user's files has the same
    name, with as many folders before it as tell them apart."""
    path = PurePath(file)
    inside = _in_package(path)
    if inside:
        return "/".join(inside if len(inside) <= 2 else (inside[0], MARKS["ellipsis"], inside[-1]))
    alike = [other for name in others if (other := PurePath(name)) != path and other.name == path.name]
    alike = [other for other in alike if not _in_package(other)]
    for count in range(1, len(path.parts)):
        if all(other.parts[-count:] != path.parts[-count:] for other in alike):
            return "/".join(path.parts[-count:])
    return file


def place(file: str, line: int, others: frozenset[str] = frozenset()) -> str:
    """ "model.py:12"; the file alone where no line is known."""
    return f"{short(file, others)}{f':{line}' if line else ''}"


def from_here(path: str) -> str:
    """A path from the working folder if it lies below, else as it is."""
    if not isabs(path):
        return path
    relative = relpath(path)
    return path if relative.startswith(pardir) else relative


def near_place(file: str, line: int) -> str:
    """file:line as a shell here opens it: relative if it is below, without the way to an installed package; the file
    alone where no line is known, "" of no file."""
    if not file:
        return ""
    near = relpath(file)
    name = file.rpartition("site-packages/")[2] if near.startswith("..") else near
    return f"{name.rpartition('site-packages/')[2]}{f':{line}' if line else ''}"


def _in_package(path: PurePath) -> tuple[str, ...]:
    """The path below the folder of installed packages; () if it is not there."""
    folders = [index for index, part in enumerate(path.parts) if part in _PACKAGES]
    return path.parts[folders[-1] + 1 :] if folders else ()
