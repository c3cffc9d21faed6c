"""Does a candidate fail as what is looked for? Its script is written, and run in a process of its own."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from idbg.engine.minify.candidate import Candidate
from idbg.engine.minify.forks.outcome import TryResult
from idbg.engine.minify.running import TryRunner
from idbg.engine.repro.draft import Check, Dies, Hangs
from idbg.engine.repro.files import save
from idbg.engine.repro.script import render
from idbg.reduce.tries import Judged, Outcome
from idbg.schema.errors import OutputError

SCRIPT, TENSORS = "repro.py", "tensors.safetensors"
ALONE = "--alone"  # has a script that runs itself in a process of its own do it in this one
_LARGE_BYTES = 64 << 20


@dataclass
class Oracle:
    """Judges candidates by their scripts, which are written below `scratch`."""

    running: TryRunner
    scratch: Path
    count: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.large = SharedTensors(self.scratch)

    def __call__(self, candidate: Candidate) -> Judged:
        seconds = 0.0
        for _ in range(self.running.times):
            judged = self.once(candidate)
            seconds += judged.seconds
            if judged.outcome == "same":
                break
        return replace(judged, seconds=seconds)

    def once(self, candidate: Candidate) -> Judged:
        """What one run of it comes to. The files of what passes are removed."""
        self.count += 1
        folder = self.scratch / str(self.count)
        tried = self._run(write(candidate, folder, self.large), candidate.draft.check)
        judged = Judged(*_judged(tried, candidate.draft.check), str(folder / SCRIPT), tried.seconds)
        if judged.outcome == "passes":
            shutil.rmtree(folder, ignore_errors=True)
        return judged

    def _run(self, script: Path, check: Check) -> TryResult:
        """What is to die or to hang does so in the process of its try: the script need not start another for it."""
        if isinstance(check, Hangs):
            return self.running.once(script, ALONE, seconds=check.seconds)
        return self.running.once(script, *([ALONE] if isinstance(check, Dies) else []))


def _judged(tried: TryResult, check: Check) -> tuple[Outcome, str]:
    """What it comes to, and the signature of how it failed."""
    if isinstance(check, Dies) and tried.signal == check.signal:
        return "same", tried.signal
    if isinstance(check, Hangs) and tried.hung:
        return "same", "hung"
    lacks = tried.verdict == "other" and "NameError: name" in tried.signature
    return tried.verdict, "" if lacks else tried.signature  # a definition that it needs was left out: no failure of it


@dataclass
class SharedTensors:
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


def write(candidate: Candidate, folder: Path, large: SharedTensors | None = None) -> Path:
    """Write a candidate's script, and its tensors where it has any; the script's path. Raises OutputError."""
    try:
        return _written(candidate, folder, large)
    except OSError as error:
        raise OutputError(
            f"no script can be written to {folder}: {error.strerror or error}",
            hint="free some space there, or choose another place with --output or TMPDIR",
        ) from error


def _written(candidate: Candidate, folder: Path, large: SharedTensors | None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    stored = {argument.name for argument in candidate.draft.arguments if argument.is_stored}
    tensors = {name: tensor for name, tensor in candidate.tensors().items() if name in stored} if stored else {}
    (folder / TENSORS).unlink(missing_ok=True)
    if tensors and not (large is not None and large.given(tensors, folder / TENSORS)):
        save(tensors, folder / TENSORS)
    path = folder / SCRIPT
    path.write_text(render(candidate.draft, candidate.heading), encoding="utf-8")
    return path
