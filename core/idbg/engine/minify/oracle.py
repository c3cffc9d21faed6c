"""Decide whether a candidate of a graph fails: write its script, and run it in a process of its own."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from msgspec.structs import replace

from idbg.engine.minify.forks.outcome import TryResult
from idbg.engine.minify.problem import Problem
from idbg.engine.minify.running import ScriptJudge, TryRunner
from idbg.engine.repro.draft import Candidate, Check, Dies, Hangs
from idbg.engine.repro.failed_compile import NoGraph
from idbg.engine.repro.files import new_folder, save, write
from idbg.engine.repro.script import render
from idbg.reduce.tries import Judged, Outcome
from idbg.schema.repros import Minified

ALONE = "--alone"  # makes a script run in this process which would start a process of its own
_LARGE_BYTES = 64 << 20


class Oracle(ScriptJudge[Candidate]):
    """Judges candidates of graphs. `shared` has the tensors of large candidates."""

    def __init__(self, runner: TryRunner, scratch: Path, parent: Path, name: str) -> None:
        super().__init__(runner, scratch, parent, name)
        self.shared: SharedTensors | None = SharedTensors(scratch)
        self._passing: tuple[Candidate, Sequence[str]] | None = None

    def write(self, candidate: Candidate, folder: Path) -> Path:
        return write_candidate(candidate, folder, self.shared)

    def run(self, script: Path, candidate: Candidate) -> Judged:
        check = candidate.draft.check
        alone = [ALONE] if isinstance(check, Dies | Hangs) else []  # the process of the try may die or hang
        result = self.runner.once(script, *alone, seconds=check.seconds if isinstance(check, Hangs) else 0.0)
        return Judged(*_judged(result, check), str(script), result.seconds)

    def nearest(self, candidate: Candidate, lacks: Sequence[str]) -> None:
        """Set the nearest candidate that passes, and the nodes that it lacks."""
        self._passing = candidate, lacks

    def verified(self, minified: Minified) -> Minified:
        assert self.best is not None
        assert self.folder is not None
        self.shared = None  # its file holds tensors that the script does not name
        self.better(self.best)
        if self._passing is not None:
            near, lacks = self._passing
            title = f"The nearest that does not fail so: {near.heading.title}"
            near = dataclasses.replace(near, heading=dataclasses.replace(near.heading, title=title, message=()))
            passing = write_candidate(near, self.folder / "passing")
            minified = replace(minified, passing=str(passing), difference=tuple(lacks))
        return super().verified(minified)


def _judged(result: TryResult, check: Check) -> tuple[Outcome, str]:
    """The outcome, and the signature of the failure."""
    if isinstance(check, Dies) and result.signal == check.signal:
        return "same", result.signal
    if isinstance(check, Hangs) and result.hung:
        return "same", "hung"
    incomplete = result.verdict == "other" and "NameError: name" in result.signature  # it lacks a needed definition
    return result.verdict, "" if incomplete else result.signature


@dataclass
class SharedTensors:
    """A large file of tensors that is written once, and linked by candidates that need no other tensors: a script loads
    the tensors that it names.
    """

    folder: Path
    stored: dict[str, torch.Tensor] = field(default_factory=dict)  # kept alive, so that no other gets their memory

    def link(self, tensors: Mapping[str, torch.Tensor], place: Path) -> bool:
        """Link the file to `place` if it has these tensors; False if it has not, or they are small."""
        if sum(tensor.nbytes for tensor in tensors.values()) < _LARGE_BYTES:
            return False
        file = self.folder / "large.safetensors"
        if not self.stored:
            save(tensors, file)
            self.stored = dict(tensors)
        if not all(name in self.stored and _is_same(tensor, self.stored[name]) for name, tensor in tensors.items()):
            return False
        place.hardlink_to(file)
        return True


def _is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return (one.data_ptr(), one.shape, one.dtype) == (other.data_ptr(), other.shape, other.dtype)


def write_candidate(candidate: Candidate, folder: Path, shared: SharedTensors | None = None) -> Path:
    """Write a candidate's script and tensors into the folder, and return the script's path. Raises OutputError."""
    stored = {argument.name for argument in candidate.draft.arguments if argument.is_stored}
    tensors = {name: tensor for name, tensor in candidate.tensors().items() if name in stored} if stored else {}

    def link(place: Path) -> bool:
        return shared is not None and shared.link(tensors, place)

    return write(folder, render(candidate.draft, candidate.heading), tensors, link)


def whole_script(problem: Problem, folder: Path) -> Path:
    """Write the script of the likeliest graph as a whole below `folder`.

    Raises NoGraph for a graph that no script can hold, OutputError.
    """
    name = problem.signature.type or problem.signature.kind
    try:
        whole = problem.graphs[0].builder.candidate(problem.graphs[0].nodes)
    except ValueError as error:
        raise NoGraph(str(error)) from error
    return write_candidate(whole, new_folder(folder, f"failed-{name}"))
