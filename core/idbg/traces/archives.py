"""Unpack an archive of traces, which may come from anybody.

Only regular files are written, below the folder that is named: links, devices and names that climb out are left out.
Sizes are counted while they are read, as an archive's own list of sizes may be wrong. A damaged file is left out, and
the files beside it are read.
"""

import bz2
import errno
import gzip
import lzma
import mmap
import os
import stat
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple, cast

from idbg.format.amounts import counted, size
from idbg.schema.errors import BadInput
from idbg.traces.packed import NO_ZSTD, ZSTD, zstd

MOST_BYTES = 8 << 30  # of all files of an archive
MOST_FILES = 20_000
MOST_AT_ONCE = 16 << 20  # bytes that a header or a list of files takes; that of 20,000 files takes a fifth of it
_PIECE = 1 << 20
_NO_FILE_NAME = (errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ, errno.ENOTDIR, errno.EISDIR, errno.EEXIST)
"""The errors of a name that cannot be the name of a file there; others are of the disk."""


class _Damaged(Exception):
    """What is read of the archive is damaged; why, as a clause."""


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except (BadInput, _Damaged):
        raise
    # broad on purpose: of a damaged archive the standard library raises whatever its parts do, also struct.error,
    # UnicodeDecodeError and OverflowError
    except Exception as error:
        raise _Damaged(str(error) or "it is cut off") from error


class Member(NamedTuple):
    """A file of an archive. `refused`: why it is left out, "" where it is not. `size`: as the archive has it."""

    name: str
    refused: str
    size: int
    open: Callable[[], IO[bytes]]


def unpack(archive: Path, to: Path, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES) -> list[str]:
    """Unpack the archive into this new folder. Returns what was left out, a sentence each.

    Raises BadInput where it is no archive, or has more than is unpacked; OSError where nothing can be written.
    """
    left_out: Counter[str] = Counter()
    found: list[str] = []
    written, count = 0, 0
    to.mkdir(parents=True)
    limit = _too_much(archive, f"more than {size(most_bytes)}")
    try:
        for member in _members(archive):
            count += 1
            if count > most_files:
                raise _too_much(archive, f"more than {most_files:,} files")
            if written + member.size > most_bytes:
                raise limit
            refused = member.refused or _wrong_name(member.name)
            if not refused:
                refused, wrote = _unpack_one(member, to, most_bytes - written, limit)
                written += wrote
            if refused:
                left_out[refused] += 1
    except _Damaged as error:
        if not written:
            raise BadInput(f"{archive.name} cannot be unpacked: {error}", hint="copy or pack it again") from error
        found.append(f"{archive.name} is damaged after {counted(count, 'file')} ({error}): the rest is left out")
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


def _unpack_one(member: Member, to: Path, room: int, too_much: BadInput) -> tuple[str, int]:
    """Write one file. Returns why it is left out, from where it is damaged, and its bytes."""
    path = to / member.name
    written = 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "wb") as file:
            for piece in _pieces(member):
                written += len(piece)
                if written > room:
                    raise too_much
                file.write(piece)
    except _Damaged as error:
        return f"it is damaged ({error})", written
    except OSError as error:
        if error.errno not in _NO_FILE_NAME:
            raise
        is_both = error.errno in (errno.ENOTDIR, errno.EISDIR, errno.EEXIST)
        return "it is both a file and a folder" if is_both else "its name cannot be the name of a file", 0
    return "", written


def _pieces(member: Member) -> Iterator[bytes]:
    with _reading(), member.open() as source:
        while piece := source.read(_PIECE):
            yield piece


class _Bounded:
    """A file of which nobody reads more than MOST_AT_ONCE at once: a header is read whole, whatever size it states."""

    def __init__(self, file: "IO[bytes] | mmap.mmap") -> None:
        self._file = file
        self.tell = file.tell

    def seek(self, offset: int, whence: int = 0) -> object:
        try:
            return self._file.seek(offset, whence)  # type: ignore[arg-type]
        except ValueError as error:  # of a memory map; readers of archives expect that of a file
            raise OSError(str(error)) from error

    def read(self, most: int = -1) -> bytes:
        data = self._file.read(min(most, MOST_AT_ONCE + 1) if most >= 0 else MOST_AT_ONCE + 1)
        if len(data) > MOST_AT_ONCE:
            raise ValueError(f"a header of it takes more than {size(MOST_AT_ONCE)}")
        return data

    def seekable(self) -> bool:
        return True


def _members(archive: Path) -> Iterator[Member]:
    """The members, until they end or what lists them is damaged. Raises _Damaged."""
    with _reading():
        with open(archive, "rb") as file:
            start = file.read(8)
        if zipfile.is_zipfile(archive):
            yield from _of_zip(archive)
        elif archive.name.endswith(ZSTD):
            if (module := zstd()) is None:
                raise BadInput(f"{archive.name} cannot be unpacked: {NO_ZSTD}", hint="then name the folder")
            yield from _of_tar(module.open(archive))
        else:
            yield from _of_tar(_unpacked(archive, start))


def _unpacked(archive: Path, start: bytes) -> IO[bytes]:
    if start.startswith(b"\x1f\x8b"):
        return cast("IO[bytes]", gzip.open(archive))
    if start.startswith(b"BZh"):
        return bz2.open(archive)
    return lzma.open(archive) if start.startswith(b"\xfd7zXZ\0") else open(archive, "rb")


def _of_zip(archive: Path) -> Iterator[Member]:
    with open(archive, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as content:
        _name_in_any_encoding(content)
        with zipfile.ZipFile(cast("IO[bytes]", _Bounded(content))) as opened:
            for each in opened.infolist():
                if each.is_dir():
                    continue
                kind = stat.S_IFMT(each.external_attr >> 16)
                refused = "a link, or no regular file" if kind not in (0, stat.S_IFREG) else ""
                refused = refused or ("it is encrypted" if each.flag_bits & 1 else "")
                yield Member(each.filename, refused, each.file_size, lambda each=each: opened.open(each))  # type: ignore[misc]


def _name_in_any_encoding(content: mmap.mmap) -> None:
    """Names that claim to be UTF-8 and are not are read as bytes of any encoding: else no file would be listed."""
    end = content.rfind(b"PK\5\6")
    at = content.find(b"PK\1\2", max(end - int.from_bytes(content[end + 12 : end + 16], "little"), 0), end)
    while at >= 0:
        flags, length = content[at + 9], int.from_bytes(content[at + 28 : at + 30], "little")
        name = content[at + 46 : at + 46 + length]
        if flags & 8 and name.decode("utf-8", "replace").encode() != name:
            content[at + 9] = flags & ~8
        at = content.find(b"PK\1\2", at + 46, end)


def _of_tar(unpacked: IO[bytes]) -> Iterator[Member]:
    with unpacked, tarfile.open(fileobj=cast("IO[bytes]", _Bounded(unpacked)), mode="r:") as opened:
        while (each := opened.next()) is not None:
            opened.members.clear()  # type: ignore[attr-defined]  # tarfile holds each that it has read
            if each.isdir():
                continue
            refused = "" if each.isreg() else "a link, or no regular file"
            if (file := opened.extractfile(each) if not refused else None) is None:
                refused = refused or "a link, or no regular file"
            yield Member(each.name, refused, each.size, lambda file=file: file)  # type: ignore[misc]
        unpacked.seek(opened.offset)
        if unpacked.read(tarfile.BLOCKSIZE).strip(b"\0"):  # tarfile ends without an error there
            raise _Damaged("a header of it is damaged")
