"""Write and run a candidate of a program, and keep the smallest that fails."""

import os
import re
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path

from idbg.engine.minify.forks.client import Forks
from idbg.engine.minify.result import looked_at
from idbg.engine.minify.running import TryRunner
from idbg.engine.minify.user_level import module_calls
from idbg.engine.minify.user_level.failure_pattern import FailurePattern
from idbg.engine.minify.user_level.script import ProgramCandidate, around, command_script, render
from idbg.engine.repro.files import new_folder
from idbg.reduce.tries import Judged
from idbg.schema.errors import OutputError
from idbg.schema.programs import Program
from idbg.schema.repros import Minified

SCRIPT = "repro.py"
_PLACE = re.compile(r" in /\S+")  # which is another at each try
_STATUS = re.compile(r"exit status (-?\d+)")


@dataclass(frozen=True)
class Workspace:
    """Where a search works: its processes, the `folder` below which the result is kept, a `scratch` folder, and the
    file of what earlier searches for the same have tried. Without `keep_data`, no script is given a tensor's values.
    """

    forks: Forks
    folder: Path
    scratch: Path
    known: Path | None = None
    keep_data: bool = True


@dataclass
class ScriptRuns:
    """Tries candidates of one program's `file`, and keeps the `best` where the user finds it."""

    program: Program
    file: Path
    wanted: FailurePattern
    place: Workspace
    running: TryRunner
    note: str = ""
    best: ProgramCandidate | None = field(default=None, init=False)
    folder: Path | None = field(default=None, init=False)
    _count: int = field(default=0, init=False)

    def __call__(self, candidate: ProgramCandidate) -> Judged:
        """What comes of a candidate."""
        self._count += 1
        folder = self.place.scratch / f"try-{self._count}"
        self._write(folder, candidate)
        for _ in range(self.running.times):
            tried = self.running.once(folder / SCRIPT)
            if tried.verdict == "same":
                break
        if tried.verdict == "passes":
            shutil.rmtree(folder, ignore_errors=True)
        return Judged(tried.verdict, _PLACE.sub("", tried.signature), str(folder / SCRIPT), tried.seconds)

    def status_of_command(self, candidate: ProgramCandidate) -> int:
        """With which status the user's command ends, given this file."""
        judged = self(candidate)
        found = _STATUS.search(judged.signature)
        return int(found[1]) if found else 0

    def better(self, candidate: ProgramCandidate) -> None:
        """Put this candidate in the place of the one before. Raises OutputError where there is no room for it."""
        name = "check" if self.wanted.command else self.wanted.error or self.wanted.signature.kind
        self.folder = self.folder or new_folder(self.place.folder, f"minified-{name}")
        self._write(self.folder, candidate)
        self.best = candidate

    def placed(self, told: Minified) -> Minified:
        """What the best did in a fresh process, from another folder: where it fails only in the program's, the script
        says that it belongs there.
        """
        assert self.best is not None
        seen = looked_at(told, self.running)
        placed = replace(self.best, around=around(self.program, self.file, self.best.body, everything=True))
        if seen.reproduced is False and not self.wanted.command and placed != self.best:
            self.better(placed)
            seen = looked_at(told, self.running)
        return seen

    @property
    def files(self) -> list[Path]:
        """What is handed over."""
        return sorted(file for file in self.folder.iterdir() if file.is_file()) if self.folder else []

    def _write(self, folder: Path, candidate: ProgramCandidate) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in self._texts(candidate).items():
                beside = folder / f".{name}"
                beside.write_text(text, encoding="utf-8")
                os.replace(beside, folder / name)
            tensors = folder / module_calls.TENSORS
            if candidate.is_given_tensors:
                shutil.copyfile(self.place.scratch / module_calls.TENSORS, tensors)
            else:
                tensors.unlink(missing_ok=True)
        except OSError as error:
            raise OutputError(
                f"the repro in {folder} cannot be written: {error.strerror}", hint="free some space"
            ) from error

    def _texts(self, candidate: ProgramCandidate) -> dict[str, str]:
        if not self.wanted.command:
            return {SCRIPT: render(candidate, self.wanted, self.note)}
        name = self.file.name if self.file.name != SCRIPT else "program.py"
        cwd = os.path.abspath(self.program.cwd or ".")
        folder = cwd if self.program.module else str(self.file.resolve().parent)
        return {SCRIPT: command_script(self.wanted, name, str(self.file), folder, cwd), name: candidate.body}
