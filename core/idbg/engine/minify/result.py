"""What is handed over: the smallest script so far, and at the end what it did in a fresh process?"""

import dataclasses
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from idbg.engine.minify.candidate import Candidate
from idbg.engine.minify.oracle import SCRIPT, TENSORS, SharedTensors, write
from idbg.engine.minify.problem import Problem
from idbg.engine.minify.running import TryRunner
from idbg.engine.repro.files import new_folder
from idbg.schema.repros import Minified, OtherFailure

MOST_OTHERS = 10


@dataclass
class ResultFolder:
    """The folder in which the user finds the smallest script that has failed, from the first on; `parent` is where it
    is made, under this `name`.
    """

    parent: Path
    name: str
    scratch: Path
    large: SharedTensors
    best: Candidate | None = field(default=None, init=False)
    folder: Path | None = field(default=None, init=False)
    _passing: tuple[Candidate, Sequence[str]] | None = field(default=None, init=False)

    @property
    def script(self) -> Path | None:
        """The smallest script so far."""
        return self.folder / SCRIPT if self.folder else None

    def better(self, candidate: Candidate) -> None:
        """Put this candidate in the place of the one before. Raises OutputError where there is no room for it."""
        self._put(candidate, self.large)

    def _put(self, candidate: Candidate, large: SharedTensors | None) -> None:
        self.folder = self.folder or new_folder(self.parent, self.name)
        new = self.scratch / "best"
        shutil.rmtree(new, ignore_errors=True)
        write(candidate, new, large)
        if not (new / TENSORS).exists():
            (self.folder / TENSORS).unlink(missing_ok=True)
        for name in (TENSORS, SCRIPT):
            if (new / name).exists():
                _moved(new / name, self.folder / name)
        self.best = candidate

    def nearest(self, candidate: Candidate, lacks: Sequence[str]) -> None:
        """The nearest candidate that does not fail, and the nodes that it lacks."""
        self._passing = candidate, lacks

    def finished(self, told: Minified, others: Sequence[OtherFailure], running: TryRunner) -> Minified:
        """The result whole, once its script has run in a fresh process."""
        if self.folder is None or self.script is None or self.best is None:
            return told
        self._put(self.best, None)  # what it does not name was in its file, if that is large
        files = [file for file in (self.script, self.folder / TENSORS) if file.exists()]
        told = replace(
            told,
            path=str(self.script),
            lines=len(self.script.read_text(encoding="utf-8").splitlines()),
            bytes=sum(file.stat().st_size for file in files),
            others=kept_others(others, self.folder),
        )
        if self._passing is not None:
            near, lacks = self._passing
            title = f"The nearest that does not fail so: {near.heading.title}"
            near = dataclasses.replace(near, heading=dataclasses.replace(near.heading, title=title, message=()))
            told = replace(told, passing=str(write(near, self.folder / "passing")), difference=tuple(lacks))
        return looked_at(told, running)


def whole_script(problem: Problem, folder: Path) -> Path:
    """Write the script of the likeliest graph as a whole below `folder`. Raises ValueError, OutputError."""
    cutting = problem.subjects[0].cutting
    name = problem.signature.type or problem.signature.kind
    return write(cutting.candidate(frozenset(cutting.flow.reads)), new_folder(folder, f"failed-{name}"))


def looked_at(told: Minified, running: TryRunner) -> Minified:
    """The result with what its script did in a fresh process; as it was, where that was interrupted."""
    script = Path(told.path)
    try:
        if told.signature.kind == "none":
            tried = running.fresh(script)
            return replace(told, status=tried.status, printed=tried.printed)
        tried, failed, times = running.fresh_often(script)
    except KeyboardInterrupt:  # it has failed in a try, and is not said to have been run
        return told
    rate = {"failed": failed, "tried": times} if times > 1 else {}
    return replace(told, reproduced=tried.verdict == "same", status=tried.status, printed=tried.printed, **rate)


def kept_others(others: Sequence[OtherFailure], folder: Path) -> tuple[OtherFailure, ...]:
    """Other failures, each with its first script below `folder`: where it was tried is removed."""
    kept = []
    for number, other in enumerate(others[:MOST_OTHERS], 1):
        path = Path(other.path)
        if not path.is_file():
            kept.append(replace(other, path=""))
            continue
        place = folder / f"other-{number}"
        shutil.copytree(path.parent, place, dirs_exist_ok=True, copy_function=_linked)
        kept.append(replace(other, path=str(place / path.name)))
    return tuple(kept)


def _linked(source: str, target: str) -> None:
    """The file in a second place, without a copy where that can be."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _moved(source: Path, target: Path) -> None:
    """The file as a whole in the place of another, also from one disk to another."""
    try:
        os.replace(source, target)
    except OSError:
        beside = target.with_name(f".{target.name}")
        shutil.copyfile(source, beside)
        os.replace(beside, target)
