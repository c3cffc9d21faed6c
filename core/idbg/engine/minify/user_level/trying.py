"""How is a candidate tried: written to a folder of its own, and run in a process of its own? And handed over?"""

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from idbg.engine.minify.forks.client import Forks
from idbg.engine.minify.forks.fresh import verified
from idbg.engine.minify.forks.processes import memory_of_machine
from idbg.engine.minify.forks.tried import Tried
from idbg.engine.minify.user_level import command, recording
from idbg.engine.minify.user_level.script import Candidate, around, rendered
from idbg.engine.minify.user_level.wanted import Wanted
from idbg.engine.repro.folder import new_folder
from idbg.reduce.tries import Judged
from idbg.schema.errors import OutputError
from idbg.schema.programs import Program
from idbg.schema.repros import Budget, OtherFailure

SCRIPT = "repro.py"
_MOST_OTHERS = 10
_SLOWER = 5  # than the whole: what takes longer than so many times it hangs
_LEAST_SECONDS = 30.0
_FIRST_SECONDS = 900.0  # for the whole, of which nothing is known yet
_PLACE = re.compile(r" in /\S+")  # which is another at each try
_STATUS = re.compile(r"exit status (-?\d+)")


@dataclass(frozen=True)
class Place:
    """Where a search works: its processes, the `folder` below which the result is kept, a `scratch` folder, and the
    file of what earlier searches for the same have tried. Without `keep_data`, no script is given a tensor's values.
    """

    forks: Forks
    folder: Path
    scratch: Path
    known: Path | None = None
    keep_data: bool = True


@dataclass
class Trying:
    """Tries candidates of one program's `file`, and keeps the `best` where the user finds it. `times`: how often one is
    run before it counts as passing, where the failure does not come every time.
    """

    program: Program
    file: Path
    wanted: Wanted
    place: Place
    budget: Budget
    note: str = ""
    times: int = 1
    best: Candidate | None = field(default=None, init=False)
    folder: Path | None = field(default=None, init=False)
    seconds: float = field(default=0.0, init=False)
    _count: int = field(default=0, init=False)

    def __call__(self, candidate: Candidate) -> Judged:
        """What comes of a candidate."""
        self._count += 1
        folder = self.place.scratch / f"try-{self._count}"
        self._write(folder, candidate)
        for _ in range(self.times):
            tried = self.run(folder / SCRIPT)
            if tried.verdict == "same":
                break
        if tried.verdict == "passes":
            shutil.rmtree(folder, ignore_errors=True)
        return Judged(tried.verdict, _PLACE.sub("", tried.signature), str(folder / SCRIPT), tried.seconds)

    def run(self, script: Path, *arguments: str) -> Tried:
        """A script in a process of its own. The first that ends tells how long others may take."""
        seconds = self.budget.try_seconds or self.seconds or _FIRST_SECONDS
        tried = self.place.forks.run(script, seconds=seconds, memory=self.memory, arguments=arguments)
        if not self.seconds and not tried.hung:
            self.seconds = max(_LEAST_SECONDS, _SLOWER * tried.seconds)
        return tried

    @property
    def memory(self) -> int:
        """Bytes that a try may take."""
        return self.budget.memory or memory_of_machine() // 2

    def status_of_command(self, candidate: Candidate) -> int:
        """With which status the user's command ends, given this file."""
        judged = self(candidate)
        found = _STATUS.search(judged.signature)
        return int(found[1]) if found else 0

    def better(self, candidate: Candidate) -> None:
        """Put this candidate in the place of the one before. Raises OutputError where there is no room for it."""
        name = "check" if self.wanted.command else self.wanted.error or self.wanted.signature.kind
        self.folder = self.folder or new_folder(self.place.folder, f"minified-{name}")
        self._write(self.folder, candidate)
        self.best = candidate

    def verified(self) -> Tried:
        """The best in a fresh process, from another folder: where it fails only in the program's, the script says that
        it belongs there.
        """
        assert self.folder is not None and self.best is not None
        seconds = self.budget.try_seconds or self.seconds or _FIRST_SECONDS
        script = self.folder / SCRIPT
        tried = verified(script, seconds=seconds, memory=self.memory)
        placed = replace(self.best, around=around(self.program, self.file, self.best.body, everything=True))
        if tried.verdict != "same" and not self.wanted.command and placed != self.best:
            self.better(placed)
            tried = verified(script, seconds=seconds, memory=self.memory)
        return tried

    def kept(self, others: Sequence[OtherFailure]) -> tuple[OtherFailure, ...]:
        """Other failures, each with its script beside the best: where it was tried is removed."""
        kept = []
        for number, other in enumerate(others[:_MOST_OTHERS], 1):
            path = Path(other.path)
            if self.folder is None or not path.is_file():
                kept.append(msgspec.structs.replace(other, path=""))
                continue
            beside = self.folder / f"other-{number}"
            shutil.copytree(path.parent, beside, dirs_exist_ok=True)
            kept.append(msgspec.structs.replace(other, path=str(beside / SCRIPT)))
        return tuple(kept)

    @property
    def files(self) -> list[Path]:
        """What is handed over."""
        return sorted(file for file in self.folder.iterdir() if file.is_file()) if self.folder else []

    def _write(self, folder: Path, candidate: Candidate) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in self._texts(candidate).items():
                beside = folder / f".{name}"
                beside.write_text(text, encoding="utf-8")
                os.replace(beside, folder / name)
            tensors = folder / recording.TENSORS
            if candidate.is_given_tensors:
                shutil.copyfile(self.place.scratch / recording.TENSORS, tensors)
            else:
                tensors.unlink(missing_ok=True)
        except OSError as error:
            raise OutputError(
                f"the repro in {folder} cannot be written: {error.strerror}", hint="free some space"
            ) from error

    def _texts(self, candidate: Candidate) -> dict[str, str]:
        if not self.wanted.command:
            return {SCRIPT: rendered(candidate, self.wanted, self.note)}
        name = self.file.name if self.file.name != SCRIPT else "program.py"
        cwd = os.path.abspath(self.program.cwd or ".")
        folder = cwd if self.program.module else str(self.file.resolve().parent)
        return {SCRIPT: command.rendered(self.wanted, name, str(self.file), folder, cwd), name: candidate.body}
