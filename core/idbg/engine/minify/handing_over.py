"""What is handed over: the smallest script so far, and at the end what it did in a fresh process?"""

import dataclasses
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from idbg.engine.minify.candidate import Candidate
from idbg.engine.minify.forks.fresh import verified
from idbg.engine.minify.forks.rate import rate
from idbg.engine.minify.forks.tried import Tried
from idbg.engine.minify.oracle import SCRIPT, TENSORS, Large, write
from idbg.engine.repro.draft import Heading
from idbg.engine.repro.folder import new_folder
from idbg.schema.repros import Minified, OtherFailure

MOST_OTHERS = 10
RATE_TRIES = 10


@dataclass
class Result:
    """The folder in which the user finds the smallest script that has failed, from the first on; `parent` is where it
    is made, under this `name`.
    """

    parent: Path
    name: str
    heading: Heading
    scratch: Path
    large: Large
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

    def _put(self, candidate: Candidate, large: Large | None) -> None:
        self.folder = self.folder or new_folder(self.parent, self.name)
        new = self.scratch / "best"
        shutil.rmtree(new, ignore_errors=True)
        write(candidate, self.heading, new, large)
        if not (new / TENSORS).exists():
            (self.folder / TENSORS).unlink(missing_ok=True)
        for name in (TENSORS, SCRIPT):
            if (new / name).exists():
                _moved(new / name, self.folder / name)
        self.best = candidate

    def nearest(self, candidate: Candidate, lacks: Sequence[str]) -> None:
        """The nearest candidate that does not fail, and the nodes that it lacks."""
        self._passing = candidate, lacks

    def finished(self, told: Minified, others: Sequence[OtherFailure], *, seconds: float, memory: int) -> Minified:
        """The result whole, once its script has run in a fresh process."""
        if self.folder is None or self.script is None or self.best is None:
            return told
        self._put(self.best, None)  # what it does not name was in its file, if that is large
        often = RATE_TRIES if told.signature.kind != "none" else 0
        try:
            tried, failed, times = verified_often(self.script, seconds=seconds, memory=memory, often=often)
        except KeyboardInterrupt:  # what has failed stays, and is not said to have been run
            return replace(told, path=str(self.script), lines=_lines(self.script))
        passing = ""
        difference: tuple[str, ...] = ()
        if self._passing is not None:
            candidate, lacks = self._passing
            heading = dataclasses.replace(
                self.heading, title=f"The nearest that does not fail so: {self.heading.title}", message=()
            )
            passing, difference = str(write(candidate, heading, self.folder / "passing")), tuple(lacks)
        files = [file for file in (self.script, self.folder / TENSORS) if file.exists()]
        return replace(
            told,
            path=str(self.script),
            reproduced=tried.verdict == "same" if told.signature.kind != "none" else None,
            status=tried.status,
            printed=tried.printed,
            lines=_lines(self.script),
            bytes=sum(file.stat().st_size for file in files),
            failed=failed if times > 1 else told.failed,
            tried=times if times > 1 else told.tried,
            others=tuple(self._other(number, other) for number, other in enumerate(others[:MOST_OTHERS], 1)),
            passing=passing,
            difference=difference,
        )

    def _other(self, number: int, other: OtherFailure) -> OtherFailure:
        """The failure, with its first script beside the result: where it was tried is removed."""
        assert self.folder is not None
        if not other.path or not Path(other.path).exists():
            return replace(other, path="")
        place = self.folder / f"other-{number}"
        shutil.copytree(Path(other.path).parent, place, dirs_exist_ok=True, copy_function=_linked)
        return replace(other, path=str(place / SCRIPT))


def _lines(script: Path) -> int:
    return len(script.read_text(encoding="utf-8").splitlines())


def verified_often(script: Path, *, seconds: float, memory: int, often: int) -> tuple[Tried, int, int]:
    """The script in a fresh process, and where it does not fail, so many times more: a try that tells most, in how many
    tries it failed, and of how many.
    """
    first = verified(script, seconds=seconds, memory=memory)
    if first.verdict != "passes":
        return first, int(first.verdict == "same"), 1
    seen = [first]

    def fails() -> bool:
        seen.append(verified(script, seconds=seconds, memory=memory))
        return seen[-1].verdict == "same"

    failed, times = rate(fails, often)
    return next((one for one in seen if one.verdict == "same"), first), failed, times + 1


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
