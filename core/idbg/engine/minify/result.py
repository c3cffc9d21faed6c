"""Keep the smallest script found so far, and describe it at the end of a search."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from pathlib import Path

from msgspec.structs import replace

from idbg.engine.minify.oracle import SharedTensors, write_candidate
from idbg.engine.minify.problem import Problem
from idbg.engine.minify.running import TryRunner
from idbg.engine.repro.draft import Candidate
from idbg.engine.repro.files import SCRIPT, TENSORS, new_folder
from idbg.schema.repros import Minified, OtherFailure

MOST_OTHERS = 10


@dataclass
class ResultFolder:
    """The folder with the smallest script that has failed, from the first one on; it is created below `parent`, under
    this `name`.
    """

    parent: Path
    name: str
    scratch: Path
    shared: SharedTensors
    best: Candidate | None = field(default=None, init=False)
    folder: Path | None = field(default=None, init=False)
    _passing: tuple[Candidate, Sequence[str]] | None = field(default=None, init=False)

    @property
    def script(self) -> Path | None:
        """The smallest script so far."""
        return self.folder / SCRIPT if self.folder else None

    def better(self, candidate: Candidate) -> None:
        """Replace the candidate that is kept. Raises OutputError."""
        self._put(candidate, self.shared)

    def _put(self, candidate: Candidate, shared: SharedTensors | None) -> None:
        self.folder = self.folder or new_folder(self.parent, self.name)
        new = self.scratch / "best"
        shutil.rmtree(new, ignore_errors=True)
        write_candidate(candidate, new, shared)
        if not (new / TENSORS).exists():
            (self.folder / TENSORS).unlink(missing_ok=True)
        for name in (TENSORS, SCRIPT):
            if (new / name).exists():
                _move(new / name, self.folder / name)
        self.best = candidate

    def nearest(self, candidate: Candidate, lacks: Sequence[str]) -> None:
        """Set the nearest candidate that passes, and the nodes that it lacks."""
        self._passing = candidate, lacks

    def finished(self, minified: Minified, others: Sequence[OtherFailure], runner: TryRunner) -> Minified:
        """Write the final files, and run the script in a fresh process."""
        if self.folder is None or self.script is None or self.best is None:
            return minified
        self._put(self.best, None)  # a shared file holds tensors that the script does not name
        minified = described(minified, self.script, [self.script, self.folder / TENSORS], others)
        if self._passing is not None:
            near, lacks = self._passing
            title = f"The nearest that does not fail so: {near.heading.title}"
            near = replaced(near, heading=replaced(near.heading, title=title, message=()))
            passing = write_candidate(near, self.folder / "passing")
            minified = replace(minified, passing=str(passing), difference=tuple(lacks))
        return runner.verified(minified)


def described(minified: Minified, script: Path, files: Sequence[Path], others: Sequence[OtherFailure]) -> Minified:
    """Add the script's path and size, and copy the scripts of other failures beside it."""
    return replace(
        minified,
        path=str(script),
        lines=len(script.read_text(encoding="utf-8").splitlines()),
        bytes=sum(file.stat().st_size for file in files if file.is_file()),
        others=_stored_others(others, script.parent),
    )


def whole_script(problem: Problem, folder: Path) -> Path:
    """Write the script of the likeliest graph as a whole below `folder`. Raises ValueError, OutputError."""
    builder = problem.graphs[0].builder
    name = problem.signature.type or problem.signature.kind
    return write_candidate(builder.candidate(problem.graphs[0].nodes), new_folder(folder, f"failed-{name}"))


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


def _move(source: Path, target: Path) -> None:
    """Replace the target atomically, also from another file system."""
    try:
        os.replace(source, target)
    except OSError:
        beside = target.with_name(f".{target.name}")
        shutil.copyfile(source, beside)
        os.replace(beside, target)
