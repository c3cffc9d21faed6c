"""Does a candidate fail as what is looked for? Its script is written, and run in a process of its own."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from idbg.engine.minify.candidate import Candidate
from idbg.engine.minify.forks.client import Forks
from idbg.engine.minify.forks.tried import Tried
from idbg.engine.repro.draft import Check, Dies, Hangs, Heading
from idbg.engine.repro.script import render
from idbg.engine.repro.tensors_file import save
from idbg.reduce.tries import Judged, Outcome
from idbg.schema.errors import OutputError

SCRIPT, TENSORS = "repro.py", "tensors.safetensors"
ALONE = "--alone"  # has a script that runs itself in a process of its own do it in this one
_SLOWER = 5  # than the whole: what takes longer than so many times it hangs
_LEAST_SECONDS = 30.0
_FIRST_SECONDS = 900.0  # for the whole, of which nothing is known yet
_LARGE_BYTES = 64 << 20


@dataclass
class Oracle:
    """Judges candidates by their scripts. `scratch` is a folder for them; `tries`: how often one is run before it
    counts as passing, where the failure does not come every time.
    """

    forks: Forks
    heading: Heading
    scratch: Path
    memory: int
    seconds: float = 0.0
    tries: int = 1
    count: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.large = Large(self.scratch)

    def __call__(self, candidate: Candidate) -> Judged:
        seconds = 0.0
        for _ in range(self.tries):
            judged = self.once(candidate)
            seconds += judged.seconds
            if judged.outcome == "same":
                break
        return replace(judged, seconds=seconds)

    def once(self, candidate: Candidate) -> Judged:
        """What one run of it comes to. The files of what passes are removed."""
        folder = self.write(candidate)
        tried = self.run(folder / SCRIPT, candidate.draft.check)
        judged = Judged(*_judged(tried, candidate.draft.check), str(folder / SCRIPT), tried.seconds)
        if judged.outcome == "passes":
            shutil.rmtree(folder, ignore_errors=True)
        return judged

    @property
    def limit(self) -> float:
        """Seconds that a try may take."""
        return self.seconds or _FIRST_SECONDS

    def run(self, script: Path, check: Check) -> Tried:
        """The script in a process of its own. The first that ends tells how long others may take.

        What is to die or to hang does so in that process: the script need not start another for it.
        """
        if isinstance(check, Hangs):
            return self.forks.run(script, seconds=check.seconds, memory=self.memory, arguments=[ALONE])
        arguments = [ALONE] if isinstance(check, Dies) else []
        tried = self.forks.run(script, seconds=self.limit, memory=self.memory, arguments=arguments)
        if not self.seconds and not tried.hung:
            self.seconds = max(_LEAST_SECONDS, _SLOWER * tried.seconds)
        return tried

    def write(self, candidate: Candidate) -> Path:
        """The candidate's files, in a folder of their own."""
        self.count += 1
        folder = self.scratch / str(self.count)
        write(candidate, self.heading, folder, self.large)
        return folder


def _judged(tried: Tried, check: Check) -> tuple[Outcome, str]:
    """What it comes to, and the signature of how it failed."""
    if isinstance(check, Dies) and tried.signal == check.signal:
        return "same", tried.signal
    if isinstance(check, Hangs) and tried.hung:
        return "same", "hung"
    lacks = tried.verdict == "other" and "NameError: name" in tried.signature
    return tried.verdict, "" if lacks else tried.signature  # a definition that it needs was left out: no failure of it


@dataclass
class Large:
    """A file of many bytes that is written once, and linked to where a candidate wants no other tensors than it has: a
    script takes of it what it names.
    """

    folder: Path
    held: dict[str, torch.Tensor] = field(default_factory=dict)  # so that no other gets their memory

    def given(self, tensors: Mapping[str, torch.Tensor], place: Path) -> bool:
        """Whether the tensors are there now, as a link; they are not where they are few."""
        if sum(tensor.nbytes for tensor in tensors.values()) < _LARGE_BYTES:
            return False
        file = self.folder / "large.safetensors"
        if not self.held:
            save(tensors, file)
            self.held = dict(tensors)
        if not all(name in self.held and _are_one(tensor, self.held[name]) for name, tensor in tensors.items()):
            return False
        place.hardlink_to(file)
        return True


def _are_one(one: torch.Tensor, other: torch.Tensor) -> bool:
    return (one.data_ptr(), one.shape, one.dtype) == (other.data_ptr(), other.shape, other.dtype)


def write(candidate: Candidate, heading: Heading, folder: Path, large: Large | None = None) -> Path:
    """Write a candidate's script, and its tensors where it has any; the script's path. Raises OutputError."""
    try:
        return _written(candidate, heading, folder, large)
    except OSError as error:
        raise OutputError(
            f"no script can be written to {folder}: {error.strerror or error}",
            hint="free some space there, or choose another place with --output or TMPDIR",
        ) from error


def _written(candidate: Candidate, heading: Heading, folder: Path, large: Large | None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    stored = {argument.name for argument in candidate.draft.arguments if argument.is_stored}
    tensors = {name: tensor for name, tensor in candidate.tensors().items() if name in stored} if stored else {}
    (folder / TENSORS).unlink(missing_ok=True)
    if tensors and not (large is not None and large.given(tensors, folder / TENSORS)):
        save(tensors, folder / TENSORS)
    path = folder / SCRIPT
    path.write_text(render(candidate.draft, heading), encoding="utf-8")
    return path
