"""Write and run the scripts of candidates, and keep the smallest that fails where the user finds it."""

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Generic, TypeVar

from msgspec.structs import replace

from idbg.engine.compat.builds.scratch import move
from idbg.engine.minify.running import TryRunner
from idbg.engine.repro.files import SCRIPT, TENSORS, new_folder, writing
from idbg.reduce.tries import Judged
from idbg.schema.repros import Minified, OtherFailure

MOST_OTHERS = 10
C = TypeVar("C")


class ScriptJudge(ABC, Generic[C]):
    """Writes the scripts of candidates below `scratch`, and runs them. Keeps the `best` in a `folder`, which is created
    below `parent` under this `name`.
    """

    def __init__(self, runner: TryRunner, scratch: Path, parent: Path, name: str) -> None:
        self.runner, self.scratch = runner, scratch
        self.best: C | None = None
        self.folder: Path | None = None
        self._parent, self._name, self._count = parent, name, 0

    def __call__(self, candidate: C) -> Judged:
        """Write and run a candidate. The files of one that passes are removed."""
        self._count += 1
        script = self.write(candidate, self.scratch / f"try-{self._count}")
        judged = self.runner.judged(lambda: self.run(script, candidate))
        if judged.outcome == "passes":
            shutil.rmtree(script.parent, ignore_errors=True)
        return judged

    @abstractmethod
    def write(self, candidate: C, folder: Path) -> Path:
        """Write the candidate's script into the folder and return its path. Raises OutputError."""

    @abstractmethod
    def run(self, script: Path, candidate: C) -> Judged:
        """Run the script once."""

    @property
    def script(self) -> Path | None:
        """The smallest script so far."""
        return self.folder / SCRIPT if self.folder else None

    def better(self, candidate: C) -> None:
        """Replace the candidate that is kept. Raises OutputError."""
        self.folder = self.folder or new_folder(self._parent, self._name)
        new = self.scratch / "best"
        shutil.rmtree(new, ignore_errors=True)
        self.write(candidate, new)
        with writing(self.folder):
            if not (new / TENSORS).exists():
                (self.folder / TENSORS).unlink(missing_ok=True)
            for file in sorted(new.iterdir(), key=lambda file: file.name == SCRIPT):
                move(file, self.folder / file.name)
        self.best = candidate

    def verified(self, minified: Minified) -> Minified:
        """Run the script in a fresh process."""
        return self.runner.verified(minified)

    def finished(self, minified: Minified, others: Sequence[OtherFailure]) -> Minified:
        """Add the script, what it does in a fresh process, and the scripts of other failures, copied beside it."""
        if self.script is None:
            return minified
        minified = self.verified(replace(minified, path=str(self.script)))
        files = [file for file in self.script.parent.iterdir() if file.is_file()]
        return replace(
            minified,
            lines=len(self.script.read_text(encoding="utf-8").splitlines()),
            bytes=sum(file.stat().st_size for file in files),
            others=_stored_others(others, self.script.parent),
        )


def _stored_others(others: Sequence[OtherFailure], folder: Path) -> tuple[OtherFailure, ...]:
    """The other failures, with their first scripts copied below `folder`: the scratch folder is removed."""
    stored = []
    for number, other in enumerate(others[:MOST_OTHERS], 1):
        path = Path(other.path)
        if not path.is_file():
            stored.append(replace(other, path=""))
            continue
        place = folder / f"other-{number}"
        shutil.copytree(path.parent, place, dirs_exist_ok=True, copy_function=_link)
        stored.append(replace(other, path=str(place / path.name)))
    return tuple(stored)


def _link(source: str, target: str) -> None:
    """Link the file, or copy it to another file system."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
