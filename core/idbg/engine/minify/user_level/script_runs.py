"""Write and run a candidate of a program, and keep the smallest that fails."""

import os
import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from idbg.engine.minify.forks.client import Forks
from idbg.engine.minify.running import ScriptJudge, TryRunner
from idbg.engine.minify.user_level.failure_pattern import FailurePattern
from idbg.engine.minify.user_level.script import ProgramCandidate, command_script, environment_of, render
from idbg.engine.repro.files import SCRIPT, TENSORS, writing
from idbg.reduce.tries import Judged
from idbg.schema.programs import Program
from idbg.schema.repros import Minified

_PLACE = re.compile(r" in /\S+")  # differs in each try


@dataclass(frozen=True)
class Workspace:
    """Where a search works: its processes, the `folder` below which the result is written, a `scratch` folder, and the
    file of the answers of earlier searches. Without `keep_data`, no script has the values of a tensor. The name of
    the result begins with `state`.
    """

    forks: Forks
    folder: Path
    scratch: Path
    known: Path | None = None
    keep_data: bool = True
    state: str = "minified"


class ScriptRuns(ScriptJudge[ProgramCandidate]):
    """Judges candidates of one program's `file`, and keeps the `best` where the user finds it."""

    def __init__(
        self, runner: TryRunner, program: Program, file: Path, pattern: FailurePattern, workspace: Workspace
    ) -> None:
        kind = "check" if pattern.command else pattern.error or pattern.signature.kind
        super().__init__(runner, workspace.scratch, workspace.folder, f"{workspace.state}-{kind}")
        self.program, self.file, self.pattern, self.workspace = program, file, pattern, workspace
        self.note = ""

    def run(self, script: Path, candidate: ProgramCandidate) -> Judged:
        result = self.runner.once(script)
        return Judged(result.verdict, _PLACE.sub("", result.signature), str(script), result.seconds)

    def verified(self, minified: Minified) -> Minified:
        """Run the best in a fresh process, from another folder. If it does not fail there, give it the environment of
        the program's folder, and run it again.
        """
        assert self.best is not None
        verified = super().verified(minified)
        environment = environment_of(self.program, self.file, self.best.body, everything=True)
        placed = replace(self.best, environment=environment)
        if verified.reproduced is False and not self.pattern.command and placed != self.best:
            self.better(placed)
            verified = super().verified(minified)
        return verified

    def write(self, candidate: ProgramCandidate, folder: Path) -> Path:
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in self._texts(candidate).items():
                (folder / name).write_text(text, encoding="utf-8")
            if candidate.loads_tensors:
                shutil.copyfile(self.workspace.scratch / TENSORS, folder / TENSORS)
        return folder / SCRIPT

    def _texts(self, candidate: ProgramCandidate) -> dict[str, str]:
        if not self.pattern.command:
            return {SCRIPT: render(candidate, self.pattern, self.note)}
        name = self.file.name if self.file.name != SCRIPT else "program.py"
        cwd = os.path.abspath(self.program.cwd or ".")
        folder = cwd if self.program.module else str(self.file.resolve().parent)
        return {SCRIPT: command_script(self.pattern, name, str(self.file), folder, cwd), name: candidate.body}
