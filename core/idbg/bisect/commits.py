"""Find the first commit of the user's program that fails.

Bisection in git's own order (`git rev-list --bisect-all`), merges included. A commit that fails in another way, or does
not have the program, is undecided, and another is tested.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from idbg.bisect.git import Git, Worktree, worktree
from idbg.bisect.tries import BisectTries, failed, same
from idbg.schema.bisection import Answer, Bisected, Commit, FailingCommit, Outcome, Try
from idbg.schema.diff import Comparison
from idbg.schema.errors import BadInput
from idbg.schema.remarks import Remark

Judge = Callable[[str], bool | None]
"""Whether the program fails at a commit; None if undecided."""


def first_bad(
    bad: str,
    good: str,
    between: Callable[[str, list[str]], list[str]],
    fails: Judge,
    on_candidates: Callable[[list[str]], None],
) -> list[str]:
    """The commits that may be the first bad one: one, unless its neighbours are undecided.

    `between` returns the candidates for a bad commit and the good ones, the best to test first; `on_candidates` gets
    each list.
    """
    passing = [good]
    undecided: set[str] = set()
    while True:
        candidates = between(bad, passing)
        on_candidates(candidates)
        commit = next((each for each in candidates if each != bad and each not in undecided), None)
        if commit is None:
            return candidates
        answer = fails(commit)
        if answer is None:
            undecided.add(commit)
        elif answer:
            bad = commit
        else:
            passing.append(commit)


@dataclass
class CommitSearch:
    """One search. `found` has the commits that may be the first bad one, also if the search was stopped."""

    attempt: Try
    tries: BisectTries
    good: str
    bad: str
    first_parent: bool = False
    found: FailingCommit | None = None
    note: Remark | str = ""  # why there is no result
    _among: int = 0
    _left: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Search. Raises BadInput, IdbgError, Stopped."""
        here = Path(self.attempt.cwd or self.attempt.program.cwd or ".").resolve()
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
            at = _ProgramAtCommit(git, tree, self.attempt, here)
            if self._ends(at, good, bad):
                self._search(at, good, bad)

    def known(self) -> Bisected:
        """The result so far."""
        if self.found is None and self._left:
            self.found = FailingCommit(tuple(Commit(sha) for sha in self._left), self._among)
        return Bisected("commits", commit=self.found)

    def _folder(self, here: Path) -> Path:
        program = self.attempt.program
        return here if program.module or not program.path else (here / program.path).resolve().parent

    def _ends(self, at: "_ProgramAtCommit", good: str, bad: str) -> bool:
        """Whether the bad commit fails and the good one passes; `note` says if not."""
        outcome, answer = at.tried(self.tries, bad)
        if outcome == "other":
            raise BadInput(f"{self.bad} cannot be tried: {answer.cannot}", hint="name a commit at which it runs")
        if answer.signature is None and not self.attempt.command:
            at.attempt = replace(at.attempt, comparison=Comparison(seconds=self.tries.seconds))
            outcome, answer = at.tried(self.tries, bad)
        if answer.signature is None:
            self.note = Remark("bad passes", self.bad)
            return False
        self.tries.look_for(answer, self.tries.tried[-1].seconds)
        outcome, other = at.tried(self.tries, good)
        if outcome == "passes":
            return True
        if other.signature is not None and same(other.signature, answer.signature):
            self.note = Remark("good fails", self.good, self.bad)
        else:
            self.note = Remark("good fails otherwise", self.good, other.cannot or other.words)
        return False

    def _search(self, at: "_ProgramAtCommit", good: str, bad: str) -> None:
        git = at.git

        def between(bad: str, passing: list[str]) -> list[str]:
            return git.between(bad, passing, first_parent=self.first_parent)

        def fails(sha: str) -> bool | None:
            outcome, _ = at.tried(self.tries, sha)
            return failed(outcome)

        def left(candidates: list[str]) -> None:
            self._among = self._among or len(candidates)
            self._left = candidates

        found = first_bad(bad, good, between, fails, left)
        self.found = FailingCommit(tuple(git.describe(sha) for sha in git.in_order(found, good)), self._among)


@dataclass
class _ProgramAtCommit:
    """The program in a worktree, run from the folder that corresponds to the user's."""

    git: Git
    tree: Worktree
    attempt: Try
    here: Path

    def tried(self, tries: BisectTries, sha: str) -> tuple[Outcome, Answer]:
        """Try the program at a commit; "other" if the commit does not have it."""
        program, what = self.attempt.program, f"commit {self.git.short(sha)}"
        file = (self.here / program.path).resolve() if program.path and not program.module else None
        if file is not None and not self.git.has(sha, str(file.relative_to(self.git.root))):
            return tries.untried(what, f"it has no {program.path}")
        self.tree.at(sha)
        folder = self._moved(self.here)
        if not folder.is_dir():
            return tries.untried(what, f"it has no folder {folder.name}")
        path = os.path.relpath(self._moved(file), folder) if file is not None else program.path
        named = (path,) if path and self.attempt.command else ()
        moved = replace(
            self.attempt,
            cwd=str(folder),
            program=replace(program, path=path, cwd=str(folder)),
            command=(*self.attempt.command, *named),
            environ=self._environ(),
        )
        return tries(moved, what)

    def _moved(self, path: Path) -> Path:
        """The path in the worktree for one of the user's checkout."""
        return self.tree.folder / path.relative_to(self.git.root) if path.is_relative_to(self.git.root) else path

    def _environ(self) -> dict[str, str]:
        """PYTHONPATH with the user's checkout replaced by the worktree, from which the try must import."""
        entries = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
        moved = [str(self._moved((self.here / entry).resolve())) for entry in entries]
        return {"PYTHONPATH": os.pathsep.join(moved)} if moved else {}
