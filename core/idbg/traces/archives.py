"""Unpack an archive of traces, which may come from anybody.

Only regular files are written, below the folder that is named: links, devices and names that climb out are left out.
Sizes are counted while they are read, as an archive's own list of sizes may be wrong.
"""

import gzip
import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from idbg.format.amounts import counted, size
from idbg.schema.errors import BadInput
from idbg.traces.packed import NO_ZSTD, ZSTD, zstd

MOST_BYTES = 8 << 30  # of all files of an archive
MOST_FILES = 20_000
_PIECE = 1 << 20
_DAMAGED = (
    EOFError,
    gzip.BadGzipFile,
    zlib.error,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
)


class Member(NamedTuple):
    """A file of an archive. `refused`: why it is left out, "" where it is not. `size`: as the archive has it."""

    name: str
    refused: str
    size: int
    open: Callable[[], IO[bytes]]


def unpack(archive: Path, to: Path, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES) -> list[str]:
    """Unpack the archive into this new folder. Returns what was left out, a sentence each.

    Raises BadInput where it is no archive, or has more than is unpacked.
    """
    left_out: Counter[str] = Counter()
    found: list[str] = []
    written, count = 0, 0
    to.mkdir(parents=True)
    try:
        with _opened(archive) as members:
            for member in members:
                refused = member.refused or _wrong_name(member.name)
                if refused:
                    left_out[refused] += 1
                    continue
                count += 1
                if count > most_files:
                    raise _too_much(archive, f"more than {most_files:,} files")
                limit = _too_much(archive, f"more than {size(most_bytes)}")
                if written + member.size > most_bytes:
                    raise limit
                try:
                    written += _unpack_one(member, to, most_bytes - written, limit)
                except (IsADirectoryError, NotADirectoryError, FileExistsError):
                    left_out["it is both a file and a folder"] += 1
    except _DAMAGED as error:
        if not written:
            raise BadInput(
                f"{archive.name} cannot be unpacked: {error or 'it is cut off'}", hint="copy or pack it again"
            ) from error
        why = str(error) or "it is cut off"
        found.append(f"{archive.name} is damaged after {counted(count, 'file')} ({why}): the rest is left out")
    found += [f"{counted(number, 'member')} of {archive.name} left out: {why}" for why, number in left_out.items()]
    return found


def _too_much(archive: Path, what: str) -> BadInput:
    return BadInput(f"{archive.name} holds {what}: it is not unpacked", hint="unpack it yourself, and name the folder")


def _wrong_name(name: str) -> str:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or "\0" in name or (path.parts and ":" in path.parts[0]):
        return "its name leads out of the folder"
    if not path.parts or any(len(os.fsencode(part)) > 255 for part in path.parts):
        return "its name cannot be the name of a file"
    return ""


def _unpack_one(member: Member, to: Path, room: int, too_much: BadInput) -> int:
    """Write one file, and return its bytes."""
    path = to / member.name
    path.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with member.open() as source, open(path, "wb") as file:
        while piece := source.read(_PIECE):
            written += len(piece)
            if written > room:
                raise too_much
            file.write(piece)
    return written


@contextmanager
def _opened(archive: Path) -> Iterator[Iterator[Member]]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            yield _of_zip(opened)
    elif archive.name.endswith(ZSTD):
        if (module := zstd()) is None:
            raise BadInput(f"{archive.name} cannot be unpacked: {NO_ZSTD}", hint="then name the folder")
        try:
            with open(archive, "rb") as file, tarfile.open(fileobj=module.open(file), mode="r|") as tar:
                yield _of_tar(tar)
        except module.ZstdError as error:
            raise EOFError(str(error)) from error
    else:
        with tarfile.open(archive, "r:*") as tar:
            yield _of_tar(tar)


def _of_zip(opened: zipfile.ZipFile) -> Iterator[Member]:
    for each in opened.infolist():
        if each.is_dir():
            continue
        kind = stat.S_IFMT(each.external_attr >> 16)
        refused = "a link, or no regular file" if kind not in (0, stat.S_IFREG) else ""
        refused = refused or ("it is encrypted" if each.flag_bits & 1 else "")
        yield Member(each.filename, refused, each.file_size, lambda each=each: opened.open(each))  # type: ignore[misc]


def _of_tar(opened: tarfile.TarFile) -> Iterator[Member]:
    for each in opened:
        if each.isdir():
            continue
        refused = "" if each.isreg() else "a link, or no regular file"
        if (file := opened.extractfile(each) if not refused else None) is None:
            refused = refused or "a link, or no regular file"
        yield Member(each.name, refused, each.size, lambda file=file: file)  # type: ignore[misc]
