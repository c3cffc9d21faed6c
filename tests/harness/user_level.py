"""Runs a program through the worker's job, and has it made smaller where no graph has its failure."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

from idbg.engine.minify import running
from idbg.engine.minify.forks.client import Forks
from idbg.engine.minify.forks.outcome import TryResult
from idbg.engine.minify.user_level.failure_pattern import pattern_of
from idbg.engine.minify.user_level.script_runs import Workspace
from idbg.engine.minify.user_level.search import reduced_program
from idbg.schema import events
from idbg.schema.programs import Program, Target
from idbg.schema.repros import Budget, Minified, MinifyProgress, Sought
from idbg.schema.runs import fold
from idbg.worker.jobs import Jobs
from idbg.worker.protocol import Compile

MARK = "# What is left of the program\n"


@dataclass
class Small:
    """What a search came to: its record, the whole script, what is left of the program in it, and how it was told."""

    minified: Minified
    script: str
    left: str
    told: list[MinifyProgress]


Smaller = Callable[..., Small]


def smaller_in(folder: Path, forks: Forks, monkeypatch: pytest.MonkeyPatch) -> Smaller:
    """A function that makes a program's text smaller; `fresh`: its script is run by a Python of its own at the end, as
    ever, and not by the warm process.
    """

    def warm(script: Path, *, seconds: float, memory: int) -> TryResult:
        return forks.run(script, seconds=seconds, memory=memory)

    def smaller(text: str, sought: Sought, *, fresh: bool = False, budget: Budget | None = None, **given: str) -> Small:
        if not fresh:
            monkeypatch.setattr(running, "verified", warm)
        path = folder / "subject.py"
        path.write_text(dedent(text))
        program, target = Program(str(path), cwd=str(folder)), Target(**{"backend": "eager", **given})  # type: ignore[arg-type]
        happened: list[events.SessionEvent] = [events.RunStarted(run=1, program=program, target=target)]
        jobs = Jobs(happened.append)
        happened.append(jobs.compile(Compile(1, program, target, str(folder / "repros"))))
        wanted = pattern_of(sought, jobs.error, fold(happened).runs[1])
        told: list[MinifyProgress] = []
        place = Workspace(forks, folder / "out", folder / "scratch", folder / "known.jsonl")
        minified = reduced_program(program, target, wanted, place, budget or Budget(), told.append)
        script = Path(minified.path).read_text() if minified.path else ""
        return Small(minified, script, script.partition(MARK)[2], told)

    return smaller
