"""Write and run the scripts of candidates within limits that the whole sets, and keep the smallest that fails."""

import math
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import replace as replaced
from pathlib import Path
from typing import Generic, TypeVar

from msgspec.structs import replace

from idbg.engine.compat.builds.scratch import move
from idbg.engine.minify.forks.client import Forks, verified
from idbg.engine.minify.forks.outcome import TryResult
from idbg.engine.minify.forks.processes import memory_of_machine
from idbg.engine.repro.files import SCRIPT, TENSORS, new_folder, writing
from idbg.reduce.tries import Judged
from idbg.schema.repros import Budget, Minified, OtherFailure

MISSED = 0.05  # accepted probability that a flaky script counts as passing
MOST_TRIES = 10  # of one script
RATE_TRIES = 10  # from which the failure rate of a flaky script is estimated
_SLOWER = 5  # a try that takes this many times as long as the whole counts as hung
_LEAST_SECONDS = 30.0
_FIRST_SECONDS = 900.0  # limit of the first try: its duration sets the limit of the others
_FRESH_SECONDS = 60.0  # added for a fresh process: it imports torch, and some scripts start a second process
MOST_OTHERS = 10  # failures that are kept beside the smallest
C = TypeVar("C")


@dataclass
class TryRunner:
    """Runs scripts, each in a process of its own. A try may take `seconds` (0: set by the first that ends) and `memory`
    bytes. A script counts as passing after `times` runs that did not fail.
    """

    forks: Forks
    memory: int
    seconds: float = 0.0
    times: int = 1

    @classmethod
    def within(cls, budget: Budget, forks: Forks) -> "TryRunner":
        """With a budget's limits; the default limit of memory is half of the machine's."""
        return cls(forks, budget.memory or memory_of_machine() // 2, budget.try_seconds)

    def once(self, script: Path, *arguments: str, seconds: float = 0.0, eager: bool = False) -> TryResult:
        """Run the script in a forked process, for at most `seconds` if given."""
        limit = seconds or self.seconds or _FIRST_SECONDS
        result = self.forks.run(script, seconds=limit, memory=self.memory, arguments=arguments, eager=eager)
        if not seconds and not self.seconds and not result.hung and not eager:
            self.seconds = max(_LEAST_SECONDS, _SLOWER * result.seconds)
        return result

    def judged(self, run: Callable[[], Judged]) -> Judged:
        """Run up to `times` times, until it fails; the last result, with the seconds of all."""
        seconds = 0.0
        for _ in range(self.times):
            judged = run()
            seconds += judged.seconds
            if judged.outcome == "same":
                break
        return replaced(judged, seconds=seconds)

    def verified(self, minified: Minified) -> Minified:
        """Add what the script does in a fresh process; unchanged if that is interrupted."""
        script = Path(minified.path)
        try:
            if minified.signature.kind == "none":
                result = self._fresh(script)
                return replace(minified, status=result.status, printed=result.printed)
            result, failed, times = self._fresh_often(script)
        except KeyboardInterrupt:
            return minified
        rates = {"failed": failed, "tried": times} if times > 1 else {}
        same = result.verdict == "same"
        return replace(minified, reproduced=same, status=result.status, printed=result.printed, **rates)

    def _fresh(self, script: Path) -> TryResult:
        seconds = (self.seconds or _FIRST_SECONDS) + _FRESH_SECONDS
        return verified(script, seconds=seconds, memory=self.memory)

    def _fresh_often(self, script: Path) -> tuple[TryResult, int, int]:
        """Run once, and RATE_TRIES times more if that passes: the first failing result if any, failures, and tries."""
        results = [self._fresh(script)]
        if results[0].verdict == "passes":
            results += [self._fresh(script) for _ in range(RATE_TRIES)]
        same = [result for result in results if result.verdict == "same"]
        return (same or results)[0], len(same), len(results)


def rate(run: Callable[[], bool], tries: int) -> tuple[int, int]:
    """The number of failures, and of tries; `run` returns whether a try failed."""
    return sum(run() for _ in range(tries)), tries


def tries_needed(failed: int, tried: int) -> int:
    """The number of tries that miss a failure of this rate with a probability below MISSED: one if it always fails; at
    most MOST_TRIES.
    """
    if failed >= tried:
        return 1
    if failed == 0:
        return MOST_TRIES
    return min(MOST_TRIES, math.ceil(math.log(MISSED) / math.log1p(-failed / tried)))


class ScriptJudge(ABC, Generic[C]):
    """Writes the scripts of candidates below `scratch`, and runs them. Keeps the `best` in a `folder`, which is created
    below `parent` under this `name`.
    """

    def __init__(self, runner: TryRunner, scratch: Path, parent: Path, name: str) -> None:
        self.runner, self.scratch = runner, scratch
        self.best: C | None = None
        self.folder: Path | None = None
        self._parent, self._name, self._count = parent, name, 0
        self._refused: dict[str, bool] = {}  # by the signature of another failure: whether eager refuses it too

    def __call__(self, candidate: C) -> Judged:
        """Write and run a candidate. The files of one that passes are removed."""
        self._count += 1
        script = self.write(candidate, self.scratch / f"try-{self._count}")
        judged = self.runner.judged(lambda: self.run(script, candidate))
        if judged.outcome == "passes":
            shutil.rmtree(script.parent, ignore_errors=True)
        return replaced(judged, in_eager=self._fails_in_eager(script, judged)) if judged.outcome == "other" else judged

    def _fails_in_eager(self, script: Path, judged: Judged) -> bool:
        """Whether a candidate with another failure cannot run in eager either: then that is no failure of a compile."""
        if judged.signature and judged.signature not in self._refused:
            self._refused[judged.signature] = self.runner.once(script, eager=True).verdict == "other"
        return self._refused.get(judged.signature, False)

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
