"""How often each command of the palette was used, in this session and in those before."""

from pathlib import Path

from idbg_tui import remembered

_MOST = 500  # commands that are remembered


class CommandUses:
    """Counts uses, and keeps them in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.counts = remembered.read(path, dict[str, int])

    def count(self, name: str) -> None:
        """Count one use, and write all."""
        self.counts[name] = self.counts.pop(name, 0) + 1
        for oldest in list(self.counts)[:-_MOST]:
            del self.counts[oldest]
        remembered.write(self._path, self.counts)
