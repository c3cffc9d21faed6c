"""What does git know of the user's repository, and how is a commit of it had in a folder of its own?

Nothing of the user's changes: not their files, index or HEAD. What git must note of the other folder goes with it.
"""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from idbg.schema.bisection import Commit
from idbg.schema.errors import BadInput, IdbgError

# the user's hooks and their housekeeping are not for folders that live a minute
_QUIET = (
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
    "-c",
    "advice.detachedHead=false",
)
_PREFIX = "idbg-commits-"


class Git:
    """The repository around a folder. Raises BadInput where there is none, or no git."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        answer = self.asked("rev-parse", "--show-toplevel")
        if answer is None or not answer.strip():
            raise BadInput(
                f"{folder} is in no git checkout", hint="commits can be searched where the program's are kept"
            )
        self.root = Path(answer.strip())

    def commit(self, revision: str) -> str:
        """The full name of a revision's commit. Raises BadInput where there is none."""
        answer = self.asked("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        if answer is None:
            raise BadInput(f"git knows no revision {revision!r} in {self.root}", hint="git log --oneline names them")
        return answer.strip()

    def is_ancestor(self, one: str, other: str) -> bool:
        """Whether the second commit has the first in its past, or is it."""
        return self.asked("merge-base", "--is-ancestor", one, other) is not None

    def between(self, bad: str, good: Sequence[str], *, first_parent: bool) -> list[str]:
        """The commits that may be the first bad one, those first whose answer tells most: `bad` is among them."""
        way = ("--first-parent",) if first_parent else ()
        answer = self.run("rev-list", "--bisect-all", *way, bad, *(f"^{each}" for each in good))
        return [line.split()[0] for line in answer.splitlines() if line.strip()]

    def in_order(self, commits: Sequence[str], good: str) -> list[str]:
        """The same, oldest first."""
        answer = self.run("rev-list", "--topo-order", "--reverse", *commits, f"^{good}")
        return [line for line in answer.split() if line in set(commits)]

    def told(self, sha: str) -> Commit:
        """Author, date, subject and diff stat of a commit."""
        form = "%H%x00%an <%ae>%x00%aI%x00%s%x00"
        answer = self.run("show", "--no-color", "--stat=100", "-m", "--first-parent", f"--format={form}", sha)
        name, author, date, subject, stat = answer.split("\0", 4)
        return Commit(name, author, date, subject, stat.strip("\n"))

    def short(self, sha: str) -> str:
        """As few digits as tell it from every other, and its subject."""
        return self.run("show", "--no-patch", "--no-color", "--format=%h %s", sha).strip()

    def has(self, sha: str, path: str) -> bool:
        """Whether the commit has this file; the path is from the repository's root."""
        return self.asked("cat-file", "-e", f"{sha}:{path}") is not None

    def run(self, *arguments: str, folder: Path | None = None) -> str:
        """What git says. Raises IdbgError with git's own words where it fails."""
        done = self._done(arguments, folder)
        if done.returncode != 0:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()
            raise IdbgError(
                f"git {arguments[0]} failed: {said[-1] if said else done.returncode}", hint=f"in {self.root}"
            )
        return done.stdout

    def asked(self, *arguments: str) -> str | None:
        """What git says; None where it fails."""
        done = self._done(arguments, None)
        return done.stdout if done.returncode == 0 else None

    def _done(self, arguments: Sequence[str], folder: Path | None) -> "subprocess.CompletedProcess[str]":
        environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environ |= {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
        try:
            return subprocess.run(
                ("git", "-C", str(folder or self.root), *_QUIET, *arguments),
                capture_output=True,
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
                env=environ,
                start_new_session=True,  # Ctrl+C is for us: we tidy up
                check=False,
            )
        except OSError as error:
            raise BadInput(f"git cannot be run: {error}", hint="install git, or search without commits") from error


@dataclass
class Worktree:
    """A folder beside the user's checkout in which one commit after another is checked out."""

    git: Git
    folder: Path

    def at(self, sha: str) -> None:
        """Have this commit there, and nothing that an earlier try left. Raises IdbgError."""
        self.git.run("checkout", "--quiet", "--force", "--detach", sha, folder=self.folder)
        self.git.run("clean", "-ffdxq", folder=self.folder)


@contextmanager
def worktree(git: Git, sha: str) -> Iterator[Worktree]:
    """A worktree at this commit, which goes with all that git notes of it. Raises IdbgError."""
    _tidy(git)
    made = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    folder = made / git.root.name
    try:
        git.run("worktree", "add", "--quiet", "--detach", str(folder), sha)
        yield Worktree(git, folder)
    finally:
        git.asked("worktree", "remove", "--force", "--force", str(folder))
        shutil.rmtree(made, ignore_errors=True)
        git.asked("worktree", "prune")


def _tidy(git: Git) -> None:
    """Remove the worktrees of searches that were killed: their process is gone."""
    for line in (git.asked("worktree", "list", "--porcelain") or "").splitlines():
        found = re.match(rf"worktree (.*/{_PREFIX}(\d+)-[^/]*)/", line)
        if found and not _is_alive(int(found[2])):
            git.asked("worktree", "remove", "--force", "--force", line.removeprefix("worktree "))
            shutil.rmtree(found[1], ignore_errors=True)


def _is_alive(process: int) -> bool:
    with contextlib.suppress(PermissionError):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return False
    return True
