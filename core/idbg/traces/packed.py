"""Read a compressed file as a stream, as far as it is intact."""

import errno
import gzip
import importlib
import zlib
from pathlib import Path
from typing import IO, Protocol, cast

from idbg.format.amounts import size

GZIP, ZSTD = (".gz", ".tgz"), (".zst", ".tzst")
MOST_BYTES = 8 << 30  # that are unpacked of one file
NO_ZSTD = "it is packed with zstd, which this Python cannot read: pip install backports.zstd, or unpack it with zstd -d"


class ZstdModule(Protocol):
    """Python 3.14's compression.zstd, or backports.zstd."""

    ZstdError: type[Exception]

    def open(self, file: IO[bytes] | Path, mode: str = "rb") -> IO[bytes]:
        """The unpacked file."""


def zstd() -> ZstdModule | None:
    """The module that reads zstd; None where there is none."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return cast("ZstdModule", importlib.import_module(name))
        except ImportError:
            continue
    return None


def is_packed(path: Path) -> bool:
    """By its name."""
    return path.name.endswith((*GZIP, *ZSTD))


class PackedFile:
    """A compressed file, unpacked while it is read. Raises OSError where it is of zstd and nothing here reads that."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._raw = file
        self.damage = ""
        """Why it ends before its end; "" where it does not."""
        self._left = MOST_BYTES
        self._errors: tuple[type[Exception], ...] = (EOFError, OSError, zlib.error)
        if name.endswith(GZIP):
            self._file = cast("IO[bytes]", gzip.GzipFile(fileobj=file))
        elif (module := zstd()) is not None:
            self._file = module.open(file)
            self._errors = (*self._errors, module.ZstdError)
        else:
            raise OSError(errno.ENOTSUP, NO_ZSTD)

    @property
    def packed_bytes(self) -> int:
        """Bytes of the compressed file that were read."""
        return self._raw.tell()

    def read(self, most: int = -1) -> bytes:
        """The next bytes; none at the end, and where it is damaged."""
        if self.damage:
            return b""
        try:
            data = self._file.read(most)
        except self._errors as error:
            self.damage = f"is damaged, or cut off ({error})"
            return b""
        self._left -= len(data)
        if self._left < 0:
            self.damage = f"holds more than {size(MOST_BYTES)}"
            return b""
        return data

    def close(self) -> None:
        """Close it."""
        self._file.close()
        self._raw.close()

    def __enter__(self) -> "PackedFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
