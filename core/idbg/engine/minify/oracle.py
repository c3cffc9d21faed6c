"""Does a candidate fail as what is looked for? Its script is written, and run in a process of its own."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from safetensors.torch import save_file

from idbg.engine.minify.candidate import Candidate
from idbg.engine.minify.forks.client import Forks
from idbg.engine.minify.forks.tried import Tried
from idbg.engine.repro.draft import Heading
from idbg.engine.repro.script import render
from idbg.reduce.tries import Judged

SCRIPT, TENSORS = "repro.py", "tensors.safetensors"
_SLOWER = 5  # than the whole: what takes longer than so many times it hangs
_LEAST_SECONDS = 30.0
_FIRST_SECONDS = 900.0  # for the whole, of which nothing is known yet


@dataclass
class Oracle:
    """Judges candidates by their scripts. `scratch` is a folder for them; `tries`: how often one is run before it
    counts as passing, where the failure does not come every time. `wrong_way` is told of a try that was no program.
    """

    forks: Forks
    heading: Heading
    scratch: Path
    memory: int
    seconds: float = 0.0
    tries: int = 1
    count: int = field(default=0, init=False)

    def __call__(self, candidate: Candidate) -> Judged:
        folder = self.write(candidate)
        began = 0.0
        for _ in range(self.tries):
            tried = self.run(folder / SCRIPT)
            began += tried.seconds
            judged = Judged(tried.verdict, tried.signature, str(folder / SCRIPT), began)
            if judged.outcome == "same":
                break
        if judged.outcome == "passes":
            shutil.rmtree(folder, ignore_errors=True)
        return judged

    @property
    def limit(self) -> float:
        """Seconds that a try may take."""
        return self.seconds or _FIRST_SECONDS

    def run(self, script: Path) -> Tried:
        """The script in a process of its own. The first that ends tells how long others may take."""
        tried = self.forks.run(script, seconds=self.limit, memory=self.memory)
        if not self.seconds and not tried.hung:
            self.seconds = max(_LEAST_SECONDS, _SLOWER * tried.seconds)
        return tried

    def write(self, candidate: Candidate) -> Path:
        """The candidate's files, in a folder of their own."""
        self.count += 1
        folder = self.scratch / str(self.count)
        write(candidate, self.heading, folder)
        return folder


def write(candidate: Candidate, heading: Heading, folder: Path) -> Path:
    """Write a candidate's script, and its tensors where it has any; the script's path. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    stored = {argument.name for argument in candidate.draft.arguments if argument.is_stored}
    tensors = {name: tensor for name, tensor in candidate.tensors().items() if name in stored} if stored else {}
    if tensors:
        save_file(tensors, folder / TENSORS)
    else:
        (folder / TENSORS).unlink(missing_ok=True)
    path = folder / SCRIPT
    path.write_text(render(candidate.draft, heading), encoding="utf-8")
    return path
