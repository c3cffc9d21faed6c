"""Which commit of the user's program is the first that fails?

By halves over git's own order of what tells most, merges too; a commit at which it fails otherwise, or that has no
such program, tells nothing and another is asked.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from idbg.bisect.git import Git, Worktree, worktree
from idbg.bisect.tries import BisectTries, same
from idbg.schema.bisection import Answer, Bisected, Commit, FailingCommit, Outcome, Try
from idbg.schema.diff import Comparison
from idbg.schema.errors import BadInput

Judge = Callable[[str], bool | None]
"""Whether it fails at a commit; None where that cannot be told."""


def first_bad(
    bad: str, good: str, between: Callable[[str, list[str]], list[str]], fails: Judge, told: Callable[[list[str]], None]
) -> list[str]:
    """The commits that may be the first bad one: one, unless those beside it could not be told.

    `between` gives the candidates for a bad commit and the good ones, the best to ask first. `told` hears of fewer.
    """
    passing = [good]
    silent: set[str] = set()
    while True:
        candidates = between(bad, passing)
        told(candidates)
        asked = next((each for each in candidates if each != bad and each not in silent), None)
        if asked is None:
            return candidates
        answer = fails(asked)
        if answer is None:
            silent.add(asked)
        elif answer:
            bad = asked
        else:
            passing.append(asked)


@dataclass
class CommitSearch:
    """One search. `guilty` is what is known so far: the commits that may be it, also after one that was stopped."""

    asked: Try
    tries: BisectTries
    good: str
    bad: str
    first_parent: bool = False
    guilty: FailingCommit | None = None
    note: str = ""  # why there is no answer, though nothing went wrong
    _among: int = 0
    _left: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Search. Raises BadInput, IdbgError, Stopped."""
        here = Path(self.asked.cwd or self.asked.program.cwd or ".").resolve()
        git = Git(self._folder(here))
        good, bad = git.commit(self.good), git.commit(self.bad)
        if good == bad:
            raise BadInput(f"{self.good} and {self.bad} are one commit, {git.short(bad)}", hint="name two")
        if not git.is_ancestor(good, bad):
            raise BadInput(
                f"{self.good} is no ancestor of {self.bad}: nothing lies between them",
                hint=f"git merge-base {self.good} {self.bad} names where they part: try that as --good",
            )
        with worktree(git, bad) as tree:
            at = _Place(git, tree, self.asked, here)
            if self._ends(at, good, bad):
                self._search(at, good, bad)

    def known(self) -> Bisected:
        """What is known so far: of a search that was stopped the commits that may be it."""
        if self.guilty is None and self._left:
            self.guilty = FailingCommit(tuple(Commit(sha) for sha in self._left), self._among)
        return Bisected("commits", commit=self.guilty)

    def _folder(self, here: Path) -> Path:
        program = self.asked.program
        return here if program.module or not program.path else (here / program.path).resolve().parent

    def _ends(self, at: "_Place", good: str, bad: str) -> bool:
        """Whether the bad commit fails and the good one does not; else `note` says what is so."""
        outcome, answer = at.tried(self.tries, bad)
        if outcome == "other":
            raise BadInput(f"{self.bad} cannot be tried: {answer.cannot}", hint="name a commit at which it runs")
        if answer.signature is None and not self.asked.command:
            at.asked = replace(at.asked, comparison=Comparison(seconds=self.tries.seconds))
            outcome, answer = at.tried(self.tries, bad)
        if answer.signature is None:
            self.note = f"it does not fail at {self.bad}"
            return False
        self.tries.look_for(answer, self.tries.tried[-1].seconds)
        outcome, other = at.tried(self.tries, good)
        if outcome == "passes":
            return True
        if other.signature is not None and same(other.signature, answer.signature):
            self.note = f"it fails at {self.good} as it does at {self.bad}"
        else:
            self.note = f"at {self.good} it fails otherwise: {other.cannot or other.words}"
        return False

    def _search(self, at: "_Place", good: str, bad: str) -> None:
        git = at.git

        def between(bad: str, passing: list[str]) -> list[str]:
            return git.between(bad, passing, first_parent=self.first_parent)

        def fails(sha: str) -> bool | None:
            outcome, _ = at.tried(self.tries, sha)
            return None if outcome == "other" else outcome == "fails"

        def left(candidates: list[str]) -> None:
            self._among = self._among or len(candidates)
            self._left = candidates

        found = first_bad(bad, good, between, fails, left)
        self.guilty = FailingCommit(tuple(git.told(sha) for sha in git.in_order(found, good)), self._among)


@dataclass
class _Place:
    """The program in a worktree, from the folder of it that is the user's own."""

    git: Git
    tree: Worktree
    asked: Try
    here: Path

    def tried(self, tries: BisectTries, sha: str) -> tuple[Outcome, Answer]:
        """What the program does at a commit; "other" where the commit does not have it."""
        program, what = self.asked.program, f"commit {self.git.short(sha)}"
        file = (self.here / program.path).resolve() if program.path and not program.module else None
        if file is not None and not self.git.has(sha, str(file.relative_to(self.git.root))):
            return tries.untried(what, f"it has no {program.path}")
        self.tree.at(sha)
        folder = self._moved(self.here)
        if not folder.is_dir():
            return tries.untried(what, f"it has no folder {folder.name}")
        path = os.path.relpath(self._moved(file), folder) if file is not None else program.path
        named = (path,) if path and self.asked.command else ()
        moved = replace(
            self.asked,
            cwd=str(folder),
            program=replace(program, path=path, cwd=str(folder)),
            command=(*self.asked.command, *named),
            environ=self._environ(),
        )
        return tries(moved, what)

    def _moved(self, path: Path) -> Path:
        """A path of the user's checkout as it is in the worktree."""
        return self.tree.folder / path.relative_to(self.git.root) if path.is_relative_to(self.git.root) else path

    def _environ(self) -> dict[str, str]:
        """PYTHONPATH with what points into the user's checkout pointing into the worktree: else the try would import
        what is checked out now.
        """
        entries = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
        moved = [str(self._moved((self.here / entry).resolve())) for entry in entries]
        return {"PYTHONPATH": os.pathsep.join(moved)} if moved else {}
