"""How often each command of the palette was used, in this session and in those before."""

import contextlib
from pathlib import Path
from threading import Thread

import msgspec

from idbg.whole_file import write_whole

_MOST = 500  # commands that are remembered


class CommandUses:
    """Counts uses, and keeps them in a file. A file that cannot be read or written costs the memory alone."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self.counts = msgspec.json.decode(path.read_bytes(), type=dict[str, int])
        except (OSError, msgspec.DecodeError, ValueError):
            self.counts = {}

    def count(self, name: str) -> None:
        """Count one use, and write all on a thread: a disk may be slow."""
        self.counts[name] = self.counts.pop(name, 0) + 1
        for oldest in list(self.counts)[:-_MOST]:
            del self.counts[oldest]
        Thread(target=self._write, args=(msgspec.json.encode(self.counts),), name="idbg-uses", daemon=True).start()

    def _write(self, content: bytes) -> None:
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._path, content)
